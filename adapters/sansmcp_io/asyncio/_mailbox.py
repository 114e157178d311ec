"""Where a caller waits, on asyncio, for what the dispatcher has for it."""

from __future__ import annotations

import asyncio

from .._async.mailbox import Item, MailboxBase


class Mailbox(MailboxBase[Item]):
    """What the dispatcher leaves for one caller that waits."""

    _waiter: asyncio.Future[None] | None = None

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def take(self) -> Item:
        """The oldest item, as soon as there is one, or raise what `fail` was given."""
        while not self._items and self._failure is None:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._taken()
