"""Where threads wait for the changes of a subscription."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from .._common.changes import WaitingChanges
from .._common.stderr import StderrTail

if TYPE_CHECKING:
    from sansmcp import JSONObject, NotificationReceived, SubscriptionAcknowledged
    from sansmcp import SubscriptionEnded as Ended

    from ._session import EventDispatcher


class Changes(WaitingChanges):
    """What a subscription tells: iterate over it, `for method, params in changes`.

    Any number of threads may do so at once: each change is told to one of them, and the end to
    all. Something that changes again before it was taken is told once. What the server has not
    acknowledged is not told. A resource may have parts with URIs of their own; if more than a
    thousand of them wait, or they take more than 256 MiB of memory, the oldest change is dropped.
    """

    def __init__(self, session: EventDispatcher, stderr: StderrTail | None) -> None:
        super().__init__(stderr)
        self._session = session

    def put(self, event: SubscriptionAcknowledged | Ended | NotificationReceived) -> None:
        """The reading thread has news."""
        super().put(event)
        self._session.ring_all()

    def wait_acknowledged(self) -> None:
        """Wait until the server has taken the subscription, or raise why it has not."""
        self._session.wait(lambda: self.is_settled)
        self.check_end()

    def take(self, timeout: float = math.inf) -> tuple[str, JSONObject] | None:
        """The next change, as soon as there is one: its method and params. None is the end.

        Args:
            timeout: Seconds to wait for it; what has come already is taken in any case.

        Raises:
            TimeoutError: There was none in time; the subscription goes on.
            PeerError, ConnectionLost, InvalidAnswer: Why the subscription has ended.
        """
        with self._session:
            until = time.monotonic() + timeout
            if not self.has_news and timeout <= 0:
                self._session.look()
            if not self._session.wait(lambda: self.has_news, until):
                raise TimeoutError(f"nothing has changed within {timeout} s")
            return self.next_change()

    def __iter__(self) -> Changes:
        return self

    def __next__(self) -> tuple[str, JSONObject]:
        change = self.take()
        if change is None:
            raise StopIteration
        return change
