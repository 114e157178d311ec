"""Sends exchanges of a client over sockets, with h11, on any loop.

A connection carries one exchange at a time, and is kept for the next exchange.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias

from sansmcp.http import Origin

from .._common.http_client_events import sentence_of
from .._common.http_client_settings import HTTPClientLimits
from .._common.tls import TLS
from .._http1.client import HTTPClientConnection
from .http_client import RunningExchange
from .loop import Loop
from .tls_stream import SocketStream, TLSStream

_MOST_IDLE: Final = 20
_IDLE_SECONDS: Final = 60.0
"""Seconds after which an idle connection is not used again: the server may be about to close it."""
Connect: TypeAlias = Callable[[str, int], Awaitable[tuple[str, SocketStream]]]
"""Opens a connection to a host and a port; returns the local address, and the stream."""


class _Link:
    """A connection to a server, and its HTTP/1.1 state."""

    def __init__(self, name: str, stream: SocketStream) -> None:
        self.name: Final = name  # the local address
        self.stream: Final = stream
        self.http: Final = HTTPClientConnection()
        self.is_writing = False  # part of a request has not been written
        self.used_at = 0.0


class H11ExchangeSender:
    """Sends exchanges over its own connections, which are kept open for later exchanges.

    Args:
        loop: The loop of the connections.
        connect: Opens a connection.
        broken: The exceptions that a broken connection raises.
        tls: The TLS settings for HTTPS.
        limits: The limits of the client, of which `connect` counts here.
    """

    def __init__(
        self,
        loop: Loop,
        connect: Connect,
        broken: tuple[type[Exception], ...],
        tls: ssl.SSLContext | None,
        limits: HTTPClientLimits,
    ) -> None:
        self._loop = loop
        self._connect = connect
        self._broken = broken
        self._tls = tls
        self._seconds = limits.connect
        self._idle: list[_Link] = []

    async def send(self, running: RunningExchange) -> None:
        """Send an exchange, and hand the response to its object until its end."""
        exchange = running.exchange
        try:
            link = await self._take(exchange.origin)
        except self._broken as error:
            exchange.receive_failure(sentence_of(error), now=self._loop.now())
            return
        is_done = False
        try:
            data = link.http.send(exchange)
            running.sent(link.name, data)
            sent = link.stream.send_now(data)
            if sent < len(data):
                # Written beside reading: the server may respond before it has read all.
                running.start_soon(self._send_rest, link, memoryview(data)[sent:])
            while not link.http.done:
                data = await link.stream.receive_some()
                running.received(link.name, data)
                link.http.receive(data, now=self._loop.now(), at=time.time())
                running.response_received(has_head=link.http.has_head)
            is_done = True
        except self._broken as error:
            link.http.fail(sentence_of(error), now=self._loop.now())
        finally:
            if is_done and link.http.reusable and len(self._idle) < _MOST_IDLE:
                link.used_at = self._loop.now()
                self._idle.append(link)
            else:
                link.stream.close()

    async def aclose(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().stream.close()

    async def _take(self, origin: Origin) -> _Link:
        """Return an idle connection, or open a new connection.

        Raises:
            OSError: The connection could not be opened in time.
        """
        while self._idle:
            link = self._idle.pop()  # the last used connection: the server closes older ones first
            is_old = self._loop.now() > link.used_at + _IDLE_SECONDS
            if not (is_old or link.is_writing or link.stream.is_readable()):
                return link
            link.stream.close()
        scope = self._loop.new_scope()
        scope.deadline = self._loop.now() + self._seconds
        with scope:
            return await self._open(origin)
        raise OSError(f"no connection to {origin.host} within {self._seconds:g} s")

    async def _open(self, origin: Origin) -> _Link:
        if origin.scheme == "https" and self._tls is None:
            self._tls = ssl.create_default_context()  # slow: all root certificates are read
        name, stream = await self._connect(origin.host, origin.port)
        if origin.scheme == "http":
            return _Link(name, stream)
        assert self._tls is not None
        secure = TLSStream(stream, TLS(self._tls, origin.host), self._loop.new_lock())
        try:
            await secure.do_handshake()
        except BaseException:
            secure.close()
            raise
        return _Link(name, secure)

    async def _send_rest(self, link: _Link, data: memoryview) -> None:
        link.is_writing = True
        with suppress(*self._broken):  # a response may have arrived before the failure
            while data:
                data = data[await link.stream.send_some(data) :]
            link.is_writing = False
