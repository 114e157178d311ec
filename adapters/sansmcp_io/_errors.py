"""What adapters raise, the same on every loop."""

from __future__ import annotations

from typing import Any, Final

from sansmcp import MISSING, JSONValue

from ._stderr import StderrTail


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
        text: One sentence on what the error means to this side, where there is more to say.
    """

    def __init__(
        self, code: int, message: str, data: JSONValue = None, text: str | None = None
    ) -> None:
        super().__init__(code, message)
        self.code: Final = code
        self.message: Final = message
        self.data: Final = data
        self.text: Final = text

    def __str__(self) -> str:
        return self.text or f"{self.message} ({self.code})"


class InvalidAnswer(Exception):
    """The peer's answer is not valid, or its listing was given up before its end."""


class RequestTimeout(TimeoutError):
    """A request of ours, or the start, was not answered in time."""


class ConnectionLost(ConnectionError):
    """The connection ended before a request of ours was answered."""

    _tail: StderrTail | None = None

    @property
    def stderr(self) -> str:
        """What the server process has written to standard error last, as far as it was captured.

        It may grow after the connection has ended, until the process has.
        """
        return "" if self._tail is None else self._tail.text

    @property
    def exit_status(self) -> int | None:
        """The exit status of the server process, or minus the signal that has ended it.

        None where there is no process, or as long as it has not been waited for: that is done
        when the block of `connect_stdio` is left, or a new process is started.
        """
        return None if self._tail is None else self._tail.exit_status


class StartFailed(ConnectionError):
    """The peer lacks a common revision or a required capability."""
