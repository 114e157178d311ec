"""Calls that take time in a thread of their own, so that the wait for them has an end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

ReturnedT = TypeVar("ReturnedT")


def within(
    seconds: float,
    function: Callable[[], ReturnedT],
    cancel: Callable[[], object] | None = None,
) -> list[ReturnedT]:
    """Call a function in a thread, and wait for its end or for some time.

    Ctrl-C ends the wait, which a function that blocks might not.

    Args:
        seconds: The time.
        function: The function.
        cancel: Lets it end soon. Without it, the function goes on, and its outcome is dropped.

    Returns:
        What the function has returned; nothing if time is up.
    """
    done = threading.Event()
    outcome: list[ReturnedT] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(function())
        except BaseException as error:
            failure.append(error)
        done.set()

    threading.Thread(target=run, name="sansmcp call", daemon=True).start()
    is_done = False
    try:
        is_done = done.wait(seconds)
    finally:
        if not is_done and cancel is not None:
            cancel()
    if not is_done:
        return []
    if failure:
        raise failure.pop()
    return outcome
