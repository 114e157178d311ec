"""Locks on the tokens of a server, which processes and threads take in turn."""

from __future__ import annotations

import errno
import hashlib
import os
import sys
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, final

from ._storage import StorageError


@contextmanager
def lock_file(path: Path) -> Generator[None, None, None]:
    """Wait until no other thread or process has locked a file, and lock it.

    The lock ends with its process, also one that was killed. The file stays: another process may
    be about to lock it.

    Raises:
        OSError: The file cannot be made or locked.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)  # which releases the lock


@contextmanager
def lock_server(path: Path, server: str) -> Generator[None, None, None]:
    """Lock the tokens of a server, by a file beside another one.

    Args:
        path: The other file, whose folder is made if it is missing.
        server: The URL of the MCP server.

    Raises:
        StorageError: The file cannot be made or locked.
    """
    ending = hashlib.sha256(server.encode()).hexdigest()[:16]
    with ExitStack() as stack:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            stack.enter_context(lock_file(path.with_name(f"{path.name}.{ending}.lock")))
        except OSError as error:
            raise StorageError(f"{path} cannot be locked: {error.strerror}") from None
        yield


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
            except OSError as error:
                if error.errno != errno.EDEADLOCK:  # it has waited for ten seconds
                    raise
            else:
                return
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX)


@final
class StorageLock:
    """A lock of a storage, which is taken and released in threads of their own.

    Whoever waits for the lock may stop waiting: then it is released as soon as it is taken.

    Args:
        manager: What `locked` of the storage has returned.
    """

    def __init__(self, manager: AbstractContextManager[Any]) -> None:
        self._manager: Final = manager
        self._guard: Final = threading.Lock()
        self._is_taken = False
        self._is_left = False

    def take(self) -> None:
        """Wait for the lock, and take it."""
        self._manager.__enter__()
        with self._guard:
            is_left = self._is_left
            self._is_taken = not is_left
        if is_left:
            self._manager.__exit__(None, None, None)

    def leave(self) -> None:
        """Release the lock, or do so as soon as it is taken. A second call does nothing."""
        with self._guard:
            is_taken, self._is_taken, self._is_left = self._is_taken, False, True
        if is_taken:
            self._manager.__exit__(None, None, None)
