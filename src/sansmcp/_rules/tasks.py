"""The rules on tasks in messages, in both forms: their members, payloads and changes of status.

The functions have no side effects. Whether a request may become a task is judged in `sending`; the
steps of a task are in `state_tables`.

Source: MCP 2025-11-25, basic/utilities/tasks; the extension `io.modelcontextprotocol/tasks` of
2026-07-28.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from .._spec.errors import ErrorCode
from .._spec.legacy_methods import TASK, TASK_OPTIONAL
from .._spec.methods import Dialect, Method
from .._spec.tasks import MODERN_TASK, MODERN_TASK_OPTIONAL, RELATED_TASK, TASKS_EXTENSION
from .._wire.values import MISSING, JSONObject, is_object
from .messages import is_error
from .sending import Breach, judge_question, result_shape_breach, shape_breach, without_nulls
from .state_tables import REACHABLE, TASK_STATUSES, TaskStatus

_TIME: Final = re.compile(
    r"\d{4}-?\d\d-?\d\d[Tt ]\d\d(:?\d\d(:?\d\d([.,]\d+)?)?)?([Zz]|[+-]\d\d(:?\d\d)?)?", re.ASCII
)
_UNKNOWN_STATUS: Final = "status is unknown"
_RULES_OF: Final = {
    _UNKNOWN_STATUS: "XTASK-034",
    "pollIntervalMs has the wrong type": "XTASK-039",
}
"""By fault in the members of a task of 2026-07-28: its own rule."""
_PAYLOADS: Final = {
    TaskStatus.INPUT_REQUIRED: "inputRequests",
    TaskStatus.COMPLETED: "result",
    TaskStatus.FAILED: "error",
}
"""The member of a task of 2026-07-28 that belongs to a status."""
_HANDLE_ONLY: Final = ("result", "error", "inputRequests")
_OF_A_TASK: Final = ("taskId", "status", *_HANDLE_ONLY)
_OLD_NAMES: Final = ("ttl", "pollInterval")
COMPLETED_WITH_ERROR: Final = Breach(
    "TASK-040", "a task is completed, and the result of its tool is an error"
)
_MISPLACED: Final = {
    ("forbidden", True): ("TASK-006", "TASK-007"),
    ("required", False): ("TASK-009", "TASK-010"),
}
"""By support of a tool, and whether it is called as a task: the rules on client and server."""
_NOT_IN_RESPONSES: Final = frozenset({"jsonrpc", "resultType"})
_QUESTION_RULES: Final = {"MRTR-006": "XTASK-107", "MRTR-007": "XTASK-107", "MRTR-008": "XTASK-108"}
"""By the rule on questions of results: the rule on questions of tasks."""


# ----------------------------------------------------------------------------------- task objects


def misshapen_task(task: JSONObject, is_modern: bool) -> str | None:
    """What is wrong with the members of a task that a follower needs; None: nothing."""
    if is_modern:
        wrong = shape_breach(MODERN_TASK, MODERN_TASK_OPTIONAL, task)
    else:
        wrong = shape_breach(TASK, TASK_OPTIONAL, task)
    if wrong is None and task["status"] not in TASK_STATUSES:
        wrong = _UNKNOWN_STATUS
    return wrong


def judge_task_object(task: JSONObject, is_modern: bool) -> Breach | None:
    """Return the breach in the members that each task has; else None.

    Keeps TASK-019, XTASK-034, XTASK-036, XTASK-037, XTASK-038, XTASK-039, XTASK-040, XTASK-041,
    XTASK-042.
    """
    wrong = misshapen_task(task, is_modern)
    if wrong is not None:
        return Breach(_RULES_OF.get(wrong, "OWN-014") if is_modern else "OWN-014", f"task: {wrong}")
    for name, rule in (("createdAt", "XTASK-036"), ("lastUpdatedAt", "XTASK-037")):
        if _TIME.fullmatch(task[name]) is None:
            text = f"{name} is a time in ISO 8601, not {task[name]!r:.40}"
            return Breach(rule if is_modern else "TASK-019", text)
    if not is_modern:
        ttl: Any = task["ttl"]
        if ttl is None or _is_whole(ttl):
            return None
        return Breach("TASK-019", f"ttl is a number of milliseconds or null, not {ttl!r:.40}")
    return _judge_durations(task) or _judge_foreign_members(task)


def _judge_durations(task: JSONObject) -> Breach | None:
    for name in ("ttlMs", "pollIntervalMs"):
        value: Any = task.get(name)
        if value is None:
            continue  # of `ttlMs`: unlimited; of `pollIntervalMs`: absent
        if type(value) not in (int, float):
            text = f"{name} is a number of milliseconds or null, not {value!r:.40}"
            return Breach("XTASK-038", text)
        if not _is_whole(value) or value <= 0:
            text = f"{name} is a whole number above zero, not {value!r:.40}"
            return Breach("XTASK-040", text)
    return None


def _judge_foreign_members(task: JSONObject) -> Breach | None:
    for name in _OLD_NAMES:
        if name in task:
            return Breach("XTASK-041", f"a task has the old member {name}")
    if "requestState" in task:
        return Breach("XTASK-042", "a task has the member requestState")
    return None


def _is_whole(value: Any) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


def judge_change(before: TaskStatus | None, after: TaskStatus, is_modern: bool) -> Breach | None:
    """Return the breach if a task cannot have come from one status to another; else None.

    Keeps TASK-018, XTASK-051.

    Args:
        before: The earlier status; None: some final one.
        after: The status that was read later.
        is_modern: Whether it is a task of 2026-07-28.
    """
    if after in REACHABLE[before] if before is not None else after.is_final:
        return None
    was = "over" if before is None else before.text
    return Breach(
        "XTASK-051" if is_modern else "TASK-018", f"a task is {after.text} after it was {was}"
    )


def judge_other_task(task: JSONObject, task_id: str, is_modern: bool) -> Breach | None:
    """Return the breach if a response is about another task than its request; else None.

    Keeps TASK-028, XTASK-070.
    """
    if task["taskId"] == task_id:
        return None
    text = f"the task {task_id!r:.80} was asked for, and this is {task['taskId']!r:.80}"
    return Breach("XTASK-070" if is_modern else "TASK-028", text)


# ------------------------------------------------------------------------------ tasks of 2025-11-25


def judge_first_status(task: JSONObject) -> Breach | None:
    """Return the breach if a new task of 2025-11-25 is not `working`; else None.

    Keeps TASK-016.
    """
    if task["status"] == TaskStatus.WORKING.text:
        return None
    return Breach("TASK-016", f"a task begins as {task['status']}")


def related_task(meta: object) -> str | None:
    """The id of the task that `_meta` names (2025-11-25); None: it names none."""
    related: Any = meta.get(RELATED_TASK) if is_object(meta) else None
    task_id: Any = related.get("taskId") if is_object(related) else None
    return task_id if isinstance(task_id, str) else None


def judge_related(task_id: str, meta: object, what: str) -> Breach | None:
    """Return the breach if a message of a task does not name it; else None.

    Keeps TASK-025, TASK-026.
    """
    if related_task(meta) == task_id:
        return None
    rule = "TASK-025" if what == "the response to tasks/result" else "TASK-026"
    return Breach(rule, f"{what} does not name the task {task_id!r:.80} in _meta")


def judge_unrelated(meta: object, what: str) -> Breach | None:
    """Return the breach if a message names a task in `_meta` besides its params; else None.

    Keeps TASK-027.
    """
    if is_object(meta) and RELATED_TASK in meta:
        return Breach("TASK-027", f"{what} has {RELATED_TASK} in _meta")
    return None


def judge_task_result(spec: Method, result: JSONObject) -> Breach | None:
    """Return the breach if the result of a task is not one of its request; else None.

    Keeps TASK-023, XTASK-047.
    """
    wrong = result_shape_breach(spec, False, without_nulls(spec.result_optional, result))
    if wrong is None:
        return None
    return Breach("TASK-023", f"result of the task of {spec.name}: {wrong}")


def judge_support(support: str, as_task: bool, *, by_server: bool = False) -> Breach | None:
    """Return the breach if a tool is called in a way that its list does not allow; else None.

    Keeps TASK-006, TASK-007, TASK-009, TASK-010.

    Args:
        support: What `execution.taskSupport` of the tool says; `"forbidden"` where it is absent.
        as_task: Whether the tool is called as a task.
        by_server: Whether the server is judged, which has answered the call with a result.
    """
    rules = _MISPLACED.get((support, as_task))
    if rules is None:
        return None
    text = f"a tool with taskSupport {support} is {'served' if by_server else 'called'} "
    return Breach(rules[by_server], text + ("as a task" if as_task else "without a task"))


# ------------------------------------------------------------------------------ tasks of 2026-07-28


def judge_handle(result: JSONObject) -> Breach | None:
    """Return the breach if a `CreateTaskResult` of 2026-07-28 is not valid; else None.

    Keeps XTASK-029, XTASK-030, XTASK-062.
    """
    if "taskId" not in result and is_object(result.get("task")):
        return Breach("XTASK-029", "a CreateTaskResult has its task in a member")
    breach = judge_task_object(result, is_modern=True)
    if breach is not None:
        return breach
    for name in _HANDLE_ONLY:
        if name in result:
            return Breach("XTASK-030", f"a CreateTaskResult has the member {name}")
    return None


def judge_payload(task: JSONObject, spec: Method | None) -> Breach | None:
    """Return the breach if the payload of a task does not fit its status; else None.

    Keeps XTASK-044, XTASK-045, XTASK-046, XTASK-047, XTASK-106, XTASK-150.

    Args:
        task: A valid task of 2026-07-28, in a result of `tasks/get` or in a notification.
        spec: The method of its request; None: it is not known.
    """
    status = TASK_STATUSES[task["status"]]
    wanted = _PAYLOADS.get(status)
    if wanted is not None and task.get(wanted) is None:
        return Breach("XTASK-044", f"a task that is {status.text} has no {wanted}")
    for name in _HANDLE_ONLY:
        if name != wanted and task.get(name) is not None:
            return Breach("XTASK-045", f"a task that is {status.text} has {name}")
    if status is TaskStatus.FAILED and not is_error(task["error"]):
        return Breach("XTASK-046", "the error of a task lacks an integer code or a string message")
    if status is TaskStatus.INPUT_REQUIRED and not _are_questions(task["inputRequests"]):
        return Breach("XTASK-106", "inputRequests is empty, or has a value without a method")
    if status is TaskStatus.COMPLETED:
        return _judge_inlined(task["result"], spec)
    return None


def _are_questions(questions: Any) -> bool:
    return bool(questions) and all(
        is_object(one) and isinstance(one.get("method"), str) for one in questions.values()
    )


def _judge_inlined(result: JSONObject, spec: Method | None) -> Breach | None:
    """Judge the result within a completed task."""
    meta: Any = result.get("_meta")
    if is_object(meta) and RELATED_TASK in meta:
        return Breach("XTASK-150", f"the result within a task has {RELATED_TASK} in _meta")
    kind: Any = result.get("resultType", "complete")
    if kind == "task":
        return Breach("XTASK-027", "the result within a task has the resultType 'task'")
    breach = None if spec is None else judge_task_result(spec, result)
    return None if breach is None else Breach("XTASK-047", breach.text)


def judge_task_question(
    dialect: Dialect, gates: frozenset[str], question: JSONObject, shape: bool
) -> Breach | None:
    """Return the breach if a task must not ask this of a client with these gates; else None.

    Keeps XTASK-107, XTASK-108.
    """
    breach = judge_question(dialect, gates, question, shape)
    if breach is None:
        return None
    return Breach(_QUESTION_RULES.get(breach.rule, breach.rule_of_sender), breach.text)


def judge_task_response(
    dialect: Dialect, name: str, method: str | None, response: object
) -> Breach | None:
    """Return the breach if the answer to a question of a task is not a bare result; else None.

    Keeps XTASK-093.

    Args:
        dialect: That of 2026-07-28.
        name: The key of the question.
        method: The method of the question; None: it is not known.
        response: The answer.
    """
    if not is_object(response):
        return Breach("XTASK-093", f"the answer to {name!r:.80} is no object")
    if wrong := _NOT_IN_RESPONSES & response.keys():
        text = f"the answer to {name!r:.80} must be a bare result, without {min(wrong)}"
        return Breach("XTASK-093", text)
    spec = None if method is None else dialect.inputs.get(method)
    if spec is None:
        return None
    response = without_nulls(spec.result_optional, response)
    misshapen = result_shape_breach(spec, False, response)
    if misshapen is None:
        return None
    return Breach("XTASK-093", f"the answer to {name!r:.80}: {misshapen}")


def judge_acknowledged(method: str, result: JSONObject) -> Breach | None:
    """Return the breach if a result of `tasks/update` or `tasks/cancel` is not empty; else None.

    Keeps XTASK-098.
    """
    for name in _OF_A_TASK:
        if name in result:
            return Breach("XTASK-098", f"the result of {method} has the member {name}")
    return None


def judge_needed(data: object) -> Breach | None:
    """Return the breach if the data of an error -32021 does not name the extension; else None.

    Keeps XTASK-012.
    """
    value: Any = data
    for name in ("requiredCapabilities", "extensions", TASKS_EXTENSION):
        value = value.get(name, MISSING) if is_object(value) else MISSING
    if value == {}:
        return None
    return Breach("XTASK-012", f"data.requiredCapabilities.extensions lacks {TASKS_EXTENSION}")


def judge_undeclared(method: str, code: int | None) -> Breach | None:
    """Return the breach if a request without the extension gets this answer; else None.

    Keeps XTASK-014. The params of the request are valid.

    Args:
        method: A method of the extension.
        code: The code of the error; None: it is a result.
    """
    if code is None or code == ErrorCode.INVALID_PARAMS:
        answer = "a result" if code is None else f"the error {code}"
        text = f"{method} without {TASKS_EXTENSION} is answered with {answer}"
        return Breach("XTASK-014", text)
    return None


def judge_old_capability(capabilities: JSONObject) -> Breach | None:
    """Return the breach if a server of 2026-07-28 declares the tasks of 2025-11-25; else None.

    Keeps XTASK-018.
    """
    declared: Any = capabilities.get("tasks")
    names: Mapping[str, Any] = declared if is_object(declared) else {}
    for name in ("requests", "cancel", "list"):
        if name in names:
            return Breach("XTASK-018", f"the server declares the capability tasks.{name}")
    return None
