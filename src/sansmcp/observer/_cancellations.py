"""Cancellations: the request that each is about, and whether its sender may cancel that.

Source: MCP 2025-11-25 and 2026-07-28, basic/utilities/cancellation and
basic/patterns/cancellation.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from .._rules.messages import judge_cancellation
from .._rules.sending import Breach
from .._spec.methods import Dialect
from .._wire.values import IdKey, JSONObject, Side, id_key, table_key
from ._events import CancellationMatched
from ._handshake import Handshake
from ._history import ObserverCore, SeenRequest, SideHistory
from ._subscriptions import SeenSubscription, Subscriptions

CANCELLED: Final = "notifications/cancelled"


@attrs.define(eq=False, repr=False)
class Cancellations:
    """Judges `notifications/cancelled` of either side."""

    _core: ObserverCore
    _handshake: Handshake
    _subscriptions: Subscriptions

    def take_notification(self, sender: SideHistory, params: JSONObject) -> None:
        """Judge a cancellation, and take its request out of the open ones."""
        core = self._core
        is_judged = self._handshake.is_certain and not core.modern.n_unknown
        reason: Any = params.get("reason")
        key = table_key(params.get("requestId"))
        if key is None:
            if is_judged and (dialect := self._dialect_of(sender)) is not None:
                breach = judge_cancellation(params, dialect)
                assert breach is not None  # there is no usable id
                core.add_violation(sender.side, breach, CANCELLED)
            return
        request = sender.find(key)
        by_server = sender.side is Side.SERVER and core.modern.n_requests > 0
        # The server may mean a request of the client, a subscription, or one of its own.
        meant = core.client.find(key) if by_server else None
        if meant is not None and (meant.is_modern or meant.n_sent > 1):
            if request is None and sender.has_sent(key) is False:
                self._take_of_server(sender, meant, reason)
                return
            is_judged = False  # it may mean either
        if request is None:
            if (
                is_judged
                and sender.has_sent(key) is False
                and not self._may_mean_forgotten(by_server, meant, key)
            ):
                breach = Breach(self._rule_of(sender), "a cancellation of no request of its sender")
                core.add_violation(sender.side, breach, CANCELLED, id_key(params["requestId"]))
            return
        self._report(sender, request, reason)
        if request.is_judged if request.is_modern else is_judged:
            breach = _judge_request(sender, request)
            if breach is not None:
                core.add_violation(sender.side, breach, request.method, request.id)
        request.is_cancelled = True
        if isinstance(request.subject, SeenSubscription) and core.index is None:
            self._subscriptions.cancel(request.subject, core.number)
        if not self._handshake.is_opened_by(request):
            sender.finish(request)

    def _take_of_server(self, server: SideHistory, request: SeenRequest, reason: object) -> None:
        """The server cancels a request of the client, which it may do for subscriptions only."""
        if request.n_sent > 1 or not request.is_judged:
            return
        subscription: object = request.subject
        if not isinstance(subscription, SeenSubscription):
            text = f"the server cancels {request.method}, which is no subscription"
            breach = Breach("CANC-019", text)
            self._core.add_violation(server.side, breach, request.method, request.id)
            return
        server.read_place = max(server.read_place, request.place)
        self._report(server, request, reason)
        request.is_cancelled = True
        self._subscriptions.end(subscription)
        self._core.client.finish(request)

    def _report(self, sender: SideHistory, request: SeenRequest, reason: object) -> None:
        core = self._core
        core.queue.append(
            CancellationMatched(
                side=sender.side,
                method=request.method,
                id=request.id,
                request_number=request.number,
                number=core.number,
                index=core.index,
                time=core.now,
                reason=reason if isinstance(reason, str) else None,
                answered=not request.is_open,
            )
        )

    def _rule_of(self, sender: SideHistory) -> str:
        """Return the id of the rule that a cancellation of no request breaks."""
        if self._handshake.has_not_begun:
            if sender.side is Side.CLIENT and self._core.modern.n_served:
                return "CANC-003"
            if sender.side is Side.SERVER and self._core.modern.is_served:
                return "CANC-019"
        return "CANC-001"

    def _may_mean_forgotten(self, by_server: bool, meant: SeenRequest | None, key: IdKey) -> bool:
        """Whether the server may mean a subscription that is not remembered."""
        return by_server and meant is None and self._core.client.has_sent(key) is not False

    def _dialect_of(self, sender: SideHistory) -> Dialect | None:
        """The revision that a side certainly speaks where it names no request; None: unknown."""
        handshake = self._handshake
        if handshake.conversation.agreed and handshake.is_known_to(sender):
            return handshake.conversation.dialect
        modern = self._core.modern
        is_modern = modern.n_served if sender.side is Side.CLIENT else modern.is_served
        return modern.dialect if is_modern and handshake.has_not_begun else None


def _judge_request(sender: SideHistory, request: SeenRequest) -> Breach | None:
    """Whether a side may cancel this request of its own."""
    if request.method == "initialize":
        return Breach("CANC-004", "initialize cannot be cancelled")
    if request.as_task and request.accepts_task:
        return Breach("CANC-005", f"{request.method} asked for a task: tasks/cancel ends it")
    if not request.is_open and request.n_sent == 1 and sender.has_read(request.response_place):
        rule = "CANC-003" if request.is_modern else "CANC-002"
        if request.is_modern and request.as_task:  # only tasks/cancel ends it
            rule = "XTASK-114"
        return Breach(rule, f"{request.method} was answered, which its sender has read")
    return None
