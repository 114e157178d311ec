"""A server as a child process: started without a shell, always waited for."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from os import PathLike
from subprocess import PIPE
from typing import Final

import trio

from ._anomalies import LOGGER
from ._trio_unwrap import unwrapped

GRACE_SECONDS: Final = 2.0
"""How long a server has to end after its input was closed, and again after SIGTERM."""

_LINE_BYTES: Final = 65536
"""A longer line of standard error is handed on in pieces."""


class Child:
    """A running server process."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process: Final = process
        self.stream: Final = trio.StapledStream(process.stdin, process.stdout)
        self.ended_by = "end of input"
        self._scope = trio.CancelScope(shield=True)
        self._forwarded = trio.Event()

    async def forward(self, on_stderr: Callable[[str], object]) -> None:
        """Hand on the lines of standard error until it ends or `stop` has waited long enough."""
        assert self.process.stderr is not None
        rest = b""
        try:
            with self._scope:
                async for data in self.process.stderr:
                    *lines, rest = (rest + data).split(b"\n")
                    if len(rest) > _LINE_BYTES:
                        lines.append(rest)
                        rest = b""
                    for line in lines:
                        _forward_line(on_stderr, line)
                if rest:
                    _forward_line(on_stderr, rest)
        finally:
            self._forwarded.set()

    async def stop(self, has_stderr: bool) -> None:
        """Close the server's input and wait for its end; insist with signals."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._discard_output)  # or a full pipe would keep it from ending
            await self.stream.send_stream.aclose()
            for signal in (self.process.terminate, self.process.kill):
                with trio.move_on_after(GRACE_SECONDS):
                    await self.process.wait()
                    break
                self.ended_by = signal.__name__
                LOGGER.warning("the server does not end by itself: %s", self.ended_by)
                signal()
            else:
                await self.process.wait()
            nursery.cancel_scope.cancel()
        if has_stderr:
            # A process that the server has left behind may hold the other end open for ever.
            with trio.move_on_after(GRACE_SECONDS):
                await self._forwarded.wait()
            self._scope.cancel()
            await self._forwarded.wait()
            assert self.process.stderr is not None
            await self.process.stderr.aclose()
        await self.stream.aclose()

    async def _discard_output(self) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while await self.stream.receive_some():
                pass


def _forward_line(on_stderr: Callable[[str], object], line: bytes) -> None:
    try:
        on_stderr(line.decode("utf-8", "replace").rstrip("\r"))
    except Exception as error:
        LOGGER.error("the handler of standard error failed", exc_info=error)


@asynccontextmanager
async def open_child(
    command: Sequence[str | PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | PathLike[str] | None = None,
    on_stderr: Callable[[str], object] | None = None,
) -> AsyncGenerator[Child, None]:
    """Start a process and end it, whatever happens in between.

    Raises:
        OSError: It could not be started.
    """
    child = Child(
        await trio.lowlevel.open_process(
            command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=None if on_stderr is None else PIPE,
            env=env,
            cwd=cwd,
        )
    )
    async with unwrapped(), trio.open_nursery() as nursery:
        try:
            if on_stderr is not None:
                nursery.start_soon(child.forward, on_stderr)
            yield child
        finally:
            with trio.CancelScope(shield=True):
                await child.stop(on_stderr is not None)
