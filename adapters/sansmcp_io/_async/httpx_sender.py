"""Sends exchanges of a client with an `httpx2.AsyncClient`, on asyncio and on trio."""

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
from .http_client import RunningExchange
from .loop import Loop, Scope


class HTTPXExchangeSender:
    """Sends exchanges with a client of httpx2.

    If open streams use all connections of the client's pool, the stream for messages that belong
    to no request is closed, to make room for a request, and is not opened again.

    Args:
        loop: The loop of the client.
        options: The client of the application, or the proxy for a client that is made here.
        connect_seconds: The seconds that opening a connection may take.
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
        self._streams: dict[RunningExchange, Scope] = {}  # streams beside requests
        self._sent: set[RunningExchange] = set()  # probably have a connection
        self._is_crowded = False  # long streams have used up the pool

    async def send(self, running: RunningExchange) -> None:
        """Send an exchange, and hand the response to its object until its end."""
        exchange = running.exchange
        scope = self._loop.new_scope()
        if is_beside(exchange):
            if self._is_crowded:
                running.remove_deadline()
                await self._loop.new_event().wait()
            self._streams[running] = scope
        try:
            with scope:
                await self._send_in_scope(running)
        finally:
            self._streams.pop(running, None)
            self._sent.discard(running)
        if not exchange.over and self._is_crowded:
            exchange.receive_failure(POOL_IS_FULL, now=self._loop.now())

    async def aclose(self) -> None:
        """Close the client, unless it belongs to the application."""
        if self._is_ours:
            await self._client.aclose()

    async def _send_in_scope(self, running: RunningExchange) -> None:
        exchange = running.exchange
        is_new = has_head = False

        async def trace(name: str, info: object) -> None:
            nonlocal is_new
            self._sent.add(running)
            is_new |= name == "connection.connect_tcp.started"

        try:
            response = await self._response(running, trace)
            try:
                if running.is_traced:
                    running.received(CONNECTION, response_text(response))
                now, has_head = self._loop.now(), True
                exchange.receive_head(
                    response.status_code, response.headers.raw, now=now, at=time.time()
                )
                running.response_received()
                async with aclosing(response.aiter_bytes()) as parts:
                    async for part in parts:
                        running.received(CONNECTION, part)
                        exchange.receive_data(part, now=self._loop.now())
                        running.response_received()
            finally:
                await response.aclose()
            exchange.receive_end(now=self._loop.now())
        # Hooks, `auth=` and an application in this process may raise anything.
        except Exception as error:
            if not is_known(error):
                LOGGER.error("the httpx2 client has failed", exc_info=error)
            text = failure_text(error, has_head=has_head, connect=self._connect)
            kept = not (is_new or has_head) and was_kept(error)
            exchange.receive_failure(text, now=self._loop.now(), kept=kept)

    async def _response(self, running: RunningExchange, trace: Any) -> httpx2.Response:
        """Send a request when the client's pool has room for it, and return the response."""
        while True:
            request = build_request(
                self._client, running.exchange, connect=self._connect, trace=trace
            )
            if running.is_traced:
                running.sent(CONNECTION, request_text(request))
            try:
                return await self._client.send(request, stream=True, follow_redirects=False)
            except httpx2.PoolTimeout:
                self._sent.discard(running)
                if running not in self._streams:
                    self._make_room()

    def _make_room(self) -> None:
        """Close streams beside requests, if long streams use all connections of the pool.

        Raises:
            httpx2.PoolTimeout: Streams that were opened for requests use all connections.
        """
        if self._sent and all(lasts(other.exchange) for other in self._sent):
            if not self._is_crowded:
                self._is_crowded = True
                LOGGER.warning("%s", POOL_IS_FULL)
            if not self._streams:
                raise httpx2.PoolTimeout(POOL_IS_FULL)
            for scope in self._streams.values():
                scope.cancel()
