"""From records of `logging` to log messages of the protocol, as far as no loop is involved."""

from __future__ import annotations

import logging
from abc import abstractmethod
from bisect import bisect_right
from typing import Any, Final

_FROM: Final = (logging.INFO, 25, logging.WARNING, logging.ERROR, logging.CRITICAL)
_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical")


def mcp_level(level: int) -> str:
    """The protocol's name for a level of `logging`; `notice` is between INFO and WARNING."""
    return _LEVELS[bisect_right(_FROM, level)]


class LogHandlerBase(logging.Handler):
    """Sends records as `notifications/message`, and never waits.

    Without a formatter only the message is sent: a traceback is not the client's business. What
    the library itself logs is not sent, since sending may be what it complains of.
    """

    lock: Any  # None; how it is typed differs between versions of Python

    def createLock(self) -> None:
        """None: whoever held it would wait for the connection, and who has that may log."""
        self.lock = None

    def handle(self, record: logging.LogRecord) -> bool:
        """As any handler, but several threads at once."""
        kept: Any = self.filter(record)
        if kept:  # another record, perhaps, since Python 3.12
            self.emit(kept if isinstance(kept, logging.LogRecord) else record)
        return bool(kept)

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record, if the client wants it."""
        if record.name == "sansmcp" or record.name.startswith("sansmcp."):
            return
        try:
            text = record.getMessage() if self.formatter is None else self.format(record)
            self._send(record, text)
        except Exception:
            self.handleError(record)

    @abstractmethod
    def _send(self, record: logging.LogRecord, text: str) -> None:
        """Hand it to the connection, from whatever thread this is.

        What goes wrong later than this call is for `handleError`, too.
        """
