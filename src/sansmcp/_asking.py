"""Requests that this side sends: ids, timeouts, progress, cancellation, and their one ending."""

from __future__ import annotations

from math import inf
from typing import Any

from ._core import Core
from ._errors import LocalProtocolError
from ._events import (
    CancelCause,
    ErrorReceived,
    ErrorWithoutIdReceived,
    FailureReason,
    LimitReached,
    MessageIgnored,
    ProgressReceived,
    RequestFailed,
    ResponseReceived,
)
from ._handles import IncomingRequest, OutgoingRequest, Purpose
from ._judge import Breach, judge_request, misshapen_result
from ._lifecycle import REQUESTS, RequestState, RequestTrigger, State
from ._registry import Method
from ._tasks import finished_tasks, new_task
from ._timers import Timed
from ._values import MISSING, IdKey, JSONObject, ProgressToken, id_key, is_object

_OPEN = RequestState.OPEN
_OPEN_STATE = State.OPEN
_APPLICATION = Purpose.APPLICATION
_ANSWERED = REQUESTS[RequestState.OPEN, RequestTrigger.ANSWER]
_CANCELLED = REQUESTS[RequestState.OPEN, RequestTrigger.CANCEL]
_EMPTY: JSONObject = {}

Outcome = ResponseReceived | ErrorReceived | RequestFailed


