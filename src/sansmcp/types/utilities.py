"""Cancellation, progress and logging."""

from typing import Annotated, Any, Literal, Required

from ._json import LoggingLevel, ProgressToken, RequestId
from ._marks import RequiredIn, Since, Until
from ._parts import NotificationMessage, RequestMessage
from .base import NotificationParams, RequestParams


class CancelledNotificationParams(NotificationParams, total=False):
    """What is given up."""

    requestId: Annotated[
        RequestId, RequiredIn("2024-11-05", "2025-03-26", "2025-06-18", "2026-07-28")
    ]
    reason: str


class CancelledNotification(NotificationMessage, total=False):
    """Tells that the sender no longer wants an answer."""

    method: Required[Literal["notifications/cancelled"]]
    params: Required[CancelledNotificationParams]


class ProgressNotificationParams(NotificationParams, total=False):
    """How far a request has come."""

    progressToken: Required[ProgressToken]
    """The one that stood in the request's `_meta`."""
    progress: Required[float]
    """It rises, in whatever unit."""
    total: float
    """In the same unit."""
    message: Annotated[str, Since("2025-03-26")]


class ProgressNotification(NotificationMessage, total=False):
    """Tells how far a request has come."""

    method: Required[Literal["notifications/progress"]]
    params: Required[ProgressNotificationParams]


@Until("2025-11-25")
class SetLevelRequestParams(RequestParams, total=False):
    """What to log."""

    level: Required[LoggingLevel]
    """The least severe level to be sent."""


@Until("2025-11-25")
class SetLevelRequest(RequestMessage, total=False):
    """Says what the server is to log."""

    method: Required[Literal["logging/setLevel"]]
    params: Required[SetLevelRequestParams]


class LoggingMessageNotificationParams(NotificationParams, total=False):
    """A log message."""

    level: Required[LoggingLevel]
    data: Required[Any]
    """What is logged: text, or any other JSON value."""
    logger: str


class LoggingMessageNotification(NotificationMessage, total=False):
    """Sends a log message."""

    method: Required[Literal["notifications/message"]]
    params: Required[LoggingMessageNotificationParams]
