"""The primitives of `_async.loop`, on trio."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import trio

from .._async.mailbox import Item, MailboxBase
from .._common.call import ProgressHandler
from ._handlers import TrioHandlerRunner


class TrioLoop:
    """The primitives of trio."""

    now = staticmethod(trio.current_time)
    new_event = trio.Event
    new_lock = trio.Lock
    new_scope = trio.CancelScope
    new_handler_runner = TrioHandlerRunner

    def new_mailbox(self, on_progress: ProgressHandler | None = None) -> Mailbox[Any]:
        """A mailbox that is empty."""
        return Mailbox(on_progress)

    def new_workers(self, deadline: float) -> Workers:
        """Workers with a deadline."""
        return Workers(deadline)

    async def pause(self) -> None:
        """Let other tasks run."""
        await trio.lowlevel.checkpoint()

    async def wait_until(self, deadline: float, wait: Callable[[], Awaitable[object]]) -> bool:
        """Await `wait()` until the deadline, and return whether it returned before."""
        with trio.move_on_at(deadline) as scope:
            await wait()
        return not scope.cancelled_caught

    async def finish(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Await `work()` to its end. A cancellation that comes meanwhile is raised after it."""
        with trio.CancelScope(shield=True):
            await work()

    def new_messenger(self) -> Callable[[Callable[[], object]], object]:
        """Return a function that calls another one in this thread, from any thread."""
        here, token = threading.get_ident(), trio.lowlevel.current_trio_token()

        def hand_over(function: Callable[[], object]) -> None:
            if threading.get_ident() == here:
                function()
            else:
                with suppress(trio.RunFinishedError):
                    token.run_sync_soon(function)

        return hand_over

    def new_postman(self) -> Callable[[Callable[[], object]], object]:
        """Return a function that calls another one in a later step of this loop."""
        token = trio.lowlevel.current_trio_token()

        def post(function: Callable[[], object]) -> None:
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(function)

        return post


class Workers:
    """Tasks that share the work of one caller."""

    def __init__(self, deadline: float) -> None:
        self._scope = trio.CancelScope(deadline=deadline)

    def cancel(self) -> None:
        """Cancel them all."""
        self._scope.cancel()

    async def run(self, work: Callable[[], Awaitable[None]], number: int) -> None:
        """Run `work` in `number` tasks, and wait until all have ended."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                for _ in range(number):
                    nursery.start_soon(work)


class Sleeper:
    """A place for one task to wait in. A wake-up while it does not wait is remembered."""

    def __init__(self) -> None:
        self._task: trio.lowlevel.Task | None = None
        self._was_woken = False

    def wake(self) -> None:
        """Wake the task. If it does not sleep, its next `sleep` returns at once."""
        task = self._task
        if task is None:
            self._was_woken = True
        else:
            self._task = None
            trio.lowlevel.reschedule(task)

    async def sleep(self) -> None:
        """Wait until `wake` is called."""
        if self._was_woken:
            self._was_woken = False
            await trio.lowlevel.checkpoint()
            return
        self._task = trio.lowlevel.current_task()

        def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
            self._task = None
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
        self._was_woken = False  # a second wake-up before the task ran needs no second run


class Mailbox(MailboxBase[Item]):
    """Items from the dispatcher for one caller that waits."""

    def __init__(self, on_progress: ProgressHandler | None = None) -> None:
        super().__init__(on_progress)
        self._caller = Sleeper()

    def _wake(self) -> None:
        self._caller.wake()

    async def take(self) -> Item:
        """Wait for and return the oldest item, or raise the exception that `fail` was given."""
        if self._items or self._failure is not None:
            await trio.lowlevel.checkpoint()
        while not self._items and self._failure is None:
            await self._caller.sleep()
        return self._taken()


@asynccontextmanager
async def unwrapped() -> AsyncGenerator[None, None]:
    """Unwrap a single exception from the exception group of a nursery in the block.

    Callers write `except PeerError`, and need not know of the nursery. Several exceptions at once
    stay a group.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        if len(group.exceptions) != 1:
            raise
        failure: BaseException = group.exceptions[0]
        context = failure.__context__
        try:
            raise failure
        finally:
            failure.__context__ = context  # not the group, which would show everything twice
            del failure, context  # or the traceback would refer to itself
