"""Where a caller waits for what is dispatched to it."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

from ._surface import ProgressHandler

Item = TypeVar("Item")


class Mailbox(Generic[Item]):
    """What the dispatching leaves for one caller that waits."""

    def __init__(self, on_progress: ProgressHandler | None = None) -> None:
        self.on_progress = on_progress
        self._items: deque[Item] = deque()
        self._arrived = asyncio.Event()

    def put(self, item: Item) -> None:
        """Leave an item and wake the caller."""
        self._items.append(item)
        self._arrived.set()

    async def take(self) -> Item:
        """The oldest item, as soon as there is one."""
        await self._arrived.wait()
        item = self._items.popleft()
        if not self._items:
            self._arrived.clear()
        return item
