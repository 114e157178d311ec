"""Async handlers on asyncio: each in a task of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from sansmcp import IncomingRequest

from .._async.handlers import HandlerRunner, Outcome, Result
from .._async.loop import Event
from .._async.tasks import RunningTask
from ._tasks import Tasks, cancel

__all__ = ["AsyncioHandlerRunner", "Result"]


class AsyncioHandlerRunner(HandlerRunner):
    """The slot `data` of a request, or of the work on a task, holds the task of the loop."""

    _new_event = asyncio.Event

    async def _wait(self, event: Event, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return False
        return True

    def _cancel(self, subject: IncomingRequest | RunningTask) -> None:
        task: asyncio.Task[None] | RunningTask | None = subject.data
        if isinstance(task, asyncio.Task):
            cancel(task)

    def _start(
        self,
        subject: IncomingRequest | RunningTask,
        awaitable: Awaitable[Outcome],
        tasks: Tasks,
    ) -> None:
        # With a name, asyncio does not make one up.
        subject.data = tasks.start_soon(
            self._finish, subject, awaitable, tasks, name=subject.method
        )

    async def _finish(
        self, subject: IncomingRequest | RunningTask, awaitable: Awaitable[Outcome], tasks: Tasks
    ) -> None:
        task = asyncio.current_task()
        try:
            result = await awaitable
        except asyncio.CancelledError:
            if subject.open:  # the handler has cancelled itself
                self._failed(subject, RuntimeError("it has cancelled itself"))
                self._wake()
            raise
        except BaseException as error:
            if isinstance(error, GeneratorExit) and not _is_running(task):
                raise  # the loop has ended, and Python closes the coroutine
            self._failed(subject, error)
        else:
            if self._until_room is not None:
                await self._until_room()
            self._answer(subject, result, tasks)
        self._wake()


def _is_running(task: asyncio.Task[None] | None) -> bool:
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False
