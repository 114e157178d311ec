"""Cancellation, progress and logging."""

from typing import Annotated, Any, Literal, Required

from ._json import LoggingLevel, ProgressToken, RequestId
from ._marks import RequiredIn, Since, Until
from ._parts import NotificationMessage, RequestMessage
from .base import NotificationParams, RequestParams


class CancelledNotificationParams(NotificationParams, total=False):
    """The params of a cancellation: the id of the request, and a reason."""

    requestId: Annotated[
        RequestId, RequiredIn("2024-11-05", "2025-03-26", "2025-06-18", "2026-07-28")
    ]
    reason: str


class CancelledNotification(NotificationMessage, total=False):
    """A notification that the sender no longer waits for a response."""

    method: Required[Literal["notifications/cancelled"]]
    params: Required[CancelledNotificationParams]


class ProgressNotificationParams(NotificationParams, total=False):
    """The params of a progress notification."""

    progressToken: Required[ProgressToken]
    """The token in the `_meta` of the request."""
    progress: Required[float]
    """The progress so far, in any unit; each value is larger than the one before."""
    total: float
    """The value of `progress` at the end, in the same unit."""
    message: Annotated[str, Since("2025-03-26")]


class ProgressNotification(NotificationMessage, total=False):
    """A notification of the progress of a request."""

    method: Required[Literal["notifications/progress"]]
    params: Required[ProgressNotificationParams]


@Until("2025-11-25")
class SetLevelRequestParams(RequestParams, total=False):
    """The params of `logging/setLevel`."""

    level: Required[LoggingLevel]
    """The least severe level that the server sends."""


@Until("2025-11-25")
class SetLevelRequest(RequestMessage, total=False):
    """A request to set the log level of the server."""

    method: Required[Literal["logging/setLevel"]]
    params: Required[SetLevelRequestParams]


class LoggingMessageNotificationParams(NotificationParams, total=False):
    """The params of a log message."""

    level: Required[LoggingLevel]
    data: Required[Any]
    """The content of the message: text, or any other JSON value."""
    logger: str


class LoggingMessageNotification(NotificationMessage, total=False):
    """A notification with a log message."""

    method: Required[Literal["notifications/message"]]
    params: Required[LoggingMessageNotificationParams]
