"""Where threads wait for what the thread that reads has for them."""

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
    from sansmcp import JSONObject, NotificationReceived, SubscriptionAcknowledged
    from sansmcp import SubscriptionEnded as Ended

    from ._session import EventDispatcher


Item = TypeVar("Item")
Progress: TypeAlias = tuple[float, float | None, str | None]
"""Progress, total and message, as `on_progress` gets them."""
_MOST_PROGRESS: Final = 1_000
"""So many reports of progress wait for a handler that is slow. With one more, the oldest goes."""


class Mailbox(Generic[Item]):
    """What the reading thread leaves for one caller that waits. Guarded by the wire's lock."""

    def __init__(self, on_progress: ProgressHandler | None = None) -> None:
        self.on_progress: Final = on_progress
        self.is_closed = False  # nothing is taken out any more
        self.items: Final[deque[Item]] = deque()
        self.progress: Final[deque[Progress]] = deque()
        self._allowance: Final = Allowance(_MOST_PROGRESS, "reports of progress")
        self.bell: Bell | None = None
        self.refusal: Refusal = Refusal()  # of the last message, where that was one over HTTP

    def put_progress(self, progress: Progress) -> None:
        """A report of progress waits for the caller, or is dropped where too much waits."""
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
        """Whether there is something to be taken out."""
        return bool(self.items or self.progress)


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
        """Sleep until it rings, or for so long."""
        self._lock.acquire(timeout=seconds)


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
