"""One end of a conversation on a byte stream, such as stdio: bytes in, bytes and events out."""

from __future__ import annotations

from typing import Any

from .._rules.conversation import Peer
from .._rules.sending import (
    Breach,
)
from .._rules.state_tables import (
    Phase,
    State,
)
from .._spec.errors import ErrorCode
from .._wire.codec import refusal
from .._wire.framing import (
    NO_NEWLINE,
    SPACE,
    Line,
    LineReader,
    Overlong,
    OverlongEnd,
    OverlongLine,
    Trimmer,
    is_blank,
)
from .._wire.setting_checks import check_clock
from .._wire.values import (
    MISSING,
    JSONObject,
    JSONValue,
    Missing,
)
from .core import Core
from .events import (
    Event,
)
from .handles import (
    IncomingRequest,
    Listing,
    OutgoingRequest,
    Ping,
    Start,
    Subscription,
)
from .machine import Machine
from .transport import Transport


class ByteStream(Transport):
    """One stream of bytes for all messages, which may end in the middle of one."""

    __slots__ = ("cut_off",)

    core: Core  # which sets it

    def __init__(self) -> None:
        self.cut_off: str | None = None  # the message that the stream ended in, if over the limit

    def loss_text(self, call: OutgoingRequest) -> str:
        """Why a request has no answer; its answer may be what the stream was cut off in."""
        text = super().loss_text(call)
        if self.cut_off is None:
            return text
        return f"{text}; {self.cut_off}, and it may be the response"


