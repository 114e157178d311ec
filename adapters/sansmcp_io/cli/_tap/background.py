"""A file that a thread writes, so that a slow file does not hold up the conversation."""

from __future__ import annotations

import os
import stat
import threading
from typing import Final

from ..._common.descriptors import wait_for_room

MIB: Final = 1024 * 1024
_PIECE: Final = 16 * 1024
"""Bytes per write to a pipe or terminal: a slow reader takes them in less than `PATIENCE`."""
PATIENCE: Final = 1.0
"""Seconds without progress after which the rest is dropped at the end."""


class BackgroundFile:
    """Queues data, and writes the data in a thread of its own.

    Args:
        descriptor: The descriptor to write to, which stays open.
        most: How many bytes may wait.
        patience: Seconds without any progress that `write` waits for room.

    Attributes:
        error: Why nothing more can be written; None while that is not known.
    """

    def __init__(self, descriptor: int, most: int, patience: float = 0) -> None:
        self.error: OSError | None = None
        self._descriptor = descriptor
        self._piece = MIB if stat.S_ISREG(os.fstat(descriptor).st_mode) else _PIECE
        self._most = most
        self._patience = patience
        self._changed = threading.Condition()
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._written = 0
        self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def write(self, data: bytes, patience: float | None = None) -> bool:
        """Take all of this, or return False: too much waits, or nothing can be written.

        Args:
            data: To be written after what waits.
            patience: As above, for this only.
        """
        if patience is None:
            patience = self._patience
        with self._changed:
            while self._bytes and self._bytes + len(data) > self._most and self.error is None:
                before = self._written
                if not self._changed.wait(patience) and before == self._written:
                    return False
            if self.error is not None:
                return False
            self._waiting.append(data)
            self._bytes += len(data)
            self._changed.notify_all()
        return True

    def close(self) -> bool:
        """Wait until all data is written or the file stalls, and return whether all was written."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        before = -1
        while self._thread.is_alive() and before != self._written:
            before = self._written
            self._thread.join(PATIENCE)
        return not self._thread.is_alive() and self.error is None

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                data = b"".join(self._waiting)
                self._waiting.clear()
            if not data:
                return
            try:
                self._write(data)
            except OSError as error:
                with self._changed:
                    self.error = error
                    self._changed.notify_all()
                return

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                count = os.write(self._descriptor, rest[: self._piece])
            except BlockingIOError:  # another process has made the descriptor non-blocking
                wait_for_room(self._descriptor)
                continue
            rest = rest[count:]
            with self._changed:
                self._written += count
                self._bytes -= count
                self._changed.notify_all()
