"""Finds the functions of the library that a piece of code calls, and counts its steps."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import TraceFunction


def calls_in(action: Callable[[], object]) -> list[str]:
    """Return the full names of the functions that `action` calls in this thread, in order."""
    calls: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls.append(f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls


def lines_in(action: Callable[[], object]) -> int:
    """Return how many lines of the library run in `action`, in this thread.

    A comprehension that goes through many items counts one line for each.
    """
    count = 0

    def note(frame: FrameType, event: str, _: object) -> "TraceFunction | None":
        nonlocal count
        if not str(frame.f_globals.get("__name__")).startswith("sansmcp"):
            return None
        count += event == "line"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        action()
    finally:
        sys.settrace(before)
    return count
