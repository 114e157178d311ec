"""Where a caller waits for what the dispatching task has for it."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

import trio

from .._common.callbacks import ProgressHandler
from .._common.errors import Refusal
from ._sleeper import Sleeper

Item = TypeVar("Item")


class Mailbox(Generic[Item]):
    """What the dispatching task leaves for one caller that waits.

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
        self._caller = Sleeper()

    def put(self, item: Item) -> None:
        """Leave an item and wake the caller."""
        self._items.append(item)
        self._caller.wake()

    def fail(self, error: BaseException) -> None:
        """Have `take` raise this, and wake the caller."""
        self._failure = error
        self._caller.wake()

    async def take(self) -> Item:
        """The oldest item, as soon as there is one, or raise what `fail` was given."""
        if self._items or self._failure is not None:
            await trio.lowlevel.checkpoint()
        while not self._items and self._failure is None:
            await self._caller.sleep()
        if self._failure is not None:
            try:
                raise self._failure
            finally:
                self._failure = None  # it refers to this frame
        return self._items.popleft()
