"""A TCP connection whose bytes are moved without the scheduler wherever that needs no waiting."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Final

import trio

from .._async.tls_stream import TLSStream
from .._common.tls import TLS
from .._common.trace import address_text
from ._streams import Buffer

_READ_BYTES: Final = 65_536


def client_of(stream: trio.SocketStream) -> str:
    """Address and port of the other end, as `127.0.0.1:50123` or `[::1]:50123`."""
    try:
        return address_text(stream.socket.getpeername())
    except OSError:
        return "nowhere"  # the client has disconnected before


def address_of(stream: trio.SocketStream) -> str:
    """Address and port of this end, in the same form."""
    return address_text(stream.socket.getsockname())


class NoWaitSocket:
    """A stream socket, taken out of a trio stream."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._socket = socket.socket(fileno=stream.socket.detach())
        self._socket.setblocking(False)

    async def receive_some(self) -> bytes:
        """The next bytes, as many as there are; `b""` is the end."""
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return self._socket.recv(_READ_BYTES)
            except BlockingIOError:
                continue

    def send_now(self, data: Buffer) -> int:
        """Write as much as goes now, and return how much that is."""
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0

    async def send_some(self, data: Buffer) -> int:
        """Wait until some can be written, and return how much was."""
        while True:
            await trio.lowlevel.wait_writable(self._socket)
            if sent := self.send_now(data):
                return sent

    def is_readable(self) -> bool:
        """Whether there is something to read, the end included."""
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    async def send_eof(self) -> None:
        """End the sending side."""
        self._socket.shutdown(socket.SHUT_WR)
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """Close the socket. Tasks that wait for it raise `trio.ClosedResourceError`."""
        if self._socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()

    async def aclose(self) -> None:
        """Close the socket, and let other tasks run."""
        self.close()
        await trio.lowlevel.checkpoint()


class TLSSocket(TLSStream):
    """A `NoWaitSocket` over TLS."""

    def __init__(self, socket: NoWaitSocket, tls: TLS) -> None:
        super().__init__(socket, tls, trio.Lock())
        self._below = socket

    async def send_eof(self) -> None:
        """Do nothing: TLS has no half-closed connections."""
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Say good-bye and close."""
        self._tls.close()
        try:
            with trio.move_on_after(1.0, shield=True), suppress(OSError, trio.ClosedResourceError):
                await self._flush()
        finally:
            await self._below.aclose()
