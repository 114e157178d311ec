"""Makes single requests over sockets of their own, in the thread of the caller."""

from __future__ import annotations

import socket
import ssl
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from .._common.http_client_events import sentence_of
from .._common.one_shot import (
    NoResponse,
    OneShotExchange,
    OneShotResponse,
    addresses_of,
    allowed_addresses,
    too_slow,
)
from .._http1.client import HTTPClientConnection
from ..blocking._threads import within

if TYPE_CHECKING:
    from sansmcp.auth import HTTPRequest

_READ_BYTES: Final = 65_536


class SocketOneShotSender:
    """Makes each request on a socket of its own. Several threads may use it.

    The addresses of the host are checked, and the connection goes to one of those that were
    checked. TLS verifies the name.

    Args:
        tls: The TLS settings for HTTPS; None: the default settings.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls

    def send(self, request: HTTPRequest) -> OneShotResponse:
        """Make a request, and return its response, whatever its status is.

        Args:
            request: The request, with its bounds.

        Raises:
            NoResponse: There is no response, or it exceeds a bound.
        """
        exchange = OneShotExchange(request)
        until = time.monotonic() + request.timeout
        try:
            found = within(_left(until), partial(addresses_of, exchange.host, exchange.port))
            if not found:
                raise TimeoutError
            allowed = allowed_addresses(request, exchange.host, found[0])
            with self._connected(exchange, allowed, until) as stream:
                _run(exchange, stream, until)
        except TimeoutError:
            raise NoResponse(too_slow(request.timeout)) from None
        except OSError as error:
            raise NoResponse(sentence_of(error)) from None
        return exchange.response()

    def _connected(
        self, exchange: OneShotExchange, addresses: list[str], until: float
    ) -> socket.socket:
        """Connect to the first address that answers; the rest of the time is shared by them."""
        failure = OSError("no address has answered")
        for tried, address in enumerate(addresses):
            seconds = _left(until) / (len(addresses) - tried)
            try:
                stream = socket.create_connection((address, exchange.port), seconds)
            except OSError as error:
                failure = error
                continue
            return self._secured(exchange, stream, until)
        raise failure

    def _secured(
        self, exchange: OneShotExchange, stream: socket.socket, until: float
    ) -> socket.socket:
        if exchange.scheme == "http":
            return stream
        if self._tls is None:
            self._tls = ssl.create_default_context()  # slow: all root certificates are read
        try:
            stream.settimeout(_left(until))
            return self._tls.wrap_socket(stream, server_hostname=exchange.host)
        except BaseException:
            stream.close()
            raise


def _left(until: float) -> float:
    """The seconds until a time.

    Raises:
        TimeoutError: There are none.
    """
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _run(exchange: OneShotExchange, stream: socket.socket, until: float) -> None:
    """Write the request, and read the response as far as its bounds allow."""
    http = HTTPClientConnection()
    stream.settimeout(_left(until))
    stream.sendall(http.send(exchange))
    while not (http.done or exchange.over):
        stream.settimeout(_left(until))
        http.receive(stream.recv(_READ_BYTES), now=time.monotonic(), at=time.time())
