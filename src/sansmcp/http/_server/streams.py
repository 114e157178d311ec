"""The streams of a session: where its messages go, and how a client resumes a broken stream.

A stream is not an exchange: it begins with a POST or a GET, may lose its exchange, and goes on in
the exchange of a later GET that names the last event that the client has seen.

Source: MCP 2025-11-25, basic/transports.
"""

from __future__ import annotations

import re
from binascii import crc32
from collections.abc import Sequence
from typing import Any, Final, Protocol, final

from ..._connection.core import Core
from ..._connection.events import LimitReached
from ..._connection.handles import OutgoingRequest
from ..._rules.sending import Breach
from ..._wire.values import RequestId
from .._headers import Headers
from .._sse import encode_event
from .event_log import EventLog, History, HistoryOwner
from .exchange import Ledger, ServerExchangeCore
from .sessions import ASK, Session, Sessions

_EVENT_ID: Final = re.compile(r"([0-9a-f]{8})-([0-9]{1,15})-([0-9]{1,15})", re.ASCII)
_ID: Final = b"id:"
"""How each event begins that is in the log, and no other piece of a stream."""
_PORTION: Final = 65_536
"""Bytes of missed events that are encoded at a time, or one event that is longer."""
_POLLING_SINCE: Final = "2025-11-25"
"""The first revision whose clients know that a stream may end before it is over."""
_RETRY_MS: Final = 1_000
"""Milliseconds that a client is told to wait when its stream is closed, where none are set."""


UNKNOWN_EVENT: Final = Breach(
    "SSE-035", "Last-Event-ID names no event of this session that is known"
)


def tag_of(id: bytes) -> str:
    """A short name of a session that is no secret, from its id."""
    return f"{crc32(id):08x}"


def event_id(tag: str, stream: int, event: int) -> str:
    """The id of an event: that of its session, of its stream, and its own.

    Keeps SSE-030, SSE-031.
    """
    return f"{tag}-{stream}-{event}"


def parse_event_id(id: str, tag: str) -> tuple[int, int] | None:
    """Stream and event that an id names; None: it is no id of the session with this tag."""
    match = _EVENT_ID.fullmatch(id)
    return None if match is None or match[1] != tag else (int(match[2]), int(match[3]))


class StreamsOwner(Ledger, HistoryOwner, Protocol):
    """The transport of a session, as its streams need it.

    Attributes:
        asking: The request of the server that is being queued; else None.
        core: What the parts of the transport share.
        session: The handle of the session.
    """

    asking: OutgoingRequest | None
    core: Core
    session: Session

    def ask_to_replay(self, stream: Stream, exchange: ServerExchangeCore, upto: int) -> bool:
        """Ask the application for the events that an exchange has missed."""
        ...

    def tell_to_store(self, stream: int, event: int, message: bytes) -> None:
        """Tell the application of an event that it is to store."""
        ...

    def release_changes(self) -> None:
        """Send the changes that wait for a stream, or for room on it."""
        ...

    def stream_left(self) -> None:
        """The client of a stream has closed its connection."""
        ...

    def report_undelivered(self, is_answer: bool) -> None:
        """Report that a message of the server is lost."""
        ...


@final
class StoredElsewhere:
    """The event log of a session whose events the application stores."""

    __slots__ = ("_transport",)

    def __init__(self, transport: StreamsOwner) -> None:
        self._transport = transport

    def append(self, stream: int, event: int, message: bytes) -> int:
        """Tell the application of an event; what becomes of it, a verb says later."""
        self._transport.tell_to_store(stream, event, message)
        return 0

    def replay(self, stream: int, after: int) -> None:
        """Nothing is here: the application is asked."""


