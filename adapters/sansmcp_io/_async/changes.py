"""Where tasks wait for the changes of a subscription."""

from __future__ import annotations

from sansmcp import JSONObject, NotificationReceived, SubscriptionAcknowledged, SubscriptionEnded

from .._common.changes import WaitingChanges
from .._common.stderr import StderrTail
from .loop import Loop


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
