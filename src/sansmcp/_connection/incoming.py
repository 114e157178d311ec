"""Requests that the peer sends: accepted or refused, answered once, or cancelled."""

from __future__ import annotations

from math import isfinite
from typing import Any, Final

from .._rules.messages import no_increase
from .._rules.sending import NULL, misshapen_result, result_without_nulls
from .._rules.state_tables import REQUESTS, RequestState, RequestTrigger, State
from .._spec.errors import ErrorCode, LocalProtocolError
from .._spec.methods import META
from .._spec.tasks import finished_tasks, new_task
from .._wire.values import (
    MISSING,
    JSONObject,
    JSONValue,
    Missing,
    ProgressToken,
    RequestId,
    is_object,
    table_key,
)
from .events import CancelCause, LimitReached, RequestCancelled
from .handles import Batch, Bridge, IncomingRequest, Route
from .listings import ListingLayer
from .used_ids import CancelledIds, UsedIds

_OPEN = RequestState.OPEN
_OPEN_STATE = State.OPEN
_ANSWERED = REQUESTS[RequestState.OPEN, RequestTrigger.ANSWER]
_CANCELLED = REQUESTS[RequestState.OPEN, RequestTrigger.CANCEL]


_RESULT_BYTES: Final = len(b'{"jsonrpc":"2.0","id":,"result":}')
_BATCH_BYTES: Final = 3
"""Brackets and newline around the answers of a batch."""
_TOO_LARGE: Final = "the answer is too large"
_ERROR_BYTES: Final = 1 + len(
    b'{"jsonrpc":"2.0","id":,"error":{"code":-32603,"message":"%b"}}' % _TOO_LARGE.encode()
)
"""Size of the shortest error that replaces an answer, without its id, with a comma."""

_SILENT = frozenset({CancelCause.SEND_FAILED, CancelCause.FAILED})
"""Endings after which nothing is sent any more; else the answers that a batch has go out."""


