"""Mailboxes, in which threads wait for items from the thread that reads."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from .._common.bounds import Allowance, memory_of
from .._common.call import ProgressHandler
from .._common.changes import WaitingChanges
from .._common.errors import Refusal
from .._common.stderr import StderrTail

if TYPE_CHECKING:
    from sansmcp import JSONObject, NotificationReceived, SubscriptionAcknowledged, TaskUpdated
    from sansmcp import SubscriptionEnded as Ended

    from ._dispatch import EventDispatcher


Item = TypeVar("Item")
Progress: TypeAlias = tuple[float, float | None, str | None]
"""Progress, total and message, as `on_progress` gets them."""
_MOST_PROGRESS: Final = 1_000
"""The reports of progress that may wait for a slow handler. Of more, the oldest is dropped."""


class Mailbox(Generic[Item]):
    """Items from the reading thread for one caller that waits. Guarded by the lock."""

    def __init__(self, on_progress: ProgressHandler | None = None) -> None:
        self.on_progress: Final = on_progress
        self.is_closed = False  # the caller no longer waits
        self.items: Final[deque[Item]] = deque()
        self.progress: Final[deque[Progress]] = deque()
        self._allowance: Final = Allowance(_MOST_PROGRESS, "reports of progress")
        self.bell: Bell | None = None
        self._failure: BaseException | None = None
        self.refusal: Refusal = Refusal()  # of the last message, where that was one over HTTP

    def put_progress(self, progress: Progress) -> None:
        """Let a report of progress wait for the caller; with too many, one is dropped."""
        if self._allowance.admit(memory_of(progress[2]), self._drop_progress):
            self.progress.append(progress)

    def take_progress(self) -> Progress:
        """The oldest report of progress that waits."""
        progress = self.progress.popleft()
        self._allowance.begin()
        self._allowance.end(memory_of(progress[2]))
        return progress

    def _drop_progress(self) -> int:
        return memory_of(self.progress.popleft()[2])

    @property
    def has_mail(self) -> bool:
        """Whether there is something to take."""
        return bool(self.items or self.progress or self._failure is not None)

    def put(self, item: Item) -> None:
        """Leave an item."""
        self.items.append(item)

    def update(self, event: TaskUpdated) -> None:
        """Take a change of the task that the request has become: the caller waits for the end."""

    def fail(self, error: BaseException) -> None:
        """Let `take` raise an exception."""
        self._failure = error

    def take(self) -> Item:
        """The oldest item; raises what `fail` was given."""
        if self._failure is not None:
            raise self._failure
        return self.items.popleft()


class Bell:
    """Wakes one thread, once. A wake-up before it sleeps is not lost."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def ring(self) -> None:
        """Wake the thread; to be called once."""
        self._lock.release()

    def wait(self, seconds: float) -> None:
        """Sleep until the bell rings, or for `seconds`."""
        self._lock.acquire(timeout=seconds)


class Changes(WaitingChanges):
    """The changes of a subscription: `for method, params in changes`.

    Any number of threads may iterate at once: each change goes to one of them, and the end to all.
    A list or resource that changes again before its change was taken counts once. Changes for which
    the server has not acknowledged the subscription are left out. A resource may have parts with
    URIs of their own; if changes of more than a thousand of them wait, or take more than 256 MiB of
    memory, the oldest is dropped.
    """

    def __init__(self, session: EventDispatcher, stderr: StderrTail | None) -> None:
        super().__init__(stderr)
        self._session = session

    def put(self, event: SubscriptionAcknowledged | Ended | NotificationReceived) -> None:
        """Take an event from the reading thread, and wake all threads that wait."""
        super().put(event)
        self._session.ring_all()

    def wait_acknowledged(self) -> None:
        """Wait for the acknowledgement of the subscription, or raise the error that ended it."""
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
