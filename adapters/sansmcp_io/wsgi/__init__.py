"""sansmcp below WSGI: an application to mount beside other routes, on any server and with threads.

By default there are no sessions and no streams: each request stands for itself, so that any worker
can serve it, and none is tied to a client.
"""

from .._common.bounds import DEFAULT_REQUEST_TIMEOUT
from .._common.call import NotificationHandler, ProgressHandler, RequireInput
from .._common.errors import (
    CallCancelled,
    ConnectionLost,
    InsufficientScope,
    McpError,
    PeerError,
    RequestTimeout,
    Unauthorized,
)
from .._common.lookups import EventStore
from .._common.tasks import CreateTask
from ..blocking._tasks import RunningTask
from ._app import App, Handler
from ._calls import Environ, Server, ServerCall
from ._exchange import Authenticate, StartResponse

__all__ = [
    "DEFAULT_REQUEST_TIMEOUT",
    "App",
    "Authenticate",
    "CallCancelled",
    "ConnectionLost",
    "CreateTask",
    "Environ",
    "EventStore",
    "Handler",
    "InsufficientScope",
    "McpError",
    "NotificationHandler",
    "PeerError",
    "ProgressHandler",
    "RequestTimeout",
    "RequireInput",
    "RunningTask",
    "Server",
    "ServerCall",
    "StartResponse",
    "Unauthorized",
]
