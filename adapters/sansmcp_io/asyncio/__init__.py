"""sansmcp on asyncio: clients and servers on stdio, on any stream, and over HTTP."""

from .._async.call import Call
from .._async.client import Client, RequestHandler
from .._async.client_tasks import ClientTask
from .._async.mailbox import Changes
from .._async.server import Handler, HTTPServer, LogHandler, ReadyHandler, Server, ServerCall
from .._async.tasks import RunningTask
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
    ConnectionLost,
    InsufficientScope,
    InvalidAnswer,
    McpError,
    PeerError,
    RequestRefused,
    RequestTimeout,
    StartFailed,
    TaskCancelledError,
    TaskLost,
    Unauthorized,
)
from .._common.http_client_settings import HTTPClientLimits, OnUnauthorized
from .._common.http_server import Authenticate, HTTPLimits
from .._common.lookups import EventStore
from .._common.task_stores import TaskStore, TaskStoreFull
from .._common.tasks import CreateTask
from .._common.trace import HTTPClientTrace, HTTPTrace, Trace
from ._http import connect_http, serve_http
from ._stdio import connect, connect_stdio, serve, serve_stdio

__all__ = [
    "DEFAULT_DRAIN",
    "DEFAULT_PROBE_TIMEOUT",
    "DEFAULT_REQUEST_TIMEOUT",
    "DEFAULT_START_TIMEOUT",
    "Authenticate",
    "AuthorizationError",
    "Call",
    "Changes",
    "Client",
    "ClientTask",
    "ConnectionLost",
    "CreateTask",
    "EventStore",
    "HTTPClientLimits",
    "HTTPClientTrace",
    "HTTPLimits",
    "HTTPServer",
    "HTTPTrace",
    "Handler",
    "InsufficientScope",
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
    "TaskStore",
    "TaskStoreFull",
    "TaskUpdate",
    "Trace",
    "Unauthorized",
    "connect",
    "connect_http",
    "connect_stdio",
    "serve",
    "serve_http",
    "serve_stdio",
]
