"""Receives the callback of an authorization server on a port of 127.0.0.1.

A browser may open connections that it does not use, and any program on this machine, as any page
in the browser, can send a request to the port: so several connections are served at once, each has
little time and room, and only a GET of the redirect URI with the state of the authorization request
ends the wait.

Source: RFC 8252, section 7.3.
"""

from __future__ import annotations

import re
import selectors
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, final
from urllib.parse import parse_qs, urlsplit

_MAX_HEAD_BYTES: Final = 16_384
_MAX_CONNECTIONS: Final = 20
_SECONDS: Final = 30.0
"""Seconds that a connection may take for its request."""
_REQUEST: Final = re.compile(rb"GET (/[\x21-\x7e]*) HTTP/1\.[01]\r\n")
_HOST: Final = re.compile(rb"\r\nhost:[ \t]*([\x21-\x7e]+)[ \t]*\r\n", re.IGNORECASE)
_PAGE: Final = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>%s</title><h1>%s</h1><p>%s</p>"
)
_RECEIVED: Final = ("Answer received", "You can close this window, and return to the program.")
_STRANGE: Final = (
    "Not the answer that is awaited",
    "This address belongs to an authorization that has ended, or that another program has begun.",
)
_HEADERS: Final = (
    "content-type: text/html; charset=utf-8\r\n"
    "cache-control: no-store\r\n"
    "content-security-policy: default-src 'none'\r\n"
    "referrer-policy: no-referrer\r\n"
    "x-content-type-options: nosniff\r\n"
    "connection: close\r\n"
)


@final
class NoCallback(Exception):
    """The user was not sent back. The text says why."""


class _Client:
    """One connection to the port."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection: Final = connection
        self.data = b""
        self.until: Final = time.monotonic() + _SECONDS


@final
class LoopbackReceiver:
    """Listens on a port while a callback is awaited.

    The port is bound when its URI is asked for first, and kept: between two waits nothing is
    accepted on it, and no other program can have it.
    """

    def __init__(self, host: str, port: int, path: str) -> None:
        self._host: Final = host
        self._port = port
        self._path: Final = path
        self._listener: socket.socket | None = None
        self._wake: Final = socket.socketpair()
        self._is_cancelled = False

    @property
    def redirect_uri(self) -> str:
        """The URL that is listened on.

        Raises:
            NoCallback: The port is in use.
        """
        self._bind()
        return f"http://{self._host}:{self._port}{self._path}"

    @contextmanager
    def listening(self, url: str) -> Generator[Callable[[], str], None, None]:
        """Listen for the callback of the authorization request in this URL.

        The function that is given waits for it, and returns its URL.
        """
        listener = self._bind()
        states = parse_qs(urlsplit(url).query).get("state", [])
        try:
            try:
                listener.listen()
            except OSError as error:
                raise NoCallback(self._unusable(error)) from None
            yield lambda: self._receive(listener, states)
        finally:
            self._is_cancelled = False
            # A socket that listens cannot stop doing so: another one takes its port.
            listener.close()
            self._listener = None
            with suppress(NoCallback):
                self._bind()

    def cancel(self) -> None:
        """End the wait with `NoCallback`. Any thread may call this."""
        self._is_cancelled = True
        with suppress(OSError):
            self._wake[1].send(b"x")

    def close(self) -> None:
        """Close the sockets."""
        for each in (self._listener, *self._wake):
            if each is not None:
                each.close()
        self._listener = None

    def _bind(self) -> socket.socket:
        if self._listener is None:
            listener = socket.socket()
            try:
                # On Windows, SO_REUSEADDR lets any program take a port that is in use.
                exclusive: int | None = getattr(socket, "SO_EXCLUSIVEADDRUSE", None)
                option = socket.SO_REUSEADDR if exclusive is None else exclusive
                listener.setsockopt(socket.SOL_SOCKET, option, 1)
                listener.bind(("127.0.0.1", self._port))
            except OSError as error:
                listener.close()
                raise NoCallback(self._unusable(error)) from None
            listener.setblocking(False)
            self._listener = listener
            self._port = listener.getsockname()[1]
        return self._listener

    def _unusable(self, error: OSError) -> str:
        return f"the port {self._port} of 127.0.0.1 cannot be used: {error.strerror}"

    # ---------------------------------------------------------------------------- serving

    def _receive(self, listener: socket.socket, states: list[str]) -> str:
        clients: set[_Client] = set()
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            selector.register(self._wake[0], selectors.EVENT_READ)
            try:
                while True:
                    for key, _ in selector.select(1.0):
                        if key.fileobj is listener:
                            self._accept(listener, selector, clients)
                        elif key.fileobj is not self._wake[0]:
                            callback = self._serve(key.data, selector, clients, states)
                            if callback is not None:
                                return callback
                        else:
                            self._wake[0].recv(_MAX_HEAD_BYTES)
                    if self._is_cancelled:
                        raise NoCallback("the wait for the user was cancelled")
                    for client in [one for one in clients if one.until < time.monotonic()]:
                        self._drop(client, selector, clients)
            finally:
                for client in list(clients):
                    self._drop(client, selector, clients)

    def _accept(self, listener: socket.socket, selector: Any, clients: set[_Client]) -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            if len(clients) >= _MAX_CONNECTIONS:
                oldest = min(clients, key=lambda one: one.until)
                self._drop(oldest, selector, clients)
            connection.setblocking(False)
            client = _Client(connection)
            clients.add(client)
            selector.register(connection, selectors.EVENT_READ, client)

    @staticmethod
    def _drop(client: _Client, selector: Any, clients: set[_Client]) -> None:
        clients.discard(client)
        selector.unregister(client.connection)
        client.connection.close()

    def _serve(
        self, client: _Client, selector: Any, clients: set[_Client], states: list[str]
    ) -> str | None:
        """Read what a client sends; return the callback if that is what it was."""
        try:
            data = client.connection.recv(_MAX_HEAD_BYTES)
        except OSError:
            data = b""
        client.data += data
        is_whole = b"\r\n\r\n" in client.data
        if data and not is_whole and len(client.data) <= _MAX_HEAD_BYTES:
            return None
        callback = self._callback_in(client.data, states) if is_whole else None
        if is_whole:
            self._respond(client.connection, callback is not None)
        self._drop(client, selector, clients)
        return callback

    def _callback_in(self, head: bytes, states: list[str]) -> str | None:
        request, host = _REQUEST.match(head), _HOST.search(head)
        if request is None or host is None:
            return None
        target = request[1].decode("ascii")
        parts = urlsplit(target)
        if (
            parts.path != self._path
            # A page of another site could have a name that means 127.0.0.1.
            or host[1].decode("ascii").lower() != f"{self._host}:{self._port}"
            or parse_qs(parts.query).get("state", []) != states
        ):
            return None
        return f"http://{self._host}:{self._port}{target}"

    @staticmethod
    def _respond(connection: socket.socket, is_callback: bool) -> None:
        title, text = _RECEIVED if is_callback else _STRANGE
        body = (_PAGE % (title, title, text)).encode()
        status = "200 OK" if is_callback else "404 Not Found"
        head = f"HTTP/1.1 {status}\r\n{_HEADERS}content-length: {len(body)}\r\n\r\n"
        with suppress(OSError):  # it fits into the buffer of the socket
            connection.send(head.encode("ascii") + body)
            connection.shutdown(socket.SHUT_WR)