class Stream:
    """One stream of a session, and the route of the requests that it began with.

    Attributes:
        closing: Whether the next message is the last one.
        transport: The transport of the session.
        context: The context that the exchange was given.
        events: How many events it has had, the priming one included.
        exchange: The exchange by which a client reads it now; None while no client does.
        is_batch: Whether it began with a batch.
        is_opening: Whether it is the response to `initialize`, whose head names the session. No
            message comes before it, since there is no session before it.
        listens: Whether it began with a GET, for messages that belong to no request.
        more: Headers of the response to its request beside the usual ones, where it is no stream.
        number: Its number within the session, once it has had an event; else 0.
        over: Whether nothing more goes out on it.
        principal: Who sent the request that it began with, else who opened the session.
        request_id: The id of the request whose response is the last message; None for a batch.
        sent: The last event that was written to this exchange.
        status: The status of the response, where it is no stream.
        streams: All streams of the session.
        unseen: The first event that was not sent in any exchange; one that waits in an exchange
            counts as sent until it is dropped there.
        unseen_before: The first event that was not sent in any exchange before this one.
    """

    __slots__ = (
        "closing",
        "context",
        "events",
        "exchange",
        "is_batch",
        "is_opening",
        "listens",
        "more",
        "number",
        "over",
        "principal",
        "request_id",
        "sent",
        "status",
        "streams",
        "transport",
        "unseen",
        "unseen_before",
    )

    def __init__(
        self, streams: SessionStreams, exchange: ServerExchangeCore | None, *, listens: bool = False
    ) -> None:
        self.streams: SessionStreams = streams
        self.transport: StreamsOwner = streams.transport
        self.number: int = 0
        self.exchange: ServerExchangeCore | None = exchange
        self.listens: bool = listens
        self.principal: Any = streams.principal if exchange is None else exchange.principal
        self.request_id: RequestId | None = None
        self.status: int = 200
        self.more: Headers = ()
        self.events: int = 0
        self.sent: int = 0
        self.unseen: int = 1
        self.unseen_before: int = 1
        self.closing: bool = False
        self.over: bool = False
        self.is_batch: bool = False
        self.is_opening: bool = False
        self.context: Any = None if exchange is None else exchange.context
        if exchange is not None:
            exchange.route = self
            exchange.ledger = streams.transport

    @classmethod
    def ended(cls, streams: SessionStreams, number: int) -> Stream:
        """A stream that is over, and of which the log has events."""
        stream = cls(streams, None)
        stream.number = number
        stream.listens = number % 2 == 1
        stream.over = True
        return stream

    # ------------------------------------------------------------------------------- sending

    def takes(self) -> bool:
        """Whether a message before the last one would arrive, or wait until it is fetched."""
        if self.exchange is not None:
            return self.exchange.takes_stream and not self.is_opening
        return not self.over and self._is_kept()

    def _is_kept(self) -> bool:
        """Whether messages that no client reads now are kept for a client that resumes."""
        return self.streams.has_log and (self.listens or self.events > 0)

    def deliver(self, message: bytes) -> bool:
        """Send one message, or keep it for a client that comes back; False: it is lost."""
        exchange, last = self.exchange, self.closing
        if self.over:
            return False
        if exchange is None:
            kept = self._is_kept() and self._keep(message, is_waiting=True)
        elif exchange.behind is not None:
            kept = self._keep(message, is_waiting=True)  # it goes out after those that were missed
        elif (
            last
            and not exchange.is_stream
            and (exchange.json_first or self.status >= 400)  # errors are one object always
        ):
            # The end of nearly every stream: the client does not see that it was one.
            self.over = True
            self.exchange = None
            exchange.answer(self.status, message, self.more)
            return True
        elif not exchange.takes_stream or (self.is_opening and not last):
            return False
        else:
            if not exchange.is_stream:
                self.start()
            self._write(exchange, message)
            kept = True
        if last and kept:
            self.finish()
        return kept

    def start(self) -> None:
        """Turn the response into a stream, and give the client an event id to resume it from.

        The stream of a POST starts at once with `answers="sse"` (`PostReceiver._after`), and else
        with the first message before the response (`deliver`), or by `start_stream` of the
        endpoint. Without an event log it cannot be resumed: no id is sent (SSE-015), and neither is
        one to clients before 2025-11-25.

        Keeps SSE-015.
        """
        exchange, streams = self.exchange, self.streams
        assert exchange is not None
        if not exchange.is_stream:
            exchange.start_stream()
        if streams.has_log and streams.can_poll and exchange.behind is None:
            self._keep(b"")
            event = self._event_id(self.events)
            exchange.write(encode_event(b"", id=event, retry_ms=streams.settings.retry_ms))
            self._has_sent(self.events)

    def pause(self, retry_ms: int | None) -> bool:
        """End the exchange of the stream, and let the client resume it later.

        Args:
            retry_ms: Milliseconds that the client waits before; None: as the settings say.

        Returns:
            Whether it was done. False: no client reads the stream, or the client cannot resume it.
        """
        exchange, streams = self.exchange, self.streams
        if exchange is None or not streams.has_log or not streams.can_poll:
            return False
        if not exchange.takes_stream:
            return False
        if not exchange.is_stream:
            self.start()
        wait = streams.settings.retry_ms if retry_ms is None else retry_ms
        # SSE-019: it is always said.
        exchange.write(encode_event(None, retry_ms=_RETRY_MS if wait is None else wait))
        self.detach()
        exchange.end()
        return True

    def _write(self, exchange: ServerExchangeCore, message: bytes) -> None:
        """Write a message to the exchange, and keep it in the log."""
        streams = self.streams
        event: str | None = None
        if streams.has_log:
            self._keep(message)
            event = self._event_id(self.events)
        kind = "message" if streams.is_old else None
        exchange.write(encode_event(message, id=event, type=kind))
        self._has_sent(self.events)

    def _has_sent(self, event: int) -> None:
        self.sent = event
        self.unseen = max(self.unseen, event + 1)

    def _keep(self, message: bytes, *, is_waiting: bool = False) -> bool:
        """Put an event into the log, where it waits if it is not sent at once too."""
        streams = self.streams
        if not self.number:
            self.number = streams.file(self)
        self.events += 1
        call = self.transport.asking if is_waiting else None
        return streams.history().keep(self, message, call)

    def _event_id(self, event: int) -> str:
        return event_id(self.streams.tag, self.number, event)

    # -------------------------------------------------------------------------------- ending

    def refuse(self, status: int, body: bytes) -> None:
        """Answer with an error that is no message of the conversation."""
        assert self.exchange is not None  # its message has just come
        self.exchange.answer(status, body)
        self.finish()

    def finish(self, status: int = 200, id: RequestId | None = None) -> None:
        """End the stream and its exchange; events in the log stay there.

        An error status names the request with this id.
        """
        self.over = True
        exchange = self.exchange
        self.streams.forget(self)
        if exchange is not None and (exchange.behind is None or self.listens):
            self.detach()
            exchange.end(status, id)

    def drop(self) -> None:
        """Forget the output that waits in its exchange, which will not be sent there."""
        exchange = self.exchange
        assert exchange is not None
        for piece in exchange.pieces:
            if piece.startswith(_ID):
                self.streams.dropped(piece)
        exchange.drop()

    def detach(self) -> None:
        """Part from the exchange: no client reads the stream for now."""
        exchange, self.exchange = self.exchange, None
        assert exchange is not None
        if exchange.behind is not None:
            self._follow_no_more(exchange)
        exchange.route = None
        if self.listens and not self.streams.has_log and not self.over:
            self.finish()

    def disconnected(self) -> None:
        """The client has closed its connection; it may come back and resume the stream."""
        self.detach()
        self.transport.stream_left()

    def answer_lost(self) -> None:
        """The answer was complete, and was never taken."""
        self.transport.report_undelivered(is_answer=True)

    # ------------------------------------------------------------------------------ resuming

    def resume(self, exchange: ServerExchangeCore, after: int) -> None:
        """Go on in this exchange, with the events that followed that one."""
        old = self.exchange
        if old is not None:
            self.drop()  # it is in the log, and each message goes out on one connection (SSE-027)
            self.detach()
            old.end()
        exchange.route = self
        exchange.ledger = self.transport
        self.exchange = exchange
        self.sent = after
        self.unseen_before = self.unseen
        is_behind = self.over or after < self.events or self._has_to_give_way()
        if not exchange.is_stream and not (is_behind and self.asks):
            exchange.start_stream()
        if is_behind:
            exchange.behind = self
            exchange.is_resting = False
            self.streams.follow_log(self)
            if self.asks:  # the response begins with the first events
                self._ask(exchange)

    def missed(self) -> bytes:
        """The next portion of the events that its exchange has missed; it may be empty.

        Events that no client fetches stay in the log, which has a bound: a client that asks again
        and again and never reads costs nothing.
        """
        exchange, history = self.exchange, self.streams.history()
        assert exchange is not None  # which asks
        if self.asks:
            if not exchange.waits:
                self._ask(exchange)
            return b""
        portion: list[bytes] = []
        size = lost = 0
        for event, message in history.after(self.number, self.sent) or ():
            if size >= _PORTION:
                break
            text = encode_event(message, id=self._event_id(event))
            portion.append(text)
            size += len(text)
            lost += event - self.sent - 1
            self._has_sent(event)
        else:
            lost += max(self.events - self.sent, 0)
            self._caught_up(exchange)
        if lost:
            history.report_lost(lost)
        return b"".join(portion)

    @property
    def asks(self) -> bool:
        """Whether the application is asked for the events."""
        return self.streams.asks

    @property
    def is_unknown(self) -> bool:
        """Whether nothing is known of the stream but its number: only the log can know more."""
        return self.over and not self.events

    def _ask(self, exchange: ServerExchangeCore) -> None:
        """Ask the application for the events that the exchange has missed."""
        if not self.transport.ask_to_replay(self, exchange, self.events):
            self.detach()

    def refuse_unknown(self) -> None:
        """The application knows no event of the stream."""
        exchange = self.exchange
        assert exchange is not None  # which has asked
        self.detach()
        exchange.refuse(400, UNKNOWN_EVENT)

    def replayed(self, events: Sequence[tuple[int, bytes]], more: bool, upto: int) -> None:
        """Write events that the application has stored.

        Args:
            events: Number and message of each, oldest first.
            more: Whether others of them follow, when these were taken.
            upto: The last event of which the application was told before it was asked.
        """
        exchange, core = self.exchange, self.transport.core
        assert exchange is not None  # which has asked
        written = [
            (event, encode_event(message, id=self._event_id(event))) for event, message in events
        ]
        if not exchange.is_stream:
            exchange.start_stream()
        if core.unsent + sum(len(text) for _, text in written) > core.config.max_unsent_bytes:
            self.detach()  # its client does not read: it may come back for them
            exchange.end()
            return
        lost = 0
        for event, text in written:
            exchange.write(text)
            lost += event - self.sent - 1
            self._has_sent(event)
        if not more:
            lost += max(upto - self.sent, 0)
            self.sent = max(upto, self.sent)
            if self.sent >= self.events:
                self._caught_up(exchange)
            elif not written:  # else the rest is asked for when these were taken
                self._ask(exchange)
        if lost:
            self.streams.history().report_lost(lost)

    def _follow_no_more(self, exchange: ServerExchangeCore) -> None:
        """The exchange reads no more events out of the log."""
        exchange.behind = None
        self.streams.leave_log(self)

    def _has_to_give_way(self) -> bool:
        """Whether another stream is to follow in the same exchange.

        A stream that listens gives way if it was ended for a newer one, or if others have events
        that were never sent.
        """
        return self.listens and (self.over or bool(self.streams.unread))

    def _caught_up(self, exchange: ServerExchangeCore) -> None:
        """The exchange has all events of the stream that the log has."""
        streams = self.streams
        self.sent = self.events
        self._follow_no_more(exchange)
        is_readable = not streams.history().has_failed
        if is_readable:
            self.unseen = self.events + 1  # events that the log has lost will never be sent
        # While the log fails, the other streams have nothing more to read from it.
        if self._has_to_give_way() and (self.over or is_readable):
            self.detach()
            streams.open(exchange)
            self.transport.release_changes()
        elif self.over:
            self.finish()


