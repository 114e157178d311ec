"""Exchanges of a client on an `httpx2.AsyncClient`, on asyncio and on trio."""

from __future__ import annotations

import math
import time
from contextlib import aclosing
from typing import Any

import httpx2

from .._common.anomalies import LOGGER
from .._options.clients import HTTPClientOptions
from ..httpx import (
    CONNECTION,
    POOL_IS_FULL,
    build_request,
    failure_text,
    is_beside,
    is_known,
    lasts,
    new_client,
    request_text,
    response_text,
    tls_for,
    was_kept,
)
from .http_client import Carrying
from .loop import Loop, Scope


class HTTPXCarrier:
    """Sends exchanges with a client of httpx2.

    Where the pool of that client has no room for a call beside open streams, the stream for what
    belongs to no request gives way, and is not opened again.

    Args:
        loop: The loop that it is on.
        options: The client, or the proxy that a client of ours goes through.
        connect_seconds: How long opening a connection may take.
    """

    def __init__(self, loop: Loop, options: HTTPClientOptions[Any], connect_seconds: float) -> None:
        self._loop = loop
        self._connect = None if connect_seconds == math.inf else connect_seconds
        self._is_ours = options.http is None
        client: Any = options.http
        if client is None:
            tls = tls_for(options.url, options.tls)
            client = new_client(httpx2.AsyncClient, tls, options.proxy)
        self._client: httpx2.AsyncClient = client
        self._streams: dict[Carrying, Scope] = {}  # for what belongs to no request
        self._sent: set[Carrying] = set()  # have a connection, as far as is known
        self._is_crowded = False

    async def carry(self, carrying: Carrying) -> None:
        """Send an exchange, and tell it all that comes of it."""
        exchange = carrying.exchange
        scope = self._loop.new_scope()
        if is_beside(exchange):
            if self._is_crowded:
                carrying.wait_for_ever()
                await self._loop.new_event().wait()
            self._streams[carrying] = scope
        try:
            with scope:
                await self._carry(carrying)
        finally:
            self._streams.pop(carrying, None)
            self._sent.discard(carrying)
        if not exchange.over and self._is_crowded:
            exchange.receive_failure(POOL_IS_FULL, now=self._loop.now())

    async def aclose(self) -> None:
        """Close the client, if it is ours."""
        if self._is_ours:
            await self._client.aclose()

    async def _carry(self, carrying: Carrying) -> None:
        exchange = carrying.exchange
        is_new = has_head = False

        async def trace(name: str, info: object) -> None:
            nonlocal is_new
            self._sent.add(carrying)
            is_new |= name == "connection.connect_tcp.started"

        try:
            response = await self._send(carrying, trace)
            try:
                if carrying.is_traced:
                    carrying.received(CONNECTION, response_text(response))
                now, has_head = self._loop.now(), True
                exchange.receive_head(
                    response.status_code, response.headers.raw, now=now, at=time.time()
                )
                carrying.came()
                async with aclosing(response.aiter_bytes()) as parts:
                    async for part in parts:
                        carrying.received(CONNECTION, part)
                        exchange.receive_data(part, now=self._loop.now())
                        carrying.came()
            finally:
                await response.aclose()
            exchange.receive_end(now=self._loop.now())
        except (
            Exception
        ) as error:  # also of hooks, of `auth=`, and of an application in this process
            if not is_known(error):
                LOGGER.error("the httpx2 client has failed", exc_info=error)
            text = failure_text(error, has_head=has_head, connect=self._connect)
            kept = not (is_new or has_head) and was_kept(error)
            exchange.receive_failure(text, now=self._loop.now(), kept=kept)

    async def _send(self, carrying: Carrying, trace: Any) -> httpx2.Response:
        """Send a request, as soon as the pool of the client has room for it."""
        while True:
            request = build_request(
                self._client, carrying.exchange, connect=self._connect, trace=trace
            )
            if carrying.is_traced:
                carrying.sent(CONNECTION, request_text(request))
            try:
                return await self._client.send(request, stream=True, follow_redirects=False)
            except httpx2.PoolTimeout:
                self._sent.discard(carrying)
                if carrying not in self._streams:
                    self._make_room()

    def _make_room(self) -> None:
        """A message waits for a connection: see what is in the way.

        Raises:
            httpx2.PoolTimeout: Streams that last have all connections.
        """
        if self._sent and all(lasts(other.exchange) for other in self._sent):
            if not self._is_crowded:
                self._is_crowded = True
                LOGGER.warning("%s", POOL_IS_FULL)
            if not self._streams:
                raise httpx2.PoolTimeout(POOL_IS_FULL)
            for scope in self._streams.values():
                scope.cancel()
