"""What adapters raise, the same on every loop."""

from __future__ import annotations

from typing import Any, Final

from sansmcp import MISSING, JSONValue


class McpError(Exception):
    """Raised by a handler to answer a request with this error.

    Attributes:
        code: A JSON-RPC error code.
        message: One concise sentence, for the peer.
        data: Any JSON value for the peer; left out if not given.
    """

    def __init__(self, code: int, message: str, data: Any = MISSING) -> None:
        super().__init__(code, message)
        self.code: Final = code
        self.message: Final = message
        self.data: Final = data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class PeerError(Exception):
    """The peer answered a request of ours with an error.

    Attributes:
        code: The JSON-RPC error code.
        message: The peer's sentence.
        data: What the peer added, or None.
    """

    def __init__(self, code: int, message: str, data: JSONValue = None) -> None:
        super().__init__(code, message)
        self.code: Final = code
        self.message: Final = message
        self.data: Final = data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class InvalidAnswer(Exception):
    """The peer's answer is not valid, or its listing was given up before its end."""


class RequestTimeout(TimeoutError):
    """A request of ours, or the start, was not answered in time."""


class ConnectionLost(ConnectionError):
    """The connection ended before a request of ours was answered."""


class StartFailed(ConnectionError):
    """The peer lacks a common revision or a required capability."""
