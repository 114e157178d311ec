"""Tasks: requests whose result is fetched later (revision 2025-11-25)."""

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
"""The status of a task; the last three are final."""


@In("2025-11-25")
class TaskMetadata(TypedDict, total=False):
    """The member `task` of a request that is to become a task."""

    ttl: int
    """Milliseconds for which the receiver keeps the task."""


@In("2025-11-25")
class RelatedTaskMetadata(TypedDict):
    """The task of a message, in `_meta` under `io.modelcontextprotocol/related-task`."""

    taskId: str


@In("2025-11-25")
class TaskAugmentedRequestParams(RequestParams, total=False):
    """The params of any request that may become a task."""

    task: TaskMetadata


@In("2025-11-25")
class Task(TypedDict, total=False):
    """The state of a request that has become a task."""

    taskId: Required[str]
    status: Required[TaskStatus]
    statusMessage: str
    createdAt: Required[str]
    """A time in ISO 8601 format."""
    lastUpdatedAt: Required[str]
    ttl: Required[int | None]
    """Milliseconds after its creation for which the task is kept; null: no limit."""
    pollInterval: int
    """Milliseconds to wait between two `tasks/get`."""


@In("2025-11-25")
class CreateTaskResult(TypedDict, total=False):
    """The result of a request that has become a task."""

    _meta: Annotated[JSONObject, As(ResultMetaObject)]
    task: Required[Task]


@In("2025-11-25")
class TaskIdParams(RequestParams, total=False):
    """The params of a request about one task."""

    taskId: Required[str]


@In("2025-11-25")
class GetTaskRequest(RequestMessage, total=False):
    """A request for the status of a task."""

    method: Required[Literal["tasks/get"]]
    params: Required[TaskIdParams]


@In("2025-11-25")
class GetTaskResult(Task, total=False):
    """The status of the task."""

    _meta: Annotated[JSONObject, As(ResultMetaObject)]


@In("2025-11-25")
class GetTaskPayloadRequest(RequestMessage, total=False):
    """A request for the result of a task; the response comes at the end of the task."""

    method: Required[Literal["tasks/result"]]
    params: Required[TaskIdParams]


@In("2025-11-25")
class GetTaskPayloadResult(TypedDict, total=False):
    """The result that the request would have had without a task."""

    _meta: Annotated[JSONObject, As(ResultMetaObject)]


@In("2025-11-25")
class CancelTaskRequest(RequestMessage, total=False):
    """A request to cancel a task."""

    method: Required[Literal["tasks/cancel"]]
    params: Required[TaskIdParams]


@In("2025-11-25")
class CancelTaskResult(Task, total=False):
    """The status of the cancelled task."""

    _meta: Annotated[JSONObject, As(ResultMetaObject)]


@In("2025-11-25")
class ListTasksRequest(RequestMessage, total=False):
    """A request for one page of the tasks."""

    method: Required[Literal["tasks/list"]]
    params: PaginatedRequestParams


@In("2025-11-25")
class ListTasksResult(PaginatedResult, total=False):
    """One page of the tasks."""

    tasks: Required[list[Task]]


@In("2025-11-25")
class TaskStatusNotificationParams(Task, total=False):
    """The current status of the task."""

    _meta: Annotated[JSONObject, As(NotificationMetaObject)]


@In("2025-11-25")
class TaskStatusNotification(NotificationMessage, total=False):
    """A notification that the status of a task has changed."""

    method: Required[Literal["notifications/tasks/status"]]
    params: Required[TaskStatusNotificationParams]
