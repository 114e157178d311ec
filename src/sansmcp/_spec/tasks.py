"""Tasks that a message shows as new or as over. A task uses its progress token until its end.

Source: MCP 2025-11-25, basic/utilities/tasks, and basic/utilities/progress.
"""

from __future__ import annotations

from typing import Any, Final

from .._wire.values import JSONObject, is_object

_TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})
_RELATED: Final = "io.modelcontextprotocol/related-task"


def new_task(result: JSONObject) -> str | None:
    """The id of the task in a `CreateTaskResult`; None if the task is over already."""
    task: Any = result.get("task")
    if not is_object(task) or _is_over(task):
        return None
    task_id: Any = task.get("taskId")
    return task_id if isinstance(task_id, str) else None


def finished_tasks(method: str, content: JSONObject) -> list[str]:
    """The ids of tasks that a result, or the params of a notification, shows as over."""
    if method == "tasks/result":  # its response comes at the end of the task
        meta: Any = content.get("_meta")
        related: Any = meta.get(_RELATED) if is_object(meta) else None
        return _ids([related])
    tasks: list[Any] = [content]
    if method == "tasks/list":
        listed: Any = content.get("tasks")
        tasks = listed if listed.__class__ is list else []
    return _ids([task for task in tasks if is_object(task) and _is_over(task)])


def _is_over(task: JSONObject) -> bool:
    status: Any = task.get("status")
    return isinstance(status, str) and status in _TERMINAL


def _ids(tasks: list[Any]) -> list[str]:
    ids: list[Any] = [task.get("taskId") for task in tasks if is_object(task)]
    return [task_id for task_id in ids if isinstance(task_id, str)]
