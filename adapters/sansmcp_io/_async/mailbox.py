"""Where a caller waits for what the dispatcher has for it, on any loop."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from typing import Generic, TypeVar

from .._common.callbacks import ProgressHandler
from .._common.errors import Refusal

Item = TypeVar("Item")


class MailboxBase(Generic[Item]):
    """What the dispatcher leaves for one caller that waits.

    Attributes:
        on_progress: Called with what comes before.
        is_closed: The caller takes nothing out any more.
        refusal: Known before the ending that comes of it.
    """

    def __init__(self, on_progress: ProgressHandler | None = None) -> None:
        self.on_progress = on_progress
        self.is_closed = False
        self.refusal = Refusal()
        self._items: deque[Item] = deque()
        self._failure: BaseException | None = None

    @abstractmethod
    def _wake(self) -> None:
        """Wake the caller, if it waits."""

    def put(self, item: Item) -> None:
        """Leave an item and wake the caller."""
        self._items.append(item)
        self._wake()

    def fail(self, error: BaseException) -> None:
        """Have `take` raise this, and wake the caller."""
        self._failure = error
        self._wake()

    def _taken(self) -> Item:
        """The oldest item; or raise what `fail` was given."""
        if self._failure is not None:
            try:
                raise self._failure
            finally:
                self._failure = None  # it refers to this frame
        return self._items.popleft()
