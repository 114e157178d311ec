"""A TCP connection of a client on asyncio."""

from __future__ import annotations

import asyncio
import socket
from typing import Final, cast

from .._common.trace import address_text
from ._tasks import finished
from ._tcp import connect_tcp


class ClientStream(asyncio.Protocol):
    """A connection that one task reads, and that is written to without waiting."""

    def __init__(self, streams: ClientStreams) -> None:
        self._streams: Final = streams
        self._parts: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._is_over = False
        self._failure: Exception | None = None
        self.transport: asyncio.Transport | None = None

    async def receive_some(self) -> bytes:
        """The next bytes, as many as there are; `b""` is the end."""
        while not self._parts and not self._is_over:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self._parts:
            data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self._parts.clear()
            return data
        if self._failure is not None:
            raise self._failure
        return b""

    def send_now(self, data: bytes | memoryview) -> int:
        """Write all of `data`. The part that has to wait is kept by the transport."""
        assert self.transport is not None
        self.transport.write(data)
        return len(data)

    async def send_some(self, data: bytes | memoryview) -> int:
        """The same."""
        return self.send_now(data)

    def is_readable(self) -> bool:
        """Whether something has come, or has not been written: nothing more can be sent on it."""
        assert self.transport is not None
        return bool(self._parts or self._is_over or self.transport.get_write_buffer_size())

    def close(self) -> None:
        """Close the stream at once, without an alert, for which the caller would have to wait."""
        if self.transport is not None:
            self.transport.abort()

    # ---------------------------------------------------------------------------- of the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of the open connection."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Something has come."""
        self._parts.append(data)
        self._wake()

    def eof_received(self) -> None:
        """The server says nothing more; the transport is closed after this."""
        self._is_over = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake the reading task, after the connection was closed."""
        self._is_over, self._failure = True, exc
        self._wake()
        self._streams.lost(self)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class ClientStreams:
    """The connections of a client whose sockets are open."""

    def __init__(self) -> None:
        self._open: set[ClientStream] = set()
        self._has_lost = asyncio.Event()

    async def connect(self, host: str, port: int) -> tuple[str, ClientStream]:
        """A new connection, and its own address.

        Raises:
            OSError: The connection could not be opened.
        """
        connected: socket.socket = await connect_tcp(host, port)
        name = address_text(connected.getsockname())
        stream = ClientStream(self)
        self._open.add(stream)
        try:
            # Not cancelled on the way: uvloop would close the descriptor and not the socket, whose
            # number may be that of another descriptor then.
            loop = asyncio.get_running_loop()
            await finished(loop.create_connection(lambda: stream, sock=connected))
        except BaseException:
            stream.close()
            if stream.transport is None:
                self._open.discard(stream)
                connected.close()
            raise
        return name, stream

    def lost(self, stream: ClientStream) -> None:
        """A socket is closed."""
        self._open.discard(stream)
        self._has_lost.set()

    async def close(self) -> None:
        """Close all connections, and wait until no socket is open."""
        for stream in self._open:
            stream.close()
        while self._open:
            self._has_lost.clear()
            await self._has_lost.wait()
