"""Async handlers on asyncio: each in a task of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from sansmcp import IncomingRequest, JSONObject

from .._async.handlers import HandlerRunner, Result
from .._common.call import RequireInput, answer
from ._tasks import Tasks, cancel

__all__ = ["AsyncioHandlerRunner", "Result"]


class AsyncioHandlerRunner(HandlerRunner):
    """The slot `data` of a request holds the task of its handler, where that is async."""

    def cancel(self, request: IncomingRequest) -> None:
        """Cancel the handler of a request that is no longer open, if it still runs."""
        task: asyncio.Task[None] | None = request.data
        if task is not None:
            cancel(task)

    def _start(
        self,
        request: IncomingRequest,
        awaitable: Awaitable[JSONObject | RequireInput],
        tasks: Tasks,
    ) -> None:
        # With a name, asyncio does not make one up.
        request.data = tasks.start_soon(self._finish, request, awaitable, name=request.method)

    async def _finish(
        self, request: IncomingRequest, awaitable: Awaitable[JSONObject | RequireInput]
    ) -> None:
        task = asyncio.current_task()
        try:
            result = await awaitable
        except asyncio.CancelledError:
            if request.open:  # the handler has cancelled itself
                self._failed(request, RuntimeError("it has cancelled itself"))
                self._wake()
            raise
        except BaseException as error:
            if isinstance(error, GeneratorExit) and not _is_running(task):
                raise  # the loop has ended, and Python closes the coroutine
            self._failed(request, error)
        else:
            if self._until_room is not None:
                await self._until_room()
            answer(self._connection, request, result, self._clock())
        self._wake()


def _is_running(task: asyncio.Task[None] | None) -> bool:
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False
