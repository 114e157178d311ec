"""A server as a child process on trio: started without a shell, always waited for."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import trio

from .._common.descriptors import has_data
from .._common.stderr import LAST_WORDS_SECONDS, STDERR_SECONDS, StderrLines, StderrTail
from .._options.clients import StdioClientOptions
from ._loop import unwrapped


class Child:
    """A running server process."""

    def __init__(self, process: trio.Process, options: StdioClientOptions[Any]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process: Final = process
        self.stream: Final = trio.StapledStream(process.stdin, process.stdout)
        self.stderr: Final = StderrTail()
        self._options = options
        self.end: Final = options.end_of(process)
        self._watching = trio.CancelScope()
        self._scope = trio.CancelScope(shield=True)
        self._forwarded = trio.Event()

    async def forward(self) -> None:
        """Read standard error until it ends, or `stop` has waited long enough."""
        assert self.process.stderr is not None
        on_stderr = self._options.on_stderr
        lines = None if on_stderr is None else StderrLines(on_stderr)
        try:
            with self._scope:
                async for data in self.process.stderr:
                    self.stderr.add(data)
                    if lines is not None:
                        lines.add(data)
                if lines is not None:
                    lines.end()
        finally:
            self._forwarded.set()

    async def watch(self) -> None:
        """End the output of the server when its process has ended.

        Processes that it has started may hold the other end open, but do not answer in its place.
        """
        output = self.process.stdout
        assert output is not None
        with self._watching:
            self.stderr.exit_status = await self.process.wait()
            self.end.process_ended()
            await trio.sleep(LAST_WORDS_SECONDS)  # its last output is still to be read
            while has_data(output):
                await trio.sleep(LAST_WORDS_SECONDS)  # nothing tells that it was
            await self._end_group()
            await output.aclose()  # which is the end for a task that reads from it

    async def stop(self) -> None:
        """Close the server's input and wait for its end; signals end it after some time.

        Keeps STDIO-013, STDIO-014.
        """
        self._watching.cancel()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._discard_output)  # a full pipe would block it
            await self.stream.send_stream.aclose()
            await self._end_process()
            self.stderr.exit_status = self.process.returncode
            await self._end_group()
            nursery.cancel_scope.cancel()
        if self.process.stderr is not None:
            # A process that has left the group may hold the other end open for ever.
            with trio.move_on_after(STDERR_SECONDS):
                await self._forwarded.wait()
            self._scope.cancel()
            await self._forwarded.wait()
            await self.process.stderr.aclose()
        await self.stream.aclose()

    async def _end_process(self) -> None:
        for seconds in self.end.end_process():
            with trio.move_on_after(seconds):
                await self.process.wait()
                return
        await self.process.wait()

    async def _end_group(self) -> None:
        for seconds in self.end.end_group(trio.current_time):
            await trio.sleep(seconds)

    async def _discard_output(self) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while await self.stream.receive_some():
                pass


@asynccontextmanager
async def open_child(
    options: StdioClientOptions[Any],
) -> AsyncGenerator[Child, None]:
    """Start a process for the time of a block, and end it in any case.

    Raises:
        OSError: The process could not be started.
    """
    keywords = options.of_process()
    child = Child(await trio.lowlevel.open_process(options.command, **keywords), options)
    async with unwrapped(), trio.open_nursery() as nursery:
        try:
            if child.process.stderr is not None:
                nursery.start_soon(child.forward)
            nursery.start_soon(child.watch)
            yield child
        finally:
            with trio.CancelScope(shield=True):
                await child.stop()
