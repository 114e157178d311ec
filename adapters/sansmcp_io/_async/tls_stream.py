"""A byte stream over TLS, on any loop."""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Final, Protocol

from .._common.tls import TLS
from .loop import Lock


class SocketStream(Protocol):
    """A connected stream socket of one loop."""

    async def receive_some(self) -> bytes:
        """The next bytes, as many as there are; `b""` is the end."""
        ...

    def send_now(self, data: bytes | memoryview) -> int:
        """Write as much as can be written without waiting, and return how much was written."""
        ...

    async def send_some(self, data: bytes | memoryview) -> int:
        """Wait until something can be written, and return how much was written."""
        ...

    def is_readable(self) -> bool:
        """Whether there is something to read, the end included."""
        ...

    def close(self) -> None:
        """Close the stream at once."""
        ...


class TLSStream:
    """A byte stream over TLS, which never writes without waiting.

    `trio.SSLStream` and the transports of asyncio are not used: they keep the alert that tells the
    other side why a handshake has failed, and have no method that would send it.
    """

    def __init__(self, socket: SocketStream, tls: TLS, lock: Lock) -> None:
        self._socket: Final = socket
        self._tls: Final = tls
        self._rest = memoryview(b"")  # the unwritten rest of the last record
        self._sending: Final = lock

    async def do_handshake(self) -> None:
        """Do the handshake now, and not when the first bytes are read.

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
        while not self._tls.is_over:
            data = await self._socket.receive_some()
            if not data:
                return b""
            if plain := await self._receive(data):
                return plain
        return b""

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

    def send_now(self, data: bytes | memoryview) -> int:
        """Write nothing: a TLS record may have to wait for the socket."""
        return 0

    async def send_some(self, data: bytes | memoryview) -> int:
        """Write all of `data`, and return its length."""
        self._tls.send(bytes(data))
        await self._flush()
        return len(data)

    async def _flush(self) -> None:
        """Write the encrypted records, one after the other."""
        await self._sending.acquire()
        try:
            while self._rest or self._tls.has_output:
                if not self._rest:
                    self._rest = memoryview(self._tls.take())
                sent = await self._socket.send_some(self._rest)
                self._rest = self._rest[sent:]
        finally:
            self._sending.release()

    def is_readable(self) -> bool:
        """Whether there is something to read. A session ticket of TLS 1.3 counts, too."""
        return self._tls.is_over or self._socket.is_readable()

    def close(self) -> None:
        """Close the stream at once, without an alert, for which the caller would have to wait."""
        self._socket.close()
