"""A server process that is started again when it has ended unexpectedly."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, TypeAlias

import trio

from sansmcp import State

from ._anomalies import LOGGER
from ._errors import ConnectionLost
from ._outcomes import with_stderr
from ._trio_session import Session
from ._trio_unwrap import unwrapped

Opening: TypeAlias = Callable[[], AbstractAsyncContextManager[Session]]


class _Start:
    """A start that is under way, for all who wait for it."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.session: Session | None = None
        self.error: Exception | None = None


class Restarter:
    """Keeps one process running, as long as it may be started again.

    A new process is started when something is to be sent, not when the old one ends: a server
    that crashes whenever it runs must not be run for nobody. The start is not the business of the
    caller that needed it first: it goes on if that one is cancelled, for those that come next.
    """

    def __init__(self, opening: Opening, restarts: int, tasks: trio.Nursery) -> None:
        self._opening: Final = opening
        self._left = restarts
        self._restarts: Final = restarts
        self._tasks: Final = tasks
        self.session: Session  # with the process that was started last
        self._start: _Start | None = None
        self._is_over = False
        self._leave = trio.Event()
        self._left_block = trio.Event()

    async def open(self) -> None:
        """Start a process."""
        self._leave = trio.Event()
        self._left_block = trio.Event()
        self.session = await self._tasks.start(self._hold)

    async def live(self) -> Session:
        """The session with the process that runs; a new one if it has ended.

        Raises:
            ConnectionLost: It may not, or could not, be started again.
        """
        if self.session.connection.state is State.OPEN:
            return self.session
        start = self._start
        if start is None:
            if self._left == 0:
                lost = ConnectionLost(f"the server has ended again after {self._restarts} restarts")
                raise with_stderr(lost, self.session.stderr)
            self._left -= 1
            LOGGER.warning("the server has ended unexpectedly and is started again")
            start = self._start = _Start()
            self._tasks.start_soon(self._start_again, start)
        await start.done.wait()
        if start.session is None:
            lost = ConnectionLost(f"the server could not be started again: {start.error}")
            if isinstance(start.error, ConnectionLost):
                lost._tail = start.error._tail
            raise lost from start.error
        return start.session

    async def _start_again(self, start: _Start) -> None:
        try:
            await self._stop()
            if not self._is_over:
                await self.open()
                start.session = self.session
        except Exception as error:
            LOGGER.warning("the server could not be started again: %s", error)
            start.error = error
        finally:
            self._start = None
            start.done.set()

    async def close(self) -> None:
        """End the process that runs, or is being started, and wait for its end."""
        self._is_over = True
        if self._start is not None:
            self._tasks.cancel_scope.cancel()
        await self._stop()

    async def _stop(self) -> None:
        self._leave.set()
        await self._left_block.wait()

    async def _hold(self, *, task_status: trio.TaskStatus[Any]) -> None:
        """Stay in the block of a process until it is to end."""
        leave, left = self._leave, self._left_block
        try:
            async with self._opening() as session:
                task_status.started(session)
                # Those who use it may still have things to say when all around is cancelled.
                with trio.CancelScope(shield=True):
                    await leave.wait()
        finally:
            left.set()


@asynccontextmanager
async def keep_running(opening: Opening, restarts: int) -> AsyncGenerator[Restarter, None]:
    """Start a process; in the end, end it or the one that has taken its place.

    Raises:
        Exception: What `opening` raises when it fails for the first time.
    """
    async with unwrapped(), trio.open_nursery() as tasks:
        restarter = Restarter(opening, restarts, tasks)
        await restarter.open()
        try:
            yield restarter
        finally:
            with trio.CancelScope(shield=True):
                await restarter.close()
