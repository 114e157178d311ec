"""Ctrl-C between the steps of the work, never within one.

Python runs the handler of a signal between any two instructions of the main thread. An exception
that it raises there could leave a connection half changed. So while the main thread is inside a
method of this package, another handler stands before the one of the application. It calls that one
while the thread waits or runs a function of the application, and otherwise as soon as it does so.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, ParamSpec, TypeVar

Params = ParamSpec("Params")
Returned = TypeVar("Returned")


class _Interrupts:
    """Holds SIGINT back in the main thread. One object, since a process has one SIGINT handler.

    Attributes:
        depth: How many methods of this package are on the stack of the main thread: a function of
            the application that one of them has called may call another.
        is_open: Whether the application's handler may run now.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.is_open = False
        self._thread = 0  # the main thread of the process
        self._is_pending = False
        self._former: Callable[[int, FrameType | None], Any] | None = None

    def close(self) -> bool:
        """Hold interruptions back from now on, and return the argument for `restore`."""
        was_open = self.is_open
        self.is_open = False
        self.depth += 1  # first, since garbage collection may call methods of this package here
        if self.depth == 1:
            try:
                self._stand_before()
            except BaseException:
                self.depth = 0
                raise
        return was_open

    def _stand_before(self) -> None:
        """Install this handler of SIGINT in front of the current one."""
        self._is_pending = False
        self._thread = threading.get_ident()
        former = signal.getsignal(signal.SIGINT)
        self._former = None
        if callable(former):  # not ignored, nor the system's
            with suppress(ValueError):  # a sub-interpreter has a main thread, and hears no signals
                signal.signal(signal.SIGINT, self._interrupted)
                self._former = former

    def forked(self) -> None:
        """Set the state anew in a process made by `os.fork`."""
        if self.depth and self._thread != threading.get_ident():
            self.depth, self.is_open, self._is_pending = 1, False, False
            self.restore(was_open=False)

    def restore(self, was_open: bool) -> None:
        """Return to the state before `close`, and handle an interruption that came meanwhile."""
        self.depth -= 1
        former = self._former
        if former is None:
            return
        if self.depth == 0:
            if (
                signal.getsignal(signal.SIGINT) == self._interrupted
            ):  # otherwise, a handler has installed its own
                signal.signal(signal.SIGINT, former)  # until then, only remember the signal
            is_due = self._is_pending
        else:
            self.is_open = was_open
            is_due = was_open and self._is_pending
        if is_due:
            self._is_pending = False
            former(signal.SIGINT, None)

    def let_through(
        self, function: Callable[Params, Returned], *args: Params.args, **kwargs: Params.kwargs
    ) -> Returned:
        """Call something that may be interrupted at any point."""
        try:
            self.is_open = True
            if self._is_pending and self._former is not None:
                self._is_pending = False
                self._former(signal.SIGINT, None)
            return function(*args, **kwargs)
        finally:
            self.is_open = False

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        # In the frame of `let_through` itself, what may be interrupted has ended, by what it has
        # raised perhaps, and that it is over has not been noted yet.
        is_ours = frame is not None and frame.f_code is _Interrupts.let_through.__code__
        if not self.is_open or is_ours or self._former is None:
            self._is_pending = True
        else:
            self._former(number, frame)


INTERRUPTS = _Interrupts()


def is_main_thread() -> bool:
    """Whether signals are handled in this thread."""
    return threading.get_ident() == threading.main_thread().ident


def interruptible(
    function: Callable[Params, Returned], *args: Params.args, **kwargs: Params.kwargs
) -> Returned:
    """Call something that may be interrupted at any point, inside a method that may not."""
    if INTERRUPTS.depth and is_main_thread():
        return INTERRUPTS.let_through(function, *args, **kwargs)
    return function(*args, **kwargs)


class Uninterrupted:
    """A block that Ctrl-C does not interrupt; a Ctrl-C meanwhile is handled at its end."""

    __slots__ = ("_is_main", "_was_open")

    def __enter__(self) -> None:
        self._is_main = is_main_thread()
        if self._is_main:
            self._was_open = INTERRUPTS.close()

    def __exit__(self, *_: object) -> None:
        if self._is_main:
            INTERRUPTS.restore(self._was_open)
