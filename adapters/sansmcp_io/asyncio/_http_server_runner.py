"""Runs an endpoint on asyncio: the tasks of its handlers, its time, and its end."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from sansmcp.http import Session

from .._async.http_server_runner import EndpointRunner, SessionTasks
from .._common.anomalies import LOGGER
from .._common.bounds import FLUSH_SECONDS
from ._tasks import Tasks

if TYPE_CHECKING:
    from .._async.one_shot import OneShotSender


class AsyncioSessionTasks(SessionTasks):
    """Starts a task for each session whose function is async."""

    def _start(
        self, awaitable: Awaitable[object], session: Session, tasks: Tasks
    ) -> asyncio.Task[None]:
        return tasks.start_soon(self._run, awaitable, session)


class AsyncioRunner(EndpointRunner):
    """Runs an endpoint in an asyncio loop, which `_enter` sets."""

    tasks: Tasks
    _loop: asyncio.AbstractEventLoop | None = None
    _clock: asyncio.TimerHandle | None = None
    _alarm = -math.inf  # when the clock goes off; it cannot be set before there is a loop
    _has_changed: asyncio.Event  # something has ended, or a turn has passed

    def _enter(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run in a loop from now on. The loop must be running."""
        if self._clock is not None:
            self._clock.cancel()
        self._loop = loop
        self._clock, self._alarm = None, math.inf
        self._has_changed = asyncio.Event()
        self.tasks = Tasks(self._failed)

    def _new_one_shot_sender(self) -> OneShotSender:
        from .._async.one_shot import H11OneShotSender
        from ._client_stream import ClientStreams

        return H11OneShotSender(self.loop, ClientStreams().connect, (OSError,), None)

    # ---------------------------------------------------------------------------- time

    def _turned(self) -> None:
        self._has_changed.set()
        deadline = self.endpoint.next_timeout()
        if deadline is not None and deadline < self._alarm:
            assert self._loop is not None
            if self._clock is not None:
                self._clock.cancel()
            self._alarm = deadline
            # Not `call_at`: a loop may have another clock than the endpoint is told.
            self._clock = self._loop.call_later(deadline - self.now(), self._keep_time)

    def _keep_time(self) -> None:
        self._clock, self._alarm = None, math.inf
        self.endpoint.handle_timeout(self.now())
        self.turn()

    # ---------------------------------------------------------------------------- ending

    async def _end_requests(self, drain: float) -> None:
        """Give open requests `drain` seconds to finish, then end them, and serve no more."""
        self.drain_cluster()
        with suppress(TimeoutError):
            async with asyncio.timeout(drain):
                while self.is_busy:
                    await self._change()
        self.close_endpoint()
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                while self.is_storing:
                    await self._change()

    async def _flush(self, rest: Collection[object]) -> None:
        """Wait until this collection is empty, for at most `FLUSH_SECONDS`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                while rest:
                    await self._change()

    async def _end_tasks(self) -> None:
        await self._flush(self.lookups.stores)
        await self.tasks.end()
        if self._clock is not None:
            self._clock.cancel()

    async def _change(self) -> None:
        self._has_changed.clear()
        await self._has_changed.wait()

    def _failed(self, error: BaseException) -> None:
        LOGGER.error("a task of the server failed", exc_info=error)
