"""Tasks of 2025-11-25, which either side may have.

Source: MCP 2025-11-25, basic/utilities/tasks.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from .._rules.sending import Breach, without_nulls
from .._rules.state_tables import TASK_STATUSES, TaskStatus
from .._rules.tasks import (
    COMPLETED_WITH_ERROR,
    judge_change,
    judge_first_status,
    judge_other_task,
    judge_related,
    judge_support,
    judge_task_object,
    judge_task_result,
    judge_unrelated,
    related_task,
)
from .._spec.legacy_methods import TASK_OPTIONAL
from .._spec.methods import Method
from .._wire.values import JSONObject, Side, is_list, is_object
from ._events import BlindCause
from ._history import ObserverCore, SeenRequest, SideHistory
from ._task_table import SeenTask, TaskTable

STATUS: Final = "notifications/tasks/status"
"""The notification about a task of 2025-11-25."""
FORGOTTEN: Final = "the oldest task was forgotten: what comes of it is judged less"
_TOOLS_FORGOTTEN: Final = "the oldest tool was forgotten: whether it is a task is not judged"
_ABOUT_ONE: Final = frozenset({"tasks/get", "tasks/result", "tasks/cancel"})
_UNRELATED: Final = frozenset({"tasks/get", "tasks/list", "tasks/cancel"})
_MOST_CHANGES: Final = 4
"""The most changes of one tool that are remembered."""


@attrs.frozen(eq=False)
class TaskUse:
    """A request about a task.

    Attributes:
        task_id: The task; None: it names none.
        moment: When the request was seen.
    """

    task_id: str | None
    moment: int


@attrs.define(eq=False, repr=False)
class SeenTools:
    """What `execution.taskSupport` said of each tool, since the list changed last.

    Attributes:
        version: The number of changes of the list.
    """

    _max: int
    version: int = 0
    # By tool: the places at which its support was told, and the support.
    _told: dict[str, list[tuple[int, str]]] = attrs.field(
        factory=dict[str, list[tuple[int, str]]], init=False
    )

    def change(self) -> None:
        """The list of tools has changed: nothing is known."""
        self.version += 1
        self._told.clear()

    def tell(self, name: str, support: str, place: int) -> bool:
        """Take what a list says of a tool; returns whether there was room."""
        told = self._told.setdefault(name, [])
        if not told or told[-1][1] != support:
            told.append((place, support))
            del told[:-_MOST_CHANGES]
        if len(self._told) <= self._max:
            return True
        del self._told[next(iter(self._told))]
        return False

    def latest(self, name: object) -> str | None:
        """What the server has said last of a tool; None: nothing."""
        told = self._told.get(name) if isinstance(name, str) else None
        return None if told is None else told[-1][1]

    def known_to(self, client: SideHistory, name: object) -> set[str]:
        """What the client may believe of a tool; empty: it may know nothing."""
        told = self._told.get(name, []) if isinstance(name, str) else []
        read = sum(client.has_read(place) for place, _ in told)
        return {support for _, support in told[read - 1 :]} if read else set()


@attrs.define(eq=False, repr=False)
class SeenTasks:
    """Judges what both sides say of tasks after a handshake."""

    _core: ObserverCore
    _table: TaskTable = attrs.field(init=False)
    _tools: SeenTools = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Make the tables."""
        self._table = TaskTable(self._core.config.max_requests)
        self._tools = SeenTools(self._core.config.max_tool_schemas)

    # -------------------------------------------------------------------------------- requests

    def take_request(self, sender: SideHistory, request: SeenRequest, params: JSONObject) -> None:
        """Take a request about tasks, or one that may become a task; report its breaches."""
        method, spec = request.method, request.spec
        meta: Any = params.get("_meta")
        if spec is not None and spec.task_gate is not None:
            self._take_call(sender, request, params)
            return
        task_id: Any = params.get("taskId")
        request.subject = TaskUse(
            task_id if isinstance(task_id, str) else None, self._table.next_moment()
        )
        breach = judge_unrelated(meta, method)
        if breach is not None:
            self._core.add_violation(sender.side, breach, method, request.id)
        task = self._find(sender.side.other, request.subject.task_id)
        if task is not None and not self._core.is_posted:
            # It has the id from the result that made the task.
            sender.read_place = max(sender.read_place, task.place)

    def _take_call(self, sender: SideHistory, request: SeenRequest, params: JSONObject) -> None:
        """Judge whether a tool is called as its list says (2025-11-25)."""
        core = self._core
        if request.method != "tools/call":
            return
        name = params.get("name")
        support = self._tools.latest(name)
        request.support = None if support is None else (support, self._tools.version)
        if not request.accepts_task:
            return
        found = [
            judge_support(support, request.as_task)
            for support in self._tools.known_to(sender, name)
        ]
        if found and all(breach is not None for breach in found):
            breach: Any = found[0]
            core.add_violation(sender.side, breach, request.method, request.id)

    # ------------------------------------------------------------------------------- responses

    def take_result(
        self, sender: SideHistory, request: SeenRequest, result: JSONObject
    ) -> Breach | None:
        """Judge the result of a request about tasks, or of one that may have become a task."""
        spec = request.spec
        assert spec is not None  # else nothing of the method is known
        meta: Any = result.get("_meta")
        if spec.task_gate is not None:
            return self._take_outcome(sender, request, spec, result)
        if request.method in _UNRELATED:
            breach = judge_unrelated(meta, f"the result of {request.method}")
            if breach is not None:
                self._core.add_violation(sender.side, breach, request.method, request.id)
        use: TaskUse = request.subject
        if request.method == "tasks/list":
            return self._take_list(sender, use, result)
        if use.task_id is None:
            return None
        if request.method == "tasks/result":
            return self._take_payload(sender, use.task_id, use.moment, result)
        return self._take_task(sender, request, use.task_id, use.moment, result)

    def _take_outcome(
        self, sender: SideHistory, request: SeenRequest, spec: Method, result: JSONObject
    ) -> Breach | None:
        """Judge the result of a request that may become a task."""
        is_task = request.as_task and is_object(result.get("task"))
        if request.support is not None and request.accepts_task:
            support, version = request.support
            breach = judge_support(support, request.as_task, by_server=True)
            if breach is not None and version == self._tools.version:
                return breach
        if not request.as_task:
            return None
        if not request.accepts_task:
            if is_task:
                return Breach("TASK-011", f"{request.method} became a task that was not declared")
            return None
        if not is_task:  # it was not accepted as a task
            return None
        return self._take_new(sender, request, spec, result["task"])

    def _take_new(
        self, owner: SideHistory, request: SeenRequest, spec: Method, task: JSONObject
    ) -> Breach | None:
        core = self._core
        breach = judge_task_object(task, is_modern=False)
        if breach is not None:
            return breach
        former = self._find(owner.side, task["taskId"])
        seen = SeenTask(task["taskId"], False, request.method, spec, request.time)
        seen.place = core.number
        seen.ttl_ms = task["ttl"]
        self._add(owner, seen)
        self._told(owner, seen, task, 0)
        if former is not None and former.place and former.is_kept(core.now):
            return Breach("TASK-015", f"a second task has the id {seen.id!r:.80}")
        return judge_first_status(task)

    def _take_task(
        self,
        owner: SideHistory,
        request: SeenRequest,
        task_id: str,
        since: int,
        result: JSONObject,
    ) -> Breach | None:
        """Judge the result of `tasks/get` or `tasks/cancel`."""
        breach = judge_other_task(result, task_id, False) or judge_task_object(result, False)
        if breach is not None:
            return breach
        if request.method == "tasks/cancel":
            seen = self._find(owner.side, task_id)
            if seen is not None and seen.final and since > seen.final:
                return Breach("TASK-036", "a task that is over was cancelled")
            if result["status"] != TaskStatus.CANCELLED.text:
                return Breach("TASK-037", f"a task is {result['status']} after it was cancelled")
        return self._told(owner, self._known(owner, task_id), result, since)

    def _take_list(self, owner: SideHistory, use: TaskUse, result: JSONObject) -> Breach | None:
        first: Breach | None = None
        tasks: Any = result.get("tasks")
        for given in tasks if is_list(tasks) else ():
            breach: Breach | None = Breach("OWN-014", "a task in a list is no object")
            if is_object(given):
                task = without_nulls(TASK_OPTIONAL, given)
                breach = judge_task_object(task, is_modern=False)
                if breach is None:
                    known = self._known(owner, task["taskId"])
                    breach = self._told(owner, known, task, use.moment)
            first = first or breach
        return first

    def _take_payload(
        self, owner: SideHistory, task_id: str, since: int, result: JSONObject
    ) -> Breach | None:
        """Judge the result of `tasks/result`: it comes when the task is over."""
        task = self._known(owner, task_id)
        breach = judge_related(task_id, result.get("_meta"), "the response to tasks/result")
        if breach is None and task.spec is not None and self._core.checks_shape:
            breach = judge_task_result(task.spec, result)
        is_error = task.method == "tools/call" and result.get("isError") is True
        if task.status is TaskStatus.COMPLETED and is_error:
            breach = breach or COMPLETED_WITH_ERROR
        task.result_is_error = is_error
        task.tell(None, since, self._table.next_moment(), self._core)
        return breach

    # --------------------------------------------------------------------------- notifications

    def take_status(self, owner: SideHistory, params: JSONObject) -> Breach | None:
        """Judge a `notifications/tasks/status` that has all its members."""
        breach = judge_task_object(params, is_modern=False)
        if breach is not None:
            return breach
        # The messages of a session over HTTP take several streams, and may overtake one another.
        since = 0 if self._core.is_posted else self._table.next_moment()
        breach = self._told(owner, self._known(owner, params["taskId"]), params, since)
        return breach or judge_unrelated(params.get("_meta"), STATUS)

    def take_list_changed(self) -> None:
        """The server's tools have changed."""
        self._tools.change()

    # ----------------------------------------------------------------------------------- tools

    def take_tools(self, result: JSONObject) -> None:
        """Take what a list says of tools."""
        tools: Any = result.get("tools")
        has_room = True
        for tool in tools if is_list(tools) else ():
            name: Any = tool.get("name") if is_object(tool) else None
            if isinstance(name, str):
                execution: Any = tool.get("execution")
                given: Any = execution.get("taskSupport") if is_object(execution) else None
                support = "forbidden" if given is None else given
                if isinstance(support, str):
                    has_room = self._tools.tell(name, support, self._core.number) and has_room
        if not has_room:
            self._core.add_blind_spot(BlindCause.FORGOTTEN, Side.SERVER, _TOOLS_FORGOTTEN)

    # ----------------------------------------------------------------------- what belongs to a task

    def take_related(self, sender: SideHistory, request: SeenRequest, meta: object) -> None:
        """Judge a request that names a task in `_meta`; its result must name it, too."""
        request.related = task_id = related_task(meta)
        task = self._find(sender.side, task_id)
        if task is not None and task.final and not self._core.is_posted:
            # It would be `input_required` again.
            text = f"{request.method} belongs to a task that is over"
            breach = judge_change(task.status, TaskStatus.INPUT_REQUIRED, False)
            assert breach is not None
            self._core.add_violation(
                sender.side, Breach(breach.rule, text), request.method, request.id
            )

    def judge_response(self, request: SeenRequest, result: JSONObject) -> Breach | None:
        """Judge whether the result of a request of a task names that task."""
        if request.related is None:
            return None
        what = f"the result of {request.method}"
        return judge_related(request.related, result.get("_meta"), what)

    # ----------------------------------------------------------------------------------- table

    def _find(self, owner: Side, task_id: str | None) -> SeenTask | None:
        return None if task_id is None else self._table.find(owner, False, task_id)

    def _known(self, owner: SideHistory, task_id: str) -> SeenTask:
        """A task, which may be one of an earlier conversation."""
        task = self._find(owner.side, task_id)
        if task is None:
            task = SeenTask(task_id, False)
            self._add(owner, task)
        return task

    def _add(self, owner: SideHistory, task: SeenTask) -> None:
        if not self._table.add(owner.side, task):
            self._core.add_blind_spot(BlindCause.FORGOTTEN, owner.side, FORGOTTEN)

    def _told(
        self, owner: SideHistory, task: SeenTask, told: JSONObject, since: int
    ) -> Breach | None:
        """Take a task as a message shows it."""
        status = TASK_STATUSES[told["status"]]
        before = task.status
        breach = task.tell(status, since, self._table.next_moment(), self._core)
        if breach is None and task.status is TaskStatus.COMPLETED and task.result_is_error:
            breach = COMPLETED_WITH_ERROR
        if task.status is status and before is not status:
            self._core.add_task(owner.side, task.id, task.method, status.text)
        return breach
