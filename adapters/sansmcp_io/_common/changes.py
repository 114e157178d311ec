"""The changes of a subscription that wait for the application. No event loop is involved."""

from __future__ import annotations

from functools import partial
from typing import Final

from sansmcp import JSONObject, NotificationReceived, SubscriptionAcknowledged, SubscriptionEnded

from .bounds import Allowance, memory_of
from .endings import check_subscription
from .errors import Refusal
from .stderr import StderrTail

_UPDATED: Final = "notifications/resources/updated"
_CHANGES: Final = "changes"
_MOST_OTHERS: Final = 1_004
"""How many changes may wait besides one for each resource in the filter: those of lists, and of
resources below those in the filter."""


class WaitingChanges:
    """A queue of changes, in which each list and each resource stands only once."""

    def __init__(self, stderr: StderrTail | None) -> None:
        self.refusal: Refusal = Refusal()  # as a mailbox has it
        self._stderr = stderr
        self._acknowledged: JSONObject | None = None
        self._waiting: dict[tuple[str, str], tuple[JSONObject, int]] = {}  # and their memory
        self._allowance = Allowance(0, _CHANGES)  # nothing comes before the acknowledgement
        self._ended: SubscriptionEnded | None = None

    @property
    def notifications(self) -> JSONObject:
        """The part of the filter that the server has accepted."""
        return self._acknowledged or {}

    @property
    def is_settled(self) -> bool:
        """Whether the server has acknowledged the subscription, or ended it."""
        return self._acknowledged is not None or self._ended is not None

    @property
    def has_news(self) -> bool:
        """Whether there is a change to take, or the end."""
        return bool(self._waiting) or self._ended is not None

    def put(
        self, event: SubscriptionAcknowledged | SubscriptionEnded | NotificationReceived
    ) -> None:
        """Take an event of the subscription from the core."""
        match event:
            case SubscriptionAcknowledged():
                self._acknowledged = event.notifications
                resources = event.notifications.get("resourceSubscriptions") or ()
                most = _MOST_OTHERS + len(resources)
                self._allowance = Allowance(most, _CHANGES)
            case SubscriptionEnded():
                self._ended = event
            case NotificationReceived():
                subscription = event.subscription
                if subscription is None or not subscription.grants(event.method):
                    return
                uri = str(event.params.get("uri")) if event.method == _UPDATED else ""
                self._put_change((event.method, uri), event.params)

    def _put_change(self, key: tuple[str, str], params: JSONObject) -> None:
        """Let a change wait. One that waits already keeps its place and gets the new params."""
        if key in self._waiting:
            self._allowance.begin()
            self._allowance.end(self._waiting[key][1])
        size = memory_of(params)
        if self._allowance.admit(size, partial(self._drop_oldest, but=key)):
            self._waiting[key] = params, size
        else:
            self._waiting.pop(key, None)

    def _drop_oldest(self, but: tuple[str, str]) -> int:
        oldest = next(key for key in self._waiting if key != but)
        return self._waiting.pop(oldest)[1]

    def check_end(self) -> None:
        """Raise if the subscription has ended by a failure."""
        if self._ended is not None:
            check_subscription(self._ended, self._stderr)

    def next_change(self) -> tuple[str, JSONObject] | None:
        """Take the oldest change; None if the subscription was ended on purpose."""
        if not self._waiting:
            self.check_end()
            return None
        key = next(iter(self._waiting))
        params, size = self._waiting.pop(key)
        self._allowance.begin()
        self._allowance.end(size)
        return key[0], params
