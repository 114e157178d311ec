"""What the peer says of requests that this side sent: answers, progress, tasks."""

from __future__ import annotations

from typing import Any

from .._rules.messages import (
    BAD_ANSWER_ID,
    NO_RESULT_TYPE,
    is_error,
    judge_answer,
    judge_error_without_id,
    judge_progress,
    no_increase,
    null_member,
    retyped,
)
from .._rules.sending import Breach, misshapen_result, mistyped, null_members
from .._rules.state_tables import REQUESTS, RequestState, RequestTrigger
from .._spec.legacy_methods import TASK_OPTIONAL
from .._spec.methods import META, QUESTIONS, OptionalMembers
from .._spec.modern_methods import MODERN_DIALECT
from .._spec.tasks import finished_tasks, new_task
from .._wire.values import MISSING, IdKey, JSONObject, JSONValue, Side, id_key, is_object
from .events import (
    ErrorReceived,
    ErrorWithoutIdReceived,
    FailureReason,
    InputRequired,
    LimitReached,
    MessageIgnored,
    ProgressReceived,
    RequestFailed,
    ResponseReceived,
)
from .handles import OutgoingRequest, Purpose
from .outgoing import Asking, Outcome

_ANSWERED = REQUESTS[RequestState.OPEN, RequestTrigger.ANSWER]
_APPLICATION = Purpose.APPLICATION
_PROGRESS = MODERN_DIALECT.notifications[Side.SERVER]["notifications/progress"].params_optional
"""What progress may say besides, in any revision."""
_FORGIVEN = frozenset({Purpose.INITIALIZE, Purpose.DISCOVER, Purpose.LISTEN})
"""Requests whose result is kept without a malformed optional member."""


