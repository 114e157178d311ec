"""Messages of the peer about requests of this side: responses, progress and ends of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._rules.messages import (
    BAD_RESPONSE_ID,
    NO_RESULT_TYPE,
    id_of_other_type,
    is_error,
    judge_error_without_id,
    judge_progress,
    judge_response,
    no_increase,
)
from .._rules.sending import Breach, result_shape_breach
from .._rules.state_tables import REQUESTS, RequestState, RequestTrigger
from .._spec.legacy_methods import TASK_OPTIONAL
from .._spec.methods import META, QUESTIONS
from .._spec.modern_methods import MODERN_DIALECT
from .._spec.tasks import finished_tasks, new_task
from .._wire.values import MISSING, IdKey, JSONObject, JSONValue, Side, id_key, is_object
from .core import Core
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
from .handles import OF_APPLICATION, OutgoingRequest, Purpose
from .modern_messages import ModernMessages
from .outgoing import Outcome, OutgoingRequests

if TYPE_CHECKING:
    from .input_required.client import InputRequiredClient
    from .opening.discovery import ClientDiscovery
    from .tasks.follower import TaskFollower

_ANSWERED = REQUESTS[RequestState.OPEN, RequestTrigger.ANSWER]
_APPLICATION = Purpose.APPLICATION
_TASK = Purpose.TASK
_PROGRESS = MODERN_DIALECT.notifications[Side.SERVER]["notifications/progress"].params_optional
"""The optional members of progress, in any revision."""
_FORGIVEN = frozenset({Purpose.INITIALIZE, Purpose.DISCOVER, Purpose.LISTEN})
"""Requests whose result is accepted after its malformed optional members were removed."""


def invalid(call: OutgoingRequest, breach: Breach, result: JSONValue) -> RequestFailed:
    """The ending of a request whose response breaks a rule."""
    reason = FailureReason.INVALID_ANSWER
    return RequestFailed(request=call, reason=reason, text=breach.text, result=result)


class IncomingResponses:
    """Matches responses and progress of the peer with open requests of this side.

    A response ends its request. A response that matches no request is reported.

    Attributes:
        input_required: On a client, the part that handles results with questions; else None.
        follower: The part that follows tasks of the peer; None: tasks are not turned on.
        discovery: On a client, the part that handles errors without an id; else None.
    """

    __slots__ = ("_core", "_messages", "_outgoing", "discovery", "follower", "input_required")

    def __init__(self, core: Core, messages: ModernMessages, outgoing: OutgoingRequests) -> None:
        self._core = core
        self._messages = messages
        self._outgoing = outgoing
        self.input_required: InputRequiredClient | None = None
        self.discovery: ClientDiscovery | None = None
        self.follower: TaskFollower | None = None

    # ----------------------------------------------------------------------------------- responses

    def receive_response(self, message: JSONObject) -> None:
        """End the request that a response answers, or report why there is none."""
        raw: Any = message.get("id")
        key: IdKey | None = raw if type(raw) is int or type(raw) is str else id_key(raw)
        if not self._core.transport.takes_response(message):
            return
        call = None if key is None else self._outgoing.calls.get(key)
        if call is not None and call.task_id is not None:
            self._ignore_second(call, message)
            return
        if call is None:
            call = self._handle_unmatched(message, raw, key)
            if call is None:
                return
        result: Any = message.get("result", MISSING)
        outcome: Outcome | InputRequired
        breach: Breach | None = None
        if result.__class__ is not dict or "error" in message or message.get("jsonrpc") != "2.0":
            outcome, breach = self._no_result(call, message)
        elif (
            call._is_modern
            and (kind := result.get("resultType", "complete")) != "complete"
            and not (call._purpose in OF_APPLICATION and self._messages.is_extension_result(result))
        ):
            self._core.drop_nulls((*QUESTIONS, *META), result, call)
            interim, breach = self._incomplete_result(call, kind, result)
            if interim is None:
                return  # the request was sent again and stays open
            outcome = interim
        elif (
            (spec := call._spec) is None
            or not self._core.checks_shape
            or self._core.payloads is not None
            or result_shape_breach(spec, call._task, result) is not None
        ) and (breach := self._judge_result(call, result)) is not None:
            outcome = invalid(call, breach, result)
        else:
            if call._task and call._token is not None:
                self._keep_token_for_task(call, result)
            if self.follower is not None:
                if call._method == "tools/list":
                    self.follower.note_tools(result)
                task: Any = result.get("task")
                if call._following is not None and not call._is_modern and is_object(task):
                    breach = self.follower.made(call, task)
                    if breach is None:
                        return  # the request stays open until the end of the task
                    outcome = invalid(call, breach, result)
                    self._conclude(call, outcome, breach)
                    return
            if call._spec is not None and call._spec.has_part:
                self.note_peer_tasks(call._method, result)
            if call._is_modern and "resultType" not in result:
                breach = NO_RESULT_TYPE
            outcome = ResponseReceived(request=call, result=result)
        self._conclude(call, outcome, breach)

    def _conclude(
        self, call: OutgoingRequest, outcome: Outcome | InputRequired, breach: Breach | None
    ) -> None:
        """End a request with its outcome, and report the breach of its response, if any."""
        self._outgoing.conclude(call, _ANSWERED)
        if breach is not None:
            self._core.report(breach, request=call)
        # The server may ask questions about requests of the application only.
        if call._purpose is _APPLICATION or isinstance(outcome, InputRequired):
            self._core.events.append(outcome)
        else:
            call._owner.ended(call, outcome)

    def _ignore_second(self, call: OutgoingRequest, message: JSONObject) -> None:
        """Report a second response to a request that has become a task."""
        text = f"a second response to {call._method}, which has become a task"
        self._core.events.append(
            MessageIgnored(rule="JSON-004", text=text, method=None, id=call._id, answer=message)
        )

    def _handle_unmatched(
        self, message: JSONObject, raw: object, key: IdKey | None
    ) -> OutgoingRequest | None:
        """Handle a response whose id matches no open request.

        Returns:
            The open request with the same id in its other JSON type (`"7"` for 7), if that is
            tolerated; else None: the response was reported.
        """
        if key is None:
            error: Any = message.get("error")
            if raw is None and is_error(error):
                breach = judge_error_without_id(message, self._core.conversation.dialect)
                if breach is not None:
                    self._core.report(breach)
                self._core.events.append(
                    ErrorWithoutIdReceived(
                        code=error["code"], message=error["message"], data=error.get("data")
                    )
                )
                if self.discovery is not None:
                    self.discovery.error_without_id()
            else:
                self._core.report(BAD_RESPONSE_ID)
            return None
        if (late := self._outgoing.late.pop(key, None)) is not None:
            if late._following is not None and self.follower is not None:
                self.follower.late_task(late, message)
            if late._purpose is _TASK and not late._subject.call.open:
                return None  # the poll of a task that has ended meanwhile: nobody has asked for it
            text = f"a response to {late._method} came after the end"
            self._core.events.append(
                MessageIgnored(rule="CANC-011", text=text, method=None, id=key, answer=message)
            )
            return None
        other = id_of_other_type(key)
        call = None if other is None else self._outgoing.calls.get(other)
        if call is None:
            self._core.events.append(
                MessageIgnored(
                    rule="JSON-004",
                    text="a response names no request",
                    method=None,
                    id=key,
                    answer=message,
                )
            )
        elif self._core.config.strict:
            self._core.report(
                Breach("JSON-004", f"a response has the id {raw!r} instead of {other!r}")
            )
            return None
        else:
            self._core.report(
                Breach(
                    "OWN-019", f"a response has the id {raw!r} instead of {other!r}", tolerated=True
                )
            )
        return call

    def _no_result(
        self, call: OutgoingRequest, message: JSONObject
    ) -> tuple[Outcome, Breach | None]:
        """Return the outcome of an error or of an invalid response, and the breach, if any."""
        breach = judge_response(message)
        if breach is not None:
            return invalid(call, breach, message.get("result")), breach
        error: Any = message["error"]
        status, retry_after = self._core.transport.status_of(call)
        return (
            ErrorReceived(
                request=call,
                code=error["code"],
                message=error["message"],
                data=error.get("data"),
                status=status,
                retry_after=retry_after,
            ),
            None,
        )

    def _incomplete_result(
        self, call: OutgoingRequest, kind: object, result: JSONObject
    ) -> tuple[Outcome | InputRequired | None, Breach | None]:
        """Return the outcome of a result with another type than `complete`, and its breach, if any.

        Keeps JSON-023, XTASK-009, XTASK-010.
        """
        if kind == "input_required" and self.input_required is not None:
            return self.input_required.receive_questions(call, result)
        if kind == "task" and call._following is not None and self.follower is not None:
            breach = self.follower.made(call, result)
            return (None, None) if breach is None else (invalid(call, breach, result), breach)
        breach = Breach("JSON-022", f"resultType {str(kind)[:80]!r} is not known")
        return invalid(call, breach, result), breach

    def _judge_result(self, call: OutgoingRequest, result: JSONObject) -> Breach | None:
        """Return the breach if a result is not valid; else None.

        Optional members that are null are removed first.
        """
        spec = call._spec
        optional = META if spec is None else spec.result_optional
        drop = self._core.drop_invalid if call._purpose in _FORGIVEN else self._core.drop_nulls
        drop(optional, result, call)
        if call._task and is_object(task := result.get("task")):
            self._core.drop_nulls(TASK_OPTIONAL, task, call)
        if (
            spec is None
            or not self._core.checks_shape
            or (call._is_modern and self._messages.is_extension_result(result))
        ):
            return None
        wrong = result_shape_breach(spec, call._task, result)
        if wrong is not None:
            return Breach(spec.result_rule, f"result of {call._method}: {wrong}")
        if self._core.payloads is None:
            return None
        breach = self._core.payloads.judge_result(
            call._method, result, self._core.revision_of(call), as_task=bool(call._task)
        )
        if breach is not None and breach.tolerated:
            self._core.report(breach, request=call)
            return None
        return breach

    # -------------------------------------------------------------------- responses over the limit

    def answered_by(self, id: IdKey | None) -> OutgoingRequest | None:
        """The open request that a response with this id answers, if any."""
        call = None if id is None else self._outgoing.calls.get(id)
        if call is None and id is not None and not self._core.config.strict:
            other = id_of_other_type(id)
            call = None if other is None else self._outgoing.calls.get(other)
        return call

    def overlong_text(self, call: OutgoingRequest, size: str) -> str:
        """The text that reports a response over the limit; `size` says how many bytes it has."""
        limit = self._core.config.max_message_bytes
        return (
            f"the response to {call._method} has {size} bytes; "
            f"the limit of Config.max_message_bytes is {limit}"
        )

    def conclude_overlong(self, call: OutgoingRequest, text: str, *, is_told: bool = False) -> None:
        """End a request whose response is over the limit (OWN-001).

        Args:
            call: The request.
            text: The text of `overlong_text`.
            is_told: Whether the message was reported before.
        """
        self._outgoing.conclude(call, _ANSWERED)
        if not is_told:
            self._core.report(Breach("OWN-001", text), request=call)
        failed = RequestFailed(request=call, reason=FailureReason.INVALID_ANSWER, text=text)
        call._owner.ended(call, failed)

    # -------------------------------------------------------------------------- progress and tasks

    def receive_progress(self, params: JSONObject) -> None:
        """Report progress of an open request, and restart its timeout."""
        token = id_key(params.get("progressToken"))
        progress: Any = params.get("progress")
        if token is None or (type(progress) is not int and type(progress) is not float):
            breach = judge_progress(params)
            assert breach is not None  # it judges the same two members
            self._core.report(breach)
            return
        call = self._outgoing.tokens.get(token)
        if call is None:
            self._core.events.append(
                MessageIgnored(
                    rule="PROG-006",
                    text="progress for no request in flight",
                    method="notifications/progress",
                    id=token,
                )
            )
            return
        if call._progress is not None and progress <= call._progress:
            self._core.report(no_increase(call._progress, progress), request=call)
            return
        self._core.drop_invalid(_PROGRESS, params, call)
        call._progress = progress
        self._outgoing.note_activity(call)
        self._core.events.append(
            ProgressReceived(
                request=call,
                progress=progress,
                total=params.get("total"),
                message=params.get("message"),
                meta=params.get("_meta"),
            )
        )

    def note_peer_tasks(self, method: str, content: JSONObject) -> None:
        """Release the tokens of tasks that a result or a notification of the peer shows as over."""
        if self._outgoing.task_calls and method.startswith(("tasks/", "notifications/tasks/")):
            for task_id in finished_tasks(method, content):
                self._finish_task(task_id)

    def _keep_token_for_task(self, call: OutgoingRequest, result: JSONObject) -> None:
        """Keep the progress token of a request that became a task until its end (PROG-011)."""
        task_id = new_task(result)
        if task_id is None:
            return
        self._finish_task(task_id)  # of two tasks with the same id, only the newer one counts
        if len(self._outgoing.task_calls) < self._core.config.max_requests:
            call._task = task_id
            self._outgoing.task_calls[task_id] = call
        else:
            text = (
                f"progress of {len(self._outgoing.task_calls)} tasks is awaited, which is the limit"
            )
            self._core.events.append(LimitReached(rule="OWN-005", text=text))

    def _finish_task(self, task_id: str) -> None:
        call = self._outgoing.task_calls.pop(task_id, None)
        if call is not None and call._token is not None:
            del self._outgoing.tokens[call._token]
