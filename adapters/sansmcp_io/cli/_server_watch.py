"""Watches a server for the user: what it prints, sends, and gets wrong."""

from __future__ import annotations

import json
import logging
import re
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from sansmcp import (
    ErrorWithoutIdReceived,
    Event,
    JSONObject,
    LimitReached,
    ProtocolViolation,
)

from ._output.output import Output
from ._output.printing import Label
from ._output.visible import shortened
from ._values import as_text, member

_TAIL: Final = 10
_MOST_WARNINGS: Final = 20
_LONGEST: Final = 2000
_EXCERPT: Final = 100
_CANCELLED: Final = b"notifications/cancelled"
_TASK_STATUS: Final = "notifications/tasks/status"
TOO_LONG: Final = "OWN-001"
"""The rule about messages that are longer than `max_message_bytes`."""
_LIMIT: Final = "the limit of Config.max_message_bytes is "
_SIZE: Final = re.compile(r"\bhas (\d+) bytes; " + re.escape(_LIMIT))
_GUESS: Final = 4
"""So many times the limit is tried where it is not known how long a message is."""
_DIGITS: Final = 2
"""A number of bytes that is proposed is round: the next answer may be a little longer."""
_OPENINGS: Final = ("server/discover", "initialize")


def _is_cancellation(line: bytes) -> bool:
    """Whether a message is a cancellation, and does not only contain the same words."""
    if _CANCELLED not in line:
        return False
    try:
        message: Any = json.loads(line)
    except ValueError:  # a part of a large message
        return False
    return member(message, "method") == _CANCELLED.decode() and member(message, "id") is None


def _start_of(line: bytes) -> str:
    return shortened(line.decode("utf-8", "replace").rstrip("\r\n"), _EXCERPT)


def is_too_long(text: str) -> bool:
    """Whether a sentence of the library says that a message was longer than the limit."""
    return _LIMIT in text


def _size_in(text: str) -> int:
    """The size of a message over the limit, from a sentence of the library, or 0."""
    found = _SIZE.search(text)
    return 0 if found is None else int(found[1])


