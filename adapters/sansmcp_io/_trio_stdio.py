"""Standard input and output of this process as a trio stream that nothing else can reach."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import trio

_READ_BYTES: Final = 65536
_PIPE_BYTES: Final[int] = getattr(select, "PIPE_BUF", 0)
"""What a pipe takes without blocking once it is writable; 0 where no system call would tell."""

Argument = TypeVar("Argument")
Returned = TypeVar("Returned")


class DescriptorStream:
    """A pair of descriptors, whose blocking mode is left alone.

    The mode belongs to the open file, which other processes share, and often standard error too:
    to set it would break their writes. So this waits until a descriptor is ready and then moves
    no more than is sure not to block; what cannot be waited for (a regular file), or may block
    all the same (a terminal, a socket), is left to a thread.
    """

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._source_is_pollable = True
        self._sink_is_pipe = _PIPE_BYTES > 0 and stat.S_ISFIFO(os.fstat(sink).st_mode)
        self._abandoned: set[int] = set()
        # Threads of our own, not out of the stock that handlers may have used up.
        self._limiters = {source: trio.CapacityLimiter(1), sink: trio.CapacityLimiter(1)}

    async def receive_some(self) -> bytes:
        """Read what is there, or wait for it; `b""` is the end."""
        while self._source_is_pollable:
            try:
                await trio.lowlevel.wait_readable(self._source)
            except OSError:  # a regular file, or a system that can wait for sockets only
                self._source_is_pollable = False
                break
            with contextlib.suppress(BlockingIOError):  # somebody else took it
                return os.read(self._source, _READ_BYTES)
        return await self._in_thread(os.read, self._source, _READ_BYTES)

    async def send_all(self, data: bytes) -> None:
        """Write all of it."""
        rest = memoryview(data)
        while rest:
            rest = rest[await self._send_some(rest) :]

    async def _send_some(self, data: memoryview) -> int:
        if not self._sink_is_pipe:
            return await self._in_thread(_write, self._sink, data)
        await trio.lowlevel.wait_writable(self._sink)
        try:
            return os.write(self._sink, data[:_PIPE_BYTES])
        except BlockingIOError:  # somebody else filled it
            return 0

    async def _in_thread(
        self, function: Callable[[int, Argument], Returned], descriptor: int, argument: Argument
    ) -> Returned:
        """One call per thread: an abandoned one moves no more than it had begun to."""
        try:
            return await trio.to_thread.run_sync(
                function,
                descriptor,
                argument,
                abandon_on_cancel=True,
                limiter=self._limiters[descriptor],
            )
        except trio.Cancelled:
            self._abandoned.add(descriptor)
            raise

    async def aclose(self) -> None:
        """Close both descriptors, except one that an abandoned thread still uses."""
        for descriptor in {self._source, self._sink} - self._abandoned:
            trio.lowlevel.notify_closing(descriptor)
            os.close(descriptor)
        await trio.lowlevel.checkpoint()


def _write(descriptor: int, data: memoryview) -> int:
    while True:
        try:
            return os.write(descriptor, data)
        except BlockingIOError:  # inherited in non-blocking mode: left so, and waited for
            select.select([], [descriptor], [])


@asynccontextmanager
async def open_standard_streams() -> AsyncGenerator[DescriptorStream, None]:
    """Take standard input and output away from everyone else, and give them back in the end.

    Inside, descriptor 0 is empty and descriptor 1 is standard error, also for child processes and
    for code that is not Python: one stray `print` would break the conversation.

    Raises:
        RuntimeError: One of the two is closed.
    """
    # A descriptor that was closed when Python started may be any other file by now.
    if sys.__stdin__ is None or sys.__stdout__ is None:
        raise RuntimeError("standard input and standard output must be open")
    source, sink = os.dup(0), os.dup(1)
    stream = DescriptorStream(source, sink)
    try:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null if sys.__stderr__ is None else 2, 1)
        os.close(null)
        # `sys.stdout` would keep lines back; standard error shows them as they come.
        with contextlib.redirect_stdout(sys.stderr):
            yield stream
    finally:
        with contextlib.suppress(OSError, ValueError):  # nobody reads it, or it was closed
            if sys.stdout is not None:
                sys.stdout.flush()  # printed past the redirection: it goes where the rest went
        os.dup2(source, 0)
        os.dup2(sink, 1)
        with trio.CancelScope(shield=True):
            await stream.aclose()
