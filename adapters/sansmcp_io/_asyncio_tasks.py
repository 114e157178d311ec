"""Tasks that belong together, and end together."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any


class Tasks:
    """Tasks of a connection or a server, which are kept from being collected, and waited for.

    Args:
        loop: Where they run.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._running: dict[asyncio.Task[None], tuple[Any, ...]] = {}

    def start_soon(
        self,
        function: Callable[..., Coroutine[Any, Any, None]],
        *args: Any,
        name: str | None = None,
    ) -> asyncio.Task[None]:
        """Start one more."""
        task = self.loop.create_task(function(*args), name=name)
        self._running[task] = args
        task.add_done_callback(self._ended)
        return task

    async def end(self) -> None:
        """Cancel all, and wait until they have ended."""
        while self._running:
            for task in self._running:
                task.cancel()
            await asyncio.wait(list(self._running))

    def _ended(self, task: asyncio.Task[None]) -> None:
        args = self._running.pop(task)
        if task.cancelled():
            for argument in args:  # one that was cancelled before it began has awaited nothing
                if inspect.iscoroutine(argument):
                    argument.close()
        elif (failure := task.exception()) is not None:
            self.loop.call_exception_handler({"message": "a task failed", "exception": failure})
