"""Where a caller waits for what the dispatching task has for it."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

import trio

from ._errors import Refusal
from ._surface import ProgressHandler
from ._trio_sleeper import Sleeper

Item = TypeVar("Item")


class Mailbox(Generic[Item]):
    """What the dispatching task leaves for one caller that waits.

    Attributes:
        on_progress: Called with what comes before.
        refusal: Known before the ending that comes of it.
    """

    def __init__(self, on_progress: ProgressHandler | None = None) -> None:
        self.on_progress = on_progress
        self.refusal = Refusal()
        self._items: deque[Item] = deque()
        self._caller = Sleeper()

    def put(self, item: Item) -> None:
        """Leave an item and wake the caller."""
        self._items.append(item)
        self._caller.wake()

    async def take(self) -> Item:
        """The oldest item, as soon as there is one."""
        if self._items:
            await trio.lowlevel.checkpoint()
        while not self._items:
            await self._caller.sleep()
        return self._items.popleft()
