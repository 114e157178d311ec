"""Keeps credentials in the key store of the system."""

from __future__ import annotations

import json
import os
import re
import threading
from contextlib import AbstractContextManager
from typing import Any, Final, final

from sansmcp import JSONObject

from .._common.errors import without_extra
from ._folders import settings_folder
from ._locks import lock_server
from ._storage import Records, StorageError, put, records_in

_INDEX: Final = "servers"
"""The entry with the URLs of all servers, since a key store cannot list its entries."""
_MAX_CHARACTERS: Final = 1280
"""Characters of JSON, which are ASCII: Windows keeps 2560 bytes, two for each."""
_SPLIT: Final = "sansmcp parts "
_PARTS: Final = re.compile(rf"{_SPLIT}([ab])([0-9]{{1,4}})")


@final
class KeyringTokenStorage:
    """Keeps records in the key store of the system, with the package `keyring`.

    Each server has an entry of its own, or several: Windows takes 2560 bytes in one. Needs the
    extra `keyring`. Keeps AUTH-382.

    Args:
        service: The name under which the key store shows the entries.

    Raises:
        ModuleNotFoundError: The extra is not installed.
    """

    def __init__(self, service: str = "sansmcp") -> None:
        try:
            import keyring
        except ModuleNotFoundError as error:
            raise without_extra("keyring", error) from None
        self._keyring: Final[Any] = keyring
        self._service: Final = service
        self._lock: Final = threading.Lock()

    def __repr__(self) -> str:
        return f"KeyringTokenStorage({self._service!r})"

    def load(self, server: str) -> Records:
        """Return the records of a server by issuer.

        Raises:
            StorageError: The key store refuses, or there is none.
        """
        with self._lock:
            return self._load(server)

    def store(self, server: str, issuer: str, record: JSONObject | None) -> None:
        """Replace the record of a server and an issuer; None deletes it.

        Raises:
            StorageError: The key store refuses, or there is none.
        """
        with self._lock:
            servers = {server: self._load(server)}
            put(servers, server, issuer, record)
            known = [other for other in self._servers() if other != server]
            if server in servers:
                self._put(server, json.dumps(servers[server]))
                known.append(server)
            else:
                self._put(server, None)
            self._put(_INDEX, json.dumps(known) if known else None)

    def locked(self, server: str) -> AbstractContextManager[None]:
        """Return a block that waits until no other thread or process uses the tokens of a server.

        A key store has no locks: they are on files in the folder with the settings of the user.

        Raises:
            StorageError: When it is entered: the file of the lock cannot be made or locked.
        """
        return lock_server(settings_folder() / self._service.replace(os.sep, "_"), server)

    def servers(self) -> tuple[str, ...]:
        """The URLs of the servers that have a record."""
        with self._lock:
            return self._servers()

    def _load(self, server: str) -> Records:
        found = self._get(server)
        value: dict[str, Any] = {server: {} if found is None else found}
        return records_in(value, f"the entry of {server} in the key store")[server]

    def _servers(self) -> tuple[str, ...]:
        known: list[Any] = self._get(_INDEX) or []
        return tuple(map(str, known))

    def _get(self, entry: str) -> Any:
        try:
            found: str | None = self._keyring.get_password(self._service, entry)
            parts = [] if found is None else _parts_of(entry, found)
            if parts:
                pieces = (self._keyring.get_password(self._service, part) for part in parts)
                found = "".join(piece or "" for piece in pieces)
        except self._keyring.errors.KeyringError as error:
            raise StorageError(f"the key store cannot be read: {error}") from None
        if found is None:
            return None
        try:
            return json.loads(found)
        except ValueError:
            raise StorageError(f"the entry {entry} in the key store is no JSON") from None

    def _put(self, entry: str, text: str | None) -> None:
        """Set an entry; None deletes it.

        A text that is too long for one entry is split, and the entry then says how. It is replaced
        between the new parts and the old ones: who reads it finds all of either.
        """
        keys, service = self._keyring, self._service
        try:
            former: str | None = keys.get_password(service, entry)
            old = [] if former is None else _parts_of(entry, former)
            if text is not None:
                if len(text) > _MAX_CHARACTERS:
                    pieces = [
                        text[start : start + _MAX_CHARACTERS]
                        for start in range(0, len(text), _MAX_CHARACTERS)
                    ]
                    name = "b" if f"{entry}#a0" in old else "a"
                    text = f"{_SPLIT}{name}{len(pieces)}"
                    for part, piece in zip(_parts_of(entry, text), pieces, strict=True):
                        keys.set_password(service, part, piece)
                keys.set_password(service, entry, text)
            elif former is not None:
                keys.delete_password(service, entry)
            for part in old:
                if keys.get_password(service, part) is not None:
                    keys.delete_password(service, part)
        except keys.errors.KeyringError as error:
            raise StorageError(f"the key store cannot be written: {error}") from None


def _parts_of(entry: str, text: str) -> list[str]:
    """The entries with the parts of one, if its text says that it was split."""
    found = _PARTS.fullmatch(text)
    return [] if found is None else [f"{entry}#{found[1]}{n}" for n in range(int(found[2]))]
