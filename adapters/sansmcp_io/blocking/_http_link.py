"""One TCP connection of a blocking client, from its opening to its end. Nothing here waits."""

from __future__ import annotations

import contextlib
import math
import selectors
import socket
import ssl
import time
from collections import deque
from typing import Any, Final, TypeAlias

from sansmcp.http import ClientExchange

from .._common.tls import TLS
from .._common.trace import address_text
from .._http1.client import HTTPClientConnection

Address: TypeAlias = tuple[int, Any]
"""A family, and what sockets of that family call an address."""

_READ_BYTES: Final = 65_536
_ATTEMPT_SECONDS: Final = 2.0
"""After so long the next address of the server is tried, if there is one."""


class ClientLink:
    """A socket, and the exchange that it carries.

    Attributes:
        socket: The one that is tried, or in use.
        http: What is said on it.
        exchange: The one under way; None: it is free.
        deadline: When it has taken too long; `math.inf`: never.
        is_gone: It is of no use any more.
        used_at: When it became free.

    Args:
        addresses: Where the server is, one at least.
        tls: How to speak on it; None: in the clear.

    Raises:
        OSError: None of the addresses can be connected to.
    """

    def __init__(self, addresses: list[Address], tls: TLS | None) -> None:
        self.http: Final = HTTPClientConnection()
        self.exchange: ClientExchange | None = None
        self.deadline = math.inf
        self.is_gone = False
        self.used_at = 0.0
        self._tls = tls
        self._addresses = deque(addresses)
        self._is_connected = False
        self._is_deaf = False  # the server reads no more
        self._out: deque[bytes | memoryview] = deque()
        self.socket: socket.socket
        self._next_address()

    # ----------------------------------------------------------------------------- opening

    def _next_address(self) -> None:
        """Begin to connect to the next address that one can begin with."""
        while True:
            family, address = self._addresses.popleft()
            try:
                self.socket = _connecting(family, address)
                break
            except OSError:
                if not self._addresses:
                    raise
        now = time.monotonic()
        self._attempt_until = now + _ATTEMPT_SECONDS if self._addresses else math.inf

    @property
    def is_open(self) -> bool:
        """Whether it carries bytes of HTTP."""
        return self._is_connected and (self._tls is None or self._tls.is_open)

    @property
    def alarm(self) -> float:
        """When to look after it, if nothing happens until then."""
        return self.deadline if self._is_connected else min(self.deadline, self._attempt_until)

    def try_elsewhere(self) -> bool:
        """Give an address up that does not answer, if there is another one.

        The socket must not be watched any more.

        Raises:
            OSError: There is no use in the others.
        """
        if self._is_connected or not self._addresses:
            return False
        self.socket.close()
        self._next_address()
        return True

    def connected(self) -> int:
        """The socket can be written to for the first time; 0, or what has failed."""
        error = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error == 0:
            self._is_connected = True
            with contextlib.suppress(OSError):
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                self._tls.receive(b"")
                self._out.append(self._tls.take())
        return error

    # ------------------------------------------------------------------------------ moving

    @property
    def is_connected(self) -> bool:
        """Whether there is somebody at the other end."""
        return self._is_connected

    @property
    def is_behind(self) -> bool:
        """Whether it has something to say that could not be written yet."""
        return bool(self._out) or not self.is_open

    @property
    def wants(self) -> int:
        """What to watch the socket for."""
        if not self._is_connected:
            return selectors.EVENT_WRITE
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self._out else 0)

    @property
    def name(self) -> str:
        """Address and port of this end, as `127.0.0.1:50123` or `[::1]:50123`."""
        return address_text(self.socket.getsockname())

    def send(self, data: bytes) -> None:
        """Write it, as far as that goes now."""
        if self._tls is not None:
            self._tls.send(data)
            data = self._tls.take()
        if data:
            self._out.append(data)
        if self._is_connected:
            self.write()

    def write(self) -> None:
        """Write what waits, as far as that goes now."""
        out = self._out
        try:
            while out:
                data = out[0]
                sent = self.socket.send(data)
                if sent < len(data):
                    out[0] = memoryview(data)[sent:]
                else:
                    out.popleft()
        except BlockingIOError:
            pass
        except OSError:
            out.clear()  # what was said before it broke can still be read
            self._is_deaf = True

    def read(self) -> bytes | None:
        """The next bytes of HTTP; `b""` is their end, and None says that there are none now.

        Raises:
            OSError: The connection is broken; `ssl.SSLError`, which is one: or not what it should
                be.
        """
        try:
            data = self.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return None
        tls = self._tls
        if tls is None or not data:  # HTTP knows by itself whether something is missing
            return data
        clear = tls.receive(data)
        if answer := tls.take():
            self._out.append(answer)
            self.write()
        return clear if clear or tls.is_over else None

    # ------------------------------------------------------------------------------ ending

    @property
    def is_reusable(self) -> bool:
        """Whether it can carry another exchange, as far as this side knows."""
        return self.http.reusable and not self._out and not self._is_deaf

    def is_stale(self) -> bool:
        """Whether the server has closed it, or has said something that nobody asked for."""
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def leave(self) -> None:
        """Let the server know at once that nobody listens any more."""
        self.is_gone = True
        self.deadline = math.inf
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


def _connecting(family: int, address: Any) -> socket.socket:
    """A socket that is about to be connected."""
    attempt = socket.socket(family, socket.SOCK_STREAM)
    try:
        attempt.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            attempt.connect(address)
    except BaseException:
        attempt.close()
        raise
    return attempt


def sentence(error: BaseException) -> str:
    """What went wrong, for events: without anything that the peer wrote."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the server's certificate is not valid: {error.verify_message}"
    return f"the connection has failed: {error}"
