"""Where trace and capture of `tap` go. The conversation does not depend on either of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from . import _capture
from ._background import MIB, BackgroundFile
from ._errors import UsageError

_MOST_TRACE: Final = MIB
_MOST_CAPTURE: Final = 16 * MIB
_CAPTURE_PATIENCE: Final = 2.0
"""Seconds that the conversation waits, once, for a file that takes nothing."""


def _open(path: str, what: str) -> int:
    """A file for the eyes of this user only: what passes may be confidential."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"the {what} cannot be written to {path!r}: {reason}") from None


class Notes:
    """Where trace and summary go, and what goes wrong with files. Nobody waits for any of it.

    Raises:
        UsageError: The file cannot be opened.
    """

    def __init__(self, path: str | None) -> None:
        descriptor = None if path is None else _open(path, "trace")
        self._stderr = None if sys.__stderr__ is None else BackgroundFile(2, _MOST_TRACE)
        self._file = self._stderr if descriptor is None else BackgroundFile(descriptor, _MOST_TRACE)
        self._path = path
        self._encoding = "utf-8" if sys.__stderr__ is None else sys.__stderr__.encoding
        self._missing = 0
        self._failed = False

    def show(self, line: str) -> None:
        """Write a line to where the trace goes; leave it out if it is not taken there."""
        file = self._file
        if file is None:
            return
        encoding = self._encoding if file is self._stderr else "utf-8"
        data = f"{line}\n".encode(encoding, "backslashreplace")
        if self._missing:
            note = f"... {self._missing} lines are missing here: nobody took them\n"
            data = note.encode(encoding) + data
        if file.write(data):
            self._missing = 0
        else:
            self._missing += 1
            self._look_for_failure()

    def warn(self, text: str) -> None:
        """Say on standard error what went wrong."""
        if self._stderr is not None:
            self._stderr.write(f"tap: {text}\n".encode(self._encoding, "backslashreplace"))

    def close(self) -> None:
        """Write what is left, as far as it is taken."""
        if self._file is not None:
            self._file.close()
            self._look_for_failure()
        if self._stderr is not None:
            self._stderr.close()

    def _look_for_failure(self) -> None:
        if self._file is None or self._file.error is None or self._failed:
            return
        self._failed = True
        self.warn(f"the trace cannot be written to {self._path!r}: {self._file.error.strerror}")


class CaptureFile:
    """Where the capture goes. It has no holes: where it cannot go on, it ends.

    Raises:
        UsageError: The file cannot be opened.
    """

    def __init__(self, path: str, notes: Notes, command: Sequence[str]) -> None:
        self._file = BackgroundFile(_open(path, "capture"), _MOST_CAPTURE, _CAPTURE_PATIENCE)
        self._path = path
        self._notes = notes
        self._is_over = False
        self.write(_capture.header(datetime.now(UTC), command))

    def write(self, line: bytes) -> None:
        """Write a line after those before."""
        if not self._is_over and not self._file.write(line):
            self._end()

    def close(self) -> None:
        """Write what is left."""
        if not self._file.close() and not self._is_over:
            self._end()

    def _end(self) -> None:
        self._is_over = True
        error = self._file.error
        reason = "it is not taken there" if error is None else error.strerror
        self._notes.warn(f"the capture in {self._path!r} is not complete: {reason}")
