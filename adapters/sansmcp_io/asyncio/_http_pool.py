"""TCP connections to one server on asyncio, which are kept for the next exchange."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from typing import Final, cast

from sansmcp.http import ClientExchange, Origin

from .._async.background import logged
from .._async.http_client import sentence_of
from .._common.tls import TLS
from .._common.trace import HTTPClientTrace, address_text
from .._http1.client import HTTPClientConnection
from ._tasks import finished
from ._tcp import connect_tcp

_MOST_IDLE: Final = 20
_IDLE_SECONDS: Final = 60.0
"""After so long a server may close it at any moment, in the midst of the next request."""


class ClientLink(asyncio.Protocol):
    """A connection, and what it carries.

    Attributes:
        used_at: When it was given back.
        moved: Called when something has come for the exchange, or the connection has ended.
        is_made: Whether the socket belongs to it.
    """

    _transport: asyncio.Transport
    _name: str

    def __init__(
        self,
        tls: ssl.SSLContext | None,
        host: str,
        trace: HTTPClientTrace | None,
        on_lost: Callable[[ClientLink], object],
    ) -> None:
        self._loop: Final = asyncio.get_running_loop()
        self._tls = None if tls is None else TLS(tls, host)
        self._trace = trace
        self._opened = self._loop.create_future()
        self._exchange: ClientExchange | None = None
        self._is_writing = False
        self._is_over = False
        self.http: Final = HTTPClientConnection()
        self.used_at = 0.0
        self.moved: Callable[[], object] = _nothing
        self.is_made = False
        self._on_lost: Final = on_lost

    async def opened(self) -> None:
        """Wait for the handshake, where there is one.

        Raises:
            OSError: It has failed.
        """
        await self._opened

    def send(self, exchange: ClientExchange) -> None:
        """Begin an exchange. What comes of it is told to it."""
        self._exchange = exchange
        data = self.http.send(exchange)
        if self._trace is not None:
            with logged("the trace"):
                self._trace.sent(self._name, data)
        self._write(data)

    @property
    def is_reusable(self) -> bool:
        """Whether it can carry anything more."""
        idle = not self._is_over and not self._is_writing
        return idle and self.http.reusable and self._loop.time() <= self.used_at + _IDLE_SECONDS

    def close(self) -> None:
        """Close it at once, without a good-bye that somebody would have to wait for."""
        self._is_over = True
        self.moved = _nothing
        if not self._opened.cancel() and not self._opened.cancelled():
            self._opened.exception()  # or Python complains that nobody has looked at it
        self._transport.abort()

    # ---------------------------------------------------------------------------- of the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        self._transport = cast(asyncio.Transport, transport)
        self.is_made = True
        self._transport.set_write_buffer_limits(high=0)
        self._name = address_text(transport.get_extra_info("sockname"))
        if self._tls is None:
            self._opened.set_result(None)
        else:
            self._decrypted(self._tls, b"")

    def data_received(self, data: bytes) -> None:
        """Something has come."""
        if self._is_over:
            return
        tls = self._tls
        if tls is not None:
            data = self._decrypted(tls, data)
            self._is_over |= tls.is_over  # so that it is not used again for what this has ended
        if data:
            self._receive(data)
        if tls is not None and tls.is_over:
            self._receive(b"")

    def eof_received(self) -> None:
        """The server says nothing more; the transport is closed after this."""
        if not self._is_over:
            self._receive(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed."""
        if not self._is_over:
            self._failed(exc or ConnectionResetError("it was closed"))
        self._on_lost(self)

    def pause_writing(self) -> None:
        """Part of a request has not been written."""
        self._is_writing = True

    def resume_writing(self) -> None:
        """All of it was."""
        self._is_writing = False

    # ---------------------------------------------------------------------------- within

    def _decrypted(self, tls: TLS, data: bytes) -> bytes:
        """What is in it, if anything. No bytes begin the handshake."""
        try:
            data = tls.receive(data)
        except ssl.SSLError as error:
            self._transport.write(tls.take())  # why
            self._failed(error)
            return b""
        self._transport.write(tls.take())
        if tls.is_open and not self._opened.done():
            self._opened.set_result(None)
        return data

    def _write(self, data: bytes) -> None:
        if self._tls is not None:
            self._tls.send(data)
            data = self._tls.take()
        self._transport.write(data)

    def _receive(self, data: bytes) -> None:
        """`b""` is the end."""
        if not data:
            self._is_over = True
        if self._trace is not None:
            with logged("the trace"):
                self._trace.received(self._name, data)
        if not self.http.done:
            self.http.receive(data, now=self._loop.time(), at=time.time())
            self.moved()
        elif data:
            self._is_over = True  # nobody has asked for this
        if self._is_over:
            self._end(EOFError("the server has closed it"))

    def _failed(self, error: Exception) -> None:
        self._is_over = True
        if not self.http.done and self._exchange is not None:
            self.http.fail(sentence_of(error), now=self._loop.time())
            self.moved()
        self._end(error)

    def _end(self, error: Exception) -> None:
        if not self._opened.done():
            self._opened.set_exception(error if isinstance(error, OSError) else OSError(str(error)))
        self._transport.close()