def _rounded_up(size: int) -> int:
    """The next number above `size` that has two digits other than zero at most."""
    unit: int = 10 ** max(len(str(size)) - _DIGITS, 0)
    return (size // unit + 1) * unit


class Watch:
    """The trace of a conversation. Keeps the facts that may explain a failure.

    Args:
        output: The streams to print on.
        quiet: Do not show what the server writes to standard error and its notifications.
        max_message_bytes: The longest message that is read.
        shows_tasks: Whether the states of tasks are shown by the command itself.
    """

    def __init__(
        self, output: Output, *, quiet: bool, max_message_bytes: int, shows_tasks: bool = False
    ) -> None:
        self._output = output
        self._quiet = quiet
        self._shows_tasks = shows_tasks
        self._most = max_message_bytes
        self._warned = 0
        self._rules: set[str] = set()
        self._logged: set[str] = set()
        self._line = 0  # bytes of the line that is being received
        self._longest = 0
        self.received_bytes = 0
        self.said_cancelled = False
        self.opening = "its first request"
        self.noise = 0
        self.first_noise = ""
        self.stderr_tail: deque[str] = deque(maxlen=_TAIL)

    # ------------------------------------------------------------------------ as a Trace

    def sent(self, data: bytes) -> None:
        """Called with bytes that are about to be written."""
        if _CANCELLED in data:
            self.said_cancelled |= any(map(_is_cancellation, bytes(data).split(b"\n")))
        for method in _OPENINGS:
            if b'"method":"%b"' % method.encode() in data:
                self.opening = method

    def received(self, data: bytes | bytearray) -> None:
        """Called with bytes that were read."""
        self.received_bytes += len(data)
        *ended, rest = data.split(b"\n")
        for part in ended:
            self._longest = max(self._longest, self._line + len(part))
            self._line = 0
        self._line += len(rest)

    def happened(self, event: Event) -> None:
        """Show anomalies to the user."""
        match event:
            case ProtocolViolation():
                if event.excerpt is None:
                    self._warn(event.text, event.rule)
                elif event.rule == TOO_LONG and event.excerpt.lstrip().startswith(b"{"):
                    self._warn(f"{event.text}: {_start_of(event.excerpt)}", event.rule)
                else:
                    self._hear_noise(event.excerpt, event.text, event.rule)
            case LimitReached():
                self._warn(event.text, event.rule)
            case ErrorWithoutIdReceived():
                self._warn(f"the server could not read a message: {event.message}", "ERR-001")
            case _:
                pass

    def _hear_noise(self, data: bytes, text: str, rule: str) -> None:
        excerpt = _start_of(data)
        self.noise += 1
        self.first_noise = self.first_noise or excerpt
        self._warn(f"a line of its standard output is no message ({text}): {excerpt}", rule)

    def _warn(self, text: str, rule: str) -> None:
        self._rules.add(rule)
        self._longest = max(self._longest, _size_in(text))
        self._warned += 1
        if self._warned <= _MOST_WARNINGS:
            self._output.line(Label.WARNING, f"{text} [{rule}]")
        elif self._warned == _MOST_WARNINGS + 1:
            self._output.line(Label.WARNING, "there is more, which is not shown")

    # ----------------------------------------------------------------- what the server says

    def stderr_line(self, line: str) -> None:
        """A line of the server's standard error."""
        line = shortened(line, _LONGEST)
        self.stderr_tail.append(line)
        if not self._quiet:
            self._output.line(Label.SERVER, line)

    def notified(self, method: str, params: JSONObject) -> None:
        """Show a notification: log messages are for people, and others may be, too."""
        if self._quiet or (self._shows_tasks and method == _TASK_STATUS):
            return
        if method == "notifications/message":
            level, logger = as_text(params.get("level")), as_text(params.get("logger"))
            text = f"{level} {logger}".rstrip() + f": {as_text(params.get('data'))}"
            self._output.line(Label.LOG, shortened(text, _LONGEST))
        else:
            text = f"{method} {as_text(params or None)}".rstrip()
            self._output.line(Label.NOTIFICATION, shortened(text, _LONGEST))

    # -------------------------------------------------------------------------------- logging

    def log_handler(self) -> logging.Handler:
        """A log handler that shows the library's records, unless they were shown before."""
        return _WarningHandler(self._output, self._rules, self._logged_record)

    def _logged_record(self, text: str) -> None:
        self._logged.add(text.rpartition("[")[2].removesuffix("]"))
        self._longest = max(self._longest, _size_in(text))

    # ------------------------------------------------------------------------------ afterwards

    @property
    def was_too_long(self) -> bool:
        """Whether a message of the server was too long to be read."""
        return TOO_LONG in self._rules | self._logged

    @property
    def length_hints(self) -> tuple[str, ...]:
        """Hints for a message that was too long to be read.

        They say the number of bytes that suffices, if the length of the message is known.
        """
        if not self.was_too_long:
            return ()
        if self._longest > self._most and self._line <= self._most:
            return (
                f"a message of the server has {self._longest} bytes, and {self._most} are read: "
                f"pass --max-message-bytes {_rounded_up(self._longest)}",
            )
        return (
            f"a message of the server has more than {self._most} bytes, and was not read: "
            f"try --max-message-bytes {max(self._most, self._line) * _GUESS}",
        )

    def evidence(self) -> tuple[str, ...]:
        """Lines of the server that may explain the missing response."""
        found: list[str] = []
        if self.noise:
            count = (
                "a line that is no message"
                if self.noise == 1
                else (f"{self.noise} lines that are no messages, first of all")
            )
            found.append(f"it wrote to standard output {count}: {self.first_noise}")
        elif not self.received_bytes:
            found.append("it wrote nothing to standard output")
        if not self.stderr_tail:
            found.append("it wrote nothing to standard error")
        elif self._quiet:
            found.append("it wrote to standard error, in the end:")
            found += [f"  {line}" for line in self.stderr_tail]
        else:
            found.append("what it wrote to standard error stands above")
        return tuple(found)


class _WarningHandler(logging.Handler):
    def __init__(self, output: Output, shown: set[str], on_record: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._output = output
        self._shown = shown
        self._on_record = on_record

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record as a warning."""
        text = record.getMessage()
        self._on_record(text)
        if text.endswith(tuple(f"[{rule}]" for rule in self._shown)):
            return
        if record.exc_info and record.exc_info[1] is not None:
            text += f" ({type(record.exc_info[1]).__name__}: {record.exc_info[1]})"
        self._output.line(Label.WARNING, text)
