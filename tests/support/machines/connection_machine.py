"""A hypothesis state machine that drives a pair of connections in every possible way.

Subclass it to add rules, or to use connections with other settings.
"""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import rule

from sansmcp import (
    Change,
    IncomingRequest,
    JSONObject,
    Listener,
    Listing,
    OutgoingRequest,
    Side,
    Subscription,
)
from sansmcp.testing._examples import PARAMS, RESULTS
from tests.support.machines.choices import (
    ANSWERS,
    CHANGES,
    HONOURED,
    LISTEN,
    OWN_MACHINERY,
    PROVISIONS,
    REQUESTS,
    ROUNDS,
    TASK_RESULT,
)
from tests.support.machines.wire_machine import (
    ANY_SIDE,
    SIDES,
    WireMachine,
    asking_methods,
    methods_of,
    remember,
)
from tests.support.tables import methods_from

# There are few rules, and each does much. Every rule gets an equal share of the steps of a run, and
# some rules are not used in a run at all, but most interesting states need several steps in order.
# So a rule that finds no handle to act on makes one.
_handle: Final = st.sampled_from([(side, which) for which in range(8) for side in SIDES])
"""A side, and the number of a handle. From 6 on, the handle may have ended."""
_method: Final = st.sampled_from([(side, which) for which in range(20) for side in SIDES])
_CANCELLED: Final = (OutgoingRequest, Listing, Subscription)


def _may_ask(request: IncomingRequest) -> bool:
    return request.method in asking_methods(Side.CLIENT)


