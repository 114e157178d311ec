"""Functions of the application that nobody waits for, on asyncio: what they raise ends nothing."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final

from sansmcp import Peer
from sansmcp.http import Session

from ._async_callbacks import logged


class Tasks:
    """The tasks of a server: they are kept, since a loop holds them weakly, and end together."""

    def __init__(self) -> None:
        self._running: set[asyncio.Future[Any]] = set()

    def start(self, awaitable: Awaitable[Any]) -> asyncio.Future[Any]:
        """Run something beside all else."""
        task = asyncio.ensure_future(awaitable)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def start_soon(
        self, function: Callable[..., Awaitable[Any]], /, *args: Any, name: object = None
    ) -> asyncio.Future[Any]:
        """Run a function beside all else."""
        return self.start(function(*args))

    async def cancel(self) -> None:
        """Cancel all, and wait until they have ended."""
        while self._running:
            for task in self._running:
                task.cancel()
            await asyncio.wait(self._running)


class Companions:
    """Calls a function for each session that is ready; an async one is cancelled with its session.

    Args:
        function: Called with what `make_server` has made of a session.
        make_server: Makes what stands for a session, from what is known of its client.
        tasks: Where async ones run.
    """

    def __init__(
        self,
        function: Callable[[Any], object],
        make_server: Callable[[Peer], Any],
        tasks: Tasks,
    ) -> None:
        self._function: Final = function
        self._make_server: Final = make_server
        self._tasks: Final = tasks
        self._running: dict[Session, asyncio.Future[Any]] = {}

    def begin(self, session: Session) -> None:
        """The client of a session is ready."""
        with logged("on_ready"):
            outcome = self._function(self._make_server(session.peer))
            if inspect.isawaitable(outcome):
                self._running[session] = self._tasks.start(self._run(session, outcome))

    async def _run(self, session: Session, awaitable: Awaitable[object]) -> None:
        try:
            with logged("on_ready"):
                await awaitable
        finally:
            self._running.pop(session, None)

    def end(self, session: Session) -> None:
        """The session is over."""
        task = self._running.pop(session, None)
        if task is not None:
            task.cancel()
