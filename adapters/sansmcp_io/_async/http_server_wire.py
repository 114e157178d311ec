"""The HTTP connection of one client to a server, on any loop."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable
from typing import Any

from sansmcp.http import ServerExchange

from .._common.access import CHECK
from .._common.errors import AccessDenied, Unauthorized
from .._common.http_server import key_of
from .._common.lookups import LATE, RETRY_SECONDS, LookupTimeout, log_failed_lookup
from ..h11 import HTTPConnection, RequestHead
from .background import logged
from .http_service import HTTPServiceBase


class HTTPServerWireBase(ABC):
    """Hands data of a client to its connection object, and writes the output of that object.

    Args:
        server: The state that all connections share.
        connection: The connection object.
        client: Address and port of the other end, for traces.

    Attributes:
        held: The bytes held here that the server knows of.
    """

    def __init__(self, server: HTTPServiceBase, connection: HTTPConnection, client: str) -> None:
        self._server = server
        self._connection = connection
        self._client = client
        self.held = 0
        self._is_due = False  # there may be something to be written
        self._exchange: ServerExchange | None = None  # whose output goes out here

    # ---------------------------------------------------------------------------- the loop's

    @abstractmethod
    def flush(self) -> None:
        """Write all output."""

    @abstractmethod
    def drop_request(self) -> None:
        """Drop the buffered request and the unwritten output."""

    @abstractmethod
    def _unwritten(self) -> int:
        """The number of bytes that the connection object has given out, and that are unwritten."""

    # ---------------------------------------------------------------------------- of all loops

    def close(self) -> None:
        """Close the connection as soon as no request is open."""
        self._connection.close(now=self._server.now())
        self.flush()

    def _note_received(self, data: bytes) -> None:
        if self._server.trace is not None:
            with logged("the trace"):
                self._server.trace.received(self._client, data)

    def _follow(self) -> None:
        """Register this wire for the current exchange of the connection."""
        exchange = self._connection.exchange
        if exchange is not self._exchange:
            if self._exchange is not None:
                self._server.wires.pop(self._exchange)
            if exchange is not None:
                self._server.wires[exchange] = self
            self._exchange = exchange

    def _take(self) -> bytes:
        """Take the next output. The output that was taken before must be written."""
        data = self._connection.data_to_send(now=self._server.now())
        if self._connection.exchange is not self._exchange:
            self._follow()
        if data and self._server.trace is not None:
            with logged("the trace"):
                self._server.trace.sent(self._client, data)
        return data

    def _note_held(self) -> None:
        held = self._unwritten() + self._connection.held_bytes
        if held != self.held:
            change, self.held = held - self.held, held
            self._server.note_held(change)

    def _authenticate(self, head: RequestHead) -> Awaitable[None] | None:
        """Find the principal of a request. An awaitable that is returned has to be awaited."""
        server = self._server
        called = "authenticate" if server.access is None else CHECK
        try:
            if server.access is not None:
                principal: Any = server.access.check(head.method, head.target, head.headers)
            else:
                assert server.authenticate is not None  # or no head would wait
                principal = server.authenticate(head.headers)
        except Exception as error:
            self._refuse(error, called)
        else:
            if inspect.isawaitable(principal):
                return self._admit_later(principal, called)
            self._admit(principal)
        return None

    async def _admit_later(self, principal: Awaitable[Any], called: str) -> None:
        try:
            found = await self._server.lookups.bounded(called, principal)
        except Exception as error:
            self._refuse(error, called)
        else:
            self._admit(found)

    def _admit(self, principal: object) -> None:
        try:
            key = key_of(principal, self._server.principal_key)
        except Exception as error:
            self._refuse(error, "principal_key")
        else:
            self._connection.admit(principal, key, now=self._server.now())

    def _refuse(self, error: Exception, called: str) -> None:
        now = self._server.now()
        if isinstance(error, Unauthorized):
            self._connection.refuse(error.status, error.text, error.challenge, now=now)
        elif isinstance(error, AccessDenied):
            self._connection.refuse(error.status, error.text, headers=error.headers, now=now)
        else:
            log_failed_lookup(called, error)
            if isinstance(error, LookupTimeout):
                self._connection.refuse(503, LATE, retry_after=RETRY_SECONDS, now=now)
            else:
                self._connection.refuse(500, "internal error", now=now)

    def _lose_client(self) -> None:
        """End the exchange of a client that has disconnected."""
        self._connection.receive_eof(now=self._server.now())
        self._follow()
        self._server.turn()
        self._note_held()
