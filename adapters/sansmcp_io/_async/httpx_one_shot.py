"""Makes single requests with an `httpx2.AsyncClient`, on asyncio and on trio."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

import httpx2

from .._common.one_shot import (
    NoResponse,
    OneShotExchange,
    OneShotResponse,
    addresses_of,
    allowed_addresses,
    too_slow,
)
from ..httpx import AddressCheck, build_one_shot, failure_text, proxies_of
from .loop import Loop
from .threads import in_thread

if TYPE_CHECKING:
    from sansmcp.auth import HTTPRequest


class HTTPXOneShotSender:
    """Makes requests with a client of httpx2, whose `auth=`, headers and cookies are not sent.

    Args:
        loop: The loop of the client.
        client: The client.
        proxies: URLs of proxies that the client uses, beside those of the environment.
    """

    def __init__(self, loop: Loop, client: httpx2.AsyncClient, proxies: Iterable[str] = ()) -> None:
        self._loop = loop
        self._client = client
        self._proxies = proxies

    async def send(self, request: HTTPRequest) -> OneShotResponse:
        """Make a request, and return its response."""
        exchange = OneShotExchange(request)
        scope = self._loop.new_scope()
        scope.deadline = self._loop.now() + request.timeout
        with scope:
            await self._check_name(exchange, request)
            await self._run(exchange, request)
            return exchange.response()
        raise NoResponse(too_slow(request.timeout))

    async def _check_name(self, exchange: OneShotExchange, request: HTTPRequest) -> None:
        """Check the host before its connections, one of which may be open already.

        A name that is unknown here may be known to a proxy.
        """
        found: list[str] = []
        with suppress(NoResponse):
            found = await in_thread(self._loop, addresses_of, exchange.host, exchange.port)
        if found:
            allowed_addresses(request, exchange.host, found)

    async def _run(self, exchange: OneShotExchange, request: HTTPRequest) -> None:
        check = AddressCheck(request, exchange, proxies_of(self._client, self._proxies))

        async def trace(name: str, info: dict[str, Any]) -> None:
            if (refused := check.refused(name, info)) is not None:
                await info["return_value"].aclose()
                raise refused

        built = build_one_shot(exchange, request.url, request.timeout, trace)
        has_head = False
        try:
            response = await self._client.send(
                built, stream=True, auth=None, follow_redirects=False
            )
            has_head = True
            try:
                exchange.receive_head(response.status_code, response.headers.raw)
                await self._read(exchange, response)
            finally:
                await response.aclose()
            exchange.receive_end()
        except NoResponse:
            raise
        except Exception as error:  # hooks and an application in this process may raise anything
            raise NoResponse(failure_text(error, has_head=has_head)) from error

    async def _read(self, exchange: OneShotExchange, response: httpx2.Response) -> None:
        reading = self._loop.new_scope()
        with reading:
            if exchange.over:
                return
            async with aclosing(response.aiter_raw()) as parts:
                async for part in parts:
                    exchange.receive_data(part)
                    if exchange.over:
                        # To leave the loop would leave iterators inside of httpx2 open.
                        reading.cancel()