class SessionStreams:
    """The streams of one session; as a route, the way of messages that belong to no request.

    These go to the newest of the GET streams. Where none is open they wait in the log, up to its
    bound, for the next one. They wait on one stream, so that they keep their order. Where several
    streams have some nevertheless, as each was closed before all was read, the next exchange
    carries them one after the other.

    Attributes:
        closing: As for any route. It has no effect, since this route never closes.
        transport: The transport of the session.
        context: The context of the exchange that a client of 2024-11-05 has opened its stream by.
        has_log: Whether events are kept, so that a client can resume a stream.
        is_batch: As for any route.
        is_old: Whether the session is that of a client of 2024-11-05, with one stream only.
        listening: The GET streams that are not over; the one that was opened last is the last.
        more: As for any route.
        over: No message is the end of this route, so that none ends an exchange.
        principal: Who opened the session; for a client of 2024-11-05, who sent the last message,
            and is equal to that one.
        request_id: As for any route.
        settings: How sessions are kept.
        status: As for any route.
        tag: A short name of the session in event ids, so that none is taken for that of another.
    """

    __slots__ = (
        "_begun",
        "_count",
        "_followers",
        "_history",
        "closing",
        "context",
        "has_log",
        "is_batch",
        "is_old",
        "listening",
        "more",
        "over",
        "principal",
        "request_id",
        "settings",
        "status",
        "tag",
        "transport",
    )

    def __init__(
        self,
        transport: StreamsOwner,
        settings: Sessions,
        id: bytes,
        principal: Any,
        *,
        is_old: bool = False,
    ) -> None:
        self.transport: StreamsOwner = transport
        self.settings: Sessions = settings
        self.principal: Any = principal
        self.is_old: bool = is_old
        self.has_log: bool = settings.event_log is not None and not is_old
        self.tag: str = tag_of(id)
        self.context: Any = None
        self.listening: list[Stream] = []
        self.closing: bool = False
        self.over: bool = True
        self.is_batch: bool = False
        self.request_id: RequestId | None = None
        self.status: int = 200
        self.more: Headers = ()
        self._begun: dict[int, Stream] = {}  # streams with an event that are not over, by number
        self._count = 0  # of streams that have had an event
        # Most sessions never have an event, and few streams are ever read out of the log.
        self._history: History | None = None
        self._followers: dict[Stream, None] | None = None

    @property
    def asks(self) -> bool:
        """Whether the application stores the events, and is asked for them."""
        return self.settings.event_log == ASK

    @property
    def can_poll(self) -> bool:
        """Whether the client knows that a stream may end before it is over."""
        return (self.transport.core.peer.revision or "") >= _POLLING_SINCE

    @property
    def connected(self) -> Stream | None:
        """The newest GET stream that a client reads."""
        for stream in reversed(self.listening):
            if stream.exchange is not None:
                return stream
        return None

    @property
    def unread(self) -> list[Stream]:
        """The GET streams that no client reads and that have unsent events, the oldest first."""
        return [
            stream
            for stream in self.listening
            if stream.exchange is None and stream.unseen <= stream.events
        ]

    # ----------------------------------------------------------------------------- as a route

    def takes(self) -> bool:
        """Whether a message would arrive, or wait."""
        return self.has_log or self.connected is not None

    def deliver(self, message: bytes) -> bool:
        """Send one message, or keep it; False: it is lost."""
        stream = self.connected
        if stream is None:
            if not self.has_log:
                return False
            if not self.listening:
                self.listening.append(Stream(self, None, listens=True))
            stream = (self.unread or self.listening)[-1]
        return stream.deliver(message)

    # ------------------------------------------------------------------------ opening and resuming

    def file(self, stream: Stream) -> int:
        """Give a stream its number, by which it can be found: odd if it began with a GET."""
        self._count += 1
        number = 2 * self._count - stream.listens
        self._begun[number] = stream
        return number

    def forget(self, stream: Stream) -> None:
        """A stream is over."""
        self._begun.pop(stream.number, None)
        if stream.listens and stream in self.listening:
            self.listening.remove(stream)

    def dropped(self, piece: bytes) -> None:
        """An event was written to an exchange, and is not sent there.

        The exchange may have begun with other streams, which had unsent events.
        """
        id = piece.partition(b"\n")[0].removeprefix(_ID).decode().strip()
        named = parse_event_id(id, self.tag)
        assert named is not None  # it is ours
        number, event = named
        stream = self._begun.get(number)
        if stream is not None:
            stream.unseen = min(stream.unseen, max(event, stream.unseen_before))

    def history(self) -> History:
        """The events of all streams, in the log of the session."""
        if self._history is None:
            factory = self.settings.event_log
            assert factory is not None  # else no event is kept
            self._history = History(self.transport, self._store if factory == ASK else factory)
        return self._history

    def _store(self) -> EventLog:
        return StoredElsewhere(self.transport)

    def follow_log(self, stream: Stream) -> None:
        """A stream is read out of the log, since its exchange has missed events."""
        if self._followers is None:
            self._followers = {}
        self._followers[stream] = None

    def leave_log(self, stream: Stream) -> None:
        """The exchange of a stream has all events that the log has, or has left the stream."""
        assert self._followers is not None  # the stream is one of them
        del self._followers[stream]

    def open_old(self, exchange: ServerExchangeCore) -> None:
        """Open the one stream of a client of 2024-11-05."""
        self.context = exchange.context
        self.listening.append(Stream(self, exchange, listens=True))
        exchange.start_stream()

    def open(self, exchange: ServerExchangeCore) -> None:
        """Serve a GET without `Last-Event-ID`: by a new stream, or by one with unsent events.

        Only events follow that were never sent in any exchange: to fetch more, a client has to say
        which one it has seen last.
        """
        for stream in self.unread:
            self._is_newest(stream)
            stream.resume(exchange, stream.unseen - 1)
            return
        stream = Stream(self, exchange, listens=True)
        self.listening.append(stream)
        stream.start()
        self._trim()

    def resume(self, exchange: ServerExchangeCore, last: str) -> bool:
        """Serve a GET with `Last-Event-ID`, by the stream that the event belongs to.

        Returns:
            Whether there is one. False: the id names no event of this session that is known.
        """
        named = parse_event_id(last, self.tag) if self.has_log else None
        if named is None:
            return False
        number, event = named
        stream = self._begun.get(number)
        if stream is not None:
            if not 1 <= event <= stream.events:
                return False
            stream.resume(exchange, event)
            if stream.listens:
                self._is_newest(stream)
            return True
        if self.asks:
            if not 1 <= number <= 2 * self._count:
                return False  # the session has had no such stream
        elif self.history().after(number, event) is None:
            return False
        Stream.ended(self, number).resume(exchange, event)
        return True

    def _is_newest(self, stream: Stream) -> None:
        """A GET stream is read again: messages that belong to no request go to it now."""
        self.listening.remove(stream)
        self.listening.append(stream)

    def _trim(self) -> None:
        """End the oldest GET stream if there is one too many."""
        if len(self.listening) > self.settings.max_streams:
            oldest = min(self.listening, key=lambda stream: stream.exchange is not None)
            if oldest.exchange is not None:
                session = self.transport.session
                text = f"{session!r} has {len(self.listening)} GET streams, which is the limit"
                self.transport.core.events.append(LimitReached(rule="OWN-031", text=text))
            oldest.finish()

    def end(self) -> None:
        """The session is over: end its streams, and the exchanges that read out of the log."""
        for stream in list(self.listening):
            stream.finish()
        self._history = None
        for stream in list(self._followers or ()):
            exchange = stream.exchange
            assert exchange is not None  # which follows
            stream.detach()
            exchange.end()
