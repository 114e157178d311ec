"""Notifications: whether their sender may send them, and which part takes them.

Source: MCP 2025-11-25 and 2026-07-28, basic/index, Notifications.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from .._rules.messages import NULL_PARAMS, UNKNOWN_LEVEL, is_level, judge_request_or_notification
from .._rules.sending import Breach, judge_notification, mistyped_member, too_early, without_nulls
from .._rules.state_tables import Phase
from .._spec.methods import META
from .._wire.values import MISSING, JSONObject, Side
from ._cancellations import CANCELLED, Cancellations
from ._events import MessageKind
from ._handshake import INITIALIZED, Handshake
from ._history import ObserverCore, SideHistory
from ._log_levels import LOG, AgreedLogLevel
from ._progress import PROGRESS, SeenProgress
from ._stateless import StatelessRequests
from ._subscriptions import SubscribedResources, Subscriptions
from ._tasks import STATUS, SeenTasks

_UPDATED: Final = "notifications/resources/updated"
_TOOLS_CHANGED: Final = "notifications/tools/list_changed"


@attrs.define(eq=False, repr=False)
class SeenNotifications:
    """Judges notifications by what their sender certainly knows."""

    _core: ObserverCore
    _handshake: Handshake
    _progress: SeenProgress
    _cancellations: Cancellations
    _subscriptions: Subscriptions
    _stateless: StatelessRequests
    _log_level: AgreedLogLevel
    _resources: SubscribedResources
    _tasks: SeenTasks
    _takers: Mapping[str, Callable[[SideHistory, JSONObject], None]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Name the parts that take notifications about one request."""
        self._takers = {
            PROGRESS: self._progress.take_notification,
            CANCELLED: self._cancellations.take_notification,
        }

    def take(self, sender: SideHistory, message: JSONObject, method: str) -> None:
        """Report and judge a notification."""
        core = self._core
        core.add_message(sender.side, MessageKind.NOTIFICATION, method, None, message)
        given: Any = message.get("params", MISSING)
        params: JSONObject = given if given.__class__ is dict else {}
        breach: Breach | None = None
        if given.__class__ is not dict or message.get("jsonrpc") != "2.0":
            breach = judge_request_or_notification(message)
            if breach is not None:
                core.add_violation(sender.side, breach, method)
            elif given is None:
                core.add_violation(sender.side, NULL_PARAMS, method)
        taker = self._takers.get(method)
        if params and breach is None and (taker is not None or None in params.values()):
            params = self._judge_optional(sender, method, params, about_request=taker is not None)
        if method == INITIALIZED and sender.side is Side.CLIENT:
            self._handshake.take_initialized(sender, breach)
        elif breach is not None:
            pass  # whether it counts is up to its receiver
        elif taker is not None:
            taker(sender, params)
        else:
            self._judge(sender, method, params)

    def _judge_optional(
        self, sender: SideHistory, method: str, params: JSONObject, *, about_request: bool
    ) -> JSONObject:
        """Judge the optional members of params; return those that count."""
        modern, handshake = self._core.modern, self._handshake
        spec = handshake.conversation.dialect.notifications[sender.side].get(method)
        spec = spec or modern.dialect.notifications[sender.side].get(method)
        optional = META if spec is None else spec.params_optional
        if not handshake.is_certain or modern.n_unknown:
            return without_nulls(optional, params)
        core = self._core
        params = core.without_nulls(sender.side, optional, params, method, None)
        # The types of other notifications are judged with the rest.
        if (
            about_request
            and core.checks_shape
            and (odd := mistyped_member(optional, params)) is not None
        ):
            text = f"params of {method}: {odd} has the wrong type"
            core.add_violation(sender.side, Breach("OWN-014", text), method)
        return params

    def _judge(self, sender: SideHistory, method: str, params: JSONObject) -> None:
        """Judge a notification that is not about one request in flight."""
        core = self._core
        modern, handshake = core.modern, self._handshake
        self._progress.end_tasks(sender.side.other, method, params)
        if (
            modern.n_requests
            and sender.side is Side.SERVER
            and self._subscriptions.take_notification(method, params)
        ):
            return
        if method == LOG and not is_level(params.get("level")):
            core.add_violation(sender.side, UNKNOWN_LEVEL, method)
            return
        if not handshake.is_certain or modern.n_unknown:
            return
        conversation = handshake.conversation
        if conversation.phase is Phase.AGREED and sender.side is Side.SERVER:
            # Once it has answered `initialize`, only requests have to wait (LIFE-006).
            conversation = attrs.evolve(conversation, phase=Phase.OPERATING)
        spec = conversation.dialect.notifications[sender.side].get(method)
        if handshake.is_known_to(sender):
            breach = judge_notification(
                conversation, sender.side, method, spec, params, core.checks_shape
            )
        else:
            breach = None if spec is not None and spec.early else too_early(method)
        if breach is None and sender.side is Side.SERVER and core.client.is_complete:
            breach = self._judge_wanted(method, params)
        if method == STATUS and breach is None and spec is not None:
            breach = self._tasks.take_status(sender, params)
        elif method == _TOOLS_CHANGED:
            self._tasks.take_list_changed()
        if modern.n_requests or conversation.phase is Phase.NEW:
            breach = self._stateless.judge_notification(sender, method, params, breach)
        if breach is not None:
            core.add_violation(sender.side, breach, method)

    def _judge_wanted(self, method: str, params: JSONObject) -> Breach | None:
        """Whether the client of a handshake wanted this notification, as far as that is certain."""
        if method == LOG and self._log_level.forbids(params["level"]):
            return Breach("LOG-004", f"a log message of level {params['level']}, below the one set")
        if method == _UPDATED and self._resources.is_certainly_empty:
            return Breach("RES-008", f"{method} without any subscription")
        return None
