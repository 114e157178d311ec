"""Sends exchanges of a client with an `httpx2.AsyncClient`, on asyncio and on trio."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, Final

import httpx2

from .._common.http_client_events import note_hook_error
from .._common.shared_pool import AGAIN_SECONDS, POOL_IS_FULL, PooledExchange, SharedPool, pool_of
from .._options.clients import HTTPClientOptions
from ..httpx import (
    CONNECTION,
    ConnectionNotes,
    build_request,
    failure_text,
    is_known,
    new_client,
    request_text,
    response_text,
    tls_for,
    was_kept,
)
from .http_client import RunningExchange
from .loop import Loop


class _AsyncExchange(PooledExchange):
    """An exchange that a task sends.

    Attributes:
        scope: The cancel scope in which it is sent.
        may_proceed: Set when an exchange that has waited may be sent.
    """

    def __init__(self, running: RunningExchange, loop: Loop) -> None:
        super().__init__(running.exchange)
        self.running: Final = running
        self.scope: Final = loop.new_scope()
        self.may_proceed = loop.new_event()

    def proceed(self) -> None:
        self.may_proceed.set()

    def displace(self) -> None:
        self.is_displaced = True
        self.scope.cancel()


class HTTPXExchangeSender:
    """Sends exchanges with a client of httpx2.

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
        self._pool: SharedPool = pool_of(client)

    async def send(self, running: RunningExchange) -> None:
        """Send an exchange, and hand the response to its object until its end."""
        one = _AsyncExchange(running, self._loop)
        is_cancelled = True
        try:
            with one.scope:
                await self._send_in_scope(one)
            is_cancelled = False
        finally:
            if one.is_displaced or (is_cancelled and self._pool.is_waiting(one)):
                one.exchange.receive_failure(POOL_IS_FULL, now=self._loop.now())
            self._pool.leave(one)

    async def aclose(self) -> None:
        """Close the client, unless it belongs to the application."""
        if self._is_ours:
            await self._client.aclose()

    async def _send_in_scope(self, one: _AsyncExchange) -> None:
        exchange, running = one.exchange, one.running
        connection = ConnectionNotes(exchange)
        has_head = False

        async def trace(name: str, info: Mapping[str, Any]) -> None:
            self._pool.connected(one)
            connection.note(name, info)

        try:
            response = await self._response(one, trace)
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
                note_hook_error(exchange, error)
            text = failure_text(
                error, has_head=has_head, connect=self._connect, proxy=connection.proxy
            )
            kept = not (connection.is_new or has_head) and was_kept(error)
            exchange.receive_failure(text, now=self._loop.now(), kept=kept)

    async def _response(self, one: _AsyncExchange, trace: Any) -> httpx2.Response:
        """Send a request when the client's pool has room for it, and return the response."""
        running = one.running
        while True:
            while not self._pool.admit(one):
                await self._wait(one)
            request = build_request(self._client, one.exchange, connect=self._connect, trace=trace)
            if running.is_traced:
                running.sent(CONNECTION, request_text(request))
            try:
                return await self._client.send(request, stream=True, follow_redirects=False)
            except httpx2.PoolTimeout:
                self._pool.timed_out(one)
                await self._wait(one)

    async def _wait(self, one: _AsyncExchange) -> None:
        """Wait until an exchange may be sent, or it is time to ask again."""
        again_at = self._loop.now() + AGAIN_SECONDS
        if self._pool.is_crowded and one.is_standalone:
            one.running.remove_deadline()
            again_at = math.inf
        await self._loop.wait_until(again_at, one.may_proceed.wait)
        one.may_proceed = self._loop.new_event()
