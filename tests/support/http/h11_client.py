"""Writes HTTP/1.1 by hand, byte by byte if a test wants, and reads the responses with h11."""

from typing import Any

import attrs
import h11

from sansmcp.http import ServerEndpoint
from sansmcp_io.h11 import ConnectionState, HTTPConnection
from tests.support.http.server_endpoint import (
    POST,
    Headers,
    body_of,
    drain,
    modern_headers,
    new_endpoint,
)


def head(method: str = "POST", target: str = "/mcp", fields: Headers | None = None) -> bytes:
    """The bytes of the head of a request."""
    lines = [f"{method} {target} HTTP/1.1"]
    given = {"host": "localhost", **(fields or {})}
    lines += [f"{name}: {value}" for name, value in given.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def posted(message: object, fields: Headers | None = None) -> bytes:
    """The bytes of a complete POST."""
    body = body_of(message)
    return head("POST", "/mcp", {**POST, "content-length": str(len(body)), **(fields or {})}) + body


def posted_modern(message: Any) -> bytes:
    """The bytes of a complete POST of 2026-07-28."""
    return posted(message, modern_headers(message))


@attrs.frozen
class Received:
    """A response that a client has read."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def closes(self) -> bool:
        return self.headers.get("connection") == "close"


def responses(data: bytes, methods: list[str]) -> list[Received]:
    """The responses in these bytes, for requests with these methods."""
    found: list[Received] = []
    for method in methods:
        if not data:
            break
        parser = h11.Connection(h11.CLIENT)
        parser.send(h11.Request(method=method, target="/", headers=[("host", "a")]))
        parser.send(h11.EndOfMessage())
        parser.receive_data(data)
        status, headers, body = 0, dict[str, str](), b""
        while not isinstance(event := parser.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                status = event.status_code
                headers = {name.decode(): value.decode() for name, value in event.headers}
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif not isinstance(event, h11.InformationalResponse):
                return found  # the rest is an incomplete response
        found.append(Received(status, headers, body))
        data = parser.trailing_data[0]
    return found


@attrs.define
class Driven:
    """A server connection whose bytes and clock are controlled by a test."""

    endpoint: ServerEndpoint
    connection: HTTPConnection
    now: float = 0.0
    sent: bytes = b""

    def receive(self, data: bytes) -> None:
        self.connection.receive_data(data, now=self.now)
        self.flush()

    def flush(self) -> None:
        """Take the output of the connection, as an adapter does after each call."""
        self.sent += self.connection.data_to_send(now=self.now)

    def wait(self, seconds: float) -> None:
        """Let time pass, and run the timers that are due."""
        self.now += seconds
        self.connection.handle_timeout(self.now)
        self.flush()

    def take(self, *methods: str) -> list[Received]:
        """The responses that the server has written since the last call."""
        found = responses(self.sent, list(methods or ("POST",)))
        self.sent = b""
        return found

    @property
    def state(self) -> ConnectionState:
        return self.connection.state

    def events(self) -> list[Any]:
        return drain(self.endpoint)


def driven(*, about: dict[str, Any] | None = None, **settings: Any) -> Driven:
    """A connection to a new endpoint."""
    endpoint = new_endpoint(**(about or {}))
    return Driven(endpoint, HTTPConnection(endpoint, now=0.0, **settings))
