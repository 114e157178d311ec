"""TCP connections to one server, which are kept for the next exchange."""

from __future__ import annotations

import ssl
from typing import Final

import trio

from sansmcp.http import Origin

from .._common.tls import TLS
from .._http1.client import HTTPClientConnection
from ._socket import NoWaitSocket, TLSSocket, address_of

_MOST_IDLE: Final = 20
_IDLE_SECONDS: Final = 60.0
"""After so long a server may close it at any moment, in the midst of the next request."""


class ClientLink:
    """A connection, and what it carries.

    Attributes:
        name: The address of this end.
        is_writing: Part of a request has not been written.
        used_at: When it was given back.
    """

    def __init__(self, name: str, stream: NoWaitSocket | TLSSocket) -> None:
        self.name: Final = name
        self.stream: Final = stream
        self.http: Final = HTTPClientConnection()
        self.is_writing = False
        self.used_at = 0.0

    async def aclose(self) -> None:
        """Close it at once, without a good-bye that somebody would have to wait for."""
        await self.stream.aclose_forcefully()

    def is_stale(self) -> bool:
        """Whether the server has closed it, or has said something that nobody asked for."""
        return trio.current_time() > self.used_at + _IDLE_SECONDS or self.stream.is_readable()


class ClientPool:
    """Opens connections, and keeps those that can be used again.

    Args:
        tls: What HTTPS is checked by.
        connect_seconds: How long opening one may take.
    """

    def __init__(self, tls: ssl.SSLContext | None, connect_seconds: float) -> None:
        self._tls = tls
        self._connect_seconds = connect_seconds
        self._idle: list[ClientLink] = []

    async def take(self, origin: Origin) -> ClientLink:
        """A connection, open and unused.

        Raises:
            OSError: It could not be opened in time.
        """
        while self._idle:
            link = self._idle.pop()  # the one used last: the others may be closed as time goes by
            if not link.is_stale():
                return link
            await link.aclose()
        with trio.move_on_after(self._connect_seconds):
            return await self._open(origin)
        raise OSError(f"no connection to {origin.host} within {self._connect_seconds:g} s")

    async def give_back(self, link: ClientLink) -> None:
        """Keep it, if it can carry anything more."""
        if link.http.reusable and not link.is_writing and len(self._idle) < _MOST_IDLE:
            link.used_at = trio.current_time()
            self._idle.append(link)
        else:
            await link.aclose()

    async def aclose(self) -> None:
        """Close those that are kept."""
        while self._idle:
            await self._idle.pop().aclose()

    async def _open(self, origin: Origin) -> ClientLink:
        if origin.scheme == "http":
            stream = await trio.open_tcp_stream(origin.host, origin.port)
            return ClientLink(address_of(stream), NoWaitSocket(stream))
        if self._tls is None:
            self._tls = ssl.create_default_context()  # which takes long: it reads all certificates
        tls = TLS(self._tls, origin.host)
        stream = await trio.open_tcp_stream(origin.host, origin.port)
        name, secure = address_of(stream), TLSSocket(stream, tls)
        try:
            await secure.do_handshake()
        except BaseException:
            with trio.CancelScope(shield=True):
                await secure.aclose_forcefully()
            raise
        return ClientLink(name, secure)