class Connection:
    """One end of a conversation on a byte stream: the verbs that clients and servers share."""

    __slots__ = (
        "__weakref__",
        "_core",
        "_incoming",
        "_lines",
        "_machine",
        "_notifications",
        "_outgoing",
        "_stream",
        "_trimmer",
    )

    def _assemble(self, machine: Machine, stream: ByteStream) -> None:
        self._machine = machine
        self._stream = stream
        self._core = machine.core
        # The parts of the verbs that are called most: a name of its own saves a step at each call.
        self._outgoing = machine.outgoing
        self._incoming = machine.incoming
        self._notifications = machine.notifications
        self._lines = LineReader(self._core.config.max_message_bytes)
        self._trimmer = Trimmer()

    # -------------------------------------------------------------------------- from the transport

    def receive_data(
        self,
        data: bytes | bytearray | memoryview,
        *,
        at: float | None = None,
        now: float | None = None,
    ) -> None:
        """Take the next bytes of the peer's stream, cut anywhere.

        Args:
            data: Any number of bytes; nothing of it is kept but an unfinished line.
            at: The time in Unix seconds. Where it is told and `Config.state_keys` are set, a
                server checks the seal of a state before it delivers the request.
            now: The caller's clock in seconds.

        Never raises for what the peer did: bad lines become events, good ones around them are
        served.

        Source: MCP 2025-11-25, basic/transports, stdio.
        """
        if now is not None:
            self._core.tell(now)
        if self._core.state is State.CLOSED or self._core.state is State.DRAINING:
            return
        if at is not None and at.__class__ is not float:
            check_clock("at", at)
        self._core.at = at
        for line in self._lines.feed(data):
            if isinstance(line, Overlong) or self._trimmer.first or not line or line[-1] <= SPACE:
                self._receive_odd_line(line)
            else:
                self._machine.receive(line)
            if self._core.overflowing:
                self._core.end_overflow()
        if self._core.needs_settle:
            self._core.settle()

    def receive_message(
        self,
        message: bytes | bytearray | str,
        *,
        at: float | None = None,
        now: float | None = None,
    ) -> None:
        """Take one whole encoded message, for transports that keep messages apart.

        Args:
            message: One JSON text without framing.
            at: The time in Unix seconds, as for `receive_data`.
            now: The caller's clock in seconds.

        Never raises for what the peer did: bad messages become events.
        """
        self._machine.receive_message(message, at=at, now=now)

    def receive_eof(
        self, *, drain: float = 0.0, at: float | None = None, now: float | None = None
    ) -> None:
        """The peer has ended its stream: no more input will come.

        Requests of ours that wait for an answer end as lost. Requests that we are handling are
        cancelled, at once or when `drain` is over, and `ConnectionClosed` comes last.

        Args:
            drain: Seconds in which answers to requests already read may still be sent.
            at: The time in Unix seconds, as for `receive_data`: the last line may have no newline.
            now: The caller's clock in seconds. Without any clock, `drain` does nothing.

        Raises:
            ValueError: `drain` is negative, or no number.
        """
        if now is not None:
            self._core.tell(now)
        self._core.at = at
        self._input_ended()
        self._machine.receive_eof(drain=drain, at=at, now=now)

    def send_failed(self, *, now: float | None = None) -> None:
        """Writing to the peer has failed, perhaps in the middle of a message.

        Output is dropped. Requests that we are handling are cancelled, and requests of ours that
        were not handed over end as lost; those that were may still be answered, until the end of
        the stream or their timeout.
        """
        self._machine.send_failed(now=now)

    def handle_timeout(self, now: float) -> None:
        """The time is `now`: fire what is due. Spare calls do nothing.

        Timers fire only here, so that an answer received first wins even past its deadline.
        """
        self._machine.handle_timeout(now)

    # ------------------------------------------------------------------------ from the application

    def send_request(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        progress: bool = False,
        timeout: float | None = None,
        max_timeout: float | None = None,
        log_level: str | None = None,
        id: int | str | None = None,
        request: IncomingRequest | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> OutgoingRequest:
        """Queue a request and return the handle that its one ending will carry.

        Args:
            method: The method name. One that no revision defines is sent as it is.
            params: The params object; nothing of it is kept.
            meta: Merged into `params._meta`. A `progressToken` in it (or in the params) is used.
            progress: Ask for progress with a token of the library's choice.
            timeout: Seconds of silence allowed; progress for this request restarts it. On a client,
                the time in which a request of the server waits for our answer, or for the end of a
                task that we answered with, does not count: give `now` to the verb that ends it.
            max_timeout: Seconds allowed in all, with or without progress.
            log_level: The least severe level of log messages about this request; None: no log
                messages. Before 2026-07-28 `logging/setLevel` decides for all requests, and
                this is ignored.
            id: The id to use instead of the next number: a string not used before, or an
                integer above every one used before.
            request: The request of the peer that this one serves; it goes out on that one's
                stream where the transport has several.
            data: Anything; it becomes `OutgoingRequest.data`.
            now: The caller's clock in seconds. Needed with a timeout, if never told before.

        Raises:
            LocalProtocolError: The state, the handshake, a capability, a limit, the shape of
                the params, the id or the token forbids it. Nothing was queued.

        Source: MCP 2025-11-25, basic/index, Requests; basic/lifecycle, Timeouts.
        """
        return self._outgoing.send(
            method, params, meta, progress, timeout, max_timeout, log_level, id, request, data, now
        )

    def send_paginated(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
        auto: bool = True,
        request: IncomingRequest | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> Listing:
        """List everything, page by page: `PageReceived` for each, then one `ListingEnded`.

        Args:
            method: A method that the agreed revision paginates (`tools/list` and the like).
            params: The params of each page but for the cursor; a `cursor` in it is where to
                begin.
            meta: Merged into `params._meta` of each page.
            timeout: Seconds allowed for each page.
            max_timeout: The same, which progress would not extend.
            auto: Ask for each further page as soon as the one before has come. If not, each
                waits for `next_page`, so that no more is fetched than somebody has use for.
            request: As for `send_request`.
            data: Anything; it becomes `Listing.data`.
            now: The caller's clock in seconds. Needed with a timeout, if never told before.

        Raises:
            LocalProtocolError: As for `send_request`, the method is not paginated, or as many
                listings wait for `next_page` as requests may be in flight.

        Source: MCP 2025-11-25, server/utilities/pagination.
        """
        return self._machine.listings.start(
            method, params, meta, timeout, max_timeout, auto, request, data, now
        )

    def next_page(self, listing: Listing, *, now: float | None = None) -> bool:
        """Ask for the next page of a listing that was begun with `auto=False`.

        Args:
            listing: The handle from `send_paginated`.
            now: The caller's clock in seconds. The page's timeout counts from here.

        Returns:
            Whether it was asked for. False changes nothing: a page is under way already, or the
            listing has ended.

        Raises:
            LocalProtocolError: Too many requests are in flight, or the handle is another
                connection's. Nothing was queued.

        Source: MCP 2025-11-25, server/utilities/pagination.
        """
        return self._machine.listings.next_page(listing, now)

    def ping(
        self,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> Ping:
        """Ping the peer; ends in one `PingEnded`. Allowed before the handshake is done, too.

        Args:
            meta: The request's `params._meta`.
            timeout: Seconds to wait for the answer.
            data: Anything; it becomes `Ping.data`.
            now: The caller's clock in seconds. Needed with a timeout, if never told before.

        Raises:
            LocalProtocolError: The connection is not open, the revision has no ping, or there
                is no clock.

        Source: MCP 2025-11-25, basic/utilities/ping.
        """
        return self._machine.pings.send(meta, timeout, data, now)

    def cancel(
        self,
        call: OutgoingRequest | Listing | Ping | Start | Subscription,
        *,
        reason: str | None = None,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Cancel what is in flight: tell the peer, and end it with its ending event.

        Args:
            call: The handle from `send_request`, `send_paginated`, `ping` or `listen`.
            reason: Why, for the peer's log.
            meta: The notification's `_meta`.
            now: The caller's clock in seconds.

        Returns:
            Whether it was still in flight. False changes nothing: the race was lost.

        Raises:
            LocalProtocolError: It cannot be cancelled (`start`; a request for a task, which
                `tasks/cancel` ends), or the handle is another connection's.

        Source: MCP 2025-11-25, basic/utilities/cancellation.
        """
        return self._machine.cancel(call, reason, meta, now)

    def send_result(
        self,
        request: IncomingRequest,
        result: JSONObject,
        *,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Answer a request with a result.

        Args:
            request: The handle from `RequestReceived`.
            result: The result object; nothing of it is kept.
            meta: Merged into `result._meta`.
            now: The caller's clock in seconds.

        Returns:
            Whether the answer was queued. False: the request was cancelled meanwhile, or the
            connection ended, and nothing is sent; or the answer alone has more than
            `Config.max_unsent_bytes`, and the error -32603 was queued in its place.

        Raises:
            LocalProtocolError: It was answered before, belongs to another connection, or the
                result lacks a member that the method requires. The request stays open.

        Source: MCP 2025-11-25, basic/index, Responses.
        """
        return self._incoming.send_result(request, result, meta, now)

    def send_error(
        self,
        request: IncomingRequest,
        code: int,
        message: str,
        data: JSONValue | Missing = MISSING,
        *,
        now: float | None = None,
    ) -> bool:
        """Answer a request with an error.

        Args:
            request: The handle from `RequestReceived`.
            code: A JSON-RPC error code. -32002 (resource not found, up to 2025-11-25) becomes
                -32602 where the request is one of 2026-07-28.
            message: One concise sentence.
            data: Any JSON value; left out if not given.
            now: The caller's clock in seconds.

        Returns:
            Whether the answer was queued, as for `send_result`.

        Raises:
            LocalProtocolError: It was answered before, belongs to another connection, or the
                error is not well formed. The request stays open.

        Source: MCP 2025-11-25, basic/index, Responses.
        """
        return self._incoming.send_error(request, code, message, data, now)

    def send_progress(
        self,
        request: IncomingRequest,
        progress: float,
        *,
        total: float | None = None,
        message: str | None = None,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Tell the peer how far a request of its has come.

        Args:
            request: The handle from `RequestReceived`.
            progress: More than at the last call for this request.
            total: The value of `progress` at the end, in the same unit, if known.
            message: What is going on, for people (left out in 2024-11-05, which has no such
                member).
            meta: The notification's `_meta`.
            now: The caller's clock in seconds; `Config.progress_interval` needs one.

        Returns:
            Whether it was queued. False: the request is over, the peer wants no progress, the
            last one is too recent, or too much output waits already.

        Raises:
            LocalProtocolError: A number is not finite, or `progress` does not increase (without
                `Config.coalesce_progress`).

        Source: MCP 2025-11-25, basic/utilities/progress.
        """
        return self._incoming.send_progress(request, progress, total, message, meta, now)

    def send_notification(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        request: IncomingRequest | None = None,
        now: float | None = None,
    ) -> None:
        """Queue a notification that has no verb of its own.

        Args:
            method: The method name. One that no revision defines is sent as it is.
            params: The params object; nothing of it is kept.
            meta: Merged into `params._meta`.
            request: The request of the peer that it belongs to; it goes out on that one's
                stream where the transport has several. A server gives it for a client of
                2026-07-28, in which no notification stands alone.
            now: The caller's clock in seconds.

        Raises:
            LocalProtocolError: The state, the handshake, a capability or the shape of the params
                forbids it, the method has a verb of its own, or a notification to a client of
                2026-07-28 belongs to no request. Nothing was queued.

        Source: MCP 2025-11-25, basic/index, Notifications.
        """
        self._notifications.send(method, params, meta, request, now)

    def close(self, *, now: float | None = None) -> None:
        """End the connection from this side. Output queued before may still be written.

        Every open request ends: ours as lost, the peer's as cancelled; `ConnectionClosed` comes
        last. A server answers the open subscriptions of its client with a result, which is queued
        behind the output that waits: write it before the transport is closed. What does not fit
        into `Config.max_unsent_bytes` is left out. A second call does nothing.

        Source: MCP 2026-07-28, basic/patterns/subscriptions.
        """
        self._machine.close(now=now)

    # ------------------------------------------------------------------------------- to the caller

    def next_event(self) -> Event | None:
        """Take the oldest event; None means that there is none now."""
        events = self._core.events
        if not events:
            return None
        event = events.take()
        if not events:
            self._core.known_events = False
        return event

    def messages_to_send(self) -> list[bytes]:
        """Take all queued messages, each a JSON text without framing, in order."""
        cut = len(self._core.newline)
        return [message[: len(message) - cut] for message, _ in self._machine.take_output()]

    def data_to_send(self) -> bytes:
        """Take all queued output as one buffer; `b""` means that there is none now.

        A lone message is not copied.
        """
        output = self._core.output
        if not output:
            return b""
        if len(output) == 1 and not self._machine.held:
            message = output[0][0]
            self._core.output = []
            self._core.unsent = 0
            self._core.known_output = False
            self._outgoing.handed_over = self._outgoing.sent
            return message
        return b"".join([message for message, _ in self._machine.take_output()])

    def buffers_to_send(self) -> list[bytes]:
        """Take all queued output as buffers for a vectored write; `[]` means that there is none."""
        return [message for message, _ in self._machine.take_output()]

    def next_timeout(self) -> float | None:
        """When to call `handle_timeout`, on the caller's clock; None means never."""
        return self._core.timers.earliest()

    # ------------------------------------------------------------------------------------- looking

    @property
    def state(self) -> State:
        """What still works on the connection."""
        return self._core.state

    @property
    def phase(self) -> Phase:
        """How far the handshake has come."""
        return self._core.conversation.phase

    @property
    def revision(self) -> str | None:
        """The agreed revision; None before there is one."""
        return self._core.peer.revision

    @property
    def peer(self) -> Peer:
        """What is known of the other side."""
        return self._core.peer

    @property
    def pending_requests(self) -> tuple[OutgoingRequest, ...]:
        """The application's own requests that have not ended yet, oldest first."""
        return self._outgoing.pending

    @property
    def open_requests(self) -> tuple[IncomingRequest, ...]:
        """The requests of the peer that still wait for an answer from this side, oldest first."""
        return self._machine.open_requests

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The URIs that the peer is subscribed to."""
        return ()

    @property
    def forgotten_answers(self) -> int:
        """How many ended requests were forgotten, so that a late answer counts as unknown."""
        return self._outgoing.forgotten_answers

    @property
    def forgotten_ids(self) -> int:
        """How many ranges of the peer's ids were forgotten, so that a reuse goes unnoticed."""
        return self._incoming.forgotten_ids

    @property
    def unsent_bytes(self) -> int:
        """Bytes of output not yet taken."""
        return self._core.unsent

    @property
    def paused(self) -> bool:
        """Advice to stop reading until events were taken. Nothing is refused because of it."""
        return self._core.events.is_over(self._core.config)

    # ------------------------------------------------------------------------------------- helpers

    def _receive_odd_line(self, line: Line | OverlongEnd) -> None:
        """The first line, one that is too long or empty, or one that ends in white space."""
        if isinstance(line, OverlongLine):
            self._note_all(self._trimmer.strip_bom(line.head)[1])
            self._machine.receive_overlong(line.head)
            return
        if isinstance(line, OverlongEnd):
            self._machine.overlong_ended(line)
            return
        text, notes = self._trimmer.trim(line)
        self._note_all(notes)
        if text is not None:
            self._machine.receive(text)

    def _input_ended(self) -> None:
        """A whole message without a newline is served, a piece of one reported."""
        rest = self._lines.end()
        if rest is None or not self._machine.listens:
            return
        if isinstance(rest, OverlongEnd):
            self._cut_off_overlong(rest)
            return
        line, notes = self._trimmer.strip_bom(rest)
        self._note_all(notes)
        if is_blank(line):
            return
        try:
            self._core.decoder.decode(line)
        except (ValueError, RecursionError) as raised:
            text = f"{NO_NEWLINE}, and the last line is no whole message: {refusal(raised)}"
            breach = Breach("OWN-018", text, ErrorCode.PARSE_ERROR)
            self._incoming.refuse_unreadable(breach, None, excerpt=self._core.excerpt(line))
        else:
            self._core.report(
                Breach("OWN-018", NO_NEWLINE, tolerated=True), excerpt=self._core.excerpt(line)
            )
            self._receive_odd_line(line)

    def _cut_off_overlong(self, end: OverlongEnd) -> None:
        """The stream has ended in a message over the limit, which was reported (OWN-001)."""
        limit = self._core.config.max_message_bytes
        text = (
            f"the stream ended in a message of {end.size} bytes without a newline; "
            f"the limit of Config.max_message_bytes is {limit}"
        )
        self._core.report(Breach("OWN-018", text))
        if self._machine.overlong_ended(end):
            self._stream.cut_off = text

    def _note_all(self, notes: list[str]) -> None:
        for note in notes:
            self._machine.note(note)
