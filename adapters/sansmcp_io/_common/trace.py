"""Traces, which are told of all that a connection does: for finding faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from sansmcp import Event

if TYPE_CHECKING:
    from sansmcp.http import ClientHTTPEvent, HTTPEvent


class Trace(Protocol):
    """Told of everything that one side sends, receives and learns, in order.

    It sees the payloads: what it is given may be confidential.
    """

    def sent(self, data: bytes) -> None:
        """These bytes are about to be written."""

    def received(self, data: bytes | bytearray) -> None:
        """These bytes were read."""

    def happened(self, event: Event) -> None:
        """The core reported this event; it is handled after this call."""


class HTTPTrace(Protocol):
    """Told of everything that an HTTP server sends, receives and learns, in order.

    A client is the address and port of its connection, as `127.0.0.1:50123`. The bytes are those
    of HTTP, credentials included, and before TLS or after it: they are confidential.
    """

    def sent(self, client: str, data: bytes) -> None:
        """These bytes are about to be written."""

    def received(self, client: str, data: bytes) -> None:
        """These bytes were read; `b""`: the client sends no more."""

    def happened(self, event: HTTPEvent) -> None:
        """The endpoint reported this event; it is handled after this call."""


class HTTPClientTrace(Protocol):
    """Told of everything that a client over HTTP sends, receives and learns, in order.

    A connection is its own address and port, as `127.0.0.1:50123`, which is what the server's
    `HTTPTrace` calls it. The bytes are those of HTTP, credentials included, and before TLS or after
    it: they are confidential.
    """

    def sent(self, connection: str, data: bytes) -> None:
        """This request is about to be written."""

    def received(self, connection: str, data: bytes) -> None:
        """These bytes were read; `b""`: the server sends no more."""

    def happened(self, event: ClientHTTPEvent) -> None:
        """The endpoint reported this event; it is handled after this call."""


def address_text(address: tuple[Any, ...]) -> str:
    """Address and port, as `127.0.0.1:50123` or `[::1]:50123`."""
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
