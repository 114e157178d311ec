"""Where a caller waits for what the dispatching task has for it."""

from __future__ import annotations

import trio

from .._async.mailbox import Item, MailboxBase
from .._common.callbacks import ProgressHandler
from ._sleeper import Sleeper


class Mailbox(MailboxBase[Item]):
    """What the dispatching task leaves for one caller that waits."""

    def __init__(self, on_progress: ProgressHandler | None = None) -> None:
        super().__init__(on_progress)
        self._caller = Sleeper()

    def _wake(self) -> None:
        self._caller.wake()

    async def take(self) -> Item:
        """The oldest item, as soon as there is one, or raise what `fail` was given."""
        if self._items or self._failure is not None:
            await trio.lowlevel.checkpoint()
        while not self._items and self._failure is None:
            await self._caller.sleep()
        return self._taken()
