"""Async handlers on trio: each in a task and a cancel scope of its own."""

from __future__ import annotations

import math
from collections.abc import Awaitable
from typing import cast

import trio

from sansmcp import IncomingRequest

from .._async.handlers import HandlerRunner, Outcome, Result
from .._async.loop import Event
from .._async.tasks import RunningTask

__all__ = ["Result", "TrioHandlerRunner"]


class TrioHandlerRunner(HandlerRunner):
    """The slot `data` of a request, or of the work on a task, holds its cancel scope."""

    _new_event = trio.Event

    async def _wait(self, event: Event, seconds: float) -> bool:
        with trio.move_on_after(seconds) as scope:
            await event.wait()
        return not scope.cancelled_caught

    def _cancel(self, subject: IncomingRequest | RunningTask) -> None:
        if isinstance(subject.data, trio.CancelScope):
            subject.data.cancel()

    def _start(
        self,
        subject: IncomingRequest | RunningTask,
        awaitable: Awaitable[Outcome],
        tasks: trio.Nursery,
    ) -> None:
        scope = subject.data = trio.CancelScope()
        # With a name, trio does not make one up.
        tasks.start_soon(self._finish, subject, awaitable, scope, tasks, name=subject.method)

    async def _finish(
        self,
        subject: IncomingRequest | RunningTask,
        awaitable: Awaitable[Outcome],
        scope: trio.CancelScope,
        tasks: trio.Nursery,
    ) -> None:
        task = trio.lowlevel.current_task()
        with scope:
            try:
                result = await awaitable
            except BaseException as error:
                cancelled, failure = _split(error, task)
                if failure is not None:
                    self._failed(subject, failure)
                    self._wake()
                if cancelled is not None:
                    raise cancelled from None
            else:
                if self._until_room is not None:
                    await self._until_room()
                self._answer(subject, result, tasks)
            self._wake()


def _split(
    error: BaseException, task: trio.lowlevel.Task
) -> tuple[BaseException | None, BaseException | None]:
    """Split an exception of a handler: the part that trio gets, and the part that is answered.

    trio has to get `Cancelled` if it has cancelled the task. Otherwise the handler has kept a
    `Cancelled` of an inner scope and raised it outside, which would end the whole server.
    """
    if isinstance(error, GeneratorExit) and not _is_running(task):
        return error, None  # the loop has ended, and Python closes the coroutine
    if trio.current_effective_deadline() > -math.inf:
        return None, error
    if isinstance(error, BaseExceptionGroup):
        group = cast(BaseExceptionGroup[BaseException], error)
        return group.split(trio.Cancelled)
    return (error, None) if isinstance(error, trio.Cancelled) else (None, error)


def _is_running(task: trio.lowlevel.Task) -> bool:
    try:
        return trio.lowlevel.current_task() is task
    except RuntimeError:
        return False
