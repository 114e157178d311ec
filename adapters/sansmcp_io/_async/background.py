"""Callbacks of the application. Exceptions that they raise are logged, and end no connection."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

from sansmcp import NotificationReceived, ProgressReceived

from .._common.anomalies import LOGGER
from .._common.bounds import Allowance, memory_of
from .._common.call import NotificationHandler, not_async
from .loop import Mailbox, Tasks

_MOST_RUNNING: Final = 100
"""The number of notifications that an async handler handles at once."""
_MOST_WAITING: Final = 1_000
"""The number of notifications that may wait. Of more, the oldest is dropped."""


@contextmanager
def logged(what: str) -> Generator[None, None, None]:
    """Log an exception that a callback raises."""
    try:
        yield
    except Exception as error:
        LOGGER.error("%s failed", what, exc_info=error)


def call_back(tasks: Tasks, what: str, function: Callable[[], object]) -> None:
    """Call a function; an async one runs in a task of its own."""
    with logged(what):
        outcome = function()
        if inspect.isawaitable(outcome):
            tasks.start_soon(_await_logged, what, outcome)


async def _await_logged(what: str, awaitable: Awaitable[object]) -> None:
    with logged(what):
        await awaitable


def call_on_progress(event: ProgressReceived) -> None:
    """Call the `on_progress` of a request. Its exceptions are raised by the caller's `request`.

    Progress of a task may come after the response to the request for it. The caller no longer waits
    then, and an exception is logged.
    """
    mailbox: Mailbox = event.request.data
    on_progress = mailbox.on_progress
    if on_progress is None:
        return
    with logged("on_progress"):
        try:
            outcome: Any = on_progress(event.progress, event.total, event.message)
            not_async(outcome, "on_progress")
        except BaseException as error:
            if mailbox.is_closed:
                raise
            mailbox.on_progress = None
            mailbox.fail(error)


class NotificationRunner:
    """Calls the handler for each notification: a plain one inline, an async one in a task."""

    def __init__(self, handler: NotificationHandler) -> None:
        self._handler: Final = handler
        self._running = 0
        self._waiting: deque[tuple[NotificationReceived, int]] = deque()  # and its memory
        self._allowance = Allowance(_MOST_WAITING, "notifications")

    def handle(self, event: NotificationReceived, tasks: Tasks) -> None:
        """Handle one notification, at once or after others."""
        size = memory_of(event.params)
        if self._allowance.admit(size, self._drop_oldest):
            self._waiting.append((event, size))
            self._begin_some(tasks)

    def _drop_oldest(self) -> int:
        return self._waiting.popleft()[1]

    def _begin_some(self, tasks: Tasks) -> None:
        while self._waiting and self._running < _MOST_RUNNING:
            event, size = self._waiting.popleft()
            self._allowance.begin()
            is_running = False
            with logged("on_notification"):
                outcome = self._handler(event.method, event.params)
                if inspect.isawaitable(outcome):
                    is_running = True
                    self._running += 1
                    tasks.start_soon(self._finish, outcome, size, tasks)
            if not is_running:
                self._allowance.end(size)

    async def _finish(self, outcome: Awaitable[object], size: int, tasks: Tasks) -> None:
        try:
            await _await_logged("on_notification", outcome)
        finally:  # on asyncio, a handler may be cancelled by what it waits for
            self._running -= 1
            self._allowance.end(size)
        self._begin_some(tasks)