def _nothing() -> None:
    """Nobody is told."""


class ClientPool:
    """Opens connections, and keeps those that can be used again.

    Args:
        tls: What HTTPS is checked by.
        connect_seconds: How long opening one may take.
        trace: Told of what passes.
    """

    def __init__(
        self, tls: ssl.SSLContext | None, connect_seconds: float, trace: HTTPClientTrace | None
    ) -> None:
        self._tls = tls
        self._trace = trace
        self._connect_seconds = connect_seconds
        self._idle: list[ClientLink] = []
        self._links: set[ClientLink] = set()  # whose sockets are open
        self._has_lost = asyncio.Event()

    def take(self) -> ClientLink | None:
        """A connection that is open and unused, if there is one."""
        while self._idle:
            link = self._idle.pop()  # the one used last: the others may be closed as time goes by
            if link.is_reusable:
                return link
            link.close()
        return None

    async def open(self, origin: Origin) -> ClientLink:
        """A new connection.

        Raises:
            OSError: It could not be opened in time.
        """
        tls = None
        if origin.scheme == "https":
            if self._tls is None:
                self._tls = ssl.create_default_context()  # which takes long
            tls = self._tls
        link = ClientLink(tls, origin.host, self._trace, self._lost)
        scope = asyncio.timeout(self._connect_seconds)
        try:
            async with scope:
                return await self._made(await connect_tcp(origin.host, origin.port), link)
        except TimeoutError as error:
            if not scope.expired():
                raise  # the system has given up
            text = f"no connection to {origin.host} within {self._connect_seconds:g} s"
            raise OSError(text) from error

    async def _made(self, connected: socket.socket, link: ClientLink) -> ClientLink:
        """Give the socket to the link, and wait until that is open."""
        loop = asyncio.get_running_loop()
        self._links.add(link)
        try:
            # Not cancelled on the way: uvloop would close the descriptor and not the socket, whose
            # number may be that of another descriptor then.
            await finished(loop.create_connection(lambda: link, sock=connected))
            await link.opened()
        except BaseException:
            if link.is_made:
                link.close()
            else:
                self._links.discard(link)
                connected.close()
            raise
        return link

    def _lost(self, link: ClientLink) -> None:
        self._links.discard(link)
        self._has_lost.set()

    def give_back(self, link: ClientLink) -> None:
        """Keep it, if it can carry anything more."""
        link.moved = _nothing
        link.used_at = asyncio.get_running_loop().time()
        if link.is_reusable and len(self._idle) < _MOST_IDLE:
            self._idle.append(link)
        else:
            link.close()

    async def close(self) -> None:
        """Close all connections, and wait until no socket is open."""
        self._idle.clear()
        for link in self._links:
            link.close()
        while self._links:
            self._has_lost.clear()
            await self._has_lost.wait()
