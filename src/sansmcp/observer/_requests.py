"""Requests: whether their sender may send them, and what their response will decide.

Source: MCP 2025-11-25 and 2026-07-28, basic/index, Requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from .._rules.messages import BAD_REQUEST_ID, NULL_PARAMS, judge_request_or_notification
from .._rules.sending import Breach, judge_phase, judge_request, judge_task, without_nulls
from .._rules.state_tables import Phase
from .._spec.methods import META, Method
from .._spec.registry import LEGACY_REVISIONS
from .._spec.tasks import RELATED_TASK
from .._wire.values import (
    GREATEST_OWN_HASH,
    LEAST_OWN_HASH,
    MISSING,
    IdKey,
    JSONObject,
    Side,
    is_object,
    table_key,
)
from ._events import BlindCause, MessageKind
from ._handshake import Handshake
from ._history import ObserverCore, SeenRequest, SideHistory
from ._log_levels import AgreedLogLevel
from ._progress import SeenProgress
from ._stateless import StatelessRequests, is_modern_request
from ._subscriptions import SeenSubscription, SubscribedResources
from ._tasks import SeenTasks

_OPERATING: Final = Phase.OPERATING
_INITIALIZE: Final = "initialize"
_FORGOTTEN: Final = "the oldest id was forgotten: unknown ids are not judged any more"


@attrs.define(eq=False, repr=False)
class SeenRequests:
    """Judges requests by what their sender certainly knows."""

    _core: ObserverCore
    _handshake: Handshake
    _progress: SeenProgress
    _stateless: StatelessRequests
    _log_level: AgreedLogLevel
    _resources: SubscribedResources
    _tasks: SeenTasks
    _takers: Mapping[str, Callable[[SideHistory, SeenRequest, JSONObject], None]] = attrs.field(
        init=False
    )
    _losers: Mapping[str, Callable[[], None]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Name the parts that take legacy requests whose effect lasts beyond the response."""
        self._takers = {
            _INITIALIZE: self._handshake.take_request,
            "logging/setLevel": self._log_level.take_request,
            "resources/subscribe": self._resources.take_subscribe,
            "resources/unsubscribe": self._resources.take_unsubscribe,
        }
        # Before a revision is agreed on, these requests may be served or not.
        self._losers = {
            "logging/setLevel": self._log_level.lose,
            "resources/subscribe": self._resources.lose,
        }

    def take(self, sender: SideHistory, message: JSONObject, method: str) -> None:
        """Report, judge and remember a request."""
        core, handshake = self._core, self._handshake
        side = sender.side
        raw: Any = message["id"]
        key: IdKey | None
        if type(raw) is str or (type(raw) is int and LEAST_OWN_HASH <= raw <= GREATEST_OWN_HASH):
            key = raw
        else:
            key = table_key(raw)
        core.add_message(side, MessageKind.REQUEST, method, None if key is None else raw, message)
        if key is None:
            core.add_violation(side, BAD_REQUEST_ID, method)
            handshake.mark_unreadable(sender)  # its response may have any id
            return
        given: Any = message.get("params", MISSING)
        params: JSONObject = given if given.__class__ is dict else {}
        breach: Breach | None = None
        if (
            given.__class__ is not dict
            or message.get("jsonrpc") != "2.0"
            or "result" in message
            or "error" in message
        ):
            breach = judge_request_or_notification(message)
            if given is None:
                core.add_violation(side, NULL_PARAMS, method, raw)
        request = SeenRequest(raw, key, method, core.number, core.now)
        if core.index is not None:
            request.index = core.index
            request.from_batch = core.from_line
        meta: Any = params.get("_meta")
        conversation = handshake.conversation
        spec = conversation.dialect.requests[side].get(method)
        if (spec is None or meta is not None) and is_modern_request(sender, method, meta):
            breach = self._stateless.take_request(request, params, breach)
            spec = None
        elif None in params.values():
            params = self._without_nulls(sender, request, spec, params)
        if request.is_modern:
            pass  # it was judged by what it declares itself
        elif breach is None and handshake.is_certain:
            if conversation.phase is _OPERATING:
                breach = judge_request(conversation, side, method, spec, params, core.checks_shape)
            else:
                breach = self._judge_early(sender, request, spec, params)
        if breach is not None:
            core.add_violation(side, breach, method, raw)
        if key == sender.used_ids.expected:  # as nearly always
            sender.used_ids.expected += 1
        else:
            self._remember_id(sender, request)
        sender.open[key] = request
        if len(sender.open) > core.config.max_requests:
            handshake.forget(sender.forget_oldest())
        if meta is not None:
            self._progress.take_request(sender, request, meta)
            if is_object(meta) and RELATED_TASK in meta:
                self._take_related(sender, request, meta)
        if spec is None:
            pass
        elif (
            spec.has_part
            or spec.paginated is not None
            or spec.task_gate is not None
            or "task" in params
        ):
            self._take_effect(sender, request, spec, params)
        elif handshake.is_certain and conversation.agreed:
            request.spec = spec

    def _without_nulls(
        self, sender: SideHistory, request: SeenRequest, spec: Method | None, params: JSONObject
    ) -> JSONObject:
        """The params of a legacy request without optional members that are null."""
        handshake = self._handshake
        optional = META if spec is None else spec.params_optional
        if handshake.is_certain and (
            handshake.conversation.agreed or request.method == _INITIALIZE
        ):
            return self._core.without_nulls(
                sender.side, optional, params, request.method, request.id
            )
        return without_nulls(optional, params)

    def _judge_early(
        self, sender: SideHistory, request: SeenRequest, spec: Method | None, params: JSONObject
    ) -> Breach | None:
        """Judge a legacy request before the handshake is done."""
        handshake, side, method = self._handshake, sender.side, request.method
        conversation = handshake.conversation
        opens = method == _INITIALIZE and side is Side.CLIENT
        if self._core.modern.n_requests and conversation.phase is Phase.NEW and not opens:
            return self._stateless.judge_bare(sender, request)
        if not handshake.is_known_to(sender):
            return judge_phase(conversation.phase, side, method)
        return judge_request(conversation, side, method, spec, params, self._core.checks_shape)

    # ------------------------------------------------------------------------------------- ids

    def _remember_id(self, sender: SideHistory, request: SeenRequest) -> None:
        """Remember an id, and judge whether it was used before."""
        key, core = request.key, self._core
        is_known = sender.used_ids.add(key)
        if sender.used_ids.forgotten:
            core.add_blind_spot(BlindCause.FORGOTTEN, sender.side, _FORGOTTEN)
        if is_known:
            former = sender.open.pop(key, None) or sender.finished.pop(key, None)
            breach = self._judge_reuse(sender, request, former)
            if breach is not None:
                core.add_violation(sender.side, breach, request.method, request.id)
            if former is not None and former.is_open:
                request.n_sent += former.n_sent - former.n_answered
                request.place = former.place  # a response to either proves no more than this
                self._handshake.forget(former)

    def _judge_reuse(
        self, sender: SideHistory, request: SeenRequest, former: SeenRequest | None
    ) -> Breach | None:
        """Judge whether a known id may be used again.

        Args:
            sender: The side that uses it.
            request: The request that has it now.
            former: The last request that had it, as far as it is remembered.
        """
        if request.is_modern:
            other = self._core.sides[1 - sender.side]
            if (
                former is None
                or not former.is_open
                or former.is_reported
                or request.has_unknown_revision
                or not other.is_readable  # there may have been a response
                or (isinstance(former.subject, SeenSubscription) and former.subject.is_over)
            ):
                return None
            return Breach(
                "ID-002", f"the id {request.id!r} is that of a request without a response"
            )
        # Modern requests are no part of the session.
        modern_ids, handshake = sender.modern_ids, self._handshake
        is_of_session = modern_ids is None or not (
            modern_ids.forgotten or request.key in modern_ids
        )
        is_judged = handshake.is_certain and (
            not handshake.has_not_begun or request.method == _INITIALIZE
        )
        if is_judged and is_of_session:
            return Breach("ID-001", f"the id {request.id!r} was used before")
        return None

    # --------------------------------------------------------------------------------- effects

    def _take_related(self, sender: SideHistory, request: SeenRequest, meta: JSONObject) -> None:
        """Take a request that may belong to a task of 2025-11-25."""
        handshake = self._handshake
        if (
            not request.is_modern
            and handshake.is_agreed
            and handshake.conversation.dialect.revision == LEGACY_REVISIONS[-1]
            and not request.method.startswith("tasks/")
        ):
            self._tasks.take_related(sender, request, meta)

    def _take_effect(
        self, sender: SideHistory, request: SeenRequest, spec: Method, params: JSONObject
    ) -> None:
        """Take the effects of a legacy request that outlast its response."""
        handshake, method = self._handshake, request.method
        if method != _INITIALIZE and not handshake.is_agreed:
            # The revision that defines the method is not agreed on yet.
            if method in self._losers:
                self._losers[method]()
            request.may_be_task = "task" in params
            return
        request.spec = spec
        if spec.task_gate is not None:
            breach = judge_task(spec, handshake.conversation.gates[1 - sender.side])
            request.as_task = "task" in params
            request.accepts_task = breach is None  # else the receiver ignores a wish for a task
            if breach is not None and request.as_task and handshake.is_known_to(sender):
                self._core.add_violation(sender.side, breach, method, request.id)
        if spec.task_gate is not None or method.startswith("tasks/"):
            self._tasks.take_request(sender, request, params)
        elif method in self._takers:
            self._takers[method](sender, request, params)
