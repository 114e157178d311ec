"""Tasks of the peer on this side: requests that are answered with a task, and methods of tasks.

In 2026-07-28 only a server has tasks. In 2025-11-25 either side may have them. The records are in
the `TaskBoard`, which all connections of an endpoint share.

Source: MCP 2025-11-25, basic/utilities/tasks; the extension `io.modelcontextprotocol/tasks` of
2026-07-28.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..._rules.conversation import Peer
from ..._rules.messages import judge_inputs
from ..._rules.sending import result_shape_breach, without_nulls
from ..._rules.state_tables import RequestState, State, TaskTrigger
from ..._spec.errors import ErrorCode, InvalidCursor, LocalProtocolError
from ..._spec.methods import META, Method
from ..._spec.modern_methods import MODERN_REVISION
from ..._spec.registry import LEGACY_REVISIONS
from ..._spec.tasks import NEEDS_TASKS, RELATED_TASK, TASKS_EXTENSION, declares_tasks
from ..._wire.setting_checks import check_clock, check_kind
from ..._wire.timestamps import LAST_SECOND
from ..._wire.values import MISSING, JSONObject, JSONValue, Missing, Side, is_object
from ..core import Core, MethodPart
from ..cursors import decode_cursor, encode_cursor
from ..events import (
    CancelCause,
    LimitReached,
    RequestAnswered,
    TaskCancelled,
    TaskEnd,
)
from ..handles import IncomingRequest, Task
from ..incoming import IncomingRequests
from ..input_required.request_state import NO_PRINCIPAL_KEY
from ..input_required.server import checked_questions
from ..modern_messages import ModernMessages
from ..outgoing import OutgoingRequests
from .board import TaskBoard
from .operations import NO_ROOM, TaskChange, TaskCreation, TaskLookup, TaskPage, joined
from .questions import TaskQuestions, owner_of
from .records import TaskRecord
from .settings import TaskSupport

_ANSWERED: Final = RequestState.ANSWERED
_OPEN: Final = RequestState.OPEN
_UNKNOWN: Final = "the task is not known, or its time to live is over"
_TOO_MANY: Final = "too many tasks"
_ID_BYTES: Final = 24
_TEXT_CHARACTERS: Final = 65_536
"""The most characters of a status message."""
_TOOL_FAILED: Final = "the tool has reported an error"


def _checked_ms(name: str, value: object) -> int | None:
    """A setting of a task in milliseconds; raises unless it is above zero, or None."""
    if value is not None and (type(value) is not int or value < 1):
        text = f"{name} is an integer above zero, or None, not {value!r:.40}"
        raise LocalProtocolError("XTASK-040", text)
    return value


def _check_message(message: object) -> None:
    """Raise unless a status message is a string of moderate length, or None."""
    if message is None:
        return
    if not isinstance(message, str) or len(message) > _TEXT_CHARACTERS:
        text = f"a status message is a string of at most {_TEXT_CHARACTERS} characters"
        raise LocalProtocolError("OWN-014", text)


class TaskOwner(MethodPart):
    """Answers requests with tasks, and answers the methods of tasks.

    Attributes:
        board: All tasks of this side.
        questions: Questions to a legacy client about its tasks.
    """

    __slots__ = ("_core", "_incoming", "_messages", "board", "questions")

    def __init__(
        self,
        core: Core,
        messages: ModernMessages,
        outgoing: OutgoingRequests,
        incoming: IncomingRequests,
        board: TaskBoard,
    ) -> None:
        self._core = core
        self._messages = messages
        self._incoming = incoming
        self.board: TaskBoard = board
        self.questions: TaskQuestions = TaskQuestions(core, outgoing, incoming, board)

    # -------------------------------------------------------------------- verbs of the application

    def create(
        self,
        request: IncomingRequest,
        ttl_ms: int | Missing | None,
        poll_ms: int | Missing | None,
        message: str | None,
        keep: JSONValue,
        meta: JSONObject | None,
        at: float | None,
        now: float | None,
    ) -> Task | None:
        """Answer a request with a new task.

        Keeps TASK-013, TASK-015, TASK-016, XTASK-007, XTASK-023, XTASK-033, XTASK-144.
        """
        if request._state is not _OPEN:
            self._incoming.too_late(request)
            return None
        if self._incoming.requests.get(request._key) is not request:
            raise LocalProtocolError("OWN-022", f"{request!r} belongs to another connection")
        self._check_creation(request)
        owner = self._owner_of(request)
        if owner is None:
            raise LocalProtocolError("OWN-050", NO_PRINCIPAL_KEY)
        settings, board = self.board.settings, self.board
        wish = self._wish_of(request)
        ttl = wish if ttl_ms is MISSING else _checked_ms("ttl_ms", ttl_ms)
        poll = settings.poll_ms if poll_ms is MISSING else _checked_ms("poll_ms", poll_ms)
        _check_message(message)
        encoded = b"" if keep is None else self._core.encode(keep)
        self._core.encode_object({}, meta)
        time = self._time(at, now)
        record = TaskRecord(
            id=settings.random_bytes(_ID_BYTES).hex(),
            owner=owner,
            method=request._method,
            is_modern=request._is_modern,
            created_at=time,
            updated_at=time,
            ttl_ms=ttl,
            poll_ms=poll,
            message=message,
            capabilities=self._core.encode(request._peer.capabilities),
            keep=encoded,
        )
        # Everything is checked: from here on nothing raises.
        self._tell(at, now)
        task = Task(record, self, request._peer)
        creation = TaskCreation(self, task, request, meta)
        request._state = _ANSWERED
        request._subject = creation
        if board.is_full_for(owner):
            task._open = False  # the application gets no handle
            self.no_room_for(creation, None)
        else:
            board.run(creation)
        self._settle()
        return task if task._open else None

    def report(
        self,
        task: Task,
        message: str | Missing | None,
        ttl_ms: int | Missing | None,
        poll_ms: int | Missing | None,
        keep: JSONValue | Missing,
        at: float | None,
        now: float | None,
    ) -> bool:
        """Change what polls say about the task while it goes on, or what is kept with it.

        Keeps OWN-075, XTASK-083.
        """
        fields: dict[str, Any] = {}
        if message is not MISSING:
            _check_message(message)
            fields["message"] = message
        if ttl_ms is not MISSING:
            fields["ttl_ms"] = _checked_ms("ttl_ms", ttl_ms)
        if poll_ms is not MISSING:
            fields["poll_ms"] = _checked_ms("poll_ms", poll_ms)
        if keep is not MISSING:
            fields["keep"] = b"" if keep is None else self._core.encode(keep)
        if not self._is_open(task):
            return False
        if "ttl_ms" in fields:
            self._check_lengthened(task._record.ttl_ms, fields["ttl_ms"])
        self._tell(at, now)
        if task._report is not None:
            task._report.fields.update(fields)
        else:
            task._report = TaskChange(self.board, task, TaskTrigger.REPORT, fields)
            self.board.run(task._report)
        self._settle()
        return task._open

    def complete(
        self,
        task: Task,
        result: JSONObject,
        meta: JSONObject | None,
        at: float | None,
        now: float | None,
    ) -> bool:
        """End a task with the result of its request.

        Keeps TASK-025, TASK-040, XTASK-047, XTASK-052, XTASK-053, XTASK-054.
        """
        if not self._is_open(task):
            return False
        record = task._record
        spec = self._spec_of(record)
        if not is_object(result):
            raise LocalProtocolError("OWN-014", f"a JSON object is needed, not {result!r:.40}")
        result = without_nulls(META if spec is None else spec.result_optional, result)
        trigger = TaskTrigger.COMPLETE
        fields: dict[str, Any] = {"message": None}
        if record.is_modern:
            body = self._messages.complete(spec, result, meta)
        else:
            body = self._core.encode_object(
                result, {**(meta or {}), RELATED_TASK: {"taskId": record.id}}
            )
            if record.method == "tools/call" and result.get("isError") is True:
                trigger, fields = TaskTrigger.FAIL, {"message": _TOOL_FAILED}
        if spec is not None and self._core.checks_shape:
            wrong = result_shape_breach(spec, False, result)
            if wrong is not None:
                text = f"result of the task of {record.method}: {wrong}"
                raise LocalProtocolError(spec.result_rule, text)
        if self._core.payloads is not None:
            revision = self._core.conversation.dialect.revision
            revision = MODERN_REVISION if record.is_modern else revision
            self._core.payloads.check_result(record.method, result, meta, revision)
        self._tell(at, now)
        return self._end_task(task, trigger, {**fields, "result": body})

    def fail(
        self,
        task: Task,
        code: int,
        message: str,
        data: JSONValue | Missing,
        at: float | None,
        now: float | None,
    ) -> bool:
        """End a task with the error of its request.

        Keeps XTASK-046, XTASK-055, XTASK-056.
        """
        if not self._is_open(task):
            return False
        body = self._incoming.error_bytes(code, message, data)
        if task._record.is_modern and (right := self._messages.modern_code(code, data)) != code:
            body = self._incoming.error_bytes(right, message, data)
        self._tell(at, now)
        fields = {"error": body, "message": message[:_TEXT_CHARACTERS]}
        return self._end_task(task, TaskTrigger.FAIL, fields)

    def cancel(self, task: Task, message: str | None, at: float | None, now: float | None) -> bool:
        """Cancel a task from this side."""
        _check_message(message)
        if not self._is_open(task):
            return False
        self._tell(at, now)
        return self._end_task(task, TaskTrigger.CANCEL, {"message": message})

    def ask(
        self,
        task: Task,
        questions: Mapping[str, JSONObject],
        at: float | None,
        now: float | None,
    ) -> bool:
        """Ask the peer questions while the task goes on.

        Keeps TASK-029, XTASK-104, XTASK-105, XTASK-106, XTASK-107, XTASK-108.
        """
        if not self._is_open(task):
            return False
        record = task._record
        if not questions:
            raise LocalProtocolError("XTASK-106", "no questions were given")
        checked = checked_questions(self._core, task._peer, questions)
        if taken := [key for key in checked if key in task._keys]:
            text = f"the key {min(taken)!r} was used before in this task"
            raise LocalProtocolError("XTASK-105", text)
        keys = (*task._keys, *checked)
        new = dict.fromkeys(checked)
        if record.is_modern:
            asked = self._core.encode(checked)
            self._tell(at, now)
            task._keys.update(new)
            change = TaskChange(self.board, task, TaskTrigger.ASK, {"keys": keys}, asked=asked)
            self.board.run(change)
        else:
            bodies = self.questions.encode(task, checked)
            self._tell(at, now)
            task._keys.update(new)
            task._unsent = {**(task._unsent or {}), **bodies}
            self.board.run(TaskChange(self.board, task, TaskTrigger.ASK, {"keys": keys}))
            self.questions.send(task)
        self._settle()
        return task._open

    def adopt(self, record: TaskRecord, at: float | None, now: float | None) -> Task:
        """A handle for a stored task whose process has ended."""
        check_kind("record", record, TaskRecord)
        if record.status.is_final:
            raise LocalProtocolError("TASK-018", f"the task is {record.status.text}")
        if record.id in self.board.handles:
            raise LocalProtocolError("OWN-071", "this process works on the task already")
        if self.board.store is not None:
            raise LocalProtocolError("OWN-071", "only tasks of Tasks(store='ask') are adopted")
        if self.board.is_full:
            text = f"{self.board.settings.max_tasks} tasks are worked on, which is the limit"
            raise LocalProtocolError("OWN-070", text)
        revision = MODERN_REVISION if record.is_modern else LEGACY_REVISIONS[-1]
        if revision not in self._core.revisions or (
            record.is_modern and self._core.side is Side.CLIENT
        ):
            text = f"tasks of revision {revision} are not kept here"
            raise LocalProtocolError("OWN-071", text)
        declared: Any = self._core.codec.decode(record.capabilities)
        given: Any = self._core.codec.decode(record.answers or b"{}")
        self._tell(at, now)
        peer = Peer()
        peer.revision = revision
        peer.capabilities = declared
        task = Task(record, self, peer)
        task._given.update(dict.fromkeys(given))
        self.board.add(task)
        return task

    # ------------------------------------------------------------------------ requests of the peer

    def judge_call(self, request: IncomingRequest) -> bool:
        """Refuse a `tools/call` that is sent as a task, or without one, against `Tasks.tools`.

        Keeps TASK-007, TASK-010, XTASK-011, XTASK-151.

        Returns:
            Whether the request goes on.
        """
        tools = self.board.settings.tools
        if tools is None or request._method != "tools/call":
            return True
        name: Any = request._params.get("name")
        support: TaskSupport = tools.get(name, "forbidden") if type(name) is str else "forbidden"
        if request._is_modern:
            if support == "required" and not declares_tasks(request._peer.capabilities):
                self.refuse_undeclared(request)
                return False
            return True
        if request._task:
            if support != "forbidden":
                return True
            text = f"the tool {name!r:.80} is not called as a task"
        elif support != "required" or not self._may_be_task(request):
            return True
        else:
            text = f"the tool {name!r:.80} is called as a task only"
        self.refuse(request, ErrorCode.METHOD_NOT_FOUND, text)
        return False

    def check_plain_result(self, request: IncomingRequest) -> None:
        """Raise if a request that was accepted as a task is answered with its result.

        Where `Tasks.tools` is None, nobody but the application knows whether a tool is called so.

        Keeps TASK-013.
        """
        if request._method != "tools/call" or self.board.settings.tools is not None:
            text = f"{request._method} was accepted as a task: answer with create_task"
            raise LocalProtocolError("TASK-013", text)

    def take(self, request: IncomingRequest) -> bool:
        """Answer a method of tasks, at once or when the store or the task is ready.

        Keeps TASK-024, TASK-028, XTASK-014, XTASK-017, XTASK-070.
        """
        if request._is_modern and not declares_tasks(request._peer.capabilities):
            self.refuse_undeclared(request)
            return True
        if request._method == "tasks/list":
            self._list(request)
            return True
        if request._method == "tasks/update" and (
            (breach := judge_inputs(request._params)) is not None
        ):
            self._incoming.refuse_breach(request, breach)
            return True
        if type(request._params.get("taskId")) is not str:  # with `Config.check="none"`
            self.refuse_unknown(request)
            return True
        lookup = TaskLookup(self, request)
        request._subject = lookup
        self.board.look_up(lookup)
        return True

    def is_owner(self, request: IncomingRequest, record: TaskRecord) -> bool:
        """Whether a task belongs to the sender of a request.

        Keeps TASK-041, XTASK-146, XTASK-148, XTASK-152.
        """
        return record.owner == self._owner_of(request)

    def changed_by_peer(
        self, request: IncomingRequest, record: TaskRecord, at: float | None
    ) -> TaskRecord | None:
        """The record that a request of the peer makes of a task; None: it changes nothing.

        Keeps XTASK-071, XTASK-101, XTASK-102, XTASK-103, XTASK-113, XTASK-119.
        """
        if request._method == "tasks/cancel":
            return record.after(TaskTrigger.CANCEL, at, {"message": None})
        if request._method != "tasks/update" or not record.questions:
            return None
        questions: Any = self._core.codec.decode(record.questions)
        given: Any = request._params.get("inputResponses", {})
        answers = {key: value for key, value in given.items() if key in questions}
        if not answers:
            return None
        left = {key: asked for key, asked in questions.items() if key not in answers}
        fields = {
            "questions": self._core.encode(left) if left else b"",
            "answers": joined(record.answers, self._core.encode(answers)),
        }
        return record.after(TaskTrigger.ANSWER if left else TaskTrigger.LAST_ANSWER, at, fields)

    def found(self, request: IncomingRequest, record: TaskRecord | None, is_changed: bool) -> None:
        """Answer a request about a task that was looked up.

        Keeps TASK-023, TASK-036, TASK-037, TASK-039, XTASK-072, XTASK-073, XTASK-074, XTASK-097,
        XTASK-098, XTASK-100, XTASK-116, XTASK-118.
        """
        if request._state is not _OPEN:
            return  # it was cancelled meanwhile
        if record is None or not self.is_owner(request, record):
            self.refuse_unknown(request)
            return
        self._enter()
        if request._is_modern:
            members = b""
            if request._method == "tasks/get":
                members = self._core.encode(record.to_object())[1:-1] + record.payload
            self._incoming.answer_automatically(request, self._messages.completed(members))
        elif request._method == "tasks/result":
            if record.status.is_final:
                self.answer_result(request, record)
            else:
                self.board.watch(record).waiting[request] = self
                task = self.board.handles.get(record.id)
                if task is not None:
                    if task._part is not self and self.questions.take(task):
                        task._part = self
                    task._part.questions.send(task)
        elif request._method == "tasks/cancel" and not is_changed:
            text = f"the task is {record.status.text}"
            self.refuse(request, ErrorCode.INVALID_PARAMS, text)
        else:
            body = self._core.encode(record.to_object())
            self._incoming.answer_automatically(request, body)
        self._leave()

    def answer_result(self, request: IncomingRequest, record: TaskRecord) -> None:
        """Answer `tasks/result` of a task that is over."""
        self._enter()
        if record.result:
            self._incoming.answer_automatically(request, record.result)
        else:
            error = record.error or self._incoming.error_bytes(
                ErrorCode.INTERNAL_ERROR, "the task was cancelled"
            )
            self._core.events.append(RequestAnswered(request=request))
            self._incoming.answer(request, b'"error":', error)
        self._leave()

    def listed(
        self, request: IncomingRequest, records: list[TaskRecord], size: int, at: float | None
    ) -> None:
        """Answer `tasks/list` with one page, of which the tasks are left out that are over.

        Keeps TASK-033, TASK-034, TASK-035.
        """
        if request._state is not _OPEN:
            return
        page = records[:size]
        tasks = [record.to_object() for record in page if not record.is_expired(at)]
        result: JSONObject = {"tasks": tasks}
        if len(records) > size:
            result["nextCursor"] = encode_cursor(page[-1].place)
        self._enter()
        self._incoming.answer_automatically(request, self._core.encode(result))
        self._leave()

    def reports_cancelled(
        self,
        request: IncomingRequest,
        cause: CancelCause,
        reason: str | None,
        meta: JSONObject | None,
    ) -> bool:
        """Report nothing: the application does not know of requests that the library answers."""
        return True

    def not_accepted(self, request: IncomingRequest) -> None:
        """Forget a request that waits no more: for the store, or for the end of its task."""
        lookup, request._subject = request._subject, None
        if isinstance(lookup, TaskLookup):
            self.board.withdraw(lookup)
        task_id: Any = request._params.get("taskId")
        if type(task_id) is str:
            self.board.unwatch(task_id, request)

    def refuse_unknown(self, request: IncomingRequest) -> None:
        """Refuse a request about a task that is not there, or belongs to another."""
        self._enter()
        self.refuse(request, ErrorCode.INVALID_PARAMS, _UNKNOWN)
        self._leave()

    def refuse_waiting(self, request: IncomingRequest, cause: TaskEnd, text: str) -> None:
        """Refuse a `tasks/result` whose task has ended without a record of its end."""
        if cause is TaskEnd.FAILED or cause is TaskEnd.NO_ROOM:
            self._enter()
            self.refuse(request, ErrorCode.INTERNAL_ERROR, text)
            self._leave()
        else:
            self.refuse_unknown(request)

    def refuse(self, request: IncomingRequest, code: int, text: str, data: Any = MISSING) -> None:
        """Answer a request with an error.

        For a legacy client over HTTP its status is that of a result: it would take another one for
        the end of the connection.
        """
        if request._state is not _OPEN:
            return
        if request._is_modern:
            self._incoming.refuse(request, code, text, data)
        else:
            self._core.events.append(RequestAnswered(request=request, code=code))
            body = self._incoming.error_bytes(code, text[:300], data)
            self._incoming.answer(request, b'"error":', body)

    def refuse_undeclared(self, request: IncomingRequest) -> None:
        """Refuse a request of a client that does not declare the extension with it.

        Keeps XTASK-012, XTASK-016.
        """
        text = f"{request._method} needs the client's capability extensions.{TASKS_EXTENSION}"
        code = ErrorCode.MISSING_CLIENT_CAPABILITY
        self._incoming.refuse(request, code, text, NEEDS_TASKS)

    # ---------------------------------------------------------------------------- changes of tasks

    def created(self, creation: TaskCreation) -> None:
        """Answer the request of a task that was stored.

        Keeps XTASK-026, XTASK-029, XTASK-030, XTASK-057, XTASK-058, XTASK-132.
        """
        task, request = creation.task, creation.request
        self.board.add(task)
        if request is None:  # it was cancelled meanwhile
            self._end_task(task, TaskTrigger.CANCEL, {})
            return
        record = task._record
        result = record.to_object()
        if record.is_modern:
            meta = self._messages.result_meta(creation.meta)
            result = {"resultType": "task", **result, **({"_meta": meta} if meta else {})}
            body = self._core.encode(result)
        else:
            body = self._core.encode_object({"task": result}, creation.meta)
            self._incoming.keep_token_for_task(request, {"task": result})
        self._enter()
        request._subject = None
        if not self._incoming.answer(request, b'"result":', body):
            task._open = False
            self._end_task(task, TaskTrigger.CANCEL, {})
        self._leave()

    def not_created(self, creation: TaskCreation, text: str) -> None:
        """Refuse a request whose task was not stored."""
        request = self._end_creation(creation, TaskEnd.FAILED, text)
        if request is not None:
            self._enter()
            self.refuse(request, ErrorCode.INTERNAL_ERROR, text)
            self._leave()

    def no_room_for(self, creation: TaskCreation, text: str | None) -> None:
        """Refuse a request because there are too many tasks."""
        request = self._end_creation(creation, TaskEnd.NO_ROOM, text or "")
        if request is not None:
            self.refuse_full(request, _TOO_MANY, text)

    def _end_creation(
        self, creation: TaskCreation, cause: TaskEnd, text: str
    ) -> IncomingRequest | None:
        """End a task that was not stored; return its request, which is open again.

        None: the request was cancelled meanwhile.
        """
        request, task = creation.request, creation.task
        if task._open and self.board.store is None:  # else the application gets no handle
            self._core.events.append(TaskCancelled(task=task, cause=cause, text=text))
        task._open = False
        if request is not None:
            request._state, request._subject = _OPEN, None
        return request

    def cancelled_before(self, request: IncomingRequest) -> bool:
        """Cancel the task of a request that was cancelled before its answer; False: it has none."""
        creation = request._subject
        if not isinstance(creation, TaskCreation):
            return False
        creation.request = None
        creation.task._open = False
        self._core.events.append(TaskCancelled(task=creation.task, cause=TaskEnd.PEER))
        return True

    def answers_of(self, task: Task, before: bytes) -> tuple[JSONObject, tuple[str, ...]]:
        """The answers to the questions of a task, and the keys of the questions that wait.

        Those among the answers that were there before are left out if the others follow them.
        """
        record = task._record
        new = record.answers
        if before and new.startswith(before[:-1] + b","):
            new = b"{" + new[len(before) :]
        answers: Any = self._core.codec.decode(new)
        if record.is_modern:
            waiting: Any = self._core.codec.decode(record.questions or b"{}")
            return answers, tuple(waiting)
        return answers, (*(task._pending or {}).values(), *(task._unsent or {}))

    def task_changed(self, task: Task, before: TaskRecord) -> None:
        """Tell a legacy peer of a new status, and end what belongs to a task that is over."""
        record = task._record
        if record.status.is_final:
            self.questions.withdraw(task)
        if record.is_modern:
            return
        if record.status.is_final:
            self._incoming.finish_task(record.id)
        core = self._core
        if (
            core.state is State.OPEN
            and core.transport.reaches_peer()
            and self.questions.is_with_owner(record)
        ):
            self._enter()
            core.transport.queue(
                b'{"jsonrpc":"2.0","method":"notifications/tasks/status","params":%b}%b'
                % (core.encode(record.to_object()), core.newline),
                None,
            )
            self._leave()

    def change_refused(self, task: Task, text: str | None, fields: dict[str, Any]) -> None:
        """Let a task fail because there is no room for its result or its questions.

        Args:
            task: The task.
            text: Why; None: the bounds of `Tasks` are reached, which is reported.
            fields: Those of the change that need no room.
        """
        data: Any = MISSING if text is None else {"reason": text}  # memory has no room for it
        text = text or self.report_full(f"the task of {task._record.method}")
        body = self._incoming.error_bytes(ErrorCode.INTERNAL_ERROR, NO_ROOM, data)
        self.board.stop_work(task, TaskEnd.NO_ROOM, text)
        fields = {**fields, "error": body, "message": NO_ROOM}
        self.board.run(TaskChange(self.board, task, TaskTrigger.FAIL, fields, is_last=True))

    def refuse_full(self, request: IncomingRequest, said: str, text: str | None) -> None:
        """Refuse a request because the store has no room.

        Args:
            request: The request.
            said: What has no room.
            text: Why; None: the bounds of `Tasks` are reached, which is reported.
        """
        text = text or self.report_full(request._method)
        self._enter()
        self.refuse(request, ErrorCode.INTERNAL_ERROR, said, {"reason": text})
        self._leave()

    def report_full(self, what: str) -> str:
        """Report that the bounds of the store are reached; return the text."""
        settings = self.board.settings
        text = (
            f"{what} has no room: {settings.max_tasks} tasks, {settings.max_tasks_per_owner} of "
            f"one owner, {settings.max_task_bytes} bytes, and {settings.max_task_bytes_per_owner} "
            "of one owner are the limits"
        )
        self._core.events.append(LimitReached(rule="OWN-070", text=text))
        return text

    # ------------------------------------------------------------------- the end of the connection

    def end(self, cause: CancelCause) -> None:
        """End the tasks that are kept by this connection alone."""
        if self.board.host is self._core:
            self.board.close()

    # ------------------------------------------------------------------------------------- helpers

    def _check_creation(self, request: IncomingRequest) -> None:
        """Raise unless a request may be answered with a task."""
        method = request._method
        if request._is_modern:
            if method != "tools/call":
                raise LocalProtocolError("XTASK-023", f"{method} is not answered with a task")
            if not declares_tasks(request._peer.capabilities):
                text = f"the client does not declare {TASKS_EXTENSION} with this request"
                needed: Any = NEEDS_TASKS["requiredCapabilities"]
                raise LocalProtocolError("XTASK-007", text, needed)
        elif request._task is not True:
            raise LocalProtocolError("TASK-013", f"{method} was not sent as a task")

    def _may_be_task(self, request: IncomingRequest) -> bool:
        """Whether this side accepts a legacy request as a task."""
        spec = request._spec
        gates = self._core.conversation.gates[self._core.side]
        return spec is not None and spec.task_gate is not None and spec.task_gate in gates

    def _list(self, request: IncomingRequest) -> None:
        """Look up one page of the sender's tasks.

        Keeps TASK-041, TASK-043.
        """
        owner = self._owner_of(request)
        cursor = request._params.get("cursor")
        place: Any = None
        if cursor is not None:
            try:
                place = decode_cursor(cursor)
            except InvalidCursor:
                place = 0
            if type(place) is not str:
                self.refuse(request, ErrorCode.INVALID_PARAMS, "the cursor is not valid")
                return
        if owner is None or (self._core.is_shared and request.principal_key is None):
            text = "tasks/list needs a client that is known, or a session"
            self.refuse(request, ErrorCode.METHOD_NOT_FOUND, text)
            return
        size = self.board.settings.page_size
        self.board.run_list(TaskPage(self, request, size), owner, place, size + 1)

    def _owner_of(self, request: IncomingRequest) -> str | None:
        """The owner of the tasks of the sender of a request; None: its principal has no key."""
        return owner_of(self._core, request._peer, request._is_modern)

    def _wish_of(self, request: IncomingRequest) -> int | None:
        """The time to live of a new task for which the application has said none.

        Keeps XTASK-065, XTASK-066.
        """
        settings = self.board.settings
        task: Any = None if request._is_modern else request._params.get("task")
        wish: Any = task.get("ttl") if is_object(task) else None
        if type(wish) is not int or wish < 1:
            return settings.ttl_ms
        return wish if settings.max_ttl_ms is None else min(wish, settings.max_ttl_ms)

    def _check_lengthened(self, before: int | None, ttl_ms: int | None) -> None:
        """Raise if a new time to live is longer than before, and than the limit."""
        limit = self.board.settings.max_ttl_ms
        if limit is None or before is None or ttl_ms == before:
            return
        if ttl_ms is None or ttl_ms > max(limit, before):
            text = f"the time to live is lengthened to {limit} ms at most, not {ttl_ms}"
            raise LocalProtocolError("OWN-075", text)

    def _spec_of(self, record: TaskRecord) -> Method | None:
        """The definition of the method of a task."""
        core = self._core
        conversation = core.modern if record.is_modern else core.conversation
        assert conversation is not None  # else no such task is made or adopted
        return conversation.dialect.requests[core.other].get(record.method)

    def _is_open(self, task: Task) -> bool:
        """Whether a task of this board is open; raises if it belongs to another."""
        if not task._open:
            return False
        if self.board.handles.get(task.id, task) is not task or task._part.board is not self.board:
            raise LocalProtocolError("OWN-022", f"{task!r} belongs to another connection")
        return True

    def _end_task(self, task: Task, trigger: TaskTrigger, fields: dict[str, Any]) -> bool:
        """End a task by the application; return whether it was.

        An update that still waits for the store is stored with the end.
        """
        task._open = False
        report, task._report = task._report, None
        if report is not None:
            self.board.withdraw(report)
            fields = {**report.fields, **fields}
        change = TaskChange(self.board, task, trigger, fields)
        self.board.run(change)
        self._settle()
        return self.board.store is None or change.is_done

    def _time(self, at: float | None, now: float | None) -> float:
        """The time of a new task in Unix seconds, which changes nothing.

        It is not earlier than the time that is known, at which the task would be over at once.
        """
        if at is not None:
            check_clock("at", at)
        if now is not None:
            check_clock("now", now)
        known = self.board.time_at(now)
        if known is None or (at is not None and at > known):
            known = at
        if known is None or not 0 <= known <= LAST_SECOND:
            text = f"a task needs the time in Unix seconds: pass at=, not {at!r}"
            raise LocalProtocolError("OWN-023", text)
        return known

    def _tell(self, at: float | None, now: float | None) -> None:
        if now is not None:
            self._core.tell(now)
        if at is not None:
            self.board.time(at)

    def _enter(self) -> None:
        """Prepare for output that an event of another connection may have caused."""
        self._core.transport.before_timer()

    def _leave(self) -> None:
        """Finish output that an event of another connection may have caused."""
        self.board.finish_output(self._core)

    def _settle(self) -> None:
        if self._core.needs_settle:
            self._core.settle()
