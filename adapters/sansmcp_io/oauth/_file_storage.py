"""Keeps credentials in a file that only its owner can read."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar, final

from sansmcp import JSONObject

from ._locks import lock_file, lock_server
from ._storage import Records, StorageError, put, records_in

_OTHERS: Final = 0o077
"""The permissions of group and others."""
_TRIES: Final = 20
_PAUSE: Final = 0.02
"""Seconds between two tries."""
ReturnedT = TypeVar("ReturnedT")


@final
class FileTokenStorage:
    """Keeps the records of any number of servers in one JSON file.

    The file has mode 0600. A file that others can read, or that belongs to another user, is
    refused. It is replaced as a whole, so a program that reads it, or a crash, never meets half of
    it. Processes take turns, by locks on files beside it whose names end in `.lock`: while one
    writes, and while one refreshes the tokens of a server. A lock ends with its process. Keeps
    AUTH-025, AUTH-026, AUTH-087.

    Args:
        path: The file. It and its folder are made if they are missing.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path: Final = Path(path)

    def __repr__(self) -> str:
        return f"FileTokenStorage({str(self._path)!r})"

    def load(self, server: str) -> Records:
        """Return the records of a server by issuer.

        Raises:
            StorageError: The file cannot be read, or others can read it.
        """
        return self._read().get(server, {})

    def store(self, server: str, issuer: str, record: JSONObject | None) -> None:
        """Replace the record of a server and an issuer; None deletes it.

        Raises:
            StorageError: The file cannot be read or written.
        """
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with lock_file(Path(f"{self._path.resolve()}.lock")):
                servers = self._read()
                put(servers, server, issuer, record)
                self._write(servers)
        except OSError as error:
            raise StorageError(f"{self._path} cannot be written: {error.strerror}") from None

    def locked(self, server: str) -> AbstractContextManager[None]:
        """Return a block that waits until no other thread or process uses the tokens of a server.

        Raises:
            StorageError: When it is entered: the file of the lock cannot be made or locked.
        """
        return lock_server(self._path.resolve(), server)

    def servers(self) -> tuple[str, ...]:
        """The URLs of the servers that have a record."""
        return tuple(self._read())

    def _read(self) -> dict[str, Records]:
        try:
            with _patiently(lambda: self._path.open("rb")) as file:
                status = os.fstat(file.fileno())
                data = file.read()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StorageError(f"{self._path} cannot be read: {error.strerror}") from None
        if sys.platform != "win32":
            if status.st_uid != os.geteuid():
                raise StorageError(
                    f"{self._path} belongs to another user, who knows what is in it: move it away, "
                    "or run this program as its owner"
                )
            if status.st_mode & _OTHERS:
                raise StorageError(
                    f"{self._path} holds secrets, and others may read it: chmod 600 {self._path}"
                )
        try:
            value: Any = json.loads(data)
        except ValueError:
            value = None
        return records_in(value, str(self._path))

    def _write(self, servers: dict[str, Records]) -> None:
        """Write another file, and put it in the place of this one."""
        target = self._path.resolve()  # a symbolic link stays one
        # Made with mode 0600, under a name that nobody else has.
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(servers, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            _patiently(lambda: os.replace(name, target))
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise


def _patiently(function: Callable[[], ReturnedT]) -> ReturnedT:
    """Call a function that Windows refuses while another program has the file open.

    Each has it open for a moment only, so that a refusal that stays has another cause.
    """
    for _ in range(_TRIES - 1):
        try:
            return function()
        except PermissionError:
            time.sleep(_PAUSE)  # nothing tells when the other program has closed it
    return function()
