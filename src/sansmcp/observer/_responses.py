"""Responses: the request that each answers, and the effects that outlast it.

Source: MCP 2025-11-25 and 2026-07-28, basic/index, Responses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from .._rules.messages import (
    BAD_RESPONSE_ID,
    id_of_other_type,
    is_error,
    judge_error_without_id,
    judge_response,
)
from .._rules.sending import Breach, result_shape_breach
from .._spec.legacy_methods import TASK_OPTIONAL
from .._wire.values import MISSING, IdKey, JSONObject, Side, id_key, is_object, table_key
from ._events import AnswerMatched, MessageKind
from ._handshake import Handshake
from ._history import ObserverCore, SeenRequest, SideHistory
from ._log_levels import AgreedLogLevel
from ._progress import SeenProgress
from ._stateless import StatelessRequests
from ._subscriptions import SubscribedResources
from ._tasks import SeenTasks


@attrs.define(eq=False, repr=False)
class SeenResponses:
    """Matches responses with requests, and judges them."""

    _core: ObserverCore
    _handshake: Handshake
    _progress: SeenProgress
    _stateless: StatelessRequests
    _log_level: AgreedLogLevel
    _resources: SubscribedResources
    _tasks: SeenTasks
    _result_takers: Mapping[str, Callable[[SeenRequest, JSONObject], None]] = attrs.field(
        init=False
    )
    _error_takers: Mapping[str, Callable[[SeenRequest], None]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Name the parts that take responses to legacy requests."""
        self._result_takers = {
            "initialize": self._handshake.take_result,
            "logging/setLevel": self._log_level.take_result,
            "resources/subscribe": self._resources.take_subscribe_result,
            "resources/unsubscribe": self._resources.take_unsubscribe_result,
        }
        self._error_takers = {
            "initialize": self._handshake.take_error,
            "logging/setLevel": self._log_level.take_error,
            "resources/subscribe": self._resources.take_subscribe_error,
        }

    def take(self, sender: SideHistory, message: JSONObject, key: IdKey | None) -> None:
        """Report a response, match it and judge it; `key` is its id as a key of tables."""
        core = self._core
        requester = core.sides[1 - sender.side]
        raw: Any = message.get("id")
        request: SeenRequest | None = None
        if key is not None:
            request = requester.open.get(key) or requester.finished.get(key)
        if "error" in message:
            kind = MessageKind.ERROR
        else:
            kind = MessageKind.RESULT if "result" in message else MessageKind.INVALID
        method = None if request is None else request.method
        core.add_message(sender.side, kind, method, None if key is None else raw, message)
        if request is None:
            request = self._find_other(sender, requester, message, raw, key)
            if request is None:
                return
        if request.place > sender.read_place:
            sender.read_place = request.place
        request.n_answered += 1
        request.response_place = core.number if core.index is None else 0
        if core.in_refused_batch:
            request.n_sent += 1  # the requester may not take it for a response
        if request.n_answered > request.n_sent:
            if requester.is_complete and request.key not in requester.excused:
                breach = Breach("JSON-004", f"{request.method} was answered before")
                core.add_violation(sender.side, breach, request.method, request.id)
            return
        self._match(sender, requester, request, message)
        if request.n_answered == request.n_sent:
            requester.finish(request)

    def _match(
        self,
        sender: SideHistory,
        requester: SideHistory,
        request: SeenRequest,
        message: JSONObject,
    ) -> None:
        core, handshake = self._core, self._handshake
        result: Any = message.get("result", MISSING)
        breach: Breach | None = None
        is_plain = result.__class__ is dict and "error" not in message
        code: int | None = None
        if not is_plain or message.get("jsonrpc") != "2.0":
            breach = judge_response(message)
            if breach is None:
                code = message["error"]["code"]
        now, then = core.now, request.time
        core.queue.append(
            AnswerMatched(
                side=requester.side,
                method=request.method,
                id=request.id,
                request_number=request.number,
                number=core.number,
                index=core.index,
                time=now,
                seconds=None if now is None or then is None else now - then,
                code=code,
                cancelled=request.is_cancelled,
            )
        )
        if request.n_sent > 1:  # it may belong to another request with this id
            handshake.forget(request)
        elif request.is_modern:
            if code is not None:
                breach = self._stateless.take_error(request, code, message["error"].get("data"))
            elif breach is None:
                breach = self._stateless.take_result(request, result)
            if breach is not None:
                core.add_violation(sender.side, breach, request.method, request.id)
            return
        elif is_plain:
            breach = self._take_result(sender, requester, request, result, breach)
        elif breach is None:
            if request.spec is not None and request.method in self._error_takers:
                self._error_takers[request.method](request)
        else:
            handshake.forget(request)
        if request.due_rule is not None and not request.is_modern and handshake.has_not_begun:
            breach = Breach(request.due_rule, f"the client answers {request.method}")
        if breach is not None:
            core.add_violation(sender.side, breach, request.method, request.id)
            handshake.excuse(sender, request.key)
        if request.from_batch and core.from_line and core.index is None and handshake.has_batches:
            text = f"{request.method} came in a batch, and its response outside of one"
            core.add_violation(sender.side, Breach("BATCH-005", text), request.method, request.id)

    def _take_result(
        self,
        sender: SideHistory,
        requester: SideHistory,
        request: SeenRequest,
        result: JSONObject,
        breach: Breach | None,
    ) -> Breach | None:
        """Judge the result of a legacy request; `breach` is what is wrong with its envelope."""
        core, spec = self._core, request.spec
        breach = breach or self._tasks.judge_response(request, result)
        if spec is None:
            return breach
        method = request.method
        if None in result.values():
            result = core.without_nulls(
                sender.side, spec.result_optional, result, method, request.id
            )
        if request.as_task and is_object(task := result.get("task")):
            task = core.without_nulls(sender.side, TASK_OPTIONAL, task, method, request.id)
            result = {**result, "task": task}
        if (
            breach is None
            and core.checks_shape
            and (wrong := result_shape_breach(spec, request.as_task, result)) is not None
        ):
            breach = Breach(spec.result_rule, f"result of {method}: {wrong}")
        if method in self._result_takers:
            self._result_takers[method](request, result)
        elif request.as_task:
            self._progress.take_task(requester, request, result)
        elif spec.has_part:
            self._progress.end_tasks(requester.side, method, result)
        elif method == "tools/list":
            self._tasks.take_tools(result)
        if breach is None and (spec.task_gate is not None or method.startswith("tasks/")):
            breach = self._tasks.take_result(sender, request, result)
        return breach

    # ------------------------------------------------------------------------ ids without match

    def _find_other(
        self,
        sender: SideHistory,
        requester: SideHistory,
        message: JSONObject,
        raw: object,
        key: IdKey | None,
    ) -> SeenRequest | None:
        """Find the request of a response whose id is not remembered, or report a violation."""
        if key is None:
            self._judge_without_id(sender, requester, message, raw)
            return None
        if requester.has_sent(key) is not False:
            return None  # the request is not known, or was forgotten
        core = self._core
        other = table_key(id_of_other_type(key))
        request = None if other is None else requester.open.get(other)
        if request is None:
            breach = Breach("JSON-004", "a response names no request")
            core.add_violation(sender.side, breach, id=id_key(raw))
        else:
            text = f"a response has the id {raw!r} instead of {other!r}"
            breach = Breach("JSON-004", text)
            core.add_violation(sender.side, breach, request.method, request.id)
        return request

    def _judge_without_id(
        self, sender: SideHistory, requester: SideHistory, message: JSONObject, raw: object
    ) -> None:
        """Judge a response that has no valid id."""
        if raw is None and is_error(message.get("error")):
            handshake = self._handshake
            # An error of the server may be about a message of the other era.
            is_modern = sender.side is Side.SERVER and self._core.modern.n_requests
            is_agreed = handshake.is_agreed and not is_modern
            dialect = handshake.conversation.dialect if is_agreed else None
            breach = judge_error_without_id(message, dialect)
            if breach is not None:
                self._core.add_violation(sender.side, breach)
        elif requester.is_complete:
            self._core.add_violation(sender.side, BAD_RESPONSE_ID)
