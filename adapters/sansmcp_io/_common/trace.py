"""Traces, which get the bytes and events of a connection, for debugging."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from sansmcp import Event

if TYPE_CHECKING:
    from sansmcp.http import ClientHTTPEvent, HTTPEvent


class Trace(Protocol):
    """Gets the bytes and events of one side of a connection, in order.

    It sees the payloads: what it is given may be confidential.
    """

    def sent(self, data: bytes) -> None:
        """Called with bytes that are about to be written."""

    def received(self, data: bytes | bytearray) -> None:
        """Called with bytes that were read."""

    def happened(self, event: Event) -> None:
        """Called with an event of the core, before the event is handled."""


class HTTPTrace(Protocol):
    """Gets the bytes and events of an HTTP server, in order.

    A client is the address and port of its connection, as `127.0.0.1:50123`. The bytes are those
    of HTTP, credentials included, and before TLS or after it: they are confidential.
    """

    def sent(self, client: str, data: bytes) -> None:
        """Called with bytes that are about to be written."""

    def received(self, client: str, data: bytes) -> None:
        """Called with bytes that were read; `b""`: the client has sent EOF."""

    def happened(self, event: HTTPEvent) -> None:
        """Called with an event of the endpoint, before the event is handled."""


class HTTPClientTrace(Protocol):
    """Gets the bytes and events of a client over HTTP, in order.

    A connection is its own address and port, as `127.0.0.1:50123`, which is what the server's
    `HTTPTrace` calls it. The bytes are those of HTTP, credentials included, and before TLS or after
    it: they are confidential.
    """

    def sent(self, connection: str, data: bytes) -> None:
        """Called with the text of a request that is about to be written."""

    def received(self, connection: str, data: bytes) -> None:
        """Called with bytes that were read; `b""`: the server has sent EOF."""

    def happened(self, event: ClientHTTPEvent) -> None:
        """Called with an event of the endpoint, before the event is handled."""


def address_text(address: tuple[Any, ...]) -> str:
    """Address and port, as `127.0.0.1:50123` or `[::1]:50123`."""
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
