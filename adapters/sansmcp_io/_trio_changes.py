"""Where tasks wait for the changes of a subscription."""

from __future__ import annotations

import trio

from sansmcp import JSONObject, NotificationReceived, SubscriptionAcknowledged, SubscriptionEnded

from ._changes import WaitingChanges
from ._errors import Refusal
from ._stderr import StderrTail


class Changes(WaitingChanges):
    """What a subscription tells: iterate over it, `async for method, params in changes`.

    Any number of tasks may do so at once: each change is told to one of them, and the end to all.
    Something that changes again before it was taken is told once. What the server has not
    acknowledged is not told. A resource may have parts with URIs of their own; if more than a
    thousand of them wait, the oldest change is dropped.
    """

    def __init__(self, stderr: StderrTail | None) -> None:
        super().__init__(stderr)
        self.refusal: Refusal = Refusal()  # as a mailbox has it
        self._waiters = trio.lowlevel.ParkingLot()

    def put(
        self, event: SubscriptionAcknowledged | SubscriptionEnded | NotificationReceived
    ) -> None:
        """The dispatching task has news."""
        super().put(event)
        self._waiters.unpark_all()  # one may be cancelled before it takes anything

    async def wait_acknowledged(self) -> None:
        """Wait until the server has taken the subscription, or raise why it has not."""
        while not self.is_settled:
            await self._waiters.park()
        self.check_end()

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> tuple[str, JSONObject]:
        while not self.has_news:
            await self._waiters.park()
        change = self.next_change()
        if change is None:
            raise StopAsyncIteration
        return change