class ConnectionMachine(WireMachine):
    """Sends, answers, cancels, lets time pass, damages and ends; and checks after every step.

    It checks what the library promises for any conversation: tables and buffers stay within their
    limits; receiving never raises; a call that raises has changed nothing; each request ends
    exactly once; only valid JSON-RPC messages are sent; a call that loses a race returns False and
    sends nothing.

    Both sides speak `revision`, unless `speaks` has other revisions.
    """

    # ----------------------------------------------------------------------------------- asking

    @rule(method=_method, options=st.sampled_from(REQUESTS))
    def send_request(self, method: tuple[Side, int], options: JSONObject) -> None:
        """Send a request with any known method; the connection decides whether it is allowed."""
        side, which = method
        # If no revision of that side has requests of its own, the other side sends one.
        side = side if methods_of(self.revisions[side], side) else side.other
        methods = methods_of(self.revisions[side], side)
        name = methods[which % len(methods)]
        params: JSONObject = dict(PARAMS.get(name, {}))
        if name == "tools/call" and "max_timeout" in options:
            params["task"] = {}
        self._ask(side, lambda: self.pair.side(side).send_request(name, params, **options))

    @rule(side=ANY_SIDE, options=st.sampled_from(OWN_MACHINERY))
    def set_going(self, side: Side, options: JSONObject) -> None:
        """Begin a listing, a subscription or a ping."""
        connection = self.pair.side(side)
        if "method" in options:
            self._ask(side, lambda: connection.send_paginated(**options))
        elif "notifications" in options and self._is_modern:
            self._ask(Side.CLIENT, lambda: self.pair.client.listen(**options))
        else:
            self._ask(side, lambda: connection.ping(timeout=2.0))

    @rule(handle=_handle, how=st.sampled_from(PROVISIONS))
    def go_on(self, handle: tuple[Side, int], how: str) -> None:
        """Answer questions, or request the next page of a listing, where this is allowed or not."""
        side, which = handle
        listings = [h for h in self.asked[side] if isinstance(h, Listing)]
        if self.questions and not (listings and which % 2):
            questioned = self.questions if which > 5 else self.questions[-1:]
            self._provide_input(*questioned[which % len(questioned)], how)
        elif listings:
            listing = listings[-1 - which % len(listings)]
            self.checkers[side].attempt(lambda: self.pair.side(side).next_page(listing))
        else:
            self.answer((Side.SERVER, which), "one question")

    def _provide_input(
        self, call: OutgoingRequest, questions: dict[str, JSONObject], how: str
    ) -> None:
        responses = {name: RESULTS[asked["method"]] for name, asked in questions.items()}
        options: JSONObject = {}
        if how == "progress":
            options = {"progress": True}
        elif how == "timeout":
            options = {"timeout": 3.0}
        elif how == "incomplete":
            del responses[min(responses)]
        elif how == "misshapen":
            responses[min(responses)] = {"roots": None}
        elif how == "unasked":
            responses["unasked"] = {}
        renewed = self.checkers[Side.CLIENT].provide(
            call, lambda: self.pair.client.provide_input(call, responses, **options)
        )
        if isinstance(renewed, OutgoingRequest):
            remember(self.asked[Side.CLIENT], renewed)

    @rule(handle=_handle)
    def cancel(self, handle: tuple[Side, int]) -> None:
        """Cancel an open or ended handle of this side, or end a subscription that is served."""
        side, which = handle
        reason = "enough" if which else None
        handles: list[Any] = [h for h in self.asked[side] if isinstance(h, _CANCELLED)]
        if side is Side.SERVER:
            handles += self.served
        if handles:
            chosen = handles[-1 - which % len(handles)]
            if isinstance(chosen, Listener):
                end = self.pair.server.end_listener
                self.checkers[side].end_listener(chosen, lambda: end(chosen))
            else:
                self.checkers[side].cancel(chosen, reason)
        else:
            self.set_going(side, OWN_MACHINERY[-1 - which % 4])

    # -------------------------------------------------------------------------------- answering

    def _pick(self, side: Side, which: int) -> tuple[Side, IncomingRequest] | None:
        """An open request of this side or, if there is none, of the other side."""
        for asked in (side, side.other):
            requests = self.received[asked] if which > 5 else self.checkers[asked].handling
            if requests:
                return asked, requests[which % len(requests)]
        return None

    @rule(handle=_handle, answer=st.sampled_from(ANSWERS))
    def answer(self, handle: tuple[Side, int], answer: str) -> None:
        """Answer an open or ended request, with a valid or invalid answer, or with questions."""
        picked = self._pick(*handle)
        if picked is None:
            self.send_request(handle, REQUESTS[0])
            return
        side, request = picked
        connection = self.pair.side(side)
        if answer == "error":
            self.checkers[side].answer(
                request, lambda: connection.send_error(request, -32603, "no", {"why": "not today"})
            )
        elif side is Side.SERVER and request.method == LISTEN and answer != "malformed":
            honoured = HONOURED.get(answer)
            self.checkers[side].acknowledge(
                request, lambda: self.pair.server.acknowledge(request, honoured)
            )
        elif side is Side.SERVER and answer in ROUNDS and (handle[1] == 0 or _may_ask(request)):
            self._require_input(request, ROUNDS[answer])
        else:
            result: JSONObject = dict(RESULTS.get(request.method, {}))
            if answer == "task" and "task" in request.params:
                result = dict(TASK_RESULT)
            elif answer == "malformed":
                result = {"content": float("nan")}
            elif answer in ("p1", "p2", "") and request.method.endswith("/list"):
                result["nextCursor"] = answer
            self.checkers[side].answer(request, lambda: connection.send_result(request, result))

    def _require_input(self, request: IncomingRequest, options: JSONObject) -> None:
        server, checker = self.pair.server, self.checkers[Side.SERVER]
        at = 1e6 + (self.pair.now or 0.0)
        checker.read_state(request, lambda: server.read_state(request, at=at))
        checker.require_input(request, lambda: server.require_input(request, **options, at=at))

    @rule(handle=_handle, value=st.sampled_from((0, 1, 2, 2.5, 3, 10, float("inf"))))
    def progress(self, handle: tuple[Side, int], value: float) -> None:
        """Send progress for a request that may have ended."""
        picked = self._pick(*handle)
        if picked is not None:
            side, request = picked
            if not request.open or request.progress_token is None:
                value = min(value, 10)  # an infinity raises also after a lost race
            connection = self.pair.side(side)
            self.checkers[side].progress(
                request,
                lambda: connection.send_progress(request, value, total=3, message="on"),
            )
        else:
            self.send_request(handle, REQUESTS[1])

    # ---------------------------------------------------------------------------------- telling

    @rule(method=_method)
    def send_notification(self, method: tuple[Side, int]) -> None:
        """Send a notification with any known method."""
        side, which = method
        methods = (
            *sorted(methods_from(side, "notification", max(self.revisions[side]))),
            "extension/told",
        )
        name = methods[which % len(methods) if which < 10 or not self._is_modern else -1]
        self.checkers[side].attempt(
            lambda: self.pair.side(side).send_notification(name, PARAMS.get(name))
        )

    @rule(level=st.sampled_from(("debug", "error", "error", "loud")), which=st.integers(0, 7))
    def log(self, level: str, which: int) -> None:
        """Send a log message, perhaps for a request."""
        requests = self.received[Side.SERVER]
        request = requests[which % len(requests)] if which and requests else None
        self.checkers[Side.SERVER].attempt(
            lambda: self.pair.server.send_log(level, "x" * 200, request=request)
        )

    @rule(change=st.sampled_from(CHANGES))
    def publish(self, change: Change) -> None:
        """Publish a change."""
        self.checkers[Side.SERVER].attempt(lambda: self.pair.server.publish(change))
