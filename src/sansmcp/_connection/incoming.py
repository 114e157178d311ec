"""The open requests of the peer: each is answered once, refused, or cancelled.

`intake` judges a new request before, and opens it here.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from .._rules.messages import (
    judge_cancellation,
    no_increase,
)
from .._rules.sending import (
    NULL,
    Breach,
    result_shape_breach,
    result_without_nulls,
)
from .._rules.state_tables import REQUESTS, RequestState, RequestTrigger, State, StateTrigger
from .._rules.tasks import related_task
from .._spec.errors import ErrorCode, LocalProtocolError
from .._spec.methods import META
from .._spec.registry import LEGACY_REVISIONS
from .._spec.tasks import RELATED_TASK, finished_tasks, new_task
from .._wire.values import (
    MISSING,
    JSONObject,
    JSONValue,
    Missing,
    ProgressToken,
    RequestId,
    RequestKey,
    Side,
    is_object,
    table_key,
)
from .core import Core, MethodPart
from .events import (
    CancelCause,
    CloseCause,
    LimitReached,
    MessageIgnored,
    RequestAnswered,
    RequestCancelled,
)
from .handles import Batch, IncomingRequest, Route
from .modern_messages import ModernMessages
from .outgoing import OutgoingRequests
from .used_ids import CancelledIds, UsedIds

if TYPE_CHECKING:
    from .input_required.server import InputRequiredServer
    from .tasks.owner import TaskOwner

_OPEN = RequestState.OPEN
_OPEN_STATE = State.OPEN
_ANSWERED = REQUESTS[RequestState.OPEN, RequestTrigger.ANSWER]
_CANCELLED = REQUESTS[RequestState.OPEN, RequestTrigger.CANCEL]
_RESULT_BYTES: Final = len(b'{"jsonrpc":"2.0","id":,"result":}')
_BATCH_BYTES: Final = 3
"""The size of brackets and newline around the responses to a batch."""
_TOO_LARGE: Final = "the response is too large"
_ERROR_BYTES: Final = 1 + len(
    b'{"jsonrpc":"2.0","id":,"error":{"code":-32603,"message":"%b"}}' % _TOO_LARGE.encode()
)
"""The size of the shortest error that replaces a response, with a comma but without the id."""
_SILENT = frozenset({CancelCause.SEND_FAILED, CancelCause.FAILED})
"""Causes after which nothing is sent. After other causes, a batch still sends its responses."""
_TEXT_CHARACTERS: Final = 300
"""The most characters of an error message: it is one sentence, and may quote a long method
(JSON-016)."""


class IncomingRequests(MethodPart):
    """The open requests of the peer, and the responses to them.

    Attributes:
        requests: The open requests by key; `Core.requests` is the same table.
        tokens: Progress tokens of the peer that are in use.
        tasks: Requests that were answered with a task which is not over, by the id of the task.
        used_ids: The ids that legacy requests have used.
        cancelled_ids: The ids of modern requests that were cancelled and not used again since.
        input_required: On a server, the part that asks a legacy client questions; else None.
        task_owner: The part that answers requests with tasks; None: the application has tasks.
    """

    __slots__ = (
        "_core",
        "_messages",
        "_outgoing",
        "_reported_forgotten",
        "cancelled_ids",
        "input_required",
        "requests",
        "task_owner",
        "tasks",
        "tokens",
        "used_ids",
    )

    def __init__(self, core: Core, messages: ModernMessages, outgoing: OutgoingRequests) -> None:
        self._core = core
        self._messages = messages
        self._outgoing = outgoing
        self.requests: dict[RequestKey, IncomingRequest] = core.requests
        self.input_required: InputRequiredServer | None = None
        self.task_owner: TaskOwner | None = None
        self.used_ids: UsedIds = UsedIds(self._core.config.max_used_ids)
        self.cancelled_ids: CancelledIds = CancelledIds(self._core.config.max_used_ids)
        self._reported_forgotten = False
        self.tokens: dict[ProgressToken, None] = {}
        self.tasks: dict[str, IncomingRequest] = {}

    # -------------------------------------------------------------------- verbs of the application

    def send_result(
        self,
        request: IncomingRequest,
        result: JSONObject,
        meta: JSONObject | None,
        now: float | None,
    ) -> bool:
        """Answer a request with a result.

        Keeps TASK-026: the result of a request that belongs to a task of the peer names it, too.
        """
        if request._state is not _OPEN:
            return self.too_late(request)
        if self.requests.get(request._key) is not request:
            raise LocalProtocolError("OWN-022", f"{request!r} belongs to another connection")
        spec = request._spec
        if type(result) is not dict and not is_object(result):
            raise LocalProtocolError("OWN-014", f"a JSON object is needed, not {result!r:.40}")
        part = self.part_of(request)
        if part is not None:
            result = part.prepare_result(request, result)
        wrong: str | None = None
        if spec is None or not self._core.checks_shape:
            optional = META if spec is None else spec.result_optional
            result = result_without_nulls(optional, request._task, result)
        else:
            wrong = result_shape_breach(spec, request._task, result)
            if wrong is NULL:
                result = result_without_nulls(spec.result_optional, request._task, result)
                wrong = result_shape_breach(spec, request._task, result)
        if request._is_modern:
            body = self._messages.complete(spec, result, meta)
        else:
            related = related_task(request._params.get("_meta"))
            if related is not None and request._peer.revision == LEGACY_REVISIONS[-1]:
                meta = {**(meta or {}), RELATED_TASK: {"taskId": related}}
            body = self._core.encode_object(result, meta)
        if wrong is not None and not (
            request._is_modern and self._messages.is_extension_result(result)
        ):
            rule = "OWN-014" if spec is None else spec.result_rule
            raise LocalProtocolError(rule, f"result of {request._method}: {wrong}")
        if request._task is True and self.task_owner is not None and "task" not in result:
            self.task_owner.check_plain_result(request)
        if self._core.payloads is not None:
            self._core.payloads.check_result(
                request._method,
                result,
                meta,
                self._core.revision_of(request),
                request._params if spec is not None else None,  # which were judged with a spec only
                as_task=bool(request._task),
            )
        if part is not None:
            part.check_result(request, result)
        # Everything is checked: from here on nothing raises.
        if now is not None:
            self._core.tell(now)
        if (part is not None or request._task) and not self._would_fit(request, body):
            if part is not None:
                part.not_accepted(request)
            part = None  # an error replaces the result, which has no effect then
        elif request._task:
            self.keep_token_for_task(request, result)
        if part is not None:
            if meta is not None:
                result = {**result, "_meta": {**result.get("_meta", {}), **meta}}
            part.accepted(request, result)
        whole = self.answer(request, b'"result":', body)
        return (self._core.settle() if self._core.needs_settle else True) and whole

    def send_error(
        self,
        request: IncomingRequest,
        code: int,
        message: str,
        data: JSONValue | Missing,
        now: float | None,
    ) -> bool:
        """Answer a request with an error."""
        if request._state is not _OPEN:
            return self.too_late(request)
        if self.requests.get(request._key) is not request:
            raise LocalProtocolError("OWN-022", f"{request!r} belongs to another connection")
        body = self.error_bytes(code, message, data)
        if request._is_modern and (right := self._messages.modern_code(code, data)) != code:
            body = self.error_bytes(right, message, data)
        if now is not None:
            self._core.tell(now)
        if (part := self.part_of(request)) is not None:
            part.not_accepted(request)
        whole = self.answer(request, b'"error":', body)
        return (self._core.settle() if self._core.needs_settle else True) and whole

    def send_progress(
        self,
        request: IncomingRequest,
        progress: float,
        total: float | None,
        message: str | None,
        meta: JSONObject | None,
        now: float | None,
    ) -> bool:
        """Send progress of a request of the peer.

        Keeps PROG-010, and STDIO-012, SSE-012: nothing is sent for a request that was cancelled.
        Keeps TASK-026: progress of a task names it.
        """
        for number in (progress, 0 if total is None else total):
            if type(number) is not int and not (type(number) is float and isfinite(number)):
                raise LocalProtocolError("OWN-024", f"progress needs finite numbers, not {number}")
        token = request._token
        if token is None:
            return False
        if not self._is_in_progress(request):
            self._core.check_belongs(request)
            return False
        last = request._progress
        if last is not None and progress <= last:
            if self._core.config.coalesce_progress:
                return False
            raise no_increase(last, progress).error()
        params: JSONObject = {"progressToken": token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None and not isinstance(message, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LocalProtocolError("OWN-014", "message must be a string")
        if message is not None and request._peer.revision != "2024-11-05":
            params["message"] = message
        task = request._task
        if type(task) is str:
            meta = {**(meta or {}), RELATED_TASK: {"taskId": task}}
        body = self._core.encode_object(params, meta)
        if now is not None:
            self._core.tell(now)
        is_last = total is not None and progress >= total
        if self._core.transport.is_congested(request._route) or (
            not is_last and self._too_soon(request)
        ):
            return False
        message_bytes = b'{"jsonrpc":"2.0","method":"notifications/progress","params":%b}%b' % (
            body,
            self._core.newline,
        )
        if self._core.is_refused(message_bytes, "notifications/progress"):
            return self._core.settle()
        request._progress = progress
        request._progress_at = self._core.now
        self._core.transport.queue(message_bytes, request._route)
        return self._core.settle() if self._core.needs_settle else True

    # ------------------------------------------------------------------------------------- looking

    @property
    def open(self) -> tuple[IncomingRequest, ...]:
        """The requests that the application has not answered yet, oldest first."""
        return tuple(
            request
            for request in self.requests.values()
            if request._bridge is None and request._state is _OPEN
        )

    @property
    def forgotten_ids(self) -> int:
        """The number of forgotten ranges of the peer's ids; a reuse of them is not noticed."""
        return self.used_ids.forgotten + self.cancelled_ids.forgotten

    # -------------------------------------------------------------------- cancellation by the peer

    def receive_cancelled(self, params: JSONObject) -> None:
        """Handle `notifications/cancelled` of the peer."""
        if self._core.is_shared:
            text = "a posted cancellation has no effect: many clients use the same request ids"
            self.ignore_cancel("OWN-034", text, params.get("requestId"))
            return
        breach = judge_cancellation(params, self._core.conversation.dialect)
        if breach is not None:
            self._core.report(breach)
            return
        raw: Any = params["requestId"]
        key = table_key(raw)
        assert key is not None  # it was judged
        reason: Any = params.get("reason")
        request = self.requests.get(key)
        if request is None:
            self.ignore_cancel("CANC-013", "a cancellation of no request in flight", raw)
        elif request._method == "initialize":
            self.ignore_cancel("CANC-004", "a cancellation of initialize", raw)
        elif request._task:
            self.ignore_cancel("CANC-005", "a cancellation of a request for a task", raw)
        else:
            if request._is_modern:  # `used_ids` has the ids of legacy requests
                self.cancelled_ids.add(key)
                if self.cancelled_ids.forgotten:
                    self.report_forgotten_id()
            meta: Any = params.get("_meta")
            self.cancel(
                request,
                CancelCause.PEER,
                reason if isinstance(reason, str) else None,
                meta if is_object(meta) else None,
            )

    def ignore_cancel(self, rule: str, text: str, raw: Any) -> None:
        """Report a cancellation that changes nothing.

        Keeps CANC-010, CANC-012.
        """
        self._core.events.append(
            MessageIgnored(rule=rule, text=text, method="notifications/cancelled", id=raw)
        )

    # -------------------------------------------------------------------- responses of the library

    def answer_automatically(self, request: IncomingRequest, body: bytes) -> None:
        """Answer a request with a result of the library, and report `RequestAnswered`."""
        self._core.events.append(RequestAnswered(request=request))
        self.answer(request, b'"result":', body)

    def refuse(self, request: IncomingRequest, code: int, text: str, data: Any = MISSING) -> None:
        """Answer a request with an error of the library, and report `RequestAnswered`."""
        self._core.transport.request_refused(request, code)
        self._core.events.append(RequestAnswered(request=request, code=code))
        self.answer(request, b'"error":', self.error_bytes(code, text[:_TEXT_CHARACTERS], data))

    def refuse_breach(
        self, request: IncomingRequest, breach: Breach, said: str | None = None
    ) -> None:
        """Report a request that breaks a rule, and answer it with an error.

        Args:
            request: The request.
            breach: The rule, and the code and data of the error.
            said: The message of the error, if the peer must not learn the text of the breach.
        """
        self._core.transport.request_refused(request, breach.code)
        self._core.report(breach, request=request, code=breach.code)
        text = breach.text[:_TEXT_CHARACTERS] if said is None else said
        self.answer(request, b'"error":', self.error_bytes(breach.code, text, breach.data))

    def refuse_for_limit(self, request: IncomingRequest) -> None:
        """Refuse a request because `Config.max_requests` are open."""
        self._core.transport.request_refused(request, ErrorCode.INTERNAL_ERROR)
        text = f"{self._core.config.max_requests} requests are in flight, which is the limit"
        self._core.events.append(LimitReached(rule="OWN-004", text=text))
        self.answer(
            request,
            b'"error":',
            self.error_bytes(
                ErrorCode.INTERNAL_ERROR, "too many requests in flight", {"reason": text}
            ),
        )

    def refuse_duplicate(
        self, raw: RequestId, route: Route | None, batch: Batch | None, rule: str
    ) -> None:
        """Report a second request with the id of an open one.

        It gets no response: an error with this id would end the first request.
        """
        text = f"a second request with the id {raw!r} while one is in flight"
        self._core.report(Breach(rule, text))
        self._core.transport.duplicate_refused(raw, route, batch)

    def refuse_unreadable(
        self,
        breach: Breach,
        route: Route | None,
        *,
        excerpt: bytes | None = None,
        raw_id: Any = None,
        batch: Batch | None = None,
    ) -> None:
        """Report data that is no valid message, and answer it with an error if possible.

        Args:
            breach: The rule, and the code of the error.
            route: The way of the response.
            excerpt: The first bytes of the data, for the event.
            raw_id: The id, if it could be read.
            batch: The batch that the data is part of.
        """
        self._core.report(breach, excerpt=excerpt, code=breach.code)
        if not self._core.transport.answers_unreadable(breach, route, raw_id, batch):
            self.answer_unreadable(breach, route, raw_id=raw_id, batch=batch)

    def answer_unreadable(
        self,
        breach: Breach,
        route: Route | None,
        *,
        raw_id: Any = None,
        batch: Batch | None = None,
    ) -> None:
        """Answer an invalid message with an error, on a server.

        The error has the id if it could be read. An error without an id exists from 2025-11-25 on;
        in older revisions nothing is sent.

        Keeps JSON-011.
        """
        if self._core.side is Side.CLIENT or self._core.state is not State.OPEN:
            return
        body = self.error_bytes(breach.code, breach.text)
        key = table_key(raw_id)
        if key is not None:
            if key in self.requests:
                return  # the error would end the open request with this id
            answer = b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (self._core.encode(raw_id), body)
            if batch is not None:
                batch.responses.append(answer)
                batch.size += len(answer) + 1
                return
        elif self._core.dialect_of_unreadable().has_idless_errors and batch is None:
            answer = b'{"jsonrpc":"2.0","error":%b}' % body
        else:
            return
        self._core.transport.queue(answer + self._core.newline, route)

    def report_forgotten_id(self) -> None:
        """Report once that an id of the peer was forgotten."""
        if not self._reported_forgotten:
            self._reported_forgotten = True
            text = "the oldest id of the peer was forgotten; forgotten_ids counts on"
            self._core.events.append(LimitReached(rule="OWN-007", text=text))

    # ------------------------------------------------------------------------------------- endings

    def answer(self, request: IncomingRequest, member: bytes, body: bytes) -> bool:
        """End an open request with a response: queue it, or add it to its batch.

        Args:
            request: The request, which is in the table.
            member: The JSON before `body`: `"result":` or `"error":`.
            body: The JSON of the result or the error.

        Returns:
            Whether this response was queued. False: it is too large, and an error was queued in its
            place.
        """
        self._remove_request(request, _ANSWERED)
        id = request._id
        text = b"%d" % id if type(id) is int else self._core.encode(id)
        batch = request._batch
        whole = True
        if batch is None:
            message = b'{"jsonrpc":"2.0","id":%b,%b%b}%b' % (text, member, body, self._core.newline)
            limit = self._core.config.max_unsent_bytes
            if len(message) > limit:
                message = self._replacement_error(request, message, limit) + self._core.newline
                whole = False
            self._core.transport.queue(message, request._route)
        else:
            answer = b'{"jsonrpc":"2.0","id":%b,%b%b}' % (text, member, body)
            own = _ERROR_BYTES + len(text)
            room = self._room_in(batch, own)
            if len(answer) > room:
                answer = self._replacement_error(request, answer, room)
                whole = False
            batch.responses.append(answer)
            batch.size += len(answer) + 1
            self._leave_batch(batch, own, request._route)
        if self._core.state is not _OPEN_STATE:
            self._end_if_drained()
        return whole

    def cancel(
        self,
        request: IncomingRequest,
        cause: CancelCause,
        reason: str | None = None,
        meta: JSONObject | None = None,
    ) -> None:
        """End a request without a response, and report the cancellation."""
        bridge, request._bridge = request._bridge, None
        self._remove_request(request, _CANCELLED)
        part = self.part_of(request)
        if part is not None:
            part.not_accepted(request)
        if self.task_owner is not None and self.task_owner.cancelled_before(request):
            pass  # the application has answered with a task, and was told that this is cancelled
        elif part is None or not part.reports_cancelled(request, cause, reason, meta):
            # The application knows the first handle, not that of the next round.
            known = request if bridge is None else bridge.asked
            self._core.events.append(
                RequestCancelled(request=known, cause=cause, reason=reason, meta=meta)
            )
        if bridge is not None and self.input_required is not None:
            self.input_required.withdraw(bridge)
        if request._batch is not None and cause not in _SILENT:
            reserved = _ERROR_BYTES + len(self._core.encode_id(request._id))
            self._leave_batch(request._batch, reserved, request._route)
        self._core.transport.request_cancelled(request, cause)

    def end(self, cause: CancelCause) -> None:
        """Cancel all open requests: the connection ends."""
        self.tasks.clear()
        for request in list(self.requests.values()):
            self.cancel(request, cause)
        self.tokens.clear()

    def too_late(self, request: IncomingRequest) -> bool:
        """Raise if the application has answered a request before; else return False.

        Keeps STDIO-012, SSE-012, CANC-009, CANC-012.
        """
        if (request._state, RequestTrigger.ANSWER) not in REQUESTS:
            raise LocalProtocolError("OWN-026", f"{request!r} was answered before")
        return False

    def error_bytes(self, code: int, message: str, data: object = MISSING) -> bytes:
        """The JSON of an error object; raises `LocalProtocolError` if it is not well formed."""
        if type(code) is not int or not isinstance(message, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LocalProtocolError(
                "JSON-008", f"an error needs an integer code and a string, not {code!r}"
            )
        error: JSONObject = {"code": code, "message": message}
        if data is not MISSING:
            error["data"] = data
        return self._core.encode(error)

    def _remove_request(self, request: IncomingRequest, state: RequestState) -> None:
        del self.requests[request._key]
        request._state = state
        pauses = self._outgoing.timeout_pauses
        if pauses is not None and pauses.peer_waits:
            self._resume_timeouts_if_idle()
        if request._token is not None and type(request._task) is not str:
            self.release_token(request._token)
        self._core.transport.request_answered(request)

    def _end_if_drained(self) -> None:
        """End the connection with the last response after the peer's end of stream."""
        core = self._core
        if core.state is State.DRAINING and not self.requests and not core.overflowing:
            core.end(StateTrigger.DRAINED, CloseCause.EOF, CancelCause.EOF)

    # -------------------------------------------------------------------- responses over the limit

    def _would_fit(self, request: IncomingRequest, body: bytes) -> bool:
        id_bytes = len(self._core.encode_id(request._id))
        size = len(body) + id_bytes + _RESULT_BYTES
        if request._batch is not None:
            return size <= self._room_in(request._batch, _ERROR_BYTES + id_bytes)
        return size + len(self._core.newline) <= self._core.config.max_unsent_bytes

    def _room_in(self, batch: Batch, own: int) -> int:
        """Bytes left in a batch for the next response; room for later errors is reserved.

        `own` is the size of the error that would replace the response. A response that is smaller
        always has room.
        """
        taken = batch.size + _BATCH_BYTES + batch.reserved - own
        return max(self._core.config.max_unsent_bytes - taken, own - 1)

    def _replacement_error(self, request: IncomingRequest, answer: bytes, room: int) -> bytes:
        """The error that replaces a response without room; it gives the reason if that fits."""
        error = self._too_large_error(request, answer)
        if len(error) + len(self._core.newline) > room:
            body = self.error_bytes(ErrorCode.INTERNAL_ERROR, _TOO_LARGE)
            error = b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (self._core.encode(request._id), body)
        return error

    def _too_large_error(self, request: IncomingRequest, answer: bytes) -> bytes:
        """The error with the reason why a response is too large; report the limit (OWN-044)."""
        self._core.transport.response_replaced(request)
        limit = self._core.config.max_unsent_bytes
        text = (
            f"the response to {request._method[:80]} has {len(answer)} bytes; "
            f"the limit of Config.max_unsent_bytes is {limit}"
        )
        if request._batch is not None:
            text += " for a batch"
        self._core.events.append(
            LimitReached(rule="OWN-044", text=f"{text}; an error was sent instead")
        )
        error = self.error_bytes(ErrorCode.INTERNAL_ERROR, _TOO_LARGE, {"reason": text})
        return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (self._core.encode(request._id), error)

    # ------------------------------------------------------------------------------------- batches

    def join_batch(self, batch: Batch, id: RequestId) -> None:
        """Count a request as pending in a batch, and reserve room for an error response."""
        batch.pending += 1
        batch.reserved += _ERROR_BYTES + len(self._core.encode_id(id))

    def flush_batch(self, batch: Batch, route: Route | None) -> None:
        """Send the responses to a batch if its last request has ended.

        Keeps BATCH-005.
        """
        if batch.pending or not batch.complete:
            return
        self._core.transport.batch_answered(batch, route)
        if batch.responses:
            self._core.transport.queue(
                b"[%b]%b" % (b",".join(batch.responses), self._core.newline), route
            )
            batch.responses = []

    def _leave_batch(self, batch: Batch, reserved: int, route: Route | None) -> None:
        batch.pending -= 1
        batch.reserved -= reserved
        self.flush_batch(batch, route)

    # -------------------------------------------------------------------------- progress and tasks

    def note_own_tasks(self, method: str, content: JSONObject) -> None:
        """Release the tokens of tasks that a result or notification of this side shows as over.

        Keeps PROG-012.
        """
        if self.tasks and method.startswith(("tasks/", "notifications/tasks/")):
            for task_id in finished_tasks(method, content):
                self.finish_task(task_id)

    def finish_task(self, task_id: str) -> None:
        """Forget a task that is over, and release its progress token."""
        request = self.tasks.pop(task_id, None)
        if request is not None and request._token is not None:
            self.release_token(request._token)
        pauses = self._outgoing.timeout_pauses
        if pauses is not None and pauses.peer_waits:
            self._resume_timeouts_if_idle()

    def release_token(self, token: ProgressToken) -> None:
        """Allow the peer to use a progress token again."""
        key: Any = token if type(token) is str else table_key(token)
        self.tokens.pop(key, None)

    def keep_token_for_task(self, request: IncomingRequest, result: JSONObject) -> None:
        """Keep the progress token of a request that became a task until its end (PROG-011)."""
        task_id = new_task(result)
        if task_id is None or self._core.is_shared:
            return
        self.finish_task(task_id)
        if len(self.tasks) < self._core.config.max_requests:
            request._task = task_id
            self.tasks[task_id] = request
        else:
            text = f"progress of {len(self.tasks)} tasks may be sent, which is the limit"
            self._core.events.append(LimitReached(rule="OWN-004", text=text))

    def _is_in_progress(self, request: IncomingRequest) -> bool:
        """Whether a request, or the task that it became, has not ended."""
        if self.requests.get(request._key) is request:
            return True
        task = request._task
        return type(task) is str and self.tasks.get(task) is request

    def _too_soon(self, request: IncomingRequest) -> bool:
        """Whether less than `Config.progress_interval` has passed since the last progress."""
        interval, last = self._core.config.progress_interval, request._progress_at
        return (
            interval is not None
            and last is not None
            and self._core.now is not None
            and self._core.now < last + interval
        )

    def _resume_timeouts_if_idle(self) -> None:
        """Resume the timeouts of this side if no request and no task of the peer is open."""
        if not self.requests and not self.tasks:
            self._outgoing.resume_timeouts()

    # ------------------------------------------------------------------------ the part of a method

    def part_of(self, request: IncomingRequest) -> MethodPart | None:
        """The part that acts when a request is answered; None for most methods.

        For the methods of tasks it is this part: `accepted` notes the ends of tasks.
        """
        if request._spec is None or not request._spec.has_part:
            return None
        return self._core.parts.part_for(request._method) or self

    def accepted(self, request: IncomingRequest, result: JSONObject) -> None:
        """Note the end of a task in the application's result of a method of tasks."""
        self.note_own_tasks(request._method, result)
