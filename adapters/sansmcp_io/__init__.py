"""Everything around sansmcp that performs I/O: one module per loop, one surface on all of them."""

from ._errors import (
    ConnectionLost,
    InvalidAnswer,
    McpError,
    PeerError,
    RequestTimeout,
    StartFailed,
)
from ._trace import Trace

__all__ = [
    "ConnectionLost",
    "InvalidAnswer",
    "McpError",
    "PeerError",
    "RequestTimeout",
    "StartFailed",
    "Trace",
]
