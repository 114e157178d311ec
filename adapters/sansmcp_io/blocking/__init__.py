"""sansmcp without a loop: clients on stdio and over HTTP, and servers on stdio, that may wait.

No thread is started for a client, and no event loop is hidden: a thread that waits for a response
reads. Several threads may share a client. One of those that wait reads for all of them, and one
lock guards the rest; it is never held while a thread waits or runs a function of the application.
"""

from .._common.bounds import (
    DEFAULT_DRAIN,
    DEFAULT_PROBE_TIMEOUT,
    DEFAULT_REQUEST_TIMEOUT,
    DEFAULT_START_TIMEOUT,
)
from .._common.call import NotificationHandler, ProgressHandler, RequireInput
from .._common.client_tasks import TaskUpdate
from .._common.errors import (
    AuthorizationError,
    CallCancelled,
    ConnectionLost,
    InvalidAnswer,
    McpError,
    PeerError,
    RequestRefused,
    RequestTimeout,
    StartFailed,
    TaskCancelledError,
    TaskLost,
)
from .._common.http_client_settings import HTTPClientLimits, OnUnauthorized
from .._common.tasks import CreateTask
from .._common.trace import HTTPClientTrace, Trace
from ._call import Call
from ._client import Client, RequestHandler
from ._client_tasks import ClientTask
from ._connect_http import connect_http
from ._log_out import log_out
from ._mailbox import Changes
from ._server import LogHandler, Server, ServerCall
from ._stdio import Handler, ReadyHandler, connect_stdio, serve_stdio
from ._tasks import RunningTask

__all__ = [
    "DEFAULT_DRAIN",
    "DEFAULT_PROBE_TIMEOUT",
    "DEFAULT_REQUEST_TIMEOUT",
    "DEFAULT_START_TIMEOUT",
    "AuthorizationError",
    "Call",
    "CallCancelled",
    "Changes",
    "Client",
    "ClientTask",
    "ConnectionLost",
    "CreateTask",
    "HTTPClientLimits",
    "HTTPClientTrace",
    "Handler",
    "InvalidAnswer",
    "LogHandler",
    "McpError",
    "NotificationHandler",
    "OnUnauthorized",
    "PeerError",
    "ProgressHandler",
    "ReadyHandler",
    "RequestHandler",
    "RequestRefused",
    "RequestTimeout",
    "RequireInput",
    "RunningTask",
    "Server",
    "ServerCall",
    "StartFailed",
    "TaskCancelledError",
    "TaskLost",
    "TaskUpdate",
    "Trace",
    "connect_http",
    "connect_stdio",
    "log_out",
    "serve_stdio",
]
