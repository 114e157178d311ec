"""Mailboxes, in which callers wait for events from the dispatcher, on any loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Generic, TypeVar

from sansmcp import (
    JSONObject,
    NotificationReceived,
    SubscriptionAcknowledged,
    SubscriptionEnded,
    TaskUpdated,
)

from .._common.call import ProgressHandler
from .._common.changes import WaitingChanges
from .._common.errors import Refusal
from .._common.stderr import StderrTail
from .loop import Loop

Item = TypeVar("Item")


class MailboxBase(ABC, Generic[Item]):
    """Items from the dispatcher for one caller that waits.

    Attributes:
        on_progress: Called with the progress that comes before the ending.
        is_closed: Whether the caller has stopped waiting.
        refusal: The refusal over HTTP, which is known before the ending that it causes.
    """

    def __init__(self, on_progress: ProgressHandler | None = None) -> None:
        self.on_progress = on_progress
        self.is_closed = False
        self.refusal = Refusal()
        self._items: deque[Item] = deque()
        self._failure: BaseException | None = None

    @abstractmethod
    def _wake(self) -> None:
        """Wake the caller, if it waits."""

    def put(self, item: Item) -> None:
        """Leave an item and wake the caller."""
        self._items.append(item)
        self._wake()

    def update(self, event: TaskUpdated) -> None:
        """Take a change of the task that the request has become: the caller waits for the end."""

    def fail(self, error: BaseException) -> None:
        """Let `take` raise an exception, and wake the caller."""
        self._failure = error
        self._wake()

    def _taken(self) -> Item:
        """Return the oldest item, or raise the exception that `fail` was given."""
        if self._failure is not None:
            try:
                raise self._failure
            finally:
                self._failure = None  # it refers to this frame
        return self._items.popleft()


class Changes(WaitingChanges):
    """The changes of a subscription: `async for method, params in changes`.

    Any number of tasks may iterate at once: each change goes to one of them, and the end to all. A
    list or resource that changes again before its change was taken counts once. Changes for which
    the server has not acknowledged the subscription are left out. A resource may have parts with
    URIs of their own; if changes of more than a thousand of them wait, or take more than 256 MiB of
    memory, the oldest is dropped.
    """

    def __init__(self, loop: Loop, stderr: StderrTail | None) -> None:
        super().__init__(stderr)
        self._loop = loop
        self._news = loop.new_event()

    def put(
        self, event: SubscriptionAcknowledged | SubscriptionEnded | NotificationReceived
    ) -> None:
        """Take an event from the dispatcher, and wake all tasks that wait."""
        super().put(event)
        news, self._news = self._news, self._loop.new_event()
        news.set()  # wakes all tasks: one task alone may be cancelled before it takes the change

    async def wait_acknowledged(self) -> None:
        """Wait for the acknowledgement of the subscription, or raise the error that ended it."""
        while not self.is_settled:
            await self._news.wait()
        self.check_end()

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> tuple[str, JSONObject]:
        while not self.has_news:
            await self._news.wait()
        change = self.next_change()
        if change is None:
            raise StopAsyncIteration
        return change
