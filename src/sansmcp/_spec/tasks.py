"""Tasks: the extension of 2026-07-28, and tasks that a message shows as new or as over.

The methods of 2025-11-25 are in `legacy_methods`. A task uses its progress token until its end.

Source: MCP 2025-11-25, basic/utilities/tasks, and basic/utilities/progress; the extension
`io.modelcontextprotocol/tasks` of 2026-07-28.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import attrs

from .._wire.values import JSONObject, is_object
from .methods import (
    ANYTHING,
    META,
    NUMBER,
    OBJECT,
    STRING,
    C,
    Members,
    Method,
    OptionalMembers,
    S,
    notification,
    request,
)
from .modern_methods import MODERN_REVISION
from .registry import Registry

TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""The name of the extension."""
_WAY: Final = ("extensions", TASKS_EXTENSION)
_GATE: Final = ".".join(_WAY)
RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
"""The key in `_meta` that names the task of a message (2025-11-25)."""
TASK_METHODS: Final = ("tasks/get", "tasks/update", "tasks/cancel")
"""The requests of the extension."""
NEEDS_TASKS: Final[JSONObject] = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
"""The data of the error -32021 for a client that does not declare the extension.

Keeps XTASK-012.
"""

MODERN_TASK: Final[Members] = (
    ("createdAt", STRING),
    ("lastUpdatedAt", STRING),
    ("status", STRING),
    ("taskId", STRING),
    ("ttlMs", ANYTHING),
)
"""The members that each task of the extension has."""
MODERN_TASK_OPTIONAL: Final[OptionalMembers] = (
    ("statusMessage", STRING),
    ("pollIntervalMs", NUMBER),
    ("inputRequests", OBJECT),
    ("result", OBJECT),
    ("error", OBJECT),
    *META,
)

_TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})
_TASK_ID: Final[Members] = (("taskId", STRING),)
_MORE: Final[Any] = {"early": True, "has_part": True}

# Keeps XTASK-025, XTASK-069, XTASK-091.
_METHODS: Final[tuple[Method, ...]] = (
    request(
        C,
        "tasks/get",
        _GATE,
        params=_TASK_ID,
        result=MODERN_TASK,
        result_optional=MODERN_TASK_OPTIONAL,
        **_MORE,
    ),
    request(C, "tasks/update", _GATE, params=(*_TASK_ID, ("inputResponses", OBJECT)), **_MORE),
    request(C, "tasks/cancel", _GATE, params=_TASK_ID, **_MORE),
    notification(
        S,
        "notifications/tasks",
        _GATE,
        params=MODERN_TASK,
        params_optional=MODERN_TASK_OPTIONAL,
        early=True,
    ),
)


@lru_cache(maxsize=16)
def with_tasks(registry: Registry) -> Registry:
    """A copy of a registry with the methods of the extension.

    Keeps XTASK-018, XTASK-020: the capability exists in 2026-07-28 only, and `tasks` in 2025-11-25.

    Raises:
        ValueError: `Config.extensions` have a method of the same name.
    """
    dialect = registry.dialects[MODERN_REVISION]
    names = {method.name for method in _METHODS}
    if taken := names & dialect.added:
        raise ValueError(f"{min(taken)} is a method of the extension {TASKS_EXTENSION}")
    requests = dict(dialect.requests[C])
    notifications = dict(dialect.notifications[S])
    for method in _METHODS:
        (requests if method.kind == "request" else notifications)[method.name] = method
    dialect = attrs.evolve(
        dialect,
        requests=(requests, dialect.requests[S]),
        notifications=(dialect.notifications[C], notifications),
        added=dialect.added | names,
    )
    paths = dict(registry.paths)
    paths[MODERN_REVISION] |= {_GATE}
    return Registry(
        {**registry.dialects, MODERN_REVISION: dialect},
        {**registry.gates, _GATE: _WAY},
        paths,
        registry.result_types,
    )


def declares_tasks(capabilities: JSONObject) -> bool:
    """Whether a capabilities object of 2026-07-28 declares the extension."""
    extensions: Any = capabilities.get("extensions")
    value: Any = extensions.get(TASKS_EXTENSION) if is_object(extensions) else None
    return value is not None and value is not False


def with_extension(capabilities: JSONObject) -> JSONObject:
    """A copy of a capabilities object that declares the extension.

    Keeps XTASK-001, XTASK-003.
    """
    extensions: Any = capabilities.get("extensions")
    declared: JSONObject = {**extensions} if is_object(extensions) else {}
    declared.setdefault(TASKS_EXTENSION, {})
    return {**capabilities, "extensions": declared}


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
        related: Any = meta.get(RELATED_TASK) if is_object(meta) else None
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


def of_server(capabilities: JSONObject) -> JSONObject:
    """The capabilities of a server that has tasks: in both forms, if it has tools.

    Keeps TASK-001, XTASK-001, XTASK-019.
    """
    declared = with_extension(capabilities)
    if "tools" in declared:
        of_tools: JSONObject = {"tools": {"call": {}}}
        declared.setdefault("tasks", {"list": {}, "cancel": {}, "requests": of_tools})
    return declared
