"""Cancels a block of a task when a task beside the block fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Protocol

from ._tasks import Tasks, finished


class Guard:
    """Cancels a block of a task, and remembers whether it did.

    Attributes:
        failure: Raised in place of the cancellation.
    """

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # an awaiting caller is in a task
        self._task = task
        self._cancelled_before = task.cancelling()
        self._is_over = False
        self.has_cancelled = False
        self.failure: BaseException | None = None

    def cancel(self) -> None:
        """Cancel the block, at most once, unless the block has ended."""
        if not self._is_over and not self.has_cancelled:
            self.has_cancelled = True
            self._task.cancel()

    def fail(self, failure: BaseException) -> None:
        """Cancel the block, and raise `failure` at its end."""
        if self.failure is None:
            self.failure = failure
        self.cancel()

    def leave(self) -> bool:
        """Note the end of the block, and return whether only this guard has cancelled it."""
        self._is_over = True
        return self.has_cancelled and self._task.uncancel() <= self._cancelled_before


@asynccontextmanager
async def guarded() -> AsyncGenerator[Guard, None]:
    """A block that a guard can cancel. If a failure was the cause, the failure is raised.

    If another cancellation was requested as well, that one is raised.
    """
    guard = Guard()
    try:
        yield guard
    except asyncio.CancelledError:
        if not guard.leave():
            raise
    except BaseException:
        guard.leave()
        raise
    else:
        guard.leave()
    if guard.failure is not None:
        raise guard.failure


class Finishes(Protocol):
    """An object that can be finished: a session or a `Restarter`."""

    def finish(self) -> None:
        """End the object soon."""
        ...


class Runs(Finishes, Protocol):
    """A session."""

    async def run(self) -> None:
        """Run until `finish` is called, or the session fails."""
        ...


@asynccontextmanager
async def running(session: Runs) -> AsyncGenerator[None, None]:
    """A block in which a session runs: the session ends with it, and cancels it if it fails."""
    async with guarded() as guard:

        async def run() -> None:
            try:
                await session.run()
            except (SystemExit, KeyboardInterrupt) as failure:
                guard.fail(failure)  # a task would raise it out of the loop, past this block

        tasks = Tasks(guard.fail)
        tasks.start_soon(run)
        try:
            yield
        finally:
            await finished(finish(session, tasks))


async def finish(session: Finishes, tasks: Tasks) -> None:
    """Finish a session, and wait until its tasks have ended."""
    session.finish()
    try:
        await tasks.join()
    finally:
        await tasks.end()
