"""The files for trace and capture of `tap`. A failure of a file does not end the conversation."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from .._errors import UsageError
from .background import MIB, PATIENCE, BackgroundFile

_MOST_TRACE: Final = MIB
_MOST_CAPTURE: Final = 16 * MIB
_CAPTURE_PATIENCE: Final = 2.0
"""Seconds that the conversation waits, once, for a file that takes nothing."""


def open_files(trace: str | None, capture: str | None) -> tuple[int | None, int | None]:
    """Open both for writing, where there are any, and empty them.

    Raises:
        UsageError: A file cannot be opened, or is used for other output, which it would spoil.
            What was in them is still there.
    """
    # Looked at first: a stream that was closed leaves its number to what is opened next.
    taken = _where_it_goes(1, sys.__stdout__, "standard output, which is for the messages")
    descriptor = None if trace is None else _open(trace, "trace", taken)
    taken |= _where_it_goes(2, sys.__stderr__, "standard error, which is for other things")
    if descriptor is not None:
        taken["where the trace goes"] = os.fstat(descriptor)
    found = descriptor, None if capture is None else _open(capture, "capture", taken)
    for each in found:
        if each is not None and stat.S_ISREG(os.fstat(each).st_mode):
            os.ftruncate(each, 0)
    return found


def _where_it_goes(number: int, stream: object, name: str) -> dict[str, os.stat_result]:
    with contextlib.suppress(OSError):
        if stream is not None:
            return {name: os.fstat(number)}
    return {}


def _open(path: str, what: str, taken: Mapping[str, os.stat_result]) -> int:
    """Open a file that only this user can read, since messages may be confidential."""
    reason: object
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
    else:
        found = os.fstat(descriptor)
        # A device such as a terminal, or the one that forgets everything, is for many.
        same = (name for name, one in taken.items() if os.path.samestat(one, found))
        reason = None if stat.S_ISCHR(found.st_mode) else next(same, None)
        if reason is None:
            return descriptor
        os.close(descriptor)
        reason = f"this is {reason}"
    raise UsageError(f"the {what} cannot be written to {path!r}: {reason}")


class Notes:
    """Writes trace, summary and warnings.

    Only at the end does the tap wait for a slow reader of these.

    Args:
        path: The path of the file for trace and summary; None: standard error.
        descriptor: The same file, open; None: standard error.
    """

    def __init__(self, path: str | None, descriptor: int | None) -> None:
        self._stderr = None if sys.__stderr__ is None else BackgroundFile(2, _MOST_TRACE)
        self._file = self._stderr if descriptor is None else BackgroundFile(descriptor, _MOST_TRACE)
        self._path = path
        self._encoding = "utf-8" if sys.__stderr__ is None else sys.__stderr__.encoding
        self._missing = 0
        self._failed = False
        self._patience: float = 0
        self._summary: list[str] = []

    def show(self, line: str) -> None:
        """Write a line of the trace. The line is dropped if the file is not read."""
        file = self._file
        if file is None:
            return
        encoding = self._encoding if file is self._stderr else "utf-8"
        data = f"{line}\n".encode(encoding, "backslashreplace")
        if self._missing:
            note = f"... {self._missing} lines are missing here: the reader was too slow\n"
            data = note.encode(encoding) + data
        if file.write(data, self._patience):
            self._missing = 0
        else:
            self._patience = 0
            self._missing += 1
            self._look_for_failure()

    def summary(self, lines: Sequence[str]) -> None:
        """Write the last lines. They wait for a slow reader, as long as it reads.

        If the trace cannot be written to its file, they go to standard error when this is closed.
        """
        self._patience = PATIENCE
        self._summary.extend(lines)
        for line in lines:
            self.show(f"tap: {line}")

    def warn(self, text: str) -> None:
        """Write a warning to standard error."""
        if self._stderr is not None:
            data = f"tap: {text}\n".encode(self._encoding, "backslashreplace")
            if not self._stderr.write(data, self._patience):
                self._patience = 0

    def close(self) -> None:
        """Write the queued lines, unless the file stalls."""
        if self._file is not None:
            self._file.close()
            self._look_for_failure()
        if self._failed and self._file is not self._stderr:
            self._patience = PATIENCE
            for line in self._summary:
                self.warn(line)
        if self._stderr is not None:
            self._stderr.close()

    def _look_for_failure(self) -> None:
        if self._file is None or self._file.error is None or self._failed:
            return
        self._failed = True
        self.warn(f"the trace cannot be written to {self._path!r}: {self._file.error.strerror}")


class CaptureFile:
    """The file of the capture. After a failed write, the capture ends, so that it has no gaps.

    Args:
        path: The path of the file.
        descriptor: The same, open.
        notes: Gets warnings.
        header: Its first line.
    """

    def __init__(self, path: str, descriptor: int, notes: Notes, header: bytes) -> None:
        self._file = BackgroundFile(descriptor, _MOST_CAPTURE, _CAPTURE_PATIENCE)
        self._path = path
        self._notes = notes
        self._is_over = False
        self.write(header)

    def write(self, line: bytes) -> None:
        """Write a line after those before."""
        if not self._is_over and not self._file.write(line):
            self._end()

    def close(self) -> None:
        """Write the queued lines, and close the file."""
        if not self._file.close() and not self._is_over:
            self._end()

    def _end(self) -> None:
        self._is_over = True
        error = self._file.error
        reason = "it is not taken there" if error is None else error.strerror
        self._notes.warn(f"the capture in {self._path!r} is not complete: {reason}")
