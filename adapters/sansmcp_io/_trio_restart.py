"""A server process that is started again when it has ended unexpectedly."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeAlias

import trio

from sansmcp import State

from ._anomalies import LOGGER
from ._errors import ConnectionLost
from ._outcomes import with_stderr
from ._trio_session import Session

Opening: TypeAlias = Callable[[], AbstractAsyncContextManager[Session]]


class Restarter:
    """Keeps one process running, as long as it may be started again.

    A new process is started when something is to be sent, not when the old one ends: a server
    that crashes whenever it runs must not be run for nobody.
    """

    def __init__(self, opening: Opening, restarts: int, tasks: trio.Nursery) -> None:
        self._opening: Final = opening
        self._left = restarts
        self._restarts: Final = restarts
        self._tasks: Final = tasks
        self._lock = trio.Lock()
        self._session: Session
        self._leave = trio.Event()
        self._left_block = trio.Event()

    async def start(self) -> Session:
        """Start the first process."""
        return await self._open()

    async def live(self) -> Session:
        """The session with the process that runs; a new one if it has ended.

        Raises:
            ConnectionLost: It may not be started again.
        """
        async with self._lock:  # callers that find it gone at the same time share a new one
            if self._session.connection.state is State.OPEN:
                return self._session
            if self._left == 0:
                lost = ConnectionLost(f"the server has ended again after {self._restarts} restarts")
                raise with_stderr(lost, self._session.stderr)
            self._left -= 1
            LOGGER.warning("the server has ended unexpectedly and is started again")
            await self.stop()
            return await self._open()

    async def stop(self) -> None:
        """End the process that runs, and wait for its end."""
        self._leave.set()
        await self._left_block.wait()

    async def _open(self) -> Session:
        self._leave = trio.Event()
        self._left_block = trio.Event()
        self._session = await self._tasks.start(self._hold)
        return self._session

    async def _hold(self, *, task_status: trio.TaskStatus[Any]) -> None:
        """Stay in the block of a process until it is to end."""
        leave, left = self._leave, self._left_block
        try:
            async with self._opening() as session:
                task_status.started(session)
                await leave.wait()
        finally:
            left.set()
