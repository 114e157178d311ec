"""A TCP connection whose bytes are moved without the scheduler wherever that needs no waiting."""

from __future__ import annotations

import selectors
import socket
from typing import Final

import trio

from ._addresses import address_text
from ._trio_stream import Buffer

_READ_BYTES: Final = 65_536


def client_of(stream: trio.SocketStream) -> str:
    """Address and port of the other end, as `127.0.0.1:50123` or `[::1]:50123`."""
    try:
        return address_text(stream.socket.getpeername())
    except OSError:
        return "nowhere"  # it has gone already


def address_of(stream: trio.SocketStream) -> str:
    """Address and port of this end, in the same form."""
    return address_text(stream.socket.getsockname())


class NoWaitSocket:
    """A stream socket; the other end of a trio stream that has given it up."""

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

    async def aclose(self) -> None:
        """Close it. Whoever waits for it learns that with `trio.ClosedResourceError`."""
        trio.lowlevel.notify_closing(self._socket)
        self._socket.close()
        await trio.lowlevel.checkpoint()


class TLSSocket:
    """The same surface over TLS, where nothing is known to go without waiting."""

    def __init__(self, stream: trio.SSLStream[trio.SocketStream]) -> None:
        self._stream = stream

    async def receive_some(self) -> bytes:
        """The next bytes, as many as there are; `b""` is the end."""
        return bytes(await self._stream.receive_some(_READ_BYTES))

    def send_now(self, data: Buffer) -> int:
        """Nothing goes at once: a record may have to wait for the socket."""
        return 0

    async def send_some(self, data: Buffer) -> int:
        """Write it, and return how much it was."""
        await self._stream.send_all(data)
        return len(data)

    def is_readable(self) -> bool:
        """As there. A session ticket of TLS 1.3 counts as well, to be on the safe side."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._stream.transport_stream.socket, selectors.EVENT_READ)
            return bool(selector.select(0))

    async def send_eof(self) -> None:
        """TLS has no such thing; what was written is all there is."""
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Say good-bye and close."""
        with trio.move_on_after(1.0, shield=True):
            await self._stream.aclose()
