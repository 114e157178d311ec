"""The streams of a session: where its messages go, and how a broken one is taken up again.

A stream is not a connection: it begins with a POST or a GET, may lose its exchange, and goes on
in the exchange of a later GET that names the last event it has seen.

Source: MCP 2025-11-25, basic/transports.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ..._connection.events import LimitReached
from .._sse import encode_event

if TYPE_CHECKING:
    from ..._wire.values import RequestId
    from .connection import SessionConnection
    from .exchange import ServerExchange
    from .sessions import Session

_EVENT_ID: Final = re.compile(r"([0-9a-f]{8})-([0-9]{1,15})-([0-9]{1,15})", re.ASCII)
_ID: Final = b"id:"
"""How each event begins that is in the log, and no other piece of a stream."""
_PORTION: Final = 65_536
"""Bytes of missed events that are encoded at a time, or one event that is longer."""


class Stream:
    """One stream of a session, and the route of the requests that it began with.

    Attributes:
        closing: The next message is the last one.
        context: As the exchange was given it.
        events: How many events it has had, the priming one included.
        exchange: Where it is read now; None while nobody does.
        is_opening: It is the answer to `initialize`, whose head names the session: nothing comes
            before it, since there is no session before it.
        listens: It began with a GET, and is there for messages that belong to no request.
        number: Its name within the session, once it has had an event.
        over: Nothing more goes out on it.
        principal: Who opened the session.
        request_id: Of the request whose answer is the last message; None for a batch.
        sent: The last event that was written to this exchange.
        session: The session.
        status: Of the answer, where it is no stream.
        unseen: The first event that was not sent in any exchange; what waits in one counts as
            sent until that is dropped.
    """

    __slots__ = (
        "_connection",
        "closing",
        "context",
        "events",
        "exchange",
        "is_opening",
        "listens",
        "number",
        "over",
        "principal",
        "request_id",
        "sent",
        "session",
        "status",
        "unseen",
    )

    def __init__(
        self, session: Session, exchange: ServerExchange | None, *, listens: bool = False
    ) -> None:
        self.session = session
        self._connection: SessionConnection = session._connection
        self.number = 0  # it gets one with its first event
        self.exchange = exchange
        self.listens = listens
        self.principal: Any = session._principal
        self.request_id: RequestId | None = None
        self.status = 200
        self.events = 0
        self.sent = 0
        self.unseen = 1
        self.closing = False
        self.over = False
        self.is_opening = False
        self.context: Any = None if exchange is None else exchange.context
        if exchange is not None:
            exchange._route = self
            exchange._ledger = self._connection

    @classmethod
    def ended(cls, session: Session, number: int) -> Stream:
        """One that is over, of which the log has something."""
        stream = cls(session, None)
        stream.number = number
        stream.listens = number % 2 == 1
        stream.over = True
        return stream

    # ------------------------------------------------------------------------------- sending

    def takes(self) -> bool:
        """Whether a message before the last one would arrive, or wait until it is fetched."""
        if self.exchange is not None:
            return self.exchange._takes_stream and not self.is_opening
        return not self.over and self._is_kept()

    def _is_kept(self) -> bool:
        """Whether somebody may come for what nobody reads now."""
        return self.session._has_log and (self.listens or self.events > 0)

    def deliver(self, message: bytes) -> bool:
        """Send one message, or keep it for a client that comes back; False: it is lost."""
        exchange, last = self.exchange, self.closing
        if self.over:
            return False
        if exchange is None:
            kept = self._is_kept() and self._keep(message, is_waiting=True)
        elif (
            last
            and not exchange.is_stream
            and (exchange._json_first or self.status >= 400)  # errors are one object always
        ):
            # The end of nearly every stream: nobody has seen that it was one.
            self.over = True
            self.exchange = None
            exchange._answer(self.status, message)
            return True
        elif not exchange._takes_stream or (self.is_opening and not last):
            return False
        else:
            if not exchange.is_stream:
                self.start()
            kept = self._write(exchange, message)
        if last and kept:
            self.finish()
        return kept

    def start(self) -> None:
        """Turn the answer of its exchange into a stream, and tell the client where it stands.

        Keeps SSE-015.
        """
        exchange, session = self.exchange, self.session
        assert exchange is not None
        if not exchange.is_stream:
            exchange._start_stream()
        if session._has_log and session._can_poll:
            self._keep(b"")
            event = self._event_id(self.events)
            exchange._write(encode_event(b"", id=event, retry_ms=session._settings.retry_ms))
            self._has_sent(self.events)

    def _write(self, exchange: ServerExchange, message: bytes) -> bool:
        """Write a message, if only to the log; False: it is lost."""
        session = self.session
        event: str | None = None
        if session._has_log:
            is_behind = exchange._behind is not None
            kept = self._keep(message, is_waiting=is_behind)
            if is_behind:
                return kept  # it follows from the log, after what was missed
            event = self._event_id(self.events)
        kind = "message" if session._is_old else None
        exchange._write(encode_event(message, id=event, type=kind))
        self._has_sent(self.events)
        return True

    def _has_sent(self, event: int) -> None:
        self.sent = event
        self.unseen = max(self.unseen, event + 1)

    def _keep(self, message: bytes, *, is_waiting: bool = False) -> bool:
        """Put an event into the log, where it waits if it is not sent at once too."""
        session = self.session
        if not self.number:
            session._count += 1
            self.number = 2 * session._count - self.listens  # odd: it began with a GET
            session._streams[self.number] = self
        self.events += 1
        call = session._connection.asking if is_waiting else None
        return session._history.keep(self, message, call)

    def _event_id(self, event: int) -> str:
        # Keeps SSE-030, SSE-031.
        return f"{self.session._tag}-{self.number}-{event}"

    # -------------------------------------------------------------------------------- ending

    def refuse(self, status: int, body: bytes) -> None:
        """Answer with an error that is no message of the conversation."""
        assert self.exchange is not None  # its message has just come
        self.exchange._answer(status, body)
        self.finish()

    def finish(self, status: int = 200, id: RequestId | None = None) -> None:
        """Nothing more goes out on it: its exchange ends, and what the log has stays there.

        An error status names the request with this id.
        """
        self.over = True
        session, exchange = self.session, self.exchange
        session._streams.pop(self.number, None)
        if self.listens and self in session._standalone.listening:
            session._standalone.listening.remove(self)
        if exchange is not None and (exchange._behind is None or self.listens):
            self.detach()
            exchange._end(status, id)

    def drop(self) -> None:
        """Forget what waits in its exchange to be taken, which will not be sent there."""
        exchange = self.exchange
        assert exchange is not None
        n_waiting = sum(piece.startswith(_ID) for piece in exchange._pieces)
        if n_waiting:
            self.unseen = self.sent - n_waiting + 1
        exchange._drop()

    def detach(self) -> None:
        """Nobody reads it any more, for now."""
        exchange, self.exchange = self.exchange, None
        assert exchange is not None
        if exchange._behind is not None:
            self._follow_no_more(exchange)
        exchange._route = None
        if self.listens and not self.session._has_log and not self.over:
            self.finish()

    # ------------------------------------------------------------------------------ resuming

    def go_on(self, exchange: ServerExchange, after: int) -> None:
        """Take it up in this exchange, with what followed that event."""
        old = self.exchange
        if old is not None:
            self.drop()  # it is in the log, and each message goes out on one connection (SSE-027)
            self.detach()
            old._end()
        exchange._route = self
        exchange._ledger = self._connection
        if not exchange.is_stream:
            exchange._start_stream()
        self.exchange = exchange
        self.sent = after
        if self.over or after < self.events or self._has_to_give_way():
            exchange._behind = self
            exchange._is_resting = False
            self.session._history.followers[self] = None

    def missed(self) -> bytes:
        """The next portion of what its exchange has missed; where that was all, it has caught up.

        What nobody fetches stays in the log, which has a bound: a client that asks again and again
        and never reads costs nothing.
        """
        exchange, history = self.exchange, self.session._history
        assert exchange is not None  # which asks
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

    def _follow_no_more(self, exchange: ServerExchange) -> None:
        exchange._behind = None
        if self.session._past is not None:  # else the session is over
            self.session._past.followers.pop(self)

    def _has_to_give_way(self) -> bool:
        """Whether another stream is to follow in the same exchange.

        That is where it listens, and was ended for a newer one, or others have what was never sent.
        """
        return self.listens and (self.over or bool(self.session._standalone.unread))

    def _caught_up(self, exchange: ServerExchange) -> None:
        session = self.session
        self.sent = self.events
        self._follow_no_more(exchange)
        is_readable = not session._history.has_failed
        if is_readable:
            self.unseen = self.events + 1  # what the log has lost will never be sent
        # While the log fails, others have nothing more to read from it.
        if self._has_to_give_way() and (self.over or is_readable):
            self.detach()
            session._standalone.open(exchange)
            session._connection.release_changes()
        elif self.over:
            self.finish()


def read_event_id(session: Session, text: str) -> tuple[int, int] | None:
    """Stream and event that an event id of this session names; None: it names none."""
    match = _EVENT_ID.fullmatch(text)
    if match is None or match[1] != session._tag:
        return None
    return int(match[2]), int(match[3])


class Standalone:
    """Where messages of a session go that belong to no request: the newest of its GET streams.

    Where none is open they wait in the log, up to its bound, for the next one. They wait on one
    stream, so that they keep their order. Where several have something nevertheless, as each was
    closed before all was read, the next exchange carries them one after the other.
    """

    __slots__ = ("closing", "context", "listening", "principal", "request_id", "session", "status")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.principal: Any = session._principal
        self.context: Any = None
        self.listening: list[Stream] = []
        # Of requests that came with a POST of 2024-11-05, whose answers go here; it never closes.
        self.closing = False
        self.request_id: RequestId | None = None
        self.status = 200

    @property
    def _connection(self) -> SessionConnection:
        return self.session._connection

    @property
    def over(self) -> bool:
        """It lasts as long as the session: no request is the end of it."""
        return True

    @property
    def connected(self) -> Stream | None:
        """The newest stream that is read."""
        for stream in reversed(self.listening):
            if stream.exchange is not None:
                return stream
        return None

    @property
    def unread(self) -> list[Stream]:
        """The streams that nobody reads and that have what was never sent, the oldest first."""
        return [
            stream
            for stream in self.listening
            if stream.exchange is None and stream.unseen <= stream.events
        ]

    def takes(self) -> bool:
        """Whether a message would arrive, or wait."""
        return self.session._has_log or self.connected is not None

    def deliver(self, message: bytes) -> bool:
        """Send one message, or keep it; False: it is lost."""
        stream = self.connected
        if stream is None:
            if not self.session._has_log:
                return False
            if not self.listening:
                self.listening.append(Stream(self.session, None, listens=True))
            stream = (self.unread or self.listening)[-1]
        return stream.deliver(message)

    def open(self, exchange: ServerExchange) -> Stream:
        """A GET without `Last-Event-ID`: a new stream, or one that nobody has read yet to its end.

        Only what was never sent in any exchange follows: to fetch more, a client has to say what it
        has seen.
        """
        for stream in self.unread:
            self.taken_up(stream)
            stream.go_on(exchange, stream.unseen - 1)
            return stream
        stream = Stream(self.session, exchange, listens=True)
        self.listening.append(stream)
        stream.start()
        self._trim()
        return stream

    def taken_up(self, stream: Stream) -> None:
        """A stream is read again: it is the newest now."""
        self.listening.remove(stream)
        self.listening.append(stream)

    def _trim(self) -> None:
        if len(self.listening) > self.session._settings.max_streams:
            oldest = min(self.listening, key=lambda stream: stream.exchange is not None)
            if oldest.exchange is not None:
                text = f"{self.session!r} has {len(self.listening)} GET streams, which is the limit"
                self._connection.core.events.append(LimitReached(rule="OWN-031", text=text))
            oldest.finish()

    def end(self) -> None:
        """The session is over."""
        for stream in list(self.listening):
            stream.finish()
