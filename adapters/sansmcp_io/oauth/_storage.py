"""Where the credentials of clients are kept between connections."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Awaitable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from copy import deepcopy
from typing import Any, Final, Protocol, TypeAlias, final

from sansmcp import JSONObject

Records: TypeAlias = dict[str, JSONObject]
"""The records of one MCP server, by the issuer of its authorization server."""


@final
class StorageError(Exception):
    """Credentials cannot be read or stored. The text says why, and holds no secret."""


class TokenStorage(Protocol):
    """Keeps records with credentials, which are JSON objects, by server and issuer.

    The methods may be async where the client runs on a loop. Others are called in a thread there,
    since files and key stores may block. A storage that several clients share should be a
    `LockingTokenStorage`.
    """

    def load(self, server: str) -> Mapping[str, JSONObject] | Awaitable[Mapping[str, JSONObject]]:
        """Return the records of a server by issuer; empty if there are none.

        Args:
            server: The URL of the MCP server.
        """
        ...

    def store(self, server: str, issuer: str, record: JSONObject | None) -> Awaitable[None] | None:
        """Replace the record of a server and an issuer; None deletes it."""
        ...


class LockingTokenStorage(TokenStorage, Protocol):
    """A storage whose clients take turns.

    A client locks the tokens of its server while it loads, refreshes and stores them. Otherwise two
    of them could use the same refresh token, and many authorization servers end a login when that
    happens (RFC 9700, section 4.14.2).
    """

    def locked(self, server: str) -> AbstractContextManager[Any] | AbstractAsyncContextManager[Any]:
        """Return a block in which no other client uses the tokens of a server.

        It need not be reentrant: `load` and `store` are called within. One that is not async is
        entered in a thread, and may be left in another one. It should not outlive its process.

        Args:
            server: The URL of the MCP server.
        """
        ...


@final
class MemoryTokenStorage:
    """Keeps records as long as the object lives. Several clients and threads may share it."""

    def __init__(self) -> None:
        self._servers: dict[str, Records] = {}
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._lock: Final = threading.Lock()

    def __repr__(self) -> str:
        return f"<MemoryTokenStorage of {len(self._servers)} servers>"

    def load(self, server: str) -> Records:
        """Return the records of a server by issuer."""
        with self._lock:
            return deepcopy(self._servers.get(server, {}))

    def store(self, server: str, issuer: str, record: JSONObject | None) -> None:
        """Replace the record of a server and an issuer; None deletes it."""
        with self._lock:
            put(self._servers, server, issuer, deepcopy(record))

    def locked(self, server: str) -> AbstractContextManager[Any]:
        """Return a block in which no other client uses the tokens of a server."""
        with self._lock:
            return self._locks[server]

    def servers(self) -> tuple[str, ...]:
        """The URLs of the servers that have a record."""
        with self._lock:
            return tuple(self._servers)


def put(servers: dict[str, Records], server: str, issuer: str, record: JSONObject | None) -> None:
    """Replace a record in all records; a server without any is removed."""
    records = servers.setdefault(server, {})
    if record is None:
        records.pop(issuer, None)
    else:
        records[issuer] = record
    if not records:
        del servers[server]


def records_in(value: Any, where: str) -> dict[str, Records]:
    """Check that a value that was read is made of records.

    Raises:
        StorageError: It is something else.
    """
    if not (_is_object(value) and all(map(_is_object, value.values()))):
        raise StorageError(f"{where} holds no records of sansmcp: move it away")
    servers: dict[str, Records] = value
    for records in servers.values():
        if not all(map(_is_object, records.values())):
            raise StorageError(f"{where} holds no records of sansmcp: move it away")
    return servers


def _is_object(value: object) -> bool:
    return isinstance(value, dict)
