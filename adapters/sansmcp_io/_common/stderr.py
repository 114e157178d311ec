"""The standard error of a server process: its lines are handed on, and its end is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .anomalies import LOGGER

STDERR_SECONDS: Final = 2.0
"""Seconds to wait for the end of standard error, after the process has ended."""
LAST_WORDS_SECONDS: Final = 0.5
"""Seconds to wait for the rest of the output of a process that has ended."""
LOOK_AGAIN_SECONDS: Final = 0.01
"""Seconds between two tests whether the processes that it has left behind have ended."""
TAIL_BYTES: Final = 4096
"""The bytes of the end of standard error that are kept, and shown with errors."""
_LINE_BYTES: Final = 65_536
"""A longer line is handed on in pieces."""

LineHandler = Callable[[str], object]


class StderrTail:
    """The end of the standard error of a server process, and its exit status.

    Attributes:
        exit_status: None while it runs; the negative number of a signal that has ended it.
    """

    def __init__(self) -> None:
        self.exit_status: int | None = None
        self._data = b""

    def add(self, data: bytes | bytearray) -> None:
        """Add data, and keep the last `TAIL_BYTES`."""
        self._data = (self._data + data[-TAIL_BYTES:])[-TAIL_BYTES:]

    @property
    def text(self) -> str:
        """The kept data as text. Control characters but newlines and tabs are made visible."""
        text = self._data.decode("utf-8", "replace").replace("\r\n", "\n")
        return "".join(c if c in "\n\t" or c.isprintable() else ascii(c)[1:-1] for c in text)


class StderrLines:
    """Hands whole lines to a handler. Exceptions that it raises are logged."""

    def __init__(self, handler: LineHandler) -> None:
        self._handler: Final = handler
        self._rest = b""

    def add(self, data: bytes | bytearray) -> None:
        """Hand on the lines that this data completes."""
        *lines, rest = (self._rest + data).split(b"\n")
        if len(rest) > _LINE_BYTES:
            lines.append(rest)
            rest = b""
        self._rest = rest
        for line in lines:
            self._hand_on(line)

    def end(self) -> None:
        """Hand the last line to the handler, if that line has no newline."""
        if self._rest:
            self._hand_on(self._rest)
            self._rest = b""

    def _hand_on(self, line: bytes) -> None:
        try:
            self._handler(line.decode("utf-8", "replace").rstrip("\r"))
        except Exception as error:
            LOGGER.error("on_stderr failed", exc_info=error)
