"""The standard error of a server process: cut into lines, and its end remembered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .anomalies import LOGGER

STDERR_SECONDS: Final = 2.0
"""How long the end of standard error is waited for after the process has ended."""
LAST_WORDS_SECONDS: Final = 0.5
"""How long what a process has left in its output may lie there before it is read."""
LOOK_AGAIN_SECONDS: Final = 0.01
"""How often to look whether what it has left behind has ended."""
TAIL_BYTES: Final = 4096
"""How much of the end of standard error is kept, to be shown with errors."""
_LINE_BYTES: Final = 65_536
"""A longer line is handed on in pieces."""

LineHandler = Callable[[str], object]


class StderrTail:
    """What is left of a server process: the last it wrote to standard error, and its status.

    Attributes:
        exit_status: None while it runs; the negative number of a signal that has ended it.
    """

    def __init__(self) -> None:
        self.exit_status: int | None = None
        self._data = b""

    def add(self, data: bytes | bytearray) -> None:
        """Keep the end of what was there and of this."""
        self._data = (self._data + data[-TAIL_BYTES:])[-TAIL_BYTES:]

    @property
    def text(self) -> str:
        """It as text, control characters made visible but for line breaks and tabs."""
        text = self._data.decode("utf-8", "replace").replace("\r\n", "\n")
        return "".join(c if c in "\n\t" or c.isprintable() else ascii(c)[1:-1] for c in text)


class StderrLines:
    """Hands on whole lines. What the handler raises is logged and harms nobody."""

    def __init__(self, handler: LineHandler) -> None:
        self._handler: Final = handler
        self._rest = b""

    def add(self, data: bytes | bytearray) -> None:
        """Hand on the lines that this completes."""
        *lines, rest = (self._rest + data).split(b"\n")
        if len(rest) > _LINE_BYTES:
            lines.append(rest)
            rest = b""
        self._rest = rest
        for line in lines:
            self._hand_on(line)

    def end(self) -> None:
        """Hand on what has no newline."""
        if self._rest:
            self._hand_on(self._rest)
            self._rest = b""

    def _hand_on(self, line: bytes) -> None:
        try:
            self._handler(line.decode("utf-8", "replace").rstrip("\r"))
        except Exception as error:
            LOGGER.error("on_stderr failed", exc_info=error)
