"""sansmcp below ASGI: an application to mount beside other routes, on any server on asyncio."""

from .._async.server import Server
from .._async.tasks import RunningTask
from .._common.bounds import DEFAULT_DRAIN, DEFAULT_REQUEST_TIMEOUT
from .._common.call import NotificationHandler, ProgressHandler, RequireInput
from .._common.errors import (
    ConnectionLost,
    InsufficientScope,
    McpError,
    PeerError,
    RequestTimeout,
    Unauthorized,
)
from .._common.lookups import EventStore
from .._common.task_stores import TaskStore, TaskStoreFull
from .._common.tasks import CreateTask
from ._app import App, Handler, ReadyHandler
from ._exchange import Authenticate, Receive, Send
from ._runner import Scope, ServerCall

__all__ = [
    "DEFAULT_DRAIN",
    "DEFAULT_REQUEST_TIMEOUT",
    "App",
    "Authenticate",
    "ConnectionLost",
    "CreateTask",
    "EventStore",
    "Handler",
    "InsufficientScope",
    "McpError",
    "NotificationHandler",
    "PeerError",
    "ProgressHandler",
    "ReadyHandler",
    "Receive",
    "RequestTimeout",
    "RequireInput",
    "RunningTask",
    "Scope",
    "Send",
    "Server",
    "ServerCall",
    "TaskStore",
    "TaskStoreFull",
    "Unauthorized",
]
