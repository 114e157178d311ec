"""Where somebody waits for the changes of a subscription."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import trio

from sansmcp import JSONObject, NotificationReceived, SubscriptionAcknowledged, SubscriptionEnded

from ._anomalies import LOGGER
from ._errors import Refusal
from ._outcomes import check_subscription
from ._stderr import StderrTail

_UPDATED: Final = "notifications/resources/updated"
_FILTERS: Final[Mapping[str, str]] = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    _UPDATED: "resourceSubscriptions",
}
_MOST_PARTS: Final = 1_000
"""So many changes wait beyond those of what was subscribed to: those of parts of resources."""


class Changes:
    """What a subscription tells: iterate over it, `async for method, params in changes`.

    Any number of tasks may do so at once: each change is told to one of them, and the end to all.
    Something that changes again before it was taken is told once. What the server has not
    acknowledged is not told. A resource may have parts with URIs of their own; if more than a
    thousand of them wait, the oldest change is dropped.
    """

    def __init__(self, stderr: StderrTail | None) -> None:
        self.refusal = Refusal()  # as a mailbox has it
        self._stderr = stderr
        self._acknowledged: JSONObject | None = None
        self._waiting: dict[tuple[str, str], JSONObject] = {}
        self._most = 0
        self._ended: SubscriptionEnded | None = None
        self._waiters = trio.lowlevel.ParkingLot()

    @property
    def notifications(self) -> JSONObject:
        """The filter, as far as the server honours it."""
        return self._acknowledged or {}

    def put(
        self, event: SubscriptionAcknowledged | SubscriptionEnded | NotificationReceived
    ) -> None:
        """The dispatching task has news."""
        match event:
            case SubscriptionAcknowledged():
                self._acknowledged = event.notifications
                resources = event.notifications.get("resourceSubscriptions") or ()
                self._most = _MOST_PARTS + len(_FILTERS) + len(resources)
            case SubscriptionEnded():
                self._ended = event
            case NotificationReceived():
                if not self.notifications.get(_FILTERS[event.method]):
                    return
                uri = str(event.params.get("uri")) if event.method == _UPDATED else ""
                self._waiting[event.method, uri] = event.params
                if len(self._waiting) > self._most:
                    del self._waiting[next(iter(self._waiting))]
                    LOGGER.debug("changes come faster than they are taken: one is dropped")
        self._waiters.unpark_all()  # one may be cancelled before it takes anything

    async def wait_acknowledged(self) -> None:
        """Wait until the server has taken the subscription, or raise why it has not."""
        while self._acknowledged is None and self._ended is None:
            await self._waiters.park()
        if self._ended is not None:
            check_subscription(self._ended, self._stderr)

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> tuple[str, JSONObject]:
        while not self._waiting:
            if self._ended is not None:
                check_subscription(self._ended, self._stderr)
                raise StopAsyncIteration
            await self._waiters.park()
        key = next(iter(self._waiting))
        return key[0], self._waiting.pop(key)
