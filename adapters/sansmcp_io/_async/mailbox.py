"""Where callers wait for what the dispatcher has for them, on any loop."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from typing import Generic, TypeVar

from sansmcp import JSONObject, NotificationReceived, SubscriptionAcknowledged, SubscriptionEnded

from .._common.call import ProgressHandler
from .._common.changes import WaitingChanges
from .._common.errors import Refusal
from .._common.stderr import StderrTail
from .loop import Loop

Item = TypeVar("Item")


class MailboxBase(Generic[Item]):
    """What the dispatcher leaves for one caller that waits.

    Attributes:
        on_progress: Called with what comes before.
        is_closed: The caller takes nothing out any more.
        refusal: Known before the ending that comes of it.
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

    def fail(self, error: BaseException) -> None:
        """Have `take` raise this, and wake the caller."""
        self._failure = error
        self._wake()

    def _taken(self) -> Item:
        """The oldest item; or raise what `fail` was given."""
        if self._failure is not None:
            try:
                raise self._failure
            finally:
                self._failure = None  # it refers to this frame
        return self._items.popleft()


class Changes(WaitingChanges):
    """What a subscription tells: iterate over it, `async for method, params in changes`.

    Any number of tasks may do so at once: each change is told to one of them, and the end to all.
    Something that changes again before it was taken is told once. What the server has not
    acknowledged is not told. A resource may have parts with URIs of their own; if more than a
    thousand of them wait, or they take more than 256 MiB of memory, the oldest change is dropped.
    """

    def __init__(self, loop: Loop, stderr: StderrTail | None) -> None:
        super().__init__(stderr)
        self._loop = loop
        self._news = loop.new_event()

    def put(
        self, event: SubscriptionAcknowledged | SubscriptionEnded | NotificationReceived
    ) -> None:
        """The dispatcher has news."""
        super().put(event)
        news, self._news = self._news, self._loop.new_event()
        news.set()  # for all: one may be cancelled before it takes anything

    async def wait_acknowledged(self) -> None:
        """Wait until the server has taken the subscription, or raise why it has not."""
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
