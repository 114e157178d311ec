"""A server as a child process on asyncio: started without a shell, always waited for.

The loop watches its descriptors: what it writes, and where the system has one, the one that tells
of its end. asyncio's own processes would take a thread each to wait for that.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from .._common.descriptors import Sink, Source, has_data
from .._common.stderr import LAST_WORDS_SECONDS, STDERR_SECONDS, StderrLines, StderrTail
from .._options.clients import StdioClientOptions
from ._ends import StdioInput, StdioOutput
from ._loop import AsyncioLoop
from ._tasks import end_all, finished

_POLL_SECONDS: Final = 0.05
"""Seconds between two tests whether the process has ended, on systems without pidfd."""


class Child:
    """A running server process.

    Raises:
        OSError: The process could not be started.
    """

    def __init__(self, options: StdioClientOptions[Any]) -> None:
        keywords = options.of_process()
        self._loop: Final = AsyncioLoop()
        self.process: Final = subprocess.Popen(options.command, bufsize=0, **keywords)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.output: Final = StdioOutput(Sink(self.process.stdin.fileno()))
        self.process.stdin.close()
        self.input: Final = StdioInput(Source(self.process.stdout.fileno()))
        self.process.stdout.close()
        self.stderr: Final = StderrTail()
        self.end: Final = options.end_of(self.process)
        self._has_ended = asyncio.Event()
        self._forwarded = asyncio.Event()
        self._errors: StdioInput | None = None
        self._lines = None if options.on_stderr is None else StderrLines(options.on_stderr)
        if self.process.stderr is not None:
            self._errors = StdioInput(Source(self.process.stderr.fileno()))
            self.process.stderr.close()
            self._errors.start(self._forward)
        self._watch_end()

    def _forward(self, data: bytes) -> None:
        """Take data from standard error."""
        self.stderr.add(data)
        if self._lines is not None:
            if data:
                self._lines.add(data)
            else:
                self._lines.end()
        if not data:
            self._forwarded.set()

    # ---------------------------------------------------------------------------- its end

    def _watch_end(self) -> None:
        """Set `_has_ended` when the process has ended."""
        loop = asyncio.get_running_loop()
        try:
            descriptor = os.pidfd_open(self.process.pid)
        except (AttributeError, OSError):  # not every system has it
            self._look(loop)
            return

        def see() -> None:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            self._see_end()

        loop.add_reader(descriptor, see)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._see_end():
            loop.call_later(_POLL_SECONDS, self._look, loop)

    def _see_end(self) -> bool:
        status = self.process.poll()
        if status is None:
            return False
        self.stderr.exit_status = status
        self.end.process_ended()
        self._has_ended.set()
        return True

    async def watch(self) -> None:
        """End the output of the server when its process has ended.

        Processes that it has started may hold the other end open, but do not answer in its place.
        """
        await self._has_ended.wait()
        await asyncio.sleep(LAST_WORDS_SECONDS)  # its last output is still to be read
        while has_data(self.input):
            await asyncio.sleep(LAST_WORDS_SECONDS)  # nothing tells that it was
        await self._end_group()
        self.input.end()

    async def stop(self) -> None:
        """Close the server's input and wait for its end; signals end it after some time.

        Keeps STDIO-013, STDIO-014.
        """
        self.input.stop()
        self.input.start(_discard)  # a full pipe would block it
        self.output.close()
        await self._end_process()
        await self._end_group()
        if self._errors is not None:
            # A process that has left the group may hold the other end open for ever.
            await self._loop.wait_until(self._loop.now() + STDERR_SECONDS, self._forwarded.wait)
            self._errors.end()
            self._errors.close()
        self.input.close()

    async def _end_process(self) -> None:
        for seconds in self.end.end_process():
            if await self._loop.wait_until(self._loop.now() + seconds, self._has_ended.wait):
                return
        await self._has_ended.wait()

    async def _end_group(self) -> None:
        for seconds in self.end.end_group(self._loop.now):
            await asyncio.sleep(seconds)


def _discard(data: bytes) -> None:
    pass


@asynccontextmanager
async def open_child(
    options: StdioClientOptions[Any],
) -> AsyncGenerator[Child, None]:
    """Start a process for the time of a block, and end it in any case.

    Raises:
        OSError: The process could not be started.
    """
    child = Child(options)
    watching = asyncio.get_running_loop().create_task(child.watch())
    try:
        yield child
    finally:

        async def stop() -> None:
            await end_all([watching])
            await child.stop()

        await finished(stop())
