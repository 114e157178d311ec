"""Where a thread waits for what the thread that reads has for it."""

from __future__ import annotations

import threading
from collections import deque
from typing import Final, Generic, TypeAlias, TypeVar

from .._common.allowance import Allowance, memory_of
from .._common.callbacks import ProgressHandler
from .._common.errors import Refusal

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
