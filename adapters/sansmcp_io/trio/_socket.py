"""A TCP connection whose bytes are moved without the scheduler wherever that needs no waiting."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from typing import Final

import trio

from .._common.tls import TLS
from .._common.trace import address_text
from ._stream import Buffer

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
        if self._socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()
        await trio.lowlevel.checkpoint()

    aclose_forcefully = aclose


class TLSSocket:
    """The same surface over TLS, where nothing is known to go without waiting.

    `trio.SSLStream` is not used: it keeps the alert that tells the other side why a handshake has
    failed, and has no method that would send it.
    """

    def __init__(self, stream: trio.SocketStream, tls: TLS) -> None:
        self._socket = NoWaitSocket(stream)
        self._tls = tls
        self._rest = memoryview(b"")  # of what was encrypted last
        self._sending = trio.Lock()

    async def do_handshake(self) -> None:
        """Do it now, and not with the first bytes that come.

        Raises:
            ssl.SSLError: The other side is not to be trusted, or does not speak TLS.
            OSError: The other side has gone.
        """
        await self._receive(b"")
        while not self._tls.is_open:
            data = await self._socket.receive_some()
            if not data:
                raise ConnectionResetError("it was closed within the TLS handshake")
            await self._receive(data)

    async def receive_some(self) -> bytes:
        """The next bytes, as many as there are; `b""` is the end."""
        while True:
            data = await self._socket.receive_some()
            if not data:
                return b""
            plain = await self._receive(data)
            if plain or self._tls.is_over:
                return plain

    async def _receive(self, data: bytes) -> bytes:
        try:
            plain = self._tls.receive(data)
        except ssl.SSLError:
            with suppress(OSError):
                await self._flush()  # the alert, which says why
            raise
        if self._tls.has_output:
            await self._flush()
        return plain

    def send_now(self, data: Buffer) -> int:
        """Nothing goes at once: a record may have to wait for the socket."""
        return 0

    async def send_some(self, data: Buffer) -> int:
        """Write it, and return how much it was."""
        self._tls.send(bytes(data))
        await self._flush()
        return len(data)

    async def _flush(self) -> None:
        """Write what is encrypted, and no record before the end of the one before."""
        async with self._sending:
            while self._rest or self._tls.has_output:
                if not self._rest:
                    self._rest = memoryview(self._tls.take())
                sent = await self._socket.send_some(self._rest)
                self._rest = self._rest[sent:]

    def is_readable(self) -> bool:
        """As there. A session ticket of TLS 1.3 counts as well, to be on the safe side."""
        return self._socket.is_readable()

    async def send_eof(self) -> None:
        """TLS has no such thing; what was written is all there is."""
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Say good-bye and close."""
        self._tls.close()
        try:
            with trio.move_on_after(1.0, shield=True), suppress(OSError, trio.ClosedResourceError):
                await self._flush()
        finally:
            await self._socket.aclose()

    async def aclose_forcefully(self) -> None:
        """Close it, without a good-bye that somebody would have to wait for."""
        await self._socket.aclose()
