"""What the adapter asks of streams."""

from __future__ import annotations

from typing import Protocol, TypeAlias

Buffer: TypeAlias = bytes | memoryview


class ByteStream(Protocol):
    """What the adapter asks of a stream; every `trio.abc.Stream` has it."""

    async def receive_some(self) -> bytes | bytearray:
        """The next bytes, as many as there are; `b""` is the end."""
        ...

    async def send_all(self, data: bytes) -> None:
        """Write all of it."""
        ...


class HalfCloseableByteStream(ByteStream, Protocol):
    """What a client asks of a stream; every `trio.abc.HalfCloseableStream` has it."""

    async def send_eof(self) -> None:
        """End the sending side: the server sees the end of its input."""
        ...


class NoWaitStream(ByteStream, Protocol):
    """A stream that can also write what goes without waiting."""

    def send_now(self, data: Buffer) -> int:
        """Write as much as goes now, and return how much that is."""
        ...

    async def send_some(self, data: Buffer) -> int:
        """Wait until some can be written, and return how much was.

        Nothing was written if this is cancelled, unless the stream then raises
        `trio.ClosedResourceError` when more is to be written.
        """
        ...