class Answering(ListingLayer):
    """The table of requests that this side is handling."""

    __slots__ = (
        "_peer_tasks",
        "_peer_tokens",
        "_told_forgotten",
        "_unanswered",
        "_used",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._used = UsedIds(self._config.max_used_ids)
        self._unanswered = CancelledIds(self._config.max_used_ids)
        self._told_forgotten = False
        self._peer_tokens: set[ProgressToken] = set()
        self._peer_tasks: dict[str, IncomingRequest] = {}

    # ---------------------------------------------------------------------------------- verbs

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
        if request._state is not _OPEN:
            return self._too_late(request)
        if self._incoming.get(request._key) is not request:
            raise LocalProtocolError("OWN-022", f"{request!r} belongs to another connection")
        spec = request._spec
        if type(result) is not dict and not is_object(result):
            raise LocalProtocolError("OWN-014", f"a JSON object is needed, not {result!r:.40}")
        special = spec is not None and spec.special
        if special:
            result = self._as_sent(request, result)
        fault: str | None = None
        if spec is None or not self._shape:
            optional = META if spec is None else spec.result_optional
            result = result_without_nulls(optional, request._task, result)
        else:
            fault = misshapen_result(spec, request._task, result)
            if fault is NULL:
                result = result_without_nulls(spec.result_optional, request._task, result)
                fault = misshapen_result(spec, request._task, result)
        if request._is_modern:
            body = self._complete(spec, result, meta)
        else:
            body = self._encode_object(result, meta)
        if fault is not None and not (request._is_modern and self._is_added(result)):
            rule = "OWN-014" if spec is None else spec.result_rule
            raise LocalProtocolError(rule, f"result of {request._method}: {fault}")
        if special:
            self._check_own_result(request, result)
        # Everything is checked: from here on nothing raises.
        if now is not None:
            self._tell(now)
        if (special or request._task) and not self._would_fit(request, body):
            special = False  # an error is sent in its place, and nothing follows from the result
            self._came_to_nothing(request)
        elif request._task:
            self._keep_token_of_task(request, result)
        if special:
            if meta is not None:
                result = {**result, "_meta": {**result.get("_meta", {}), **meta}}
            self._result_accepted(request, result)
        whole = self._answer(request, b'"result":', body)
        return (self._settle() if self._restless else True) and whole

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
        if request._state is not _OPEN:
            return self._too_late(request)
        if self._incoming.get(request._key) is not request:
            raise LocalProtocolError("OWN-022", f"{request!r} belongs to another connection")
        body = self._error_bytes(code, message, data)
        if request._is_modern and (right := self._modern_code(code, data)) != code:
            body = self._error_bytes(right, message, data)
        if now is not None:
            self._tell(now)
        if request._spec is not None and request._spec.special:
            self._came_to_nothing(request)
        whole = self._answer(request, b'"error":', body)
        return (self._settle() if self._restless else True) and whole

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
        for number in (progress, 0 if total is None else total):
            if type(number) is not int and not (type(number) is float and isfinite(number)):
                raise LocalProtocolError("OWN-024", f"progress needs finite numbers, not {number}")
        token = request._token
        if token is None:
            return False
        if not self._is_in_progress(request):
            self._check_ours(request)
            return False
        last = request._progress
        if last is not None and progress <= last:
            if self._config.coalesce_progress:
                return False
            raise no_increase(last, progress).error()
        params: JSONObject = {"progressToken": token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None and not isinstance(message, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LocalProtocolError("OWN-014", "message must be a string")
        if message is not None and request._peer.revision != "2024-11-05":
            params["message"] = message
        body = self._encode_object(params, meta)
        if now is not None:
            self._tell(now)
        is_last = total is not None and progress >= total
        if self._choked(request._route) or (not is_last and self._too_soon(request)):
            return False
        message_bytes = b'{"jsonrpc":"2.0","method":"notifications/progress","params":%b}%b' % (
            body,
            self._newline,
        )
        if self._is_refused(message_bytes, "notifications/progress"):
            return self._settle()
        request._progress = progress
        request._progress_at = self._now
        self._queue(message_bytes, request._route)
        return self._settle() if self._restless else True

    @property
    def open_requests(self) -> tuple[IncomingRequest, ...]:
        """The requests of the peer that still wait for an answer from this side, oldest first."""
        return tuple(request for request in self._incoming.values() if request._bridge is None)

    @property
    def forgotten_ids(self) -> int:
        """How many ranges of the peer's ids were forgotten, so that a reuse goes unnoticed."""
        return self._used.forgotten + self._unanswered.forgotten

    # ------------------------------------------------------------------------------- sending

    def _too_late(self, request: IncomingRequest) -> bool:
        if (request._state, RequestTrigger.ANSWER) not in REQUESTS:
            raise LocalProtocolError("OWN-026", f"{request!r} was answered before")
        return False

    def _is_in_progress(self, request: IncomingRequest) -> bool:
        if self._incoming.get(request._key) is request:
            return True
        task = request._task
        return type(task) is str and self._peer_tasks.get(task) is request

    def _too_soon(self, request: IncomingRequest) -> bool:
        interval, last = self._config.progress_interval, request._progress_at
        return (
            interval is not None
            and last is not None
            and self._now is not None
            and self._now < last + interval
        )

    def _error_bytes(self, code: int, message: str, data: object = MISSING) -> bytes:
        if type(code) is not int or not isinstance(message, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LocalProtocolError(
                "JSON-008", f"an error needs an integer code and a string, not {code!r}"
            )
        error: JSONObject = {"code": code, "message": message}
        if data is not MISSING:
            error["data"] = data
        return self._encode(error)

    def _answer(self, request: IncomingRequest, member: bytes, body: bytes) -> bool:
        """Queue an answer, or put it in its batch. The request is in the table.

        Returns:
            False: the answer would never fit, and an error was queued in its place.
        """
        self._forget(request, _ANSWERED)
        id = request._id
        text = b"%d" % id if type(id) is int else self._encode(id)
        batch = request._batch
        whole = True
        if batch is None:
            message = b'{"jsonrpc":"2.0","id":%b,%b%b}%b' % (text, member, body, self._newline)
            limit = self._config.max_unsent_bytes
            if len(message) > limit:
                message = self._error_instead(request, message, limit) + self._newline
                whole = False
            self._queue(message, request._route)
        else:
            answer = b'{"jsonrpc":"2.0","id":%b,%b%b}' % (text, member, body)
            own = _ERROR_BYTES + len(text)
            room = self._room_in(batch, own)
            if len(answer) > room:
                answer = self._error_instead(request, answer, room)
                whole = False
            batch.answers.append(answer)
            batch.size += len(answer) + 1
            self._leave_batch(batch, own, request._route)
        if self._state is not _OPEN_STATE:
            self._drained()
        return whole

    def _would_fit(self, request: IncomingRequest, body: bytes) -> bool:
        id_bytes = len(self._encode_id(request._id))
        size = len(body) + id_bytes + _RESULT_BYTES
        if request._batch is not None:
            return size <= self._room_in(request._batch, _ERROR_BYTES + id_bytes)
        return size + len(self._newline) <= self._config.max_unsent_bytes

    def _room_in(self, batch: Batch, own: int) -> int:
        """Bytes left for the next answer, with room reserved for an error per later request.

        An answer that is no larger than the error in its place (`own`) always has room.
        """
        taken = batch.size + _BATCH_BYTES + batch.reserved - own
        return max(self._config.max_unsent_bytes - taken, own - 1)

    def _error_instead(self, request: IncomingRequest, answer: bytes, room: int) -> bytes:
        """The error in place of an answer without room: with the reason, if that has room."""
        error = self._refusal_of(request, answer)
        if len(error) + len(self._newline) > room:
            body = self._error_bytes(ErrorCode.INTERNAL_ERROR, _TOO_LARGE)
            error = b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (self._encode(request._id), body)
        return error

    def _refusal_of(self, request: IncomingRequest, answer: bytes) -> bytes:
        """The error that is sent in place of an answer that would never fit (OWN-044)."""
        limit = self._config.max_unsent_bytes
        text = (
            f"the answer to {request._method[:80]} has {len(answer)} bytes; "
            f"the limit of Config.max_unsent_bytes is {limit}"
        )
        if request._batch is not None:
            text += " for a batch"
        self._events.append(LimitReached(rule="OWN-044", text=f"{text}; an error was sent instead"))
        error = self._error_bytes(ErrorCode.INTERNAL_ERROR, _TOO_LARGE, {"reason": text})
        return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (self._encode(request._id), error)

    def _forget(self, request: IncomingRequest, state: RequestState) -> None:
        del self._incoming[request._key]
        request._state = state
        if self._standstill.since is not None:
            self._count_questions()
        if request._token is not None and type(request._task) is not str:
            self._free_peer_token(request._token)

    def _count_questions(self) -> None:
        """End the pause of timeouts if the peer waits for no answer and for no task of ours."""
        if not self._incoming and not self._peer_tasks:
            self._peer_waits_no_more()

    def _join_batch(self, batch: Batch, id: RequestId) -> None:
        batch.pending += 1
        batch.reserved += _ERROR_BYTES + len(self._encode_id(id))

    def _leave_batch(self, batch: Batch, reserved: int, route: Route | None) -> None:
        batch.pending -= 1
        batch.reserved -= reserved
        self._flush_batch(batch, route)

    def _flush_batch(self, batch: Batch, route: Route | None) -> None:
        if batch.pending == 0 and batch.complete and batch.answers:
            self._queue(b"[%b]%b" % (b",".join(batch.answers), self._newline), route)
            batch.answers = []

    # What some methods do lasts beyond their answer (`Method.special`); layers above know how.

    def _as_sent(self, request: IncomingRequest, result: JSONObject) -> JSONObject:
        """A result of ours without what counts as absent in one of its members."""
        return result

    def _check_own_result(self, request: IncomingRequest, result: JSONObject) -> None:
        """Whether the conversation can go on from this result of ours; raises if not."""

    def _result_accepted(self, request: IncomingRequest, result: JSONObject) -> None:
        """Such a request is being answered with this result."""
        self._own_tasks_seen(request._method, result)

    def _came_to_nothing(self, request: IncomingRequest) -> None:
        """Such a request is being answered with an error, or was cancelled."""

    def _drained(self) -> None:
        """An answer went out after the peer's end of stream; the last one ends the connection."""

    # -------------------------------------------------------------------------------- ending

    def _cancel_incoming(
        self,
        request: IncomingRequest,
        cause: CancelCause,
        reason: str | None = None,
        meta: JSONObject | None = None,
    ) -> None:
        bridge, request._bridge = request._bridge, None
        self._forget(request, _CANCELLED)
        if request._spec is not None and request._spec.special:
            self._came_to_nothing(request)
        # The application knows only the handle that it was given.
        self._cancelled(request if bridge is None else bridge.asked, cause, reason, meta)
        if bridge is not None:
            self._withdraw(bridge)
        if request._batch is not None and cause not in _SILENT:
            reserved = _ERROR_BYTES + len(self._encode_id(request._id))
            self._leave_batch(request._batch, reserved, request._route)

    def _cancelled(
        self,
        request: IncomingRequest,
        cause: CancelCause,
        reason: str | None,
        meta: JSONObject | None,
    ) -> None:
        self._events.append(
            RequestCancelled(request=request, cause=cause, reason=reason, meta=meta)
        )

    def _withdraw(self, bridge: Bridge) -> None:
        """Cancel questions that nobody needs any more; a layer above knows how."""

    def _end_requests(self, cause: CancelCause) -> None:
        self._peer_tasks.clear()
        for request in list(self._incoming.values()):
            self._cancel_incoming(request, cause)
        self._peer_tokens.clear()
        super()._end_requests(cause)

    # --------------------------------------------------------------------------------- tasks

    def _keep_token_of_task(self, request: IncomingRequest, result: JSONObject) -> None:
        """Progress for a task may go on until the task is over (PROG-011)."""
        task_id = new_task(result)
        if task_id is None:
            return
        self._release_peer_token(task_id)
        if len(self._peer_tasks) < self._config.max_requests:
            request._task = task_id
            self._peer_tasks[task_id] = request
        else:
            text = f"progress of {len(self._peer_tasks)} tasks may be sent, which is the limit"
            self._events.append(LimitReached(rule="OWN-004", text=text))

    def _own_tasks_seen(self, method: str, content: JSONObject) -> None:
        """Tasks of ours go out, in a result or a notification."""
        if self._peer_tasks and method.startswith(("tasks/", "notifications/tasks/")):
            for task_id in finished_tasks(method, content):
                self._release_peer_token(task_id)

    def _free_peer_token(self, token: ProgressToken) -> None:
        key: Any = token if type(token) is str else table_key(token)
        self._peer_tokens.discard(key)

    def _release_peer_token(self, task_id: str) -> None:
        request = self._peer_tasks.pop(task_id, None)
        if request is not None and request._token is not None:
            self._free_peer_token(request._token)
        if self._standstill.since is not None:
            self._count_questions()
