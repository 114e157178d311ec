"""Tasks: requests that are answered later, in revision 2025-11-25."""

from typing import Annotated, Literal, Required, TypeAlias, TypedDict

from ._json import JSONObject
from ._marks import As, In
from ._parts import NotificationMessage, RequestMessage
from .base import (
    NotificationMetaObject,
    PaginatedRequestParams,
    PaginatedResult,
    RequestParams,
    ResultMetaObject,
)

TaskStatus: TypeAlias = Annotated[
    Literal["working", "input_required", "completed", "failed", "cancelled"], In("2025-11-25")
]
"""How far a task has come; the last three are final."""


@In("2025-11-25")
class TaskMetadata(TypedDict, total=False):
    """Asks that a request become a task."""

    ttl: int
    """Milliseconds for which the task is to be kept."""


@In("2025-11-25")
class RelatedTaskMetadata(TypedDict):
    """Which task a message belongs to; in `_meta`, as `io.modelcontextprotocol/related-task`."""

    taskId: str


@In("2025-11-25")
class TaskAugmentedRequestParams(RequestParams, total=False):
    """The params of any request that may become a task."""

    task: TaskMetadata


@In("2025-11-25")
class Task(TypedDict, total=False):
    """A request that is answered later."""

    taskId: Required[str]
    status: Required[TaskStatus]
    statusMessage: str
    createdAt: Required[str]
    """A time in the format of ISO 8601."""
    lastUpdatedAt: Required[str]
    ttl: Required[int | None]
    """Milliseconds from its creation for which it is kept; null: without limit."""
    pollInterval: int
    """Milliseconds to wait between two `tasks/get`."""


@In("2025-11-25")
class CreateTaskResult(TypedDict, total=False):
    """The first answer to a request that has become a task."""

    _meta: Annotated[JSONObject, As(ResultMetaObject)]
    task: Required[Task]


@In("2025-11-25")
class TaskIdParams(RequestParams, total=False):
    """Which task is meant."""

    taskId: Required[str]


@In("2025-11-25")
class GetTaskRequest(RequestMessage, total=False):
    """Asks how far a task has come."""

    method: Required[Literal["tasks/get"]]
    params: Required[TaskIdParams]


@In("2025-11-25")
class GetTaskResult(Task, total=False):
    """How far the task has come."""

    _meta: Annotated[JSONObject, As(ResultMetaObject)]


@In("2025-11-25")
class GetTaskPayloadRequest(RequestMessage, total=False):
    """Waits for the end of a task, and asks for its result."""

    method: Required[Literal["tasks/result"]]
    params: Required[TaskIdParams]


@In("2025-11-25")
class GetTaskPayloadResult(TypedDict, total=False):
    """What the request that became a task would have been answered with."""

    _meta: Annotated[JSONObject, As(ResultMetaObject)]


@In("2025-11-25")
class CancelTaskRequest(RequestMessage, total=False):
    """Ends a task."""

    method: Required[Literal["tasks/cancel"]]
    params: Required[TaskIdParams]


@In("2025-11-25")
class CancelTaskResult(Task, total=False):
    """The task, cancelled."""

    _meta: Annotated[JSONObject, As(ResultMetaObject)]


@In("2025-11-25")
class ListTasksRequest(RequestMessage, total=False):
    """Asks for one page of the tasks."""

    method: Required[Literal["tasks/list"]]
    params: PaginatedRequestParams


@In("2025-11-25")
class ListTasksResult(PaginatedResult, total=False):
    """One page of the tasks."""

    tasks: Required[list[Task]]


@In("2025-11-25")
class TaskStatusNotificationParams(Task, total=False):
    """The task as it is now."""

    _meta: Annotated[JSONObject, As(NotificationMetaObject)]


@In("2025-11-25")
class TaskStatusNotification(NotificationMessage, total=False):
    """Tells that a task has come further."""

    method: Required[Literal["notifications/tasks/status"]]
    params: Required[TaskStatusNotificationParams]
