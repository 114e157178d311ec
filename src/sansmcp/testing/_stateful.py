"""A hypothesis state machine that drives a pair of connections in every way there is.

Subclass it to add rules of your own, or to drive connections with settings of your own.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sansmcp import (
    Change,
    Config,
    Event,
    IncomingRequest,
    JSONObject,
    Listing,
    LocalProtocolError,
    OutgoingRequest,
    Phase,
    PromptsListChanged,
    RequestReceived,
    ResourcesListChanged,
    ResourceUpdated,
    Side,
    ToolsListChanged,
)
from sansmcp._registry import DIALECTS

from ._checker import Checker, Handle, check_message, demand
from ._examples import PARAMS, RESULTS, TASK_RESULT, notifications_of, requests_of
from ._pair import Pair
from ._strategies import wire_lines

SMALL_LIMITS: Final = Config(
    max_message_bytes=3_000,
    max_json_depth=20,
    max_integer_digits=100,
    max_requests=4,
    max_batch=3,
    max_used_ids=4,
    max_late_answers=2,
    max_subscriptions=1,
    max_held_changes=1,
    max_pages=3,
    max_items=5,
    max_empty_pages=2,
    soft_unsent_bytes=600,
    max_unsent_bytes=6_000,
    progress_interval=1.0,
    ping_interval=20.0,
    ping_timeout=10.0,
    max_failed_pings=2,
)
"""Limits so small that a few steps reach them."""

_SIDES: Final = tuple(Side)
# Every draw costs, so that a rule makes few of them: a side and a choice come as one.
_side: Final = st.sampled_from(_SIDES)
_handle: Final = st.sampled_from([(side, which) for which in range(8) for side in _SIDES])
"""A side, and which of its handles; from 6 on, one of those that may be over."""
_method: Final = st.sampled_from([(side, which) for which in range(20) for side in _SIDES])

_OPTIONS: Final[tuple[JSONObject, ...]] = (
    {},
    {"progress": True},
    {"progress": True, "timeout": 3.0},
    {"progress": True, "timeout": 8.0, "max_timeout": 10.0},
    {"timeout": 3.0},
    {"id": "name"},
)
_OWN_MACHINERY: Final[tuple[JSONObject | None, ...]] = (
    None,
    {"method": "tools/list"},
    {"method": "resources/list", "timeout": 3.0},
    {"method": "prompts/list", "params": {"cursor": ""}},
    {"method": "tools/list", "timeout": 3.0, "auto": False},
    {"method": "tools/call"},
)
"""The options of a listing (the last one has no pages); None for a ping."""
_ANSWERS: Final = ("p1", "p2", "", "result", "error", "task", "malformed")
"""The cursor of a page, or what else a request may be answered with."""
_CHANGES: Final = (
    ToolsListChanged(),
    PromptsListChanged(),
    ResourcesListChanged(),
    ResourceUpdated("file:///a"),
    ResourceUpdated("file:///b"),
    ResourceUpdated("file:///a/part", subscribed="file:///a"),
)
_PORTIONS: Final = st.sampled_from(
    [(side, n_bytes) for n_bytes in (None, 0, 1, 7, 50) for side in _SIDES]
)
"""Whom to deliver to, and how many bytes: None for all, 0 for one message."""
_ENDS: Final = st.sampled_from(
    [(side, how) for how in ("end", "eof", "drain", "close", "send_failed") for side in _SIDES]
)


class ConnectionMachine(RuleBasedStateMachine):
    """Sends, answers, cancels, lets time pass, damages and ends; and checks after every step.

    What is checked is what the library promises of any conversation: tables and buffers stay
    within their limits; receiving raises nothing, whatever comes; a call that raises has changed
    nothing; what was asked ends exactly once; only valid JSON-RPC messages are sent; whoever loses
    a race gets False, and nothing is sent.

    Attributes:
        revision: The revision that both sides speak.
        configs: Settings to choose from, for each side.
        pair: The two connections and the wire.
        checkers: What is known of each side, by side. Its books are kept only of verbs that are
            called through it.
        asked: What each side has asked lately, over or not, by side.
        received: What each side was asked lately, over or not, by side.
    """

    revision: ClassVar[str] = "2025-11-25"
    configs: ClassVar[tuple[Config, ...]] = (SMALL_LIMITS, Config())

    pair: Pair

    def __init__(self) -> None:
        super().__init__()
        self.checkers: tuple[Checker, ...] = ()
        self.asked: tuple[list[Handle], list[Handle]] = ([], [])
        self.received: tuple[list[IncomingRequest], list[IncomingRequest]] = ([], [])
        self._patience = 0
        self._prompt: tuple[Side, ...] = ()
        self._joining = False
        self._seen = 0
        self._used_ids: set[tuple[Side, int | str]] = set()

    # -------------------------------------------------------------------------------- to extend

    def make_pair(self, client_config: Config, server_config: Config) -> Pair:
        """The pair to drive, not connected."""
        return Pair(
            revision=self.revision,
            client_config=client_config,
            server_config=server_config,
            connected=False,
        )

    def happened(self, side: Side, event: Event) -> None:
        """A side has had an event.

        Args:
            side: Whose event it is.
            event: The event.
        """

    def sent(self, side: Side, message: bytes, value: Any) -> None:
        """A side has sent a message.

        Args:
            side: Who.
            message: Its bytes.
            value: The same, decoded.
        """

    # ------------------------------------------------------------------------------------ begin

    @initialize(
        configs=st.integers(0, 3),
        connected=st.sampled_from((True, True, True, False)),
        patience=st.sampled_from((60, 40, 30, 15, 5)),
        prompt=st.sampled_from((_SIDES, _SIDES, (), (Side.CLIENT,), (Side.SERVER,))),
        joining=st.booleans(),
    )
    def begin(
        self,
        configs: int,
        connected: bool,
        patience: int,
        prompt: tuple[Side, ...],
        joining: bool,
    ) -> None:
        """Make the pair.

        Args:
            configs: Which settings each side has.
            connected: Whether the handshake is done at once.
            patience: How many steps come before anything may end.
            prompt: To whom all is delivered before each step; to others only by steps.
            joining: Whether that is done in batches, in the revision that has them.
        """
        n_configs = len(self.configs)
        self.pair = self.make_pair(
            self.configs[configs % n_configs], self.configs[configs // 2 % n_configs]
        )
        self.checkers = (Checker(self.pair.client), Checker(self.pair.server))
        self._patience = patience
        self._prompt = prompt
        self._joining = joining and DIALECTS[self.revision].has_batches
        if connected:
            self.start(timeout=None)
            self.pair.deliver()

    @rule(timeout=st.sampled_from((None, 5.0)))
    @precondition(lambda self: self.pair.client.phase is Phase.NEW)
    def start(self, timeout: float | None) -> None:
        """Begin the handshake."""
        self._ask(Side.CLIENT, lambda: self.pair.client.start(timeout=timeout, now=self.pair.now))

    # ----------------------------------------------------------------------------------- asking

    def _ask(self, side: Side, send: Any) -> None:
        handle = self.checkers[side].ask(send)
        if not isinstance(handle, LocalProtocolError):
            _remember(self.asked[side], handle)

    @rule(method=_method, options=st.sampled_from(_OPTIONS))
    def send_request(self, method: tuple[Side, int], options: JSONObject) -> None:
        """Send a request of any method that exists; the core says what is allowed."""
        side, which = method
        methods = sorted(requests_of(self.revision, side))
        name = methods[which % len(methods)]
        params: JSONObject = dict(PARAMS.get(name, {}))
        if name == "tools/call" and "max_timeout" in options:
            params["task"] = {}
        self._ask(side, lambda: self.pair.side(side).send_request(name, params, **options))

    @rule(side=_side, options=st.sampled_from(_OWN_MACHINERY))
    def list_or_ping(self, side: Side, options: JSONObject | None) -> None:
        """Begin a listing, or ping."""
        connection = self.pair.side(side)
        if options is None:
            self._ask(side, lambda: connection.ping(timeout=2.0))
        else:
            self._ask(side, lambda: connection.send_paginated(**options))

    @rule(handle=_handle)
    def next_page(self, handle: tuple[Side, int]) -> None:
        """Ask for more of a listing, whether or not it waits for that."""
        side, which = handle
        listings = [h for h in self.asked[side] if isinstance(h, Listing)]
        if listings:
            listing = listings[-1 - which % len(listings)]
            self.checkers[side].attempt(lambda: self.pair.side(side).next_page(listing))

    @rule(handle=_handle)
    def cancel(self, handle: tuple[Side, int]) -> None:
        """Cancel something that was asked, over or not."""
        side, which = handle
        handles = [h for h in self.asked[side] if isinstance(h, OutgoingRequest | Listing)]
        if handles:
            reason = "enough" if which else None
            self.checkers[side].cancel(handles[-1 - which % len(handles)], reason)

    # -------------------------------------------------------------------------------- answering

    def _pick(self, side: Side, which: int) -> tuple[Side, IncomingRequest] | None:
        """A request that this side was asked or, if there is none, the other one."""
        for asked in (side, side.other):
            requests = self.received[asked] if which > 5 else self.checkers[asked].handling
            if requests:
                return asked, requests[which % len(requests)]
        return None

    @rule(handle=_handle, answer=st.sampled_from(_ANSWERS))
    def answer(self, handle: tuple[Side, int], answer: str) -> None:
        """Answer something: waiting or perhaps not any more, well or badly."""
        picked = self._pick(*handle)
        if picked is None:
            return
        side, request = picked
        connection = self.pair.side(side)
        if answer == "error":
            self.checkers[side].answer(
                request, lambda: connection.send_error(request, -32603, "no", {"why": "not today"})
            )
            return
        result: JSONObject = dict(RESULTS.get(request.method, {}))
        if answer == "task" and "task" in request.params:
            result = dict(TASK_RESULT)
        elif answer == "malformed":
            result = {"content": float("nan")}
        elif answer not in ("result", "task") and request.method.endswith("/list"):
            result["nextCursor"] = answer
        self.checkers[side].answer(request, lambda: connection.send_result(request, result))

    @rule(handle=_handle, value=st.sampled_from((0, 1, 2, 2.5, 3, 10, float("inf"))))
    def progress(self, handle: tuple[Side, int], value: float) -> None:
        """Send progress for something that is waiting or perhaps not any more."""
        picked = self._pick(*handle)
        if picked is not None:
            side, request = picked
            if not request.open or request.progress_token is None:
                value = min(value, 10)  # an infinity raises, race or no race
            connection = self.pair.side(side)
            self.checkers[side].progress(
                request,
                lambda: connection.send_progress(request, value, total=3, message="on"),
            )

    # ---------------------------------------------------------------------------------- telling

    @rule(method=_method)
    def send_notification(self, method: tuple[Side, int]) -> None:
        """Send a notification of any method that exists."""
        side, which = method
        methods = sorted(notifications_of(self.revision, side))
        name = methods[which % len(methods)]
        self.checkers[side].attempt(
            lambda: self.pair.side(side).send_notification(name, PARAMS.get(name))
        )

    @rule(level=st.sampled_from(("debug", "error", "loud")), which=st.integers(0, 7))
    def log(self, level: str, which: int) -> None:
        """Send a log message, perhaps for a request."""
        requests = self.received[Side.SERVER]
        request = requests[which % len(requests)] if which and requests else None
        self.checkers[Side.SERVER].attempt(
            lambda: self.pair.server.send_log(level, "x" * 200, request=request)
        )

    @rule(change=st.sampled_from(_CHANGES))
    def publish(self, change: Change) -> None:
        """Tell of a change."""
        self.checkers[Side.SERVER].attempt(lambda: self.pair.server.publish(change))

    # ------------------------------------------------------------------------------ on the wire

    @rule(portion=_PORTIONS)
    def deliver(self, portion: tuple[Side, int | None]) -> None:
        """Deliver bytes, or one message, to one side."""
        side, n_bytes = portion
        if n_bytes == 0:
            self.pair.deliver_message_to(side)
        else:
            self.pair.deliver_to(side, n_bytes)

    @rule()
    def deliver_all(self) -> None:
        """Deliver everything."""
        self.pair.deliver()

    @rule(side=_side, lost=st.booleans())
    def disturb(self, side: Side, lost: bool) -> None:
        """Lose a message on its way to a side, or make one batch of all that are on their way."""
        if lost:
            self.pair.wire_to(side).drop_message()
        else:
            self._join(side)

    def _join(self, side: Side) -> None:
        """Make one batch of the calls and answers in flight to a side; batches stay apart."""
        wire = self.pair.wire_to(side)
        if wire.data.endswith(b"\n"):
            lines = wire.messages
            singles = [line for line in lines if line.startswith(b"{")]
            wire.drop()
            for line in lines:
                if not line.startswith(b"{"):
                    wire.put(line + b"\n")
            if singles:
                wire.put(b"[" + b",".join(singles) + b"]\n")

    @rule(side=_side, data=st.data())
    def inject(self, side: Side, data: st.DataObject) -> None:
        """Put a line on the wire to a side that the other side did not send."""
        wire = self.pair.wire_to(side)
        if not wire.data or wire.data.endswith(b"\n"):
            line = data.draw(wire_lines(self.revision, side.other))
            wire.put(line.replace(b"\n", b"") + b"\n")

    # ------------------------------------------------------------------------- time, and ends

    @rule(seconds=st.sampled_from((0.5, 1.0, 4.0, 25.0)))
    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.pair.advance(seconds)

    def _may_end(self) -> bool:
        return self._patience <= 0

    @rule(end=_ENDS)
    @precondition(_may_end)
    def end(self, end: tuple[Side, str]) -> None:
        """End something: the stream to a side, a side itself, or its sending."""
        side, how = end
        connection = self.pair.side(side)
        if how == "end":
            self.pair.wire_to(side).end()
        elif how == "eof":
            connection.receive_eof(now=self.pair.now)
        elif how == "drain":
            connection.receive_eof(drain=5.0, now=self.pair.now)
        elif how == "close":
            connection.close()
        else:
            connection.send_failed()

    # ----------------------------------------------------------------------------------- checks

    @invariant()
    def promises_are_kept(self) -> None:
        """Compare both connections with the books, and look at what was sent."""
        self._patience -= 1
        for side in self._prompt:
            if self._joining:
                self._join(side)
            self.pair.deliver_to(side)
        for side in Side:
            for event in self.checkers[side].take_events():
                self.happened(side, event)
                if isinstance(event, RequestReceived):
                    _remember(self.received[side], event.request)
        transcript = self.pair.transcript
        for side, message in transcript[self._seen :]:
            value = check_message(message)
            if "method" in value and "id" in value:
                key = (side, value["id"])
                demand(key not in self._used_ids, f"the id of {value} was used before")
                self._used_ids.add(key)
            self.sent(side, message, value)
        self._seen = len(transcript)

    def teardown(self) -> None:
        """Close both sides: now everything must have ended."""
        if not self.checkers:
            return  # it never began, and the reason is what is to be seen
        for side in Side:
            self.pair.wire_to(side)
            self.pair.side(side).close()
        self.promises_are_kept()
        demand(
            all(checker.closed for checker in self.checkers),
            "a closed connection had no last event",
        )


def _remember(handles: list[Any], handle: object) -> None:
    handles.append(handle)
    del handles[:-8]
