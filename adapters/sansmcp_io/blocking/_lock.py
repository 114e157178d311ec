"""The lock around the state of a connection that threads share."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final
from weakref import WeakSet

from ._interrupts import INTERRUPTS, Uninterrupted, interruptible


class Forkable(ABC):
    """An object with locks, which are made anew in a process made by `os.fork`.

    A thread that held one of them exists only in the parent.
    """

    def __init__(self) -> None:
        _LIVING.add(self)

    @abstractmethod
    def _leave_to_parent(self) -> None:
        """Make the locks anew, in the process that was made by `os.fork`."""


_LIVING: Final = WeakSet[Forkable]()


class Guarded(Forkable):
    """A context manager that holds the lock, and holds Ctrl-C back.

    The lock can be taken again by the thread that has it, because what is logged under it may be
    sent to the client by a `LogHandler`.

    Attributes:
        is_forked: Whether this is the copy that a process made by `os.fork` has. The parent's goes
            on.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._owner = 0  # the thread that holds the lock
        self._depth = 0  # how many times that thread holds the lock
        self._local = threading.local()
        self._is_ending = False  # Ctrl-C waits until the connection has ended, which is soon
        self.is_forked: bool = False
        Forkable.__init__(self)

    def _leave_to_parent(self) -> None:
        self._lock = threading.RLock()  # the thread that held the lock is not in this process
        self._owner = self._depth = 0
        self.is_forked = True

    def __enter__(self) -> None:
        stack: list[Uninterrupted] | None = getattr(self._local, "stack", None)
        if stack is None:
            stack = self._local.stack = []
        uninterrupted = Uninterrupted()
        uninterrupted.__enter__()
        stack.append(uninterrupted)
        self._lock.acquire()
        self._owner = threading.get_ident()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._owner = 0
        self._lock.release()
        self._local.stack.pop().__exit__()

    def _without_lock(
        self, function: Callable[..., Any], *args: object, holds_interrupts: bool = False
    ) -> Any:
        """Call a function that takes time, or belongs to the application, without the lock.

        Args:
            function: The function.
            args: Its arguments.
            holds_interrupts: Ctrl-C waits until the function has ended, which is soon.
        """
        owner, depth = self._owner, self._depth
        self._owner = self._depth = 0
        self._lock.release()
        try:
            if self._is_ending or holds_interrupts:
                return function(*args)
            return interruptible(function, *args)
        finally:
            self._lock.acquire()
            self._owner, self._depth = owner, depth

    @property
    def _is_mine(self) -> bool:
        """Whether this thread holds the lock."""
        return self._owner == threading.get_ident()


def _forked() -> None:
    INTERRUPTS.forked()
    for each in list(_LIVING):
        each._leave_to_parent()


with suppress(AttributeError):  # not every system has it
    os.register_at_fork(after_in_child=_forked)
