"""A reader and a writer of asyncio, which the application opens and closes, as two ends.

A task reads, and another waits for room, since such streams have no callbacks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from .._common.anomalies import LOGGER
from .._common.bounds import FLUSH_SECONDS
from .._common.descriptors import LARGE_BYTES, Data
from ._tasks import end_all, finished


class StreamInput:
    """Reads from a `StreamReader`, and hands each piece of data to a callback."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader: Final = reader
        self.task: asyncio.Task[None] | None = None

    def start(self, receive: Callable[[bytes], object]) -> None:
        """Begin to read: call `receive` with each piece of data, and once with `b""` at the end."""
        self.task = asyncio.get_running_loop().create_task(self._read(receive))

    def stop(self) -> None:
        """Stop calling `receive`."""
        if self.task is not None:
            self.task.cancel()

    async def _read(self, receive: Callable[[bytes], object]) -> None:
        try:
            while data := await self._reader.read(LARGE_BYTES):
                receive(data)
        except Exception as error:  # a reader may be given any
            LOGGER.info("reading has failed: %s", error)
        receive(b"")


class StreamOutput:
    """Gives a `StreamWriter` small pieces, so that the rest counts as unsent output of the core."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer: Final = writer
        self.task: asyncio.Task[None] | None = None
        self._limits = writer.transport.get_write_buffer_limits()
        writer.transport.set_write_buffer_limits(high=0)  # `drain` waits until all is written

    def send(self, data: Data) -> int:
        """Write some of `data`, and return the number of bytes written.

        Raises:
            BlockingIOError: The bytes of the former call are not written yet.
            OSError: Writing has failed.
        """
        transport = self._writer.transport
        if transport.is_closing():
            raise BrokenPipeError("the stream is closed")
        if transport.get_write_buffer_size():
            raise BlockingIOError
        piece = data if len(data) <= LARGE_BYTES else memoryview(data)[:LARGE_BYTES]
        transport.write(piece)
        return len(piece)

    def send_later(self, data: Data, moved: Callable[[int, OSError | None], object]) -> None:
        """Wait for room, then call `moved`: nothing was written of this data."""
        self.task = asyncio.get_running_loop().create_task(self._wait(moved))

    def stop(self) -> None:
        """Stop calling `moved`."""
        if self.task is not None:
            self.task.cancel()

    async def _wait(self, moved: Callable[[int, OSError | None], object]) -> None:
        failure: OSError | None = None
        try:
            await self._writer.drain()
        except Exception as error:  # that of the reader, too
            failure = error if isinstance(error, OSError) else OSError(str(error))
        moved(0, failure)

    async def flush(self) -> None:
        """Wait until all is written, but not for a peer that does not read."""
        with suppress(Exception):  # as above
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._writer.drain()
        if not self._writer.is_closing():  # otherwise, the owner of the stream cannot use it
            low, high = self._limits
            self._writer.transport.set_write_buffer_limits(high, low)


@asynccontextmanager
async def ends_of(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> AsyncGenerator[tuple[StreamInput, StreamOutput], None]:
    """Both ends for as long as the block lasts. At its end, output is written if possible."""
    input, output = StreamInput(reader), StreamOutput(writer)
    try:
        yield input, output
    finally:
        await finished(_end(input, output))


async def _end(input: StreamInput, output: StreamOutput) -> None:
    await end_all([task for task in (input.task, output.task) if task is not None])
    await output.flush()
