"""Starts a server process again after an unexpected end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeAlias, TypeVar

from sansmcp import State

from .._common.anomalies import LOGGER
from .._common.endings import with_stderr
from .._common.errors import ConnectionLost
from .loop import Loop, Tasks
from .requests import RequestSender

SessionT = TypeVar("SessionT", bound=RequestSender)
Opening: TypeAlias = Callable[[], AbstractAsyncContextManager[SessionT]]
"""Starts a process and opens the conversation with it; both are ended when the block is left."""


class _Process:
    """One process, from start to end. Tasks can wait for its start, and for its end."""

    def __init__(self, loop: Loop) -> None:
        self.is_started = loop.new_event()  # or could not be
        self.is_to_end = loop.new_event()
        self.has_ended = loop.new_event()
        self.is_tried = False  # runs, or could not be started
        self.session: RequestSender | None = None
        self.error: Exception | None = None

    def note_tried(self) -> None:
        """Note that the process runs, or could not be started."""
        self.is_tried = True
        self.is_started.set()

    @property
    def is_usable(self) -> bool:
        """Whether the process runs, or is being started."""
        if self.session is None:
            return not self.is_tried
        return self.session.side.state is State.OPEN


class Restarter:
    """Keeps one server process running, within a number of restarts.

    A process is started for the next request, not when the old one ends: a server that always
    crashes must not be run without need. If the caller that needed it first is cancelled, the start
    goes on for those that come next.

    Keeps STDIO-017.

    Args:
        opening: Starts a process, and ends it when its block is left.
        restarts: How often it may be started again.
        loop: The primitives of the loop.
        tasks: Tasks that hold processes open, used for nothing else.
        abandon: Cancels these tasks.
    """

    def __init__(
        self,
        opening: Opening[RequestSender],
        restarts: int,
        *,
        loop: Loop,
        tasks: Tasks,
        abandon: Callable[[], object],
    ) -> None:
        self._opening: Final = opening
        self._left = restarts
        self._restarts: Final = restarts
        self._loop: Final = loop
        self._tasks: Final = tasks
        self._abandon: Final = abandon
        self._is_over = False
        self.session: RequestSender  # the session with the process that was started last
        self._process = _Process(loop)
        tasks.start_soon(self._hold, self._process, None)

    async def open(self) -> None:
        """Wait until the first process has been started.

        Raises:
            Exception: Why it could not be.
        """
        await self._process.is_started.wait()
        if self._process.error is not None:
            raise self._process.error

    async def live(self) -> RequestSender:
        """Return the session with the running process. A process that has ended is started again.

        Raises:
            ConnectionLost: No restart is left, or the restart failed, or the block has ended.
        """
        if self._is_over:
            raise ConnectionLost("the connection has ended")
        process = self._process
        if not process.is_usable:
            if self._left == 0:
                lost = ConnectionLost(f"the server has ended again after {self._restarts} restarts")
                raise with_stderr(lost, self.session.sending.stderr)
            self._left -= 1
            LOGGER.warning("the server has ended unexpectedly and is started again")
            former, process = process, _Process(self._loop)
            self._process = process
            self._tasks.start_soon(self._hold, process, former)
        await process.is_started.wait()
        if process.session is None:
            lost = ConnectionLost(f"the server could not be started again: {process.error}")
            if isinstance(process.error, ConnectionLost):
                lost._tail = process.error._tail
            raise lost from process.error
        return process.session

    def finish(self) -> None:
        """End the process that runs, or is being started."""
        self._is_over = True
        self._process.is_to_end.set()
        if not self._process.is_tried:
            self._abandon()

    async def close(self) -> None:
        """End the process, and wait for its end."""
        self.finish()
        await self._process.has_ended.wait()

    async def _hold(self, process: _Process, former: _Process | None) -> None:
        """Hold the block of a process open until `is_to_end` is set."""
        try:
            if former is not None:
                former.is_to_end.set()
                await former.has_ended.wait()
            async with self._opening() as session:
                process.session = self.session = session
                process.note_tried()
                await process.is_to_end.wait()
        except Exception as error:
            if process.session is not None:
                raise
            process.error = error
            if former is not None:
                LOGGER.warning("the server could not be started again: %s", error)
        finally:
            process.note_tried()
            process.has_ended.set()
