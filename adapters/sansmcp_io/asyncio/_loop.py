"""The primitives of `_async.loop`, on asyncio."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any

from .._async.mailbox import Item, MailboxBase
from .._common.call import ProgressHandler
from ._handlers import AsyncioHandlerRunner
from ._tasks import end_all, finished


class AsyncioLoop:
    """The primitives of the event loop that is running."""

    new_event = asyncio.Event
    new_lock = asyncio.Lock
    new_handler_runner = AsyncioHandlerRunner

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.now: Callable[[], float] = self._loop.time

    def new_mailbox(self, on_progress: ProgressHandler | None = None) -> Mailbox[Any]:
        """A mailbox that is empty."""
        return Mailbox(on_progress)

    def new_workers(self, deadline: float) -> Workers:
        """Workers with a deadline."""
        return Workers(deadline)

    def new_scope(self) -> Scope:
        """A scope without a deadline."""
        return Scope(self._loop)

    async def pause(self) -> None:
        """Let other tasks run."""
        await asyncio.sleep(0)

    async def wait_until(self, deadline: float, wait: Callable[[], Awaitable[object]]) -> bool:
        """Await `wait()` until the deadline, and return whether it returned before."""
        scope = asyncio.timeout_at(None if deadline == math.inf else deadline)
        try:
            async with scope:
                await wait()
        except TimeoutError:
            if not scope.expired():
                raise
            return False
        return True

    async def finish(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Await `work()` to its end. A cancellation that comes meanwhile is raised after it."""
        await finished(work())

    def new_messenger(self) -> Callable[[Callable[[], object]], object]:
        """Return a function that calls another one in this thread, from any thread."""
        here, loop = threading.get_ident(), self._loop

        def hand_over(function: Callable[[], object]) -> None:
            if threading.get_ident() == here:
                function()
            else:
                with suppress(RuntimeError):  # the loop has been closed
                    loop.call_soon_threadsafe(function)

        return hand_over

    def new_postman(self) -> Callable[[Callable[[], object]], object]:
        """Return a function that calls another one in a later step of this loop."""
        loop = self._loop

        def post(function: Callable[[], object]) -> None:
            with suppress(RuntimeError):  # the loop has been closed
                loop.call_soon_threadsafe(function)

        return post


class Scope:
    """A block of one task. The block ends at a deadline, or when it is cancelled."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._deadline = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[Any] | None = None  # None: outside of the block
        self._cancelled_before = 0
        self._is_cancelled = False
        self._has_told = False  # the task that it is cancelled

    @property
    def deadline(self) -> float:
        """The time at which the block ends; `math.inf`: never."""
        return self._deadline

    @deadline.setter
    def deadline(self, deadline: float) -> None:
        if deadline != self._deadline:
            self._deadline = deadline
            self._set_timer()

    def cancel(self) -> None:
        """End the block. If the block has not begun, it ends at once."""
        self._is_cancelled = True
        if self._task is not None:
            self._loop.call_soon(self._tell)  # the task may be the current task

    def __enter__(self) -> Scope:
        self._task = asyncio.current_task()
        assert self._task is not None  # an awaiting caller is in a task
        self._cancelled_before = self._task.cancelling()
        if self._is_cancelled:
            self._loop.call_soon(self._tell)
        self._set_timer()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        task, self._task = self._task, None
        self._set_timer()
        if self._has_told and task is not None and task.uncancel() <= self._cancelled_before:
            return isinstance(error, asyncio.CancelledError)
        return False

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is not None and self._deadline != math.inf:
            self._timer = self._loop.call_at(self._deadline, self._tell)

    def _tell(self) -> None:
        if self._task is not None and not self._has_told:
            self._has_told = True
            self._task.cancel()


class Workers:
    """Tasks that share the work of one caller."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._tasks: list[asyncio.Task[None]] = []
        self._is_cancelled = False

    def cancel(self) -> None:
        """Cancel them all."""
        self._is_cancelled = True
        for task in self._tasks:
            task.cancel()

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]], number: int) -> None:
        """Run `work` in `number` tasks, and wait until all have ended."""
        loop = asyncio.get_running_loop()
        alarm = None if self._deadline == math.inf else loop.call_at(self._deadline, self.cancel)
        try:
            self._tasks += [loop.create_task(work()) for _ in range(number)]
            if self._is_cancelled:  # by a task that has begun at once
                self.cancel()
            await asyncio.wait(self._tasks)
        finally:
            if alarm is not None:
                alarm.cancel()
            await end_all(self._tasks)
        for task in self._tasks:
            if not task.cancelled():
                task.result()


class Mailbox(MailboxBase[Item]):
    """Items from the dispatcher for one caller that waits."""

    _waiter: asyncio.Future[None] | None = None

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def take(self) -> Item:
        """Wait for and return the oldest item, or raise the exception that `fail` was given."""
        while not self._items and self._failure is None:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._taken()
