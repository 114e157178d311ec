"""The methods that the adapter needs of streams, and a stream of standard input and output."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Protocol, TypeAlias, TypeVar

import trio

from .._common.descriptors import Data, Sink, Source
from ..stdio import taken_standard_streams

Buffer: TypeAlias = bytes | memoryview


class ByteStream(Protocol):
    """The methods that a server needs of a stream. Every `trio.abc.Stream` has them."""

    async def receive_some(self) -> bytes | bytearray:
        """The next bytes, as many as there are; `b""` is the end."""
        ...

    async def send_all(self, data: bytes) -> None:
        """Write all of `data`."""
        ...


class HalfCloseableByteStream(ByteStream, Protocol):
    """The methods that a client needs of a stream, as of `trio.abc.HalfCloseableStream`."""

    async def send_eof(self) -> None:
        """End the sending side: the server sees the end of its input."""
        ...


class NoWaitStream(ByteStream, Protocol):
    """A stream that can also write without waiting."""

    def send_now(self, data: Buffer) -> int:
        """Write as much as goes now, and return how much that is."""
        ...

    async def send_some(self, data: Buffer) -> int:
        """Wait until some can be written, and return how much was.

        Nothing was written if this is cancelled, unless the stream then raises
        `trio.ClosedResourceError` when more is to be written.
        """
        ...


Returned = TypeVar("Returned")


class DescriptorStream:
    """A source and a sink, which may be two ends of different things."""

    def __init__(self, source: Source, sink: Sink) -> None:
        self._source = source
        self._sink = sink
        self._abandoned: set[Source | Sink] = set()
        # Threads of their own: handlers may have used up the limit that all share.
        self._limiters: dict[Source | Sink, trio.CapacityLimiter] = {
            source: trio.CapacityLimiter(1),
            sink: trio.CapacityLimiter(1),
        }

    async def receive_some(self) -> bytes:
        """Read the available bytes, or wait for some; `b""` is the end."""
        source = self._source
        while source.pollable:
            try:
                await trio.lowlevel.wait_readable(source.fd)
            except OSError:  # a regular file, or a system that can wait for sockets only
                source.pollable = False
                break
            with contextlib.suppress(BlockingIOError):  # another process has read the data
                return source.read()
        return await self._in_thread(source, source.read)

    def send_now(self, data: Data) -> int:
        """Write as much as goes without waiting, and return how much that is."""
        if not self._sink.pollable:
            return 0
        try:
            return self._sink.write(data)
        except BlockingIOError:
            return 0

    async def send_some(self, data: Data) -> int:
        """Wait until some of `data` can be written, and return the number of bytes written."""
        sink = self._sink
        if sink in self._abandoned:
            raise trio.ClosedResourceError("a thread that was left behind still writes")
        if sink.pollable:
            await trio.lowlevel.wait_writable(sink.fd)
            return self.send_now(data)
        return await self._in_thread(sink, lambda: sink.write_waiting(data))

    async def send_all(self, data: Data) -> None:
        """Write all of `data`."""
        rest = memoryview(data)
        while rest:
            rest = rest[await self.send_some(rest) :]

    async def _in_thread(self, end: Source | Sink, function: Callable[[], Returned]) -> Returned:
        """Call a function in a thread of its own; one that is left behind moves no more data."""
        try:
            return await trio.to_thread.run_sync(
                function, abandon_on_cancel=True, limiter=self._limiters[end]
            )
        except trio.Cancelled:
            self._abandoned.add(end)
            raise

    async def aclose(self) -> None:
        """Close both ends, except one that an abandoned thread still uses."""
        for end in {self._source, self._sink} - self._abandoned:
            trio.lowlevel.notify_closing(end.fd)
            end.close()
        await trio.lowlevel.checkpoint()


@asynccontextmanager
async def open_standard_streams() -> AsyncGenerator[DescriptorStream, None]:
    """`sansmcp_io.stdio.taken_standard_streams` as a trio stream.

    Raises:
        RuntimeError: Standard input or output is closed.
    """
    with taken_standard_streams() as (source, sink):
        stream = DescriptorStream(source, sink)
        try:
            yield stream
        finally:
            with trio.CancelScope(shield=True):
                await stream.aclose()
