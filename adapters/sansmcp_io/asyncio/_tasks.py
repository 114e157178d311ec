"""Tasks of asyncio that end before their owner ends, also if they or the owner are cancelled."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

Returned = TypeVar("Returned")

_CREATED: Final = inspect.CORO_CREATED
_AGAIN_SECONDS: Final = 1.0
"""Seconds after which a task that ignores its cancellation is cancelled again."""


def cancel(task: asyncio.Task[Any]) -> None:
    """Cancel a task, at the earliest when it has begun, so that its `finally` blocks run."""
    coroutine = task.get_coro()
    if inspect.iscoroutine(coroutine) and inspect.getcoroutinestate(coroutine) == _CREATED:
        task.get_loop().call_soon(task.cancel)
    else:
        task.cancel()


async def finished(coroutine: Coroutine[Any, Any, Returned]) -> Returned:
    """Run this to its end. A cancellation that comes meanwhile is raised then."""
    task = asyncio.get_running_loop().create_task(coroutine)
    cancelled = await _outlast([task])
    if cancelled is not None:
        raise cancelled from (None if task.cancelled() else task.exception())
    return task.result()


async def end_all(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended. A cancellation meanwhile is raised then.

    asyncio cancels a task once. A task that goes on is cancelled again each second: it has time to
    clean up, and cannot go on for ever.
    """
    for task in tasks:
        cancel(task)
    cancelled = await _outlast(tasks, _AGAIN_SECONDS)
    if cancelled is not None:
        raise cancelled


async def _outlast(
    tasks: Collection[asyncio.Task[Any]], again: float | None = None
) -> asyncio.CancelledError | None:
    """Wait for the end of all tasks, and return the cancellation that came meanwhile."""
    cancelled: asyncio.CancelledError | None = None
    rest: set[asyncio.Task[Any]] = {task for task in tasks if not task.done()}
    while rest:
        try:
            _, rest = await asyncio.wait(rest, timeout=again)
        except asyncio.CancelledError as error:
            cancelled = error
            rest = {task for task in rest if not task.done()}
        else:
            for task in rest:
                task.cancel()
    return cancelled


class Tasks:
    """Tasks that run until all of them are ended; no caller waits for one of them.

    Args:
        fail: Called with an exception that a task raises.
    """

    def __init__(self, fail: Callable[[BaseException], object]) -> None:
        self._fail: Final = fail
        self._running: set[asyncio.Task[Any]] = set()  # asyncio itself does not keep them alive
        self._is_over = False
        self._create_task: Final = asyncio.get_running_loop().create_task

    def start_soon(
        self, function: Callable[..., Coroutine[Any, Any, Any]], /, *args: Any, name: object = None
    ) -> asyncio.Task[Any]:
        """Start a task. A coroutine that it is to await is among its arguments."""
        task = self._create_task(function(*args), name=None if name is None else str(name))
        self._running.add(task)
        task.add_done_callback(partial(self._ended, args))
        if self._is_over:
            cancel(task)
        return task

    def _ended(self, args: tuple[Any, ...], task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if task.cancelled():
            # Cancelled before its first step: Python would warn of the coroutine.
            for arg in args:
                if inspect.iscoroutine(arg):
                    arg.close()
        elif (error := task.exception()) is not None:
            self._fail(error)

    @property
    def running(self) -> bool:
        """Whether there is one that has not ended."""
        return bool(self._running)

    def cancel(self) -> None:
        """Cancel them all, and all that are still to come."""
        self._is_over = True
        for task in self._running:
            cancel(task)

    async def join(self) -> None:
        """Wait until all tasks have ended.

        Nothing that a task does can be waited for instead: one that is cancelled may never begin.
        """
        while self._running:
            await asyncio.wait(self._running)
            await asyncio.sleep(0)  # their callbacks have been scheduled, and have them forgotten

    async def end(self) -> None:
        """Cancel all tasks, and wait until they and the tasks that they start have ended."""
        self._is_over = True
        cancelled: asyncio.CancelledError | None = None
        while self._running:
            try:
                await end_all(list(self._running))
            except asyncio.CancelledError as error:
                cancelled = error
            # Their callbacks have been scheduled, and have them forgotten.
            await asyncio.sleep(0)
        if cancelled is not None:
            raise cancelled
