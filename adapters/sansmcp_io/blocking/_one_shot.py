"""Makes single requests with an `httpx2.Client`, without a loop.

A request runs in a thread of its own: httpx2 has no bound on the time of a whole response, and a
caller that is interrupted by Ctrl-C must not wait for a server.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import httpx2

from .._common.one_shot import (
    NoResponse,
    OneShotExchange,
    OneShotResponse,
    addresses_of,
    allowed_addresses,
    too_slow,
)
from ..httpx import AddressCheck, build_one_shot, failure_text, new_client, proxies_of, tls_for
from ._http_client_worker import shut_down
from ._threads import within

if TYPE_CHECKING:
    from sansmcp.auth import HTTPRequest

    from .._options.clients import HTTPClientOptions


class OneShotSender:
    """Makes requests with a client of httpx2, whose `auth=`, headers and cookies are not sent.

    Args:
        options: The options of the client of MCP, which say how to connect.
    """

    def __init__(self, options: HTTPClientOptions[Any]) -> None:
        self._options = options

    def send(self, request: HTTPRequest) -> OneShotResponse:
        """Make a request, and return its response, whatever its status is.

        Args:
            request: The request, with its bounds.

        Raises:
            NoResponse: There is no response, or it exceeds a bound.
        """
        exchange = OneShotExchange(request)
        connection = Connection()
        run = partial(self._run, exchange, request, connection)
        if not within(request.timeout, run, connection.close):
            raise NoResponse(too_slow(request.timeout))
        return exchange.response()

    def _run(self, exchange: OneShotExchange, request: HTTPRequest, connection: Connection) -> None:
        client: Any = self._options.http
        if client is not None:
            named = self._options.named_proxies
            self._run_with(client, exchange, request, connection, named)
            return
        tls, proxy = tls_for(request.url, self._options.tls), self._options.way_to(request.url)
        with new_client(httpx2.Client, tls, proxy) as own:
            named = () if proxy is None else (proxy,)
            self._run_with(own, exchange, request, connection, named)

    @staticmethod
    def _run_with(
        client: httpx2.Client,
        exchange: OneShotExchange,
        request: HTTPRequest,
        connection: Connection,
        proxies: Iterable[str],
    ) -> None:
        found: list[str] = []
        with suppress(NoResponse):  # a name that is unknown here may be known to a proxy
            found = addresses_of(exchange.host, exchange.port)
        if found:  # before the connections, one of which may be open already
            allowed_addresses(request, exchange.host, found)
        check = AddressCheck(request, exchange, proxies_of(client, proxies))

        def trace(name: str, info: dict[str, Any]) -> None:
            if (refused := check.refused(name, info)) is not None:
                info["return_value"].close()
                raise refused
            connection.note(info.get("return_value"))

        built = build_one_shot(exchange, request.url, request.timeout, trace)
        has_head = False
        try:
            response = client.send(built, stream=True, auth=None, follow_redirects=False)
            has_head = True
            connection.note(response.extensions.get("network_stream"))
            try:
                exchange.receive_head(response.status_code, response.headers.raw)
                for part in response.iter_raw():
                    exchange.receive_data(part)
                    if exchange.over or connection.is_closed:
                        break
            finally:
                response.close()
            exchange.receive_end()
        except NoResponse:
            raise
        except Exception as error:  # hooks and an application in this process may raise anything
            raise NoResponse(failure_text(error, has_head=has_head)) from error


class Connection:
    """The connection of one request, which another thread closes when time is up.

    A server that sends a byte now and then would keep the thread of the request for ever.

    Attributes:
        is_closed: Whether time is up.
    """

    def __init__(self) -> None:
        self.is_closed = False
        self._lock: Final = threading.Lock()
        self._stream: Any = None

    def note(self, stream: Any) -> None:
        """Note what carries the request now, if it is a stream: a socket, and then TLS on it."""
        if hasattr(stream, "get_extra_info"):
            with self._lock:
                self._stream = stream
            if self.is_closed:
                self.close()

    def close(self) -> None:
        """Let the thread of the request end."""
        self.is_closed = True
        with self._lock:
            if self._stream is not None and self._stream.get_extra_info("socket") is not None:
                shut_down(self._stream)
