"""The protocol machine: one message in, events and messages out. It speaks for one peer."""

from __future__ import annotations

from typing import Any

from ._codec import refusal
from ._errors import ErrorCode
from ._events import (
    CancelCause,
    CloseCause,
    Event,
    MessageIgnored,
)
from ._framing import BOM, HEAD_BYTES, MARKED, TAIL_BYTES, OverlongEnd
from ._handles import Batch, Peer, Route
from ._judge import Breach
from ._lifecycle import STATES, Phase, State, StateTrigger
from ._opening import Opening
from ._outline import Kind, read_head, read_tail
from ._settings import check_clock, check_wait
from ._timers import Timed
from ._values import JSONObject, JSONValue, id_key
from ._wellformed import BATCHED_INITIALIZE, NO_OBJECT, judge_batch, judge_neither

_OPEN = State.OPEN


class DrainTimer:
    """When to give up on requests that are still open after the peer's end of stream."""

    __slots__ = ("_deadline",)

    def __init__(self) -> None:
        self._deadline: float | None = None


class Machine(Opening):
    """Message-level entry points, endings, and the properties to look at."""

    __slots__ = ("_drain", "_spoilt")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._drain = DrainTimer()
        self._spoilt: Kind | None = None  # of the message over the limit without an id so far

    # -------------------------------------------------------------------- from the transport

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
        if now is not None:
            self._tell(now)
        if at is not None and at.__class__ is not float:
            check_clock("at", at)
        self._at = at
        if isinstance(message, str):
            # Lone surrogates have no UTF-8 form; the decoder refuses the bytes they become.
            message = message.encode("utf-8", "surrogatepass")
        if len(message) > self._config.max_message_bytes:
            if message.startswith(BOM):
                self._note(MARKED)
            end = OverlongEnd(bytes(message[-TAIL_BYTES:]), len(message))
            self._receive_overlong(bytes(message[:HEAD_BYTES]), end)
        else:
            self._receive_whole(message)
        if self._restless:
            self._settle()

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
        check_wait("drain", drain)
        if now is not None:
            self._tell(now)
        if at is not None and at.__class__ is not float:
            check_clock("at", at)
        self._at = at
        self._input_ended()
        self._end_listeners(CancelCause.EOF)
        if self._state is _OPEN and drain > 0 and self._incoming and self._now is not None:
            self._state = STATES[self._state, StateTrigger.EOF_WITH_DRAIN]
            if self._keep_alive is not None:
                self._timers.drop(self._keep_alive)
            self._timers.arm(self, self._drain, self._now + drain)
            self._lose(list(self._outgoing.values()))
        elif self._state is not State.DRAINING:
            cause = CloseCause.SEND_FAILED if self._state is State.SEND_CLOSED else CloseCause.EOF
            self._end(StateTrigger.EOF, cause, CancelCause.EOF)
        if self._restless:
            self._settle()

    def send_failed(self, *, now: float | None = None) -> None:
        """Writing to the peer has failed, perhaps in the middle of a message.

        Output is dropped. Requests that we are handling are cancelled, and requests of ours that
        were not handed over end as lost; those that were may still be answered, until the end of
        the stream or their timeout.
        """
        if now is not None:
            self._tell(now)
        self._output.clear()
        self._unsent = 0
        if self._state is State.DRAINING:
            self._end(StateTrigger.SEND_FAILED, CloseCause.EOF, CancelCause.SEND_FAILED)
        elif self._state is _OPEN:
            self._state = STATES[self._state, StateTrigger.SEND_FAILED]
            self._held.clear()
            if self._keep_alive is not None:
                self._timers.drop(self._keep_alive)
            for request in list(self._incoming.values()):
                self._cancel_incoming(request, CancelCause.SEND_FAILED)
            for task_id in list(self._peer_tasks):  # nobody learns of their ends
                self._release_peer_token(task_id)
            handed_over = self._handed_over
            self._lose([c for c in self._outgoing.values() if c._order > handed_over])
        if self._restless:
            self._settle()

    def handle_timeout(self, now: float) -> None:
        """The time is `now`: fire what is due. Spare calls do nothing.

        Timers fire only here, so that an answer received first wins even past its deadline.
        """
        self._tell(now)
        if self._now is None:
            return  # it was told NaN, which is no time
        self._timers.fire(self._now)
        if self._restless:
            self._settle()

    # ------------------------------------------------------------------- from the application

    def close(self, *, now: float | None = None) -> None:
        """End the connection from this side. Output queued before may still be written.

        Every open request ends: ours as lost, the peer's as cancelled; `ConnectionClosed` comes
        last. A server answers the open subscriptions of its client with a result, which is queued
        behind the output that waits: write it before the transport is closed. What does not fit
        into `Config.max_unsent_bytes` is left out. A second call does nothing.

        Source: MCP 2026-07-28, basic/patterns/subscriptions.
        """
        if now is not None:
            self._tell(now)
        if self._state is _OPEN:
            self._complete_listeners()
            self._overflowing = False  # what has no room is left out
        self._end(StateTrigger.CLOSE, CloseCause.CLOSED, CancelCause.CLOSED)
        if self._restless:
            self._settle()

    # ------------------------------------------------------------------------- to the caller

    def next_event(self) -> Event | None:
        """Take the oldest event; None means that there is none now."""
        events = self._events
        if not events:
            return None
        event = events.popleft()
        if not events:
            self._told_events = False
        return event

    def messages_to_send(self) -> list[bytes]:
        """Take all queued messages, each a JSON text without framing, in order."""
        cut = len(self._newline)
        return [message[: len(message) - cut] for message, _ in self._take_output()]

    def next_timeout(self) -> float | None:
        """When to call `handle_timeout`, on the caller's clock; None means never."""
        return self._timers.earliest()

    def _take_output(self) -> list[tuple[bytes, Route | None]]:
        output, self._output = self._output, []
        self._unsent = 0
        self._told_output = False
        self._handed_over = self._sent
        if self._held:
            self._release_held()
            self._settle()
        return output

    # ------------------------------------------------------------------------------- looking

    @property
    def state(self) -> State:
        """What still works on the connection."""
        return self._state

    @property
    def phase(self) -> Phase:
        """How far the handshake has come."""
        return self._conversation.phase

    @property
    def revision(self) -> str | None:
        """The agreed revision; None before there is one."""
        return self._peer.revision

    @property
    def peer(self) -> Peer:
        """What is known of the other side."""
        return self._peer

    @property
    def unsent_bytes(self) -> int:
        """Bytes of output not yet taken."""
        return self._unsent

    @property
    def paused(self) -> bool:
        """Advice to stop reading until events were taken. Nothing is refused because of it."""
        return self._events.is_over(self._config)

    # ----------------------------------------------------------------------------- receiving

    def _receive_whole(self, data: bytes | bytearray) -> None:
        """One message that came by itself: a byte order mark may stand before it (OWN-017)."""
        if data.startswith(BOM):
            self._note(MARKED)
            data = data[len(BOM) :]
        self._receive(data)

    def _receive(self, data: bytes | bytearray, route: Route | None = None) -> None:
        """One JSON text of the peer."""
        if self._state is not _OPEN and self._state is not State.SEND_CLOSED:
            return
        self._heard_at = self._now
        self._events.message_came(len(data))
        try:
            if len(data) <= self._unlimited:
                value = self._codec.decode(data)
            else:
                value = self._decoder.decode(data)
        except (ValueError, RecursionError) as raised:
            error = refusal(raised)
            breach = Breach(error.rule, str(error), ErrorCode.PARSE_ERROR)
            self._refuse_unreadable(breach, route, excerpt=self._excerpt(data))
            return
        if type(value) is dict:
            method: Any = value.get("method")
            if type(method) is str and "id" in value and self._state is _OPEN:
                self._receive_request(value, method, route, None)
            else:
                self._receive_object(value, route, None, data)
        elif type(value) is list:
            self._receive_batch(value, route, data)
        else:
            self._refuse_unreadable(NO_OBJECT, route, excerpt=self._excerpt(data))

    def _receive_object(
        self,
        message: JSONObject,
        route: Route | None,
        batch: Batch | None,
        data: bytes | bytearray,
    ) -> None:
        method: Any = message.get("method")
        if type(method) is str:
            if "id" not in message:
                self._receive_notification(message, method)
            elif self._state is _OPEN:
                self._receive_request(message, method, route, batch)
            else:
                self._events.append(
                    MessageIgnored(
                        rule="OWN-021",
                        text="a request came that cannot be answered, since sending has failed",
                        method=method,
                        id=message["id"],
                    )
                )
        elif "method" not in message and ("result" in message or "error" in message):
            self._receive_answer(message)
        else:
            self._receive_other(message, route, batch, data)

    def _receive_other(
        self,
        message: JSONObject,
        route: Route | None,
        batch: Batch | None,
        data: bytes | bytearray,
    ) -> None:
        """An object that is neither a call nor an answer."""
        raw: Any = message.get("id")
        if "method" not in message and self._is_mine(raw):
            self._receive_answer(message)  # an answer to a request of ours, and an invalid one
            return
        self._refuse_unreadable(
            judge_neither(message),
            route,
            excerpt=self._excerpt(data),
            raw_id=raw,
            batch=batch,
        )

    def _is_mine(self, raw: object) -> bool:
        return isinstance(raw, int | str) and not isinstance(raw, bool) and raw in self._outgoing

    def _receive_batch(
        self, values: list[Any], route: Route | None, data: bytes | bytearray
    ) -> None:
        excerpt = self._excerpt(data)
        breach = judge_batch(self._dialect_of_unreadable(), values)
        if breach is not None:
            self._refuse_unreadable(breach, route, excerpt=excerpt)
            return
        if len(values) > self._config.max_batch:
            text = f"a batch has {len(values)} messages; the limit is {self._config.max_batch}"
            self._refuse_unreadable(Breach("OWN-006", text), route, excerpt=excerpt)
            return
        batch = Batch()
        for value in values:
            if self._state is State.CLOSED:
                return  # an earlier message of the batch has ended the connection
            message: JSONValue = value
            if type(message) is not dict:
                self._refuse_unreadable(NO_OBJECT, route, excerpt=excerpt, batch=batch)
            elif message.get("method") == "initialize" and "id" in message:
                self._refuse_unreadable(
                    BATCHED_INITIALIZE,
                    route,
                    raw_id=message["id"],
                    batch=batch,
                )
            else:
                self._receive_object(message, route, batch, data)
        batch.complete = True
        self._flush_batch(batch, route)

    def _receive_overlong(self, head: bytes, end: OverlongEnd | None = None) -> None:
        """A message has grown over the limit: its first bytes may tell whose it is (OWN-001).

        Many peers write the id last; `end` is there where the message has come as a whole.
        """
        self._spoilt = None
        if self._state is not _OPEN and self._state is not State.SEND_CLOSED:
            return
        limit = self._config.max_message_bytes
        size = f"more than {limit}" if end is None else str(end.size)
        kind, id = read_head(head)
        if end is not None and id is None and kind is not Kind.UNKNOWN:
            id = read_tail(end.tail)
        call = self._answered_by(id_key(id)) if kind is Kind.ANSWER else None
        if call is not None:
            text = self._too_long(call, size)
            self._conclude_unread(call, text)
            return
        text = f"a message has {size} bytes; the limit of Config.max_message_bytes is {limit}"
        if id is None and kind is not Kind.CALL and (waiting := len(self._outgoing)):
            which = "the one open request" if waiting == 1 else f"one of {waiting} open requests"
            text += f"; it may be the response to {which}; that request then gets no response"
        breach = Breach("OWN-001", text)
        excerpt = self._excerpt(head, over=limit)
        if end is None and id is None:
            self._spoilt = kind
        if self._spoilt is not None and kind is not Kind.UNKNOWN:
            self._report(breach, excerpt=excerpt, code=breach.code)
        elif kind is Kind.ANSWER:
            self._report(breach, excerpt=excerpt)
        else:
            self._refuse_unreadable(breach, None, excerpt=excerpt, raw_id=id)

    def _overlong_ended(self, end: OverlongEnd) -> bool:
        """The last bytes of a message over the limit, which was reported.

        Returns:
            Whether it may still be the response to a request of this side that is open.
        """
        kind, self._spoilt = self._spoilt, None
        if kind is None:
            return False
        id = read_tail(end.tail) if kind is not Kind.UNKNOWN else None
        if kind is Kind.CALL:
            limit = self._config.max_message_bytes
            text = (
                f"a message has {end.size} bytes; the limit of Config.max_message_bytes is {limit}"
            )
            self._answer_unreadable(Breach("OWN-001", text), None, raw_id=id)
        elif (call := self._answered_by(id_key(id))) is not None:
            self._conclude_unread(call, self._too_long(call, str(end.size)), is_told=True)
        return kind is not Kind.CALL and id is None

    @property
    def _listens(self) -> bool:
        return self._state is _OPEN or self._state is State.SEND_CLOSED

    def _note(self, text: str) -> None:
        """Report something odd around a message (OWN-017)."""
        if self._listens:
            self._report(Breach("OWN-017", text, tolerated=True))

    # -------------------------------------------------------------------------------- ending

    def _input_ended(self) -> None:
        """What is left of the input may still hold a message, where it is a stream of bytes."""

    def _timer_fired(self, subject: Timed) -> None:
        if isinstance(subject, DrainTimer):
            self._end(StateTrigger.DRAINED, CloseCause.EOF, CancelCause.EOF)
        else:
            super()._timer_fired(subject)

    def _end_requests(self, cause: CancelCause) -> None:
        self._timers.drop(self._drain)
        super()._end_requests(cause)

    def _drained(self) -> None:
        if self._state is State.DRAINING and not self._incoming and not self._overflowing:
            self._end(StateTrigger.DRAINED, CloseCause.EOF, CancelCause.EOF)
