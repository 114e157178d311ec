"""Tasks of 2026-07-28: the extension `io.modelcontextprotocol/tasks`.

Only servers have them. Each request declares the extension by itself.

Source: the extension `io.modelcontextprotocol/tasks` of 2026-07-28.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from .._rules.messages import null_member
from .._rules.sending import Breach, question_without_nulls
from .._rules.state_tables import TASK_STATUSES
from .._rules.subscription_filters import TASK_IDS
from .._rules.tasks import (
    judge_acknowledged,
    judge_handle,
    judge_needed,
    judge_old_capability,
    judge_other_task,
    judge_payload,
    judge_task_object,
    judge_task_question,
    judge_task_response,
    judge_undeclared,
)
from .._spec.errors import ErrorCode
from .._spec.tasks import MODERN_TASK_OPTIONAL, TASK_METHODS, TASKS_EXTENSION, declares_tasks
from .._wire.values import JSONObject, Side, is_list_of_strings, is_object
from ._events import BlindCause
from ._history import ObserverCore, RequestTerms, SeenRequest
from ._task_table import SeenQuestion, SeenTask, TaskTable, digest_of
from ._tasks import FORGOTTEN, TaskUse

_QUESTIONS_FORGOTTEN: Final = "the questions of a task were forgotten: its answers are not judged"
_GONE: Final = {"tasks/result": "XTASK-141", "tasks/list": "XTASK-142"}
"""Methods of 2025-11-25 that the extension does not have, with the rule on their response."""


@attrs.define(eq=False, repr=False)
class ModernTasks:
    """Judges requests about tasks, their responses, and notifications of tasks.

    Attributes:
        table: The tasks that were seen; over HTTP, in any exchange.
    """

    _core: ObserverCore
    table: TaskTable = attrs.field(init=False)
    # Whether the last `server/discover` has named the extension; None: there was none.
    _is_declared: bool | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        """Make a table of its own."""
        self.table = TaskTable(self._core.config.max_requests)

    # -------------------------------------------------------------------------------- requests

    def take_request(
        self, request: SeenRequest, terms: RequestTerms, params: JSONObject
    ) -> Breach | None:
        """Judge a request about tasks that has no other breach, or a `tools/call`.

        Keeps XTASK-002, XTASK-006.
        """
        method = request.method
        if method == "tools/call":
            if terms.has_tasks and is_object(params.get("task")):
                return Breach("XTASK-006", "tools/call has the member task of 2025-11-25")
            return None
        task_id: Any = params.get("taskId")
        request.subject = TaskUse(
            task_id if isinstance(task_id, str) else None, self.table.next_moment()
        )
        task = self._find(task_id)
        if task is not None:
            task.gates |= terms.gates
            if not self._core.is_posted:
                # It has the id from the result that made the task.
                client = self._core.client
                client.read_place = max(client.read_place, task.place)
        if not terms.has_tasks:
            return Breach("XTASK-002", f"{method} does not declare {TASKS_EXTENSION}")
        if method == "tasks/update":
            return self._judge_responses(task, params.get("inputResponses"))
        return None

    def take_filter(self, terms: RequestTerms, filter: object) -> Breach | None:
        """Judge the tasks in the filter of a subscription.

        Keeps XTASK-002.
        """
        ids: Any = filter.get(TASK_IDS) if is_object(filter) else None
        if not ids or not is_list_of_strings(ids):
            return None
        for task_id in ids:
            task = self._find(task_id)
            if task is not None:
                task.gates |= terms.gates
        if terms.has_tasks:
            return None
        return Breach("XTASK-002", f"a subscription to tasks does not declare {TASKS_EXTENSION}")

    def _judge_responses(self, task: SeenTask | None, responses: Any) -> Breach | None:
        """Judge the answers in `tasks/update`.

        Keeps XTASK-092.
        """
        core = self._core
        questions = None if task is None else task.questions
        # A client learns of questions from the server only, and what it reads has passed.
        is_known = (
            task is not None and task.place > 0 and not core.is_posted and core.server.is_readable
        )
        for name, response in responses.items() if is_object(responses) else ():
            asked = None if questions is None else questions.get(name)
            if asked is None and is_known and questions is not None:
                return Breach("XTASK-092", f"the task has not asked {name!r:.80}")
            method = None if asked is None else asked.method
            if core.checks_shape:
                breach = judge_task_response(core.modern.dialect, name, method, response)
                if breach is not None:
                    return breach
        return None

    # ------------------------------------------------------------------------------- responses

    def take_discovery(self, capabilities: JSONObject) -> Breach | None:
        """Take what the server declares in `server/discover`."""
        self._is_declared = declares_tasks(capabilities)
        return judge_old_capability(capabilities)

    def take_new(
        self, request: SeenRequest, terms: RequestTerms, result: JSONObject
    ) -> Breach | None:
        """Judge a result of the type `task`.

        Keeps XTASK-001, XTASK-007, XTASK-010, XTASK-023, XTASK-027, XTASK-033.
        """
        core, method = self._core, request.method
        result = core.without_nulls(Side.SERVER, MODERN_TASK_OPTIONAL, result, method, request.id)
        if method in TASK_METHODS:
            return Breach("XTASK-027", f"the result of {method} has the resultType 'task'")
        if not terms.has_tasks:
            text = f"{method} without {TASKS_EXTENSION} is answered with a task"
            return Breach("XTASK-007", text)
        if method != "tools/call":
            return Breach("XTASK-023", f"{method} is answered with a task")
        request.as_task = True
        breach = judge_handle(result)
        if breach is not None:
            return breach
        former = self._find(result["taskId"])
        task = SeenTask(result["taskId"], True, method, request.spec, request.time)
        task.place = core.number if core.index is None else 0
        task.gates = terms.gates
        self._add(task)
        self._told(task, result, 0)
        if former is not None and former.place and former.is_kept(core.now):
            return Breach("XTASK-033", f"a second task has the id {task.id!r:.80}")
        if self._is_declared is False:
            text = f"a task is made, and server/discover did not name {TASKS_EXTENSION}"
            return Breach("XTASK-001", text)
        return None

    def take_result(
        self, request: SeenRequest, terms: RequestTerms, result: JSONObject
    ) -> Breach | None:
        """Judge the complete result of a request about tasks that has all its members.

        Keeps XTASK-141, XTASK-142.
        """
        method, use = request.method, request.subject
        if method in _GONE:
            return Breach(_GONE[method], f"{method} is answered with a result")
        if not isinstance(use, TaskUse):
            return None
        if not terms.has_tasks:
            return judge_undeclared(method, None)
        if method != "tasks/get":
            return judge_acknowledged(method, result)
        breach = None if use.task_id is None else judge_other_task(result, use.task_id, True)
        if breach is not None:
            return breach
        task = self._find(result["taskId"])
        if task is not None:
            task.was_found = True
        return self._take_state(result, use.moment)

    def take_error(
        self, request: SeenRequest, terms: RequestTerms, code: int, data: object
    ) -> Breach | None:
        """Judge the error that answers a request about tasks.

        Keeps XTASK-057, XTASK-084, XTASK-118.
        """
        use: Any = request.subject
        if code == ErrorCode.MISSING_CLIENT_CAPABILITY:
            return judge_needed(data)
        if not isinstance(use, TaskUse) or use.task_id is None:
            return None  # its params are not valid
        if not terms.has_tasks:
            return judge_undeclared(request.method, code)
        task = self._find(use.task_id)
        if (
            code != ErrorCode.INVALID_PARAMS
            or task is None
            or not task.place
            or self._core.is_posted  # it may be the task of another client
            or not task.is_kept(self._core.now)
        ):
            return None
        if request.method == "tasks/cancel" and task.final:
            return Breach("XTASK-118", "tasks/cancel of a task that is over is refused")
        text = f"{request.method} is refused before the time to live of the task is over"
        return Breach("XTASK-084" if task.was_found else "XTASK-057", text)

    # --------------------------------------------------------------------------- notifications

    def take_notification(
        self, ids: frozenset[str] | None, params: JSONObject, lack: str
    ) -> Breach | None:
        """Judge a `notifications/tasks` that has all its members.

        Keeps XTASK-125, XTASK-126, XTASK-127.

        Args:
            ids: The ids of the tasks in the subscription; None: they were forgotten.
            params: Its params.
            lack: Why there are no others.
        """
        task_id = params["taskId"]
        if ids is not None and task_id not in ids:
            return Breach("XTASK-125", f"news of the task {task_id!r:.80}, which {lack}")
        if "resultType" in params:
            return Breach("XTASK-127", "news of a task have a resultType")
        task = self._find(task_id)
        since = self.table.next_moment()
        if self._core.is_posted and task is not None and task.final_by is not self._core:
            since = 0  # it was told in another exchange, and one may overtake another
        return self._take_state(params, since)

    # ----------------------------------------------------------------------------------- tasks

    def _take_state(self, told: JSONObject, since: int) -> Breach | None:
        """Judge the state of a task, with its payload.

        Args:
            told: The task, which has all its members.
            since: It is certainly newer than what was seen up to this moment.
        """
        breach = judge_task_object(told, is_modern=True)
        if breach is not None:
            return breach
        task = self._find(told["taskId"])
        if task is None:
            task = SeenTask(told["taskId"], True)
            self._add(task)
        breach = self._told(task, told, since)
        return breach or judge_payload(told, task.spec) or self._take_questions(task, told, since)

    def _take_questions(self, task: SeenTask, told: JSONObject, since: int) -> Breach | None:
        """Judge the questions of a task.

        Keeps XTASK-104, XTASK-105.
        """
        core = self._core
        if task.status is not TASK_STATUSES[told["status"]]:
            return None  # it is older than what was told before
        moment = self.table.next_moment()
        now: JSONObject = told.get("inputRequests", {})
        for name, known in list(task.waiting.items()):
            if name not in now and since >= known.moment:
                known.gone = moment
                del task.waiting[name]
        found: Breach | None = None
        for name, given in now.items():
            question, nulls = question_without_nulls(core.modern.dialect, given)
            for null in nulls:
                core.add_violation(Side.SERVER, null_member(null))
            if task.place and task.questions is not None:  # else declarations are not known
                breach = judge_task_question(
                    core.modern.dialect, task.gates, question, core.checks_shape
                )
                found = found or breach or self._take_question(task, name, question, since, moment)
        return found

    def _take_question(
        self, task: SeenTask, name: str, question: JSONObject, since: int, moment: int
    ) -> Breach | None:
        assert task.questions is not None  # it was looked at
        known, digest = task.questions.get(name), digest_of(question)
        if known is None:
            seen = SeenQuestion(question["method"], digest, moment)
            if self.table.add_question(task, name, seen):
                task.waiting[name] = seen
            else:
                self._core.add_blind_spot(BlindCause.FORGOTTEN, Side.SERVER, _QUESTIONS_FORGOTTEN)
        elif known.digest != digest:
            return Breach("XTASK-104", f"the key {name!r:.80} names another question than before")
        elif known.gone and since >= known.gone:
            return Breach("XTASK-105", f"the key {name!r:.80} is used again")
        return None

    def _find(self, task_id: object) -> SeenTask | None:
        if not isinstance(task_id, str):
            return None
        return self.table.find(Side.SERVER, True, task_id)

    def _add(self, task: SeenTask) -> None:
        if not self.table.add(Side.SERVER, task):
            self._core.add_blind_spot(BlindCause.FORGOTTEN, Side.SERVER, FORGOTTEN)

    def _told(self, task: SeenTask, told: JSONObject, since: int) -> Breach | None:
        """Take the status of a task as a message shows it."""
        status = TASK_STATUSES[told["status"]]
        before = task.status
        breach = task.tell(status, since, self.table.next_moment(), self._core)
        if breach is None:
            task.ttl_ms = told["ttlMs"]
        if task.final:
            self.table.drop_questions(task)
        if task.status is status and before is not status:
            self._core.add_task(Side.SERVER, task.id, task.method, status.text)
        return breach
