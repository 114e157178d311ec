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
from .._common.errors import (
    CallCancelled,
    ConnectionLost,
    InvalidAnswer,
    McpError,
    PeerError,
    RequestRefused,
    RequestTimeout,
    StartFailed,
)
from .._common.http_client_settings import HTTPClientLimits, OnUnauthorized
from .._common.trace import HTTPClientTrace, Trace
from ._call import Call
from ._client import Client, RequestHandler
from ._connect_http import connect_http
from ._mailbox import Changes
from ._server import LogHandler, Server, ServerCall
from ._stdio import Handler, ReadyHandler, connect_stdio, serve_stdio

__all__ = [
    "DEFAULT_DRAIN",
    "DEFAULT_PROBE_TIMEOUT",
    "DEFAULT_REQUEST_TIMEOUT",
    "DEFAULT_START_TIMEOUT",
    "Call",
    "CallCancelled",
    "Changes",
    "Client",
    "ConnectionLost",
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
    "Server",
    "ServerCall",
    "StartFailed",
    "Trace",
    "connect_http",
    "connect_stdio",
    "serve_stdio",
]