class Asking(Core):
    """The table of requests in flight from this side."""

    __slots__ = (
        "_forgotten_answers",
        "_last_id",
        "_late",
        "_outgoing",
        "_own_names",
        "_sent",
        "_task_calls",
        "_tokens",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._outgoing: dict[IdKey, OutgoingRequest] = {}
        self._late: dict[IdKey, OutgoingRequest] = {}
        self._tokens: dict[ProgressToken, OutgoingRequest] = {}
        self._task_calls: dict[str, OutgoingRequest] = {}
        self._own_names: dict[str, None] = {}
        self._last_id = 0
        self._sent = 0
        self._forgotten_answers = 0

    # ---------------------------------------------------------------------------------- verbs

    def send_request(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        progress: bool = False,
        timeout: float | None = None,
        max_timeout: float | None = None,
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
            timeout: Seconds of silence allowed; progress for this request restarts it.
            max_timeout: Seconds allowed in all, with or without progress.
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
        if self._state is not _OPEN_STATE:
            self._refuse_to_send(method)
        side = self._side
        conversation = self._conversation
        spec = conversation.dialect.requests[side].get(method)
        given = _EMPTY if params is None else params
        breach = judge_request(conversation, side, method, spec, given, self._shape)
        if breach is not None and not breach.tolerated:
            raise breach.error()
        if method == "initialize":
            raise LocalProtocolError("OWN-025", "initialize is sent by start()")
        if timeout is not None or max_timeout is not None:
            self._check_timeouts(timeout, max_timeout, now)
        key: int | str = self._last_id + 1 if id is None else self._check_id(id)
        token: ProgressToken | None = None
        if meta is not None or "_meta" in given or (progress and key in self._tokens):
            token, body = self._encode_with_token(given, meta, key if progress else None)
        elif progress:
            token = key
            meta_text = b'"_meta":{"progressToken":%b}}' % self._encode_id(key)
            body = self._encode_object(given, None)
            body = b"%b%b%b" % (body[:-1], b"," if given else b"", meta_text)
        else:
            body = b"" if params is None else self._encode_object(params, None)
        call = OutgoingRequest(key, method, spec, _APPLICATION, None)
        if spec is not None and spec.task_gate is not None and "task" in given:
            self._check_task(conversation.gates[self._other], method, spec.task_gate)
            call._task = True
        self._check_room()
        message = self._request_bytes(key, method, spec, body)
        # Everything is checked: from here on nothing raises.
        if now is not None:
            self._tell(now)
        if token is not None:
            call._token = token
            self._tokens[token] = call
        call._route = None if request is None else request._route
        call.data = data
        self._launch(call, message, timeout, max_timeout)
        if self._wake is not None:
            self._settle()
        return call

    @property
    def pending_requests(self) -> tuple[OutgoingRequest, ...]:
        """The application's own requests that have not ended yet, oldest first."""
        return tuple(
            call for call in self._outgoing.values() if call._purpose is Purpose.APPLICATION
        )

    @property
    def forgotten_answers(self) -> int:
        """How many ended requests were forgotten, so that a late answer counts as unknown."""
        return self._forgotten_answers

    # -------------------------------------------------------------------------------- sending

    def _check_room(self) -> None:
        if len(self._outgoing) >= self._config.max_requests:
            raise LocalProtocolError(
                "OWN-005", f"{len(self._outgoing)} requests are in flight, which is the limit"
            )

    def _check_timeouts(
        self, timeout: float | None, max_timeout: float | None, now: float | None
    ) -> None:
        if not (
            (timeout is None or timeout > 0) and (max_timeout is None or max_timeout > 0)
        ):  # which also refuses NaN
            raise LocalProtocolError("OWN-023", "a timeout must be greater than zero")
        if now is None and self._now is None:
            raise LocalProtocolError("OWN-023", "a timeout needs a clock: pass now=")

    def _check_id(self, id: object) -> int | str:
        if isinstance(id, str):
            if id in self._own_names:
                raise LocalProtocolError("ID-001", f"the id {id!r} was used before")
            return id
        if type(id) is not int:
            raise LocalProtocolError("JSON-002", f"an id is a string or an integer, not {id!r}")
        if id <= self._last_id:
            raise LocalProtocolError(
                "ID-001", f"the id {id} is not above {self._last_id}, the last one used"
            )
        return id

    def _encode_with_token(
        self, params: JSONObject, meta: JSONObject | None, own: int | str | None
    ) -> tuple[ProgressToken | None, bytes]:
        asked: Any = MISSING
        for source in (params.get("_meta"), meta):
            if is_object(source) and "progressToken" in source:
                asked = source["progressToken"]
        if asked is MISSING:
            if own is None:
                return None, self._encode_object(params, meta)
            while own in self._tokens:  # another call may have been given this number by hand
                own = f"{own}+"
            return own, self._encode_object(params, {**(meta or _EMPTY), "progressToken": own})
        token = id_key(asked)
        if token is None:
            raise LocalProtocolError(
                "PROG-001", f"a progress token is a string or an integer, not {asked!r}"
            )
        if token in self._tokens:
            raise LocalProtocolError("PROG-002", f"the progress token {token!r} is in use")
        return token, self._encode_object(params, meta)

    def _check_task(self, gates: frozenset[str], method: str, gate: str) -> None:
        if gate not in gates:
            raise LocalProtocolError(
                "TASK-002", f"{method} as a task needs the capability {gate} of the peer"
            )

    def _request_bytes(
        self, key: int | str, method: str, spec: Method | None, body: bytes
    ) -> bytes:
        name = self._encode(method) if spec is None else spec.wire
        text = b"%d" % key if type(key) is int else self._encode(key)
        if body:
            return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}%b' % (
                text,
                name,
                body,
                self._newline,
            )
        return b'{"jsonrpc":"2.0","id":%b,"method":%b}%b' % (text, name, self._newline)

    def _send_own(
        self,
        method: str,
        body: bytes,
        purpose: Purpose,
        owner: object,
        timeout: float | None = None,
        max_timeout: float | None = None,
        route: object = None,
    ) -> OutgoingRequest:
        """Send a request that the library itself has reason for; it reports through `owner`."""
        spec = self._conversation.dialect.requests[self._side][method]
        call = OutgoingRequest(self._last_id + 1, method, spec, purpose, owner)
        call._route = route
        message = self._request_bytes(call._id, method, spec, body)
        self._launch(call, message, timeout, max_timeout)
        return call

    def _launch(
        self,
        call: OutgoingRequest,
        message: bytes,
        timeout: float | None,
        max_timeout: float | None,
    ) -> None:
        key = call._id
        if type(key) is int:
            self._last_id = key
        else:
            self._own_names[str(key)] = None
            if len(self._own_names) > self._config.max_used_ids:
                del self._own_names[next(iter(self._own_names))]
        self._outgoing[key] = call
        if timeout is not None or max_timeout is not None:
            now = self._now
            assert now is not None  # checked before
            deadline = inf if timeout is None else now + timeout
            if max_timeout is not None:
                call._last_deadline = last = now + max_timeout
                if last < deadline:
                    deadline = last
            call._timeout = timeout
            self._timers.arm(self, call, deadline)
        self._sent += 1
        call._order = self._sent
        self._queue(message, call._route)

    # ------------------------------------------------------------------------------- answers

    def _receive_answer(self, message: JSONObject) -> None:
        raw: Any = message.get("id")
        key: IdKey | None = raw if type(raw) is int or type(raw) is str else id_key(raw)
        call = None if key is None else self._outgoing.get(key)
        if call is None:
            call = self._find_unfiled(message, raw, key)
            if call is None:
                return
        result: Any = message.get("result", MISSING)
        outcome: Outcome
        fault: Breach | None = None
        if result.__class__ is not dict or "error" in message:
            outcome, fault = self._judge_error(call, message, result)
        elif message.get("jsonrpc") != "2.0":
            outcome, fault = self._invalid(call, "JSON-001", 'jsonrpc is not "2.0"')
        elif (
            self._shape
            and (spec := call._spec) is not None
            and spec.result
            and (wrong := misshapen_result(spec, call._task, result)) is not None
        ):
            outcome, fault = self._invalid(call, "OWN-014", f"result of {call._method}: {wrong}")
        else:
            if call._task and call._token is not None:
                self._keep_token_for_task(call, result)
            if call._spec is not None and call._spec.special:
                self._tasks_seen(call._method, result)
            outcome = ResponseReceived(request=call, result=result)
        self._conclude(call, _ANSWERED)
        if fault is not None:
            self._report(fault, request=call)
        if call._purpose is _APPLICATION:
            self._events.append(outcome)
        else:
            self._ended(call, outcome)

    def _find_unfiled(
        self, message: JSONObject, raw: object, key: IdKey | None
    ) -> OutgoingRequest | None:
        """The call that an answer means although its id is in no table as it stands."""
        if key is None:
            error: Any = message.get("error")
            if raw is None and is_object(error) and self._is_error(error):
                if "id" in message:
                    self._report(Breach("JSON-003", "an error has the id null", tolerated=True))
                elif not self._conversation.dialect.has_idless_errors:
                    self._report(Breach("JSON-010", "an error has no id", tolerated=True))
                self._events.append(
                    ErrorWithoutIdReceived(
                        code=error["code"], message=error["message"], data=error.get("data")
                    )
                )
            else:
                self._report(Breach("JSON-002", "an answer has no usable id"))
            return None
        if self._late.pop(key, None) is not None:
            self._events.append(
                MessageIgnored(
                    rule="CANC-011", text="an answer came after the end", method=None, id=key
                )
            )
            return None
        other: IdKey | None
        if isinstance(key, str):
            other = int(key) if key.isdecimal() and len(key) < 20 else None
            other = None if str(other) != key else other  # "007" is not 7
        else:
            other = str(key)
        call = None if other is None else self._outgoing.get(other)
        if call is None:
            self._events.append(
                MessageIgnored(
                    rule="JSON-004", text="an answer names no request", method=None, id=key
                )
            )
        elif self._config.strict:
            self._report(Breach("JSON-004", f"an answer has the id {raw!r} instead of {other!r}"))
            return None
        else:
            self._report(
                Breach(
                    "OWN-019", f"an answer has the id {raw!r} instead of {other!r}", tolerated=True
                )
            )
        return call

    def _judge_error(
        self, call: OutgoingRequest, message: JSONObject, result: object
    ) -> tuple[Outcome, Breach | None]:
        """The outcome of an answer that is no plain result."""
        error: Any = message.get("error", MISSING)
        if error is MISSING:
            if result is MISSING:
                return self._invalid(call, "JSON-005", "an answer has neither result nor error")
            return self._invalid(call, "JSON-007", "a result is not an object")
        if result is not MISSING:
            return self._invalid(call, "JSON-006", "an answer has both result and error")
        if not is_object(error) or not self._is_error(error):
            return self._invalid(
                call, "JSON-008", "an error lacks an integer code or a string message"
            )
        if message.get("jsonrpc") != "2.0":
            return self._invalid(call, "JSON-001", 'jsonrpc is not "2.0"')
        return (
            ErrorReceived(
                request=call,
                code=error["code"],
                message=error["message"],
                data=error.get("data"),
            ),
            None,
        )

    @staticmethod
    def _is_error(error: JSONObject) -> bool:
        return type(error.get("code")) is int and isinstance(error.get("message"), str)

    @staticmethod
    def _invalid(call: OutgoingRequest, rule: str, text: str) -> tuple[Outcome, Breach]:
        failed = RequestFailed(request=call, reason=FailureReason.INVALID_ANSWER, text=text)
        return failed, Breach(rule, text)

    # -------------------------------------------------------------------------------- ending

    def _ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        """The one ending of a call. Layers above take those of the library's own purposes."""
        self._events.append(outcome)

    def _conclude(self, call: OutgoingRequest, state: RequestState) -> None:
        """Take a call out of the tables."""
        del self._outgoing[call._id]
        call._state = state
        if call._token is not None and type(call._task) is not str:
            del self._tokens[call._token]
        if call._deadline is not None:
            self._timers.drop(call)

    def _cancel_call(
        self,
        call: OutgoingRequest,
        reason: str | None,
        meta: JSONObject | None,
        now: float | None,
    ) -> None:
        if self._outgoing.get(call._id) is not call:
            raise LocalProtocolError("OWN-022", f"{call!r} belongs to another connection")
        if call._purpose is Purpose.INITIALIZE:
            raise LocalProtocolError("CANC-004", "initialize cannot be cancelled")
        if call._task:
            raise LocalProtocolError(
                "CANC-005", f"{call!r} asks for a task: cancel it with tasks/cancel"
            )
        if reason is not None and not isinstance(reason, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LocalProtocolError("OWN-014", "reason must be a string")
        message = self._cancellation(call, reason, meta)
        if now is not None:
            self._tell(now)
        self._abandon(call, FailureReason.CANCELLED, reason or "cancelled", message)
        if self._wake is not None:
            self._settle()

    def _cancellation(
        self, call: OutgoingRequest, reason: str | None, meta: JSONObject | None = None
    ) -> bytes:
        params: JSONObject = {"requestId": call._id}
        if reason is not None:
            params["reason"] = reason
        return b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":%b}%b' % (
            self._encode_object(params, meta),
            self._newline,
        )

    def _abandon(
        self, call: OutgoingRequest, reason: FailureReason, text: str, message: bytes | None
    ) -> None:
        """End a call without an answer, telling the peer with `message`, and expect a late one."""
        self._conclude(call, _CANCELLED)
        self._late[call._id] = call
        if len(self._late) > self._config.max_late_answers:
            del self._late[next(iter(self._late))]
            self._forgotten_answers += 1
            if self._forgotten_answers == 1:
                self._events.append(
                    LimitReached(
                        rule="OWN-008",
                        text="the oldest request that ended without an answer was forgotten; "
                        "forgotten_answers counts on",
                    )
                )
        if message is not None and self._state is State.OPEN:
            self._queue(message, call._route)
        self._ended(call, RequestFailed(request=call, reason=reason, text=text))

    def _timer_fired(self, subject: Timed) -> None:
        assert isinstance(subject, OutgoingRequest)  # layers above have taken their own
        if subject._last_deadline is not None and subject._last_deadline <= (self._now or 0.0):
            text = f"{subject._method} was not answered within its longest time"
        else:
            text = f"{subject._method} was not answered, and {subject._timeout} s passed in silence"
        if subject._purpose is Purpose.INITIALIZE or subject._task:
            message = None  # CANC-004, CANC-005
        else:
            message = self._cancellation(subject, "timed out")
        self._abandon(subject, FailureReason.TIMED_OUT, text, message)

    def _end_requests(self, cause: CancelCause) -> None:
        super()._end_requests(cause)
        self._lose(list(self._outgoing.values()))
        self._tokens.clear()
        self._task_calls.clear()
        self._late.clear()

    def _lose(self, calls: list[OutgoingRequest]) -> None:
        for call in calls:
            self._conclude(call, _CANCELLED)
            text = f"the connection ended before {call._method} was answered"
            self._ended(call, RequestFailed(request=call, reason=FailureReason.LOST, text=text))

    # ------------------------------------------------------------------------------ progress

    def _receive_progress(self, params: JSONObject) -> None:
        token = id_key(params.get("progressToken"))
        if token is None:
            self._report(Breach("PROG-001", "a progress token is no string and no integer"))
            return
        progress: Any = params.get("progress")
        if type(progress) is not int and type(progress) is not float:
            self._report(Breach("OWN-014", "progress is no number"))
            return
        call = self._tokens.get(token)
        if call is None:
            self._events.append(
                MessageIgnored(
                    rule="PROG-006",
                    text="progress for no request in flight",
                    method="notifications/progress",
                    id=token,
                )
            )
            return
        if call._progress is not None and progress <= call._progress:
            self._report(
                Breach("PROG-003", f"progress went from {call._progress} to {progress}"),
                request=call,
            )
            return
        total: Any = params.get("total")
        text: Any = params.get("message")
        if total is not None and type(total) is not int and type(total) is not float:
            self._report(Breach("OWN-014", "total is no number", tolerated=True), request=call)
            total = None
        if text is not None and type(text) is not str:
            self._report(Breach("OWN-014", "message is no string", tolerated=True), request=call)
            text = None
        call._progress = progress
        if call._timeout is not None and call._deadline is not None:
            # The entry in the heap stays where it is: it is put right when it surfaces.
            deadline = (self._now or 0.0) + call._timeout
            last = call._last_deadline
            call._deadline = deadline if last is None or deadline < last else last
        self._events.append(
            ProgressReceived(request=call, progress=progress, total=total, message=text)
        )

    # --------------------------------------------------------------------------------- tasks

    def _keep_token_for_task(self, call: OutgoingRequest, result: JSONObject) -> None:
        """The token of a task stays in use until the task is over (PROG-011)."""
        task_id = new_task(result)
        if task_id is not None and len(self._task_calls) < self._config.max_requests:
            call._task = task_id
            self._task_calls[task_id] = call

    def _tasks_seen(self, method: str, content: JSONObject) -> None:
        """Tasks of the peer came by, in a result or a notification."""
        if self._task_calls and method.startswith(("tasks/", "notifications/tasks/")):
            for task_id in finished_tasks(method, content):
                call = self._task_calls.pop(task_id, None)
                if call is not None and call._token is not None:
                    del self._tokens[call._token]
