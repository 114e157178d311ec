"""Requests of this side that the peer has answered with a task: each is followed to its end.

The handle of the request stays open while the task goes on, and has one ending: the result, as if
there had been no task. The task is polled by the caller's clock, and seldom while a subscription
tells of its changes.

Source: MCP 2025-11-25, basic/utilities/tasks; the extension `io.modelcontextprotocol/tasks` of
2026-07-28.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ..._rules.sending import (
    Breach,
    judge_question,
    judge_request,
    judge_task,
    result_shape_breach,
)
from ..._rules.state_tables import REQUESTS, RequestState, RequestTrigger, State
from ..._rules.tasks import judge_other_task, misshapen_task
from ..._spec.errors import ErrorCode, LocalProtocolError
from ..._spec.methods import Method
from ..._spec.tasks import declares_tasks
from ..._wire.values import JSONObject, is_list, is_object
from ..core import Core
from ..events import (
    ErrorReceived,
    FailureReason,
    RequestFailed,
    ResponseReceived,
    TaskInputRequired,
    TaskUpdated,
)
from ..handles import OutgoingRequest, Purpose, TaskFollowing
from ..modern_messages import ModernMessages
from ..outgoing import Outcome, OutgoingRequests
from ..timers import Timed
from .settings import Tasks

if TYPE_CHECKING:
    from ..input_required.client import InputRequiredClient

_ANSWERED: Final = REQUESTS[RequestState.OPEN, RequestTrigger.ANSWER]
_CANCELLED: Final = REQUESTS[RequestState.OPEN, RequestTrigger.CANCEL]
_FINAL: Final = frozenset({"completed", "failed", "cancelled"})
_UNKNOWN_TASK: Final = frozenset({ErrorCode.INVALID_PARAMS, ErrorCode.METHOD_NOT_FOUND})
"""Errors after which polls are in vain: the peer has no such task, or no tasks (XTASK-059)."""
_LEAST_SECONDS: Final = 0.05
"""The fewest seconds between two polls."""
_MOST_DOUBLINGS: Final = 32
"""The most times that the interval is doubled while polls fail."""


def _copy_of(task: JSONObject) -> JSONObject:
    """A copy that shares no object and no array; made without recursion, for any depth."""
    copy = dict(task)
    rest: list[Any] = [copy]
    while rest:
        node = rest.pop()
        members: Any = node.items() if is_object(node) else enumerate(node)
        for key, value in members:
            if is_object(value):
                node[key] = dict(value)
            elif is_list(value):
                node[key] = list(value)
            else:
                continue
            rest.append(node[key])
    return copy


class TaskFollower:
    """Follows the tasks of the peer that requests of this side have become.

    Attributes:
        following: By the id of the task: what is known of it.
        input_required: On a client, the part that checks answers to questions; else None.
        settings: How often tasks are polled.
        support: By tool: what `execution.taskSupport` says in the lists that have come.
    """

    __slots__ = (
        "_core",
        "_declares",
        "_messages",
        "_outgoing",
        "_told",
        "following",
        "input_required",
        "settings",
        "support",
    )

    def __init__(
        self, core: Core, messages: ModernMessages, outgoing: OutgoingRequests, settings: Tasks
    ) -> None:
        self._core = core
        self._messages = messages
        self._outgoing = outgoing
        self.settings: Tasks = settings
        self.following: dict[str, TaskFollowing] = {}
        self._declares = declares_tasks(core.capabilities)  # with each request of 2026-07-28
        self._told: set[str] = set()  # the tasks whose changes a subscription tells
        self.support: dict[str, str | None] = {}
        self.input_required: InputRequiredClient | None = None
        outgoing.follower = self

    # -------------------------------------------------------------------------- before the request

    def judge(
        self,
        method: str,
        spec: Method | None,
        params: JSONObject,
        task: bool | int,
        now: float | None,
    ) -> JSONObject:
        """The params of a request that may become a task; raises if it may not.

        Keeps TASK-002, TASK-006, TASK-009, XTASK-006.
        """
        conversation = self._core.conversation
        name: Any = params.get("name")
        known = method == "tools/call" and isinstance(name, str) and name in self.support
        if task is False:
            if (
                known
                and self.support[name] == "required"
                and spec is not None
                and spec.task_gate in conversation.gates[self._core.other]
            ):
                raise LocalProtocolError("TASK-009", f"the tool {name!r:.80} is called as a task")
            return params
        if task is not True and (type(task) is not int or task < 1):
            text = f"task is True, or a time to live in milliseconds, not {task!r:.40}"
            raise LocalProtocolError("TASK-020", text)
        if self._core.now is None and (now is None or now != now):
            raise LocalProtocolError("OWN-023", "a task needs a clock: pass now=")
        if conversation.dialect.is_modern:
            if method != "tools/call":
                raise LocalProtocolError("XTASK-023", f"{method} never becomes a task")
            return params
        if spec is None or spec.task_gate is None:
            raise LocalProtocolError("TASK-002", f"{method} is not sent as a task")
        breach = judge_task(spec, conversation.gates[self._core.other])
        if breach is not None:
            raise breach.error()
        if known and self.support[name] not in ("required", "optional"):
            raise LocalProtocolError("TASK-006", f"the tool {name!r:.80} is no task")
        return {**params, "task": {} if task is True else {"ttl": task}}

    def may_follow(self, method: str, task: bool | int) -> bool:
        """Whether the peer may answer a request with a task that is followed.

        Args:
            method: The method; one of 2026-07-28 unless `task` is given.
            task: As the application has given it.
        """
        if task is not False:
            return True
        return self._declares and method == "tools/call" and self._core.now is not None

    def note_tools(self, result: JSONObject) -> None:
        """Remember which tools are called as tasks (2025-11-25)."""
        tools: Any = result.get("tools")
        for tool in tools if is_list(tools) else ():
            name: Any = tool.get("name") if is_object(tool) else None
            if not isinstance(name, str):
                continue
            execution: Any = tool.get("execution")
            support: Any = execution.get("taskSupport") if is_object(execution) else None
            self.support.pop(name, None)
            self.support[name] = support if isinstance(support, str) else None
            if len(self.support) > self._core.config.max_tool_schemas:
                del self.support[next(iter(self.support))]

    # -------------------------------------------------------------------- verbs of the application

    def resume(
        self,
        task_id: str,
        method: str,
        timeout: float | None,
        max_timeout: float | None,
        data: Any,
        now: float | None,
    ) -> OutgoingRequest:
        """Follow a task whose request was sent by another connection."""
        core = self._core
        if not isinstance(task_id, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LocalProtocolError("OWN-014", f"the id of a task is a string, not {task_id!r}")
        core.check_open("tasks/get")
        conversation, side = core.conversation, core.side
        spec = conversation.dialect.requests[side].get("tasks/get")
        params: JSONObject = {"taskId": task_id}
        breach = judge_request(conversation, side, "tasks/get", spec, params, True)
        if breach is not None and not breach.tolerated:
            raise breach.error()
        target = conversation.dialect.requests[side].get(method)
        if target is None:
            raise LocalProtocolError("TASK-002", f"{method} never becomes a task")
        if task_id in self.following:
            raise LocalProtocolError("OWN-022", "the task is followed already")
        if core.now is None and (now is None or now != now):
            raise LocalProtocolError("OWN-023", "a task needs a clock: pass now=")
        if timeout is not None or max_timeout is not None:
            self._outgoing.check_timeouts(timeout, max_timeout, now)
        self._outgoing.check_room()
        if now is not None:
            core.tell(now)
        call = OutgoingRequest(
            self._outgoing.last_id + 1, method, target, Purpose.APPLICATION, self._outgoing, None
        )
        call._is_modern = conversation.dialect.is_modern
        call.data = data
        self._outgoing.file(call, timeout, max_timeout)
        following = call._following = TaskFollowing(call)
        following.task_id = task_id
        self.following[task_id] = following
        self._poll(following)
        if core.needs_settle:
            core.settle()
        return call

    def provide(
        self, call: OutgoingRequest, responses: Mapping[str, JSONObject], now: float | None
    ) -> bool:
        """Answer questions of the task that a request has become.

        Keeps XTASK-064, XTASK-092, XTASK-093, XTASK-095, XTASK-110.
        """
        following = self._followed(call)
        if not call._is_modern:
            raise LocalProtocolError("OWN-022", f"no task asks anything about {call!r}")
        if following is None:
            return False
        assert self.input_required is not None  # only clients have modern tasks
        if not responses:
            raise LocalProtocolError("MRTR-019", "no answers were given")
        asked = {key: following.asked[key] for key in responses if key in following.asked}
        checked = self.input_required.checked_responses(asked, responses)
        self._core.check_open("tasks/update")
        self._outgoing.check_room()
        params: JSONObject = {"taskId": following.task_id, "inputResponses": checked}
        body = self._messages.with_envelope(params, None, tasks=True)
        if now is not None:
            self._core.tell(now)
        for key in checked:
            del following.asked[key]
        self._send_answers(following, checked, body)
        if self._core.needs_settle:
            self._core.settle()
        return True

    def leave(self, call: OutgoingRequest, now: float | None) -> bool:
        """End the request of a task that goes on at the peer; return whether it was open."""
        if self._followed(call) is None:
            return False
        if now is not None:
            self._core.tell(now)
        self._outgoing.conclude(call, _CANCELLED)
        text = f"the task of {call._method} is not followed any more"
        reason = FailureReason.CANCELLED
        self._core.events.append(RequestFailed(request=call, reason=reason, text=text))
        if self._core.needs_settle:
            self._core.settle()
        return True

    def cancel(self, call: OutgoingRequest) -> None:
        """Tell the peer that the task of a request is not needed any more.

        Keeps XTASK-114, XTASK-115, XTASK-120, XTASK-121.
        """
        following = call._following
        assert following is not None
        assert following.task_id is not None
        self._send_cancel(following.task_id, following)

    def late_task(self, call: OutgoingRequest, message: JSONObject) -> None:
        """Cancel a task whose request was cancelled before the peer has made it."""
        result: Any = message.get("result")
        task: Any = None
        if is_object(result):
            if not call._is_modern:
                task = result.get("task")
            elif result.get("resultType") == "task":
                task = result
        task_id: Any = task.get("taskId") if is_object(task) else None
        if isinstance(task_id, str) and call._following is not None:
            self._send_cancel(task_id, call._following)

    # ------------------------------------------------------------------------- while it is followed

    def made(self, call: OutgoingRequest, task: JSONObject) -> Breach | None:
        """Follow the task that answers a request; return the breach if it is not valid.

        Keeps XTASK-008, XTASK-028, XTASK-032, XTASK-043.
        """
        following = call._following
        assert following is not None
        breach = self._judge(call, task)
        task_id: Any = task.get("taskId")
        if breach is None and task_id in self.following:
            breach = Breach("TASK-015", "a second request was answered with the same task")
        if breach is not None:
            return breach
        following.task_id = task_id
        self.following[task_id] = following
        self._core.transport.became_task(call)
        self._outgoing.note_activity(call)
        if self._core.state is State.OPEN:
            self._seen(following, task, is_whole=False)
        else:
            self._outgoing.lose([call])  # nothing can be sent any more
        return None

    def ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        """Take the ending of a request about a task."""
        following = call._subject
        assert isinstance(following, TaskFollowing)
        request = following.call
        if not request.open:
            return
        if call is following.poll:
            following.poll = None
            self._polled(following, outcome)
        elif call is following.wait:
            following.wait = None
            self._result_came(following, outcome)
        else:
            self._updated(following, following.updates.pop(call), outcome)

    def notified(self, params: JSONObject) -> None:
        """Take a notification about a task; it is as good as a poll.

        Keeps TASK-032: a status of 2025-11-25 makes only the next poll come at once.
        """
        task_id: Any = params.get("taskId")
        following = self.following.get(task_id) if isinstance(task_id, str) else None
        if following is None:
            return
        if not following.call._is_modern:
            self._poll(following)
            return
        breach = self._judge(following.call, params)
        if breach is None:
            self._outgoing.note_activity(following.call)
            self._seen(following, params, is_whole=True)
        else:  # what it was to tell is not told again
            self._core.report(breach, request=following.call)
            self._poll(following)

    def subscribed(self, ids: Iterable[str]) -> None:
        """Poll these tasks seldom: a subscription tells of their changes (XTASK-129)."""
        self._told.update(ids)

    def unsubscribed(self, ids: Iterable[str]) -> None:
        """Poll these tasks again: the subscription has ended.

        Keeps XTASK-130.
        """
        for task_id in ids:
            self._told.discard(task_id)
            following = self.following.get(task_id)
            if following is not None:
                following.is_sure = False
                if self._core.state is State.OPEN:
                    self._poll(following)

    def concluded(self, call: OutgoingRequest) -> None:
        """Forget the task of a request that has ended."""
        following = call._following
        assert following is not None
        self._core.timers.drop(following)
        if following.task_id is not None:
            self.following.pop(following.task_id, None)
            self._told.discard(following.task_id)
        for inner in (following.poll, following.wait):
            if inner is not None and inner.open and self._core.state is State.OPEN:
                self._outgoing.withdraw(inner, "the task is not followed any more")

    # ------------------------------------------------------------------------------------- helpers

    def _followed(self, call: OutgoingRequest) -> TaskFollowing | None:
        """What is known of the task of a request; None: the request has ended.

        Raises:
            LocalProtocolError: The request has become no task, or is one of another connection.
        """
        following = call._following
        if following is None or following.task_id is None:
            raise LocalProtocolError("OWN-022", f"{call!r} has become no task")
        if not call.open:
            return None
        if self.following.get(following.task_id) is not following:
            raise LocalProtocolError("OWN-022", f"{call!r} belongs to another connection")
        return following

    def _judge(self, call: OutgoingRequest, task: JSONObject) -> Breach | None:
        """Return the breach if a task is not valid; else None."""
        wrong = misshapen_task(task, call._is_modern)
        return None if wrong is None else Breach("OWN-014", f"task of {call._method}: {wrong}")

    def _seen(self, following: TaskFollowing, task: JSONObject, is_whole: bool) -> None:
        """Go on after news of a task: end its request, ask the application, or poll again.

        Keeps TASK-022, TASK-030, XTASK-077, XTASK-080, XTASK-094, XTASK-109.

        Args:
            following: What is known of the task.
            task: The task, which is valid.
            is_whole: Whether it has the payload of its status; a `CreateTaskResult` has none.
        """
        call, status = following.call, task["status"]
        poll: Any = task.get("pollIntervalMs" if call._is_modern else "pollInterval")
        following.poll_ms = poll if type(poll) in (int, float) and poll > 0 else None
        news = (status, task.get("statusMessage"))
        if call._is_modern or status not in _FINAL or following.status != status:
            following.failed = 0  # else the waits for the result may have failed
        if news != following.news:
            following.news = news
            self._core.events.append(TaskUpdated(request=call, task=_copy_of(task)))
        if not call._is_modern:
            self._go_on_with_legacy(following, status)
        elif status in _FINAL and (is_whole or status == "cancelled"):
            self._finish(following, status, task)
        elif status in _FINAL or (status == "input_required" and not is_whole):
            self._poll(following)
        else:
            if status == "input_required":
                self._asked(following, task.get("inputRequests"))
            if call.open:
                self._rest(following)
                self._schedule(following)

    def _go_on_with_legacy(self, following: TaskFollowing, status: str) -> None:
        """Go on after news of a task of 2025-11-25: wait for its result, or poll again."""
        error, following.error = following.error, None
        if error is not None and status == "failed":
            self._end(following.call, error)
        elif error is not None and status == "cancelled":
            self._cancelled(following.call)
        elif error is not None:
            self._failed(following, f"{error.message[:200]} ({error.code})")
        elif status in _FINAL:
            self._wait_for_result(following, self.settings.max_poll_seconds)
        else:
            self._rest(following)
            if status == "input_required":
                self._wait_for_result(following, None)
            if following.wait is None:
                self._schedule(following)
            else:  # which brings the result
                self._poll_after(following, self.settings.max_poll_seconds)

    def _updated(self, following: TaskFollowing, answers: bytes, outcome: Outcome) -> None:
        """Take the answer to an update; what has failed is sent again (see `_asked`), not for ever.

        Keeps OWN-072.
        """
        if isinstance(outcome, ResponseReceived):
            following.failed_updates = 0
            return
        following.failed_updates += 1
        if following.failed_updates >= self.settings.max_failed_polls:
            call, count = following.call, following.failed_updates
            text = f"{count} updates of the task of {call._method} have failed"
            if isinstance(outcome, ErrorReceived):
                text += f": {outcome.message[:200]} ({outcome.code})"
            self._outgoing.abandon(call, FailureReason.LOST, text, None)
            return
        unsent: Any = self._core.codec.decode(answers)
        following.unsent.update(unsent)
        if isinstance(outcome, ErrorReceived) and outcome.code in _UNKNOWN_TASK:
            self._poll(following)  # the task may be gone, or the answers are not valid
        else:
            self._poll_later(following)

    def _asked(self, following: TaskFollowing, questions: Any) -> None:
        """Tell the application of questions that it does not know yet.

        Answers whose update has failed are sent again if the peer still waits for them.

        Keeps OWN-074.
        """
        call, limit = following.call, self.settings.max_questions
        conversation = self._core.conversation
        gates = conversation.gates[self._core.side]
        fresh: dict[str, JSONObject] = {}
        again: JSONObject = {}
        for key, question in questions.items() if is_object(questions) else ():
            if key in following.unsent:
                again[key] = following.unsent.pop(key)
            if key in following.seen:
                continue
            if len(following.seen) >= limit:
                text = f"the task of {call._method} has asked {limit} questions, which is the limit"
                self._outgoing.abandon(call, FailureReason.TOO_MANY_ROUNDS, text, None)
                return
            following.seen.add(key)
            breach = judge_question(conversation.dialect, gates, question, self._core.checks_shape)
            if breach is not None:
                self._core.report(breach, request=call)
                if not breach.tolerated:
                    following.refused.add(key)
                    continue
            fresh[key] = question
            following.asked[key] = question["method"]
        if is_object(questions) and questions and questions.keys() <= following.refused:
            text = f"no question of the task of {call._method} can be answered"
            self._outgoing.abandon(call, FailureReason.INVALID_ANSWER, text, None)
            return
        if again:
            params: JSONObject = {"taskId": following.task_id, "inputResponses": again}
            body = self._messages.with_envelope(params, None, tasks=True)
            self._send_answers(following, again, body)
        if fresh:
            self._core.events.append(TaskInputRequired(request=call, questions=fresh))

    def _finish(self, following: TaskFollowing, status: str, task: JSONObject) -> None:
        """End the request of a task of 2026-07-28 that is over.

        Keeps XTASK-048, XTASK-153.
        """
        call = following.call
        if status == "completed":
            self._finish_with_result(call, task.get("result"))
        elif status == "failed":
            error: Any = task.get("error")
            if (
                is_object(error)
                and type(error.get("code")) is int
                and isinstance(error.get("message"), str)
            ):
                self._end(
                    call,
                    ErrorReceived(
                        request=call,
                        code=error["code"],
                        message=error["message"],
                        data=error.get("data"),
                    ),
                )
            else:
                self._invalid(call, "the failed task has no error", error)
        else:
            self._cancelled(call)

    def _finish_with_result(self, call: OutgoingRequest, result: Any) -> None:
        """End a request with the result of its task."""
        spec = call._spec
        assert spec is not None  # a method that may become a task is defined
        if not is_object(result):
            self._invalid(call, "the completed task has no result", result)
            return
        if self._core.checks_shape and (wrong := result_shape_breach(spec, False, result)):
            self._invalid(call, f"result of {call._method}: {wrong}", result)
            return
        if self._core.payloads is not None:
            breach = self._core.payloads.judge_result(
                call._method, result, self._core.revision_of(call)
            )
            if breach is not None:
                if not breach.tolerated:
                    self._invalid(call, breach.text, result, breach.rule)
                    return
                self._core.report(breach, request=call)
        self._end(call, ResponseReceived(request=call, result=result))

    def _cancelled(self, call: OutgoingRequest) -> None:
        reason = FailureReason.TASK_CANCELLED
        self._end(call, RequestFailed(request=call, reason=reason, text=reason.value))

    def _invalid(
        self, call: OutgoingRequest, text: str, result: Any, rule: str = "XTASK-044"
    ) -> None:
        self._core.report(Breach(rule, text), request=call)
        reason = FailureReason.INVALID_ANSWER
        self._end(call, RequestFailed(request=call, reason=reason, text=text, result=result))

    def _lost(self, following: TaskFollowing, error: ErrorReceived) -> None:
        """End the request of a task that the peer does not have.

        Keeps XTASK-059, XTASK-088.
        """
        call = following.call
        text = f"the task of {call._method} is gone: {error.message[:200]} ({error.code})"
        reason = FailureReason.TASK_LOST
        self._end(call, RequestFailed(request=call, reason=reason, text=text))

    def _end(self, call: OutgoingRequest, outcome: Outcome) -> None:
        self._outgoing.conclude(call, _ANSWERED)
        self._core.events.append(outcome)

    # --------------------------------------------------------------------------------------- polls

    def _schedule(self, following: TaskFollowing) -> None:
        """Poll a task later: after the interval of the peer, or seldom where changes are told.

        News may get lost, and no news tells that the time of a task is over. A poll that was sent
        before the acknowledgement of the subscription may have missed a change that is not told.

        Keeps TASK-021, XTASK-077.
        """
        if following.task_id in self._told and following.is_sure:
            self._poll_after(following, self.settings.max_poll_seconds)
        else:
            self._poll_later(following)

    def _poll_later(self, following: TaskFollowing) -> None:
        """Poll a task after the interval of the peer, and longer while polls fail."""
        settings = self.settings
        asked, most = following.poll_ms, settings.max_poll_seconds
        seconds = settings.poll_seconds
        if asked is not None:  # an integer of the peer may be too large for a float
            seconds = asked / 1000 if asked < most * 1000 else most
        seconds = max(seconds, _LEAST_SECONDS) * 2.0 ** min(following.failed, _MOST_DOUBLINGS)
        self._poll_after(following, min(seconds, most))

    def _poll_after(self, following: TaskFollowing, seconds: float) -> None:
        """Poll a task after so many seconds, and up to a tenth more."""
        try:
            jitter = int.from_bytes(self.settings.random_bytes(2), "big") / 65_536
        except Exception:  # of the caller's entropy: the peer must not meet it
            jitter = 0.0
        seconds *= 1 + jitter / 10
        self._core.timers.arm(self, following, (self._core.now or 0.0) + seconds)

    def _rest(self, following: TaskFollowing) -> None:
        """Stop the timeout of the request until the next poll: no answer is due."""
        following.rests = True
        self._outgoing.suspend_timeout(following.call)

    def _timer_fired(self, subject: Timed) -> None:
        self._core.run_timer(self._poll, subject)

    def _poll(self, following: Any) -> None:
        """Ask for the state of a task, unless that is asked already."""
        if following.poll is None:
            self._core.timers.drop(following)
            if following.rests:
                following.rests = False
                self._outgoing.restart_timeout(following.call, 0.0)
            following.is_sure = following.task_id in self._told
            following.poll = self._request("tasks/get", following, self.settings.max_poll_seconds)

    def _wait_for_result(self, following: TaskFollowing, seconds: float | None) -> None:
        """Ask for the result of a task of 2025-11-25: the peer answers at the end of the task.

        Args:
            following: What is known of the task.
            seconds: Seconds allowed for it, where the task is over; None: any number.
        """
        wait = following.wait
        if wait is None:
            following.wait = self._request("tasks/result", following, seconds)
        elif seconds is not None and wait._timeout is None:
            wait._timeout = seconds
            self._outgoing.restart_timeout(wait, 0.0)

    def _request(
        self, method: str, following: TaskFollowing, seconds: float | None
    ) -> OutgoingRequest:
        """Send a request about a task; with so many seconds for the answer, or without a limit."""
        params: JSONObject = {"taskId": following.task_id}
        if following.call._is_modern:
            body = self._messages.with_envelope(params, None, tasks=True)
        else:
            body = self._core.encode(params)
        route = following.call._route
        return self._outgoing.send_own(
            method, body, Purpose.TASK, self, following, seconds, route=route
        )

    def _send_answers(self, following: TaskFollowing, answers: JSONObject, body: bytes) -> None:
        """Send answers to questions of a task, and keep them until they have arrived."""
        seconds = self.settings.max_poll_seconds
        call = self._outgoing.send_own("tasks/update", body, Purpose.TASK, self, following, seconds)
        following.updates[call] = self._core.encode(answers)

    def _send_cancel(self, task_id: str, following: TaskFollowing) -> None:
        """Send `tasks/cancel`, if the peer has it; the answer is of no interest."""
        core = self._core
        dialect = core.conversation.dialect
        spec = dialect.requests[core.side].get("tasks/cancel")
        if (
            core.state is State.OPEN
            and spec is not None
            and spec.gate in core.conversation.gates[core.other]
        ):
            following.task_id = task_id
            self._request("tasks/cancel", following, self.settings.max_poll_seconds)

    def _polled(self, following: TaskFollowing, outcome: Outcome) -> None:
        """Take the answer to a poll."""
        call = following.call
        if isinstance(outcome, ResponseReceived):
            breach = self._judge(call, outcome.result)
            if breach is None:
                assert following.task_id is not None
                breach = judge_other_task(outcome.result, following.task_id, call._is_modern)
            if breach is None:
                self._outgoing.note_activity(call)
                self._seen(following, outcome.result, is_whole=True)
            else:
                self._core.report(breach, request=call)
                self._failed(following, breach.text)
        elif isinstance(outcome, ErrorReceived):
            if outcome.code in _UNKNOWN_TASK:
                self._lost(following, outcome)
            else:
                self._failed(following, f"{outcome.message[:200]} ({outcome.code})")
        else:
            self._failed(following, outcome.text)

    def _result_came(self, following: TaskFollowing, outcome: Outcome) -> None:
        """Take the answer to `tasks/result`, which is that of the request.

        An error may also say that there is no task, that it is cancelled, or that the peer cannot
        answer now: a poll tells.
        """
        call = following.call
        if isinstance(outcome, ResponseReceived):
            self._finish_with_result(call, outcome.result)
        elif not isinstance(outcome, ErrorReceived):
            self._failed(following, outcome.text)
        elif following.status == "cancelled":
            self._cancelled(call)
        elif outcome.status is not None and outcome.status >= 400:
            self._failed(following, f"{outcome.message[:200]} ({outcome.code})")
        else:
            following.error = ErrorReceived(
                request=call,
                code=outcome.code,
                message=outcome.message,
                data=outcome.data,
                status=outcome.status,
                retry_after=outcome.retry_after,
            )
            self._poll(following)

    def _failed(self, following: TaskFollowing, text: str) -> None:
        """Poll again after a failure, until there were too many in a row.

        Keeps OWN-072.
        """
        following.failed += 1
        if following.failed < self.settings.max_failed_polls:
            self._poll_later(following)
            return
        call = following.call
        said = f"{following.failed} polls of the task of {call._method} have failed: {text}"
        reason = FailureReason.LOST
        self._end(call, RequestFailed(request=call, reason=reason, text=said))
