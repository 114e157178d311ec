"""Functions of the application that nobody waits for, on asyncio: what they raise ends nothing."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

from sansmcp import NotificationReceived, Peer
from sansmcp.http import Session

from ._anomalies import LOGGER
from ._surface import NotificationHandler

_MOST_RUNNING: Final = 100
"""So many notifications are handled at once, where the handler is async."""
_MOST_WAITING: Final = 1_000
"""So many wait for their turn. With one more, the oldest is dropped."""


@contextmanager
def logged(what: str) -> Generator[None, None, None]:
    """Keep what a callback raises from reaching anybody else."""
    try:
        yield
    except Exception as error:
        LOGGER.error("%s failed", what, exc_info=error)


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

    async def cancel(self) -> None:
        """Cancel all, and wait until they have ended."""
        while self._running:
            for task in self._running:
                task.cancel()
            await asyncio.wait(self._running)


class Notifications:
    """Calls the handler for each notification: a plain one inline, an async one in a task.

    As on trio, what is more than can be handled is dropped: the oldest first.
    """

    def __init__(self, handler: NotificationHandler, tasks: Tasks) -> None:
        self._handler: Final = handler
        self._tasks: Final = tasks
        self._running = 0
        self._waiting: deque[NotificationReceived] = deque()
        self._has_dropped = False

    def handle(self, event: NotificationReceived) -> None:
        """Handle one notification, now or when it is its turn."""
        if self._running < _MOST_RUNNING:
            self._begin(event)
            return
        if len(self._waiting) == _MOST_WAITING:
            self._waiting.popleft()
            if not self._has_dropped:
                self._has_dropped = True
                LOGGER.warning("notifications come faster than they are handled: some are dropped")
        self._waiting.append(event)

    def _begin(self, event: NotificationReceived) -> None:
        with logged("the handler of notifications"):
            outcome = self._handler(event.method, event.params)
            if inspect.isawaitable(outcome):
                self._running += 1
                self._tasks.start(self._finish(outcome))

    async def _finish(self, outcome: Awaitable[object]) -> None:
        try:
            with logged("the handler of notifications"):
                await outcome
        finally:
            self._running -= 1
        while self._waiting and self._running < _MOST_RUNNING:
            self._begin(self._waiting.popleft())


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
