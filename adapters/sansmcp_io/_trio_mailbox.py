"""Where a caller waits for what the dispatching task has for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

import trio

from ._trio_sleeper import Sleeper

Item = TypeVar("Item")
ProgressHandler: TypeAlias = Callable[[float, float | None, str | None], object]


class Mailbox(Generic[Item]):
    """What the dispatching task leaves for one caller that waits."""

    def __init__(self, on_progress: ProgressHandler | None = None) -> None:
        self.on_progress = on_progress
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
