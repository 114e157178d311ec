"""Makes single requests over sockets of their own, with h11, on any loop."""

from __future__ import annotations

import ssl
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from .._common.http_client_events import sentence_of
from .._common.one_shot import (
    NoResponse,
    OneShotExchange,
    OneShotResponse,
    addresses_of,
    allowed_addresses,
    too_slow,
)
from .._common.tls import TLS
from .._http1.client import HTTPClientConnection
from .h11_sender import Connect
from .loop import Loop
from .threads import in_thread
from .tls_stream import SocketStream, TLSStream

if TYPE_CHECKING:
    from sansmcp.auth import HTTPRequest

    from .._options.clients import HTTPClientOptions


class OneShotSender(Protocol):
    """Makes single requests, each to any origin."""

    async def send(self, request: HTTPRequest) -> OneShotResponse:
        """Make a request, and return its response, whatever its status is.

        Args:
            request: The request, with its bounds.

        Raises:
            NoResponse: There is no response, or it exceeds a bound.
        """
        ...


class H11OneShotSender:
    """Makes each request on a connection of its own.

    The addresses of the host are checked, and the connection goes to one of those that were
    checked: a name that means another address a moment later changes nothing. TLS verifies the
    name.

    Args:
        loop: The loop of the connections.
        connect: Opens a connection.
        broken: The exceptions that a broken connection raises.
        tls: The TLS settings for HTTPS; None: the default settings.
    """

    def __init__(
        self,
        loop: Loop,
        connect: Connect,
        broken: tuple[type[Exception], ...],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._loop = loop
        self._connect = connect
        self._broken = broken
        self._tls = tls

    async def send(self, request: HTTPRequest) -> OneShotResponse:
        """Make a request, and return its response."""
        exchange = OneShotExchange(request)
        deadline = self._loop.now() + request.timeout
        scope = self._loop.new_scope()
        scope.deadline = deadline
        with scope:
            found = await in_thread(self._loop, addresses_of, exchange.host, exchange.port)
            allowed = allowed_addresses(request, exchange.host, found)
            try:
                stream = await self._open(exchange, allowed, deadline)
            except self._broken as error:
                raise NoResponse(sentence_of(error)) from None
            try:
                await self._run(exchange, stream)
            finally:
                stream.close()
            return exchange.response()
        raise NoResponse(too_slow(request.timeout))

    async def _open(
        self, exchange: OneShotExchange, addresses: list[str], deadline: float
    ) -> SocketStream:
        """Connect to the first address that answers; the rest of the time is shared by them."""
        failure: Exception = OSError("no address has answered in time")
        for tried, address in enumerate(addresses):
            scope = self._loop.new_scope()
            left = deadline - self._loop.now()
            scope.deadline = self._loop.now() + left / (len(addresses) - tried)
            with scope:
                try:
                    _, stream = await self._connect(address, exchange.port)
                except self._broken as error:
                    failure = error
                    continue
                return await self._secured(exchange, stream)
        raise failure

    async def _secured(self, exchange: OneShotExchange, stream: SocketStream) -> SocketStream:
        if exchange.scheme == "http":
            return stream
        if self._tls is None:
            self._tls = ssl.create_default_context()  # slow: all root certificates are read
        secure = TLSStream(stream, TLS(self._tls, exchange.host), self._loop.new_lock())
        try:
            await secure.do_handshake()
        except BaseException:
            secure.close()
            raise
        return secure

    async def _run(self, exchange: OneShotExchange, stream: SocketStream) -> None:
        """Write the request, and read the response as far as its bounds allow."""
        http = HTTPClientConnection()
        data = memoryview(http.send(exchange))
        try:
            with suppress(*self._broken):  # a response may have come before the failure
                while data:
                    data = data[await stream.send_some(data) :]
            while not (http.done or exchange.over):
                data_read = await stream.receive_some()
                http.receive(data_read, now=self._loop.now(), at=time.time())
        except self._broken as error:
            http.fail(sentence_of(error), now=self._loop.now())


class ClientOneShotSender:
    """Makes requests in the way that a client sends its exchanges: with httpx2, or directly.

    Args:
        loop: The loop of the client.
        options: The options of the client, which say how to connect.
        direct: Makes requests without httpx2.
    """

    def __init__(
        self, loop: Loop, options: HTTPClientOptions[Any], direct: H11OneShotSender
    ) -> None:
        self._loop = loop
        self._options = options
        self._direct = direct

    async def send(self, request: HTTPRequest) -> OneShotResponse:
        """Make a request, and return its response."""
        client: Any = self._options.http
        proxy = self._options.way_to(request.url)
        if client is None and proxy is None:
            return await self._direct.send(request)
        # Imported here: httpx2 is an optional dependency.
        import httpx2

        from ..httpx import new_client, tls_for
        from .httpx_one_shot import HTTPXOneShotSender

        if client is not None:
            named = self._options.named_proxies
            return await HTTPXOneShotSender(self._loop, client, named).send(request)
        async with new_client(
            httpx2.AsyncClient, tls_for(request.url, self._options.tls), proxy
        ) as own:
            named = () if proxy is None else (proxy,)
            return await HTTPXOneShotSender(self._loop, own, named).send(request)
