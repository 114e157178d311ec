"""Everything around sansmcp that performs I/O: one module per loop, one surface on all of them."""

from ._common.errors import (
    ConnectionLost,
    InvalidAnswer,
    McpError,
    PeerError,
    RequestRefused,
    RequestTimeout,
    StartFailed,
    Unauthorized,
)
from ._common.lookups import EventStore
from ._common.trace import HTTPClientTrace, HTTPTrace, Trace

__all__ = [
    "ConnectionLost",
    "EventStore",
    "HTTPClientTrace",
    "HTTPTrace",
    "InvalidAnswer",
    "McpError",
    "PeerError",
    "RequestRefused",
    "RequestTimeout",
    "StartFailed",
    "Trace",
    "Unauthorized",
]