class Outcomes(Asking):
    """Gives each answer to the call that it belongs to, or says why it belongs to none."""

    __slots__ = ()

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
        outcome: Outcome | InputRequired
        fault: Breach | None = None
        if result.__class__ is not dict or "error" in message or message.get("jsonrpc") != "2.0":
            outcome, fault = self._no_result(call, message)
        elif (
            call._is_modern
            and (kind := result.get("resultType", "complete")) != "complete"
            and not (call._purpose is _APPLICATION and self._is_added(result))
        ):
            self._drop_nulls((*QUESTIONS, *META), result, call)
            interim, fault = self._interim(call, kind, result)
            if interim is None:
                return  # asked again already
            outcome = interim
        elif (
            (spec := call._spec) is None
            or not self._shape
            or misshapen_result(spec, call._task, result) is not None
        ) and (fault := self._judge_result(call, result)) is not None:
            outcome = self._invalid(call, fault, result)
        else:
            if call._task and call._token is not None:
                self._keep_token_for_task(call, result)
            if call._spec is not None and call._spec.special:
                self._tasks_seen(call._method, result)
            if call._is_modern and "resultType" not in result:
                fault = NO_RESULT_TYPE
            outcome = ResponseReceived(request=call, result=result)
        self._conclude(call, _ANSWERED)
        if fault is not None:
            self._report(fault, request=call)
        if call._purpose is _APPLICATION:
            self._events.append(outcome)
        else:
            assert not isinstance(outcome, InputRequired)  # no request of the library's own asks
            self._ended(call, outcome)

    def _judge_result(self, call: OutgoingRequest, result: JSONObject) -> Breach | None:
        """What is wrong with a result, after what counts as absent was taken out of it."""
        spec = call._spec
        optional = META if spec is None else spec.result_optional
        drop = self._drop_odd if call._purpose in _FORGIVEN else self._drop_nulls
        drop(optional, result, call)
        if call._task and is_object(task := result.get("task")):
            self._drop_nulls(TASK_OPTIONAL, task, call)
        if spec is None or not self._shape or (call._is_modern and self._is_added(result)):
            return None
        wrong = misshapen_result(spec, call._task, result)
        if wrong is None:
            return None
        return Breach(spec.result_rule, f"result of {call._method}: {wrong}")

    def _find_unfiled(
        self, message: JSONObject, raw: object, key: IdKey | None
    ) -> OutgoingRequest | None:
        """The call that an answer means although its id is in no table as it stands."""
        if key is None:
            error: Any = message.get("error")
            if raw is None and is_error(error):
                breach = judge_error_without_id(message, self._conversation.dialect)
                if breach is not None:
                    self._report(breach)
                self._events.append(
                    ErrorWithoutIdReceived(
                        code=error["code"], message=error["message"], data=error.get("data")
                    )
                )
                self._nameless_error()
            else:
                self._report(BAD_ANSWER_ID)
            return None
        if (late := self._late.pop(key, None)) is not None:
            text = f"an answer to {late._method} came after the end"
            self._events.append(
                MessageIgnored(rule="CANC-011", text=text, method=None, id=key, answer=message)
            )
            return None
        other = retyped(key)
        call = None if other is None else self._outgoing.get(other)
        if call is None:
            self._events.append(
                MessageIgnored(
                    rule="JSON-004",
                    text="an answer names no request",
                    method=None,
                    id=key,
                    answer=message,
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

    def _answered_by(self, id: IdKey | None) -> OutgoingRequest | None:
        """The open call that an answer with this id means, if any."""
        call = None if id is None else self._outgoing.get(id)
        if call is None and id is not None and not self._config.strict:
            other = retyped(id)
            call = None if other is None else self._outgoing.get(other)
        return call

    def _too_long(self, call: OutgoingRequest, size: str) -> str:
        limit = self._config.max_message_bytes
        return (
            f"the answer to {call._method} has {size} bytes; "
            f"the limit of Config.max_message_bytes is {limit}"
        )

    def _conclude_unread(self, call: OutgoingRequest, text: str, *, is_told: bool = False) -> None:
        """The answer to a call came, and was over the limit (OWN-001)."""
        self._conclude(call, _ANSWERED)
        if not is_told:
            self._report(Breach("OWN-001", text), request=call)
        failed = RequestFailed(request=call, reason=FailureReason.INVALID_ANSWER, text=text)
        self._ended(call, failed)

    def _nameless_error(self) -> None:
        """The peer could not read a message of ours; a layer above may know which."""

    def _no_result(
        self, call: OutgoingRequest, message: JSONObject
    ) -> tuple[Outcome, Breach | None]:
        """The outcome of an answer that is no plain result."""
        breach = judge_answer(message)
        if breach is not None:
            return self._invalid(call, breach, message.get("result")), breach
        error: Any = message["error"]
        return (
            ErrorReceived(
                request=call,
                code=error["code"],
                message=error["message"],
                data=error.get("data"),
            ),
            None,
        )

    def _interim(
        self, call: OutgoingRequest, kind: object, result: JSONObject
    ) -> tuple[Outcome | InputRequired | None, Breach | None]:
        """The outcome of a result that says that it is not complete. A layer above knows some."""
        breach = Breach("JSON-022", f"resultType {str(kind)[:80]!r} is not known")
        return self._invalid(call, breach, result), breach

    @staticmethod
    def _invalid(call: OutgoingRequest, breach: Breach, result: JSONValue) -> RequestFailed:
        reason = FailureReason.INVALID_ANSWER
        return RequestFailed(request=call, reason=reason, text=breach.text, result=result)

    # ------------------------------------------------------------------------------ progress

    def _receive_progress(self, params: JSONObject) -> None:
        token = id_key(params.get("progressToken"))
        progress: Any = params.get("progress")
        if token is None or (type(progress) is not int and type(progress) is not float):
            breach = judge_progress(params)
            assert breach is not None  # by its own look at the same two members
            self._report(breach)
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
            self._report(no_increase(call._progress, progress), request=call)
            return
        self._drop_odd(_PROGRESS, params, call)
        call._progress = progress
        self._extend(call)
        self._events.append(
            ProgressReceived(
                request=call,
                progress=progress,
                total=params.get("total"),
                message=params.get("message"),
                meta=params.get("_meta"),
            )
        )

    def _drop_odd(
        self,
        optional: OptionalMembers,
        members: JSONObject,
        request: OutgoingRequest | None = None,
    ) -> None:
        """Leave out and report optional members that are null or of the wrong type.

        For messages that cannot be refused, and whose other members are of use.
        """
        self._drop_nulls(optional, members, request)
        while (odd := mistyped(optional, members)) is not None:
            del members[odd]
            breach = Breach("OWN-014", f"{odd} has the wrong type", tolerated=True)
            self._report(breach, request=request)

    def _drop_nulls(
        self,
        optional: OptionalMembers,
        members: JSONObject,
        request: OutgoingRequest | None = None,
    ) -> None:
        """Leave out and report optional members that are null."""
        for name in null_members(optional, members):
            del members[name]
            self._report(null_member(name), request=request)

    def _extend(self, call: OutgoingRequest) -> None:
        """There is a sign of life: silence counts anew."""
        if call._timeout is not None:
            self._hear(call, self._now or 0.0)
            if call._deadline is not None and call not in self._parked:
                # The entry in the heap stays where it is: it is put right when it surfaces.
                deadline, last = call._quiet_until, call._last_deadline
                call._deadline = deadline if last is None or deadline < last else last

    # --------------------------------------------------------------------------------- tasks

    def _keep_token_for_task(self, call: OutgoingRequest, result: JSONObject) -> None:
        """The token of a task stays in use until the task is over (PROG-011)."""
        task_id = new_task(result)
        if task_id is None:
            return
        self._release_token(task_id)  # a peer that names two tasks alike means the newer one
        if len(self._task_calls) < self._config.max_requests:
            call._task = task_id
            self._task_calls[task_id] = call
        else:
            text = f"progress of {len(self._task_calls)} tasks is awaited, which is the limit"
            self._events.append(LimitReached(rule="OWN-005", text=text))

    def _tasks_seen(self, method: str, content: JSONObject) -> None:
        """Tasks of the peer came by, in a result or a notification."""
        if self._task_calls and method.startswith(("tasks/", "notifications/tasks/")):
            for task_id in finished_tasks(method, content):
                self._release_token(task_id)

    def _release_token(self, task_id: str) -> None:
        call = self._task_calls.pop(task_id, None)
        if call is not None and call._token is not None:
            del self._tokens[call._token]
