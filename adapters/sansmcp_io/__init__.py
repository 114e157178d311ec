"""Everything around sansmcp that performs I/O: one module per loop, one surface on all of them."""

from ._common.errors import (
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
from ._common.lookups import EventStore
from ._common.task_stores import TaskStore, TaskStoreFull
from ._common.trace import HTTPClientTrace, HTTPTrace, Trace

__all__ = [
    "AuthorizationError",
    "ConnectionLost",
    "EventStore",
    "HTTPClientTrace",
    "HTTPTrace",
    "InsufficientScope",
    "InvalidAnswer",
    "McpError",
    "PeerError",
    "RequestRefused",
    "RequestTimeout",
    "StartFailed",
    "TaskCancelledError",
    "TaskLost",
    "TaskStore",
    "TaskStoreFull",
    "Trace",
    "Unauthorized",
]
