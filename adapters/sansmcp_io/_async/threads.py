"""Functions that block, each in a thread of its own, on any loop.

The thread pools of the loops are not used: that of asyncio is waited for when the program ends, and
a function that waits for a user may never return.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from .loop import Loop

ReturnedT = TypeVar("ReturnedT")


async def in_thread(
    loop: Loop,
    function: Callable[..., ReturnedT],
    *args: object,
    cancel: Callable[[], object] | None = None,
) -> ReturnedT:
    """Call a function that blocks, and return or raise what it does.

    Args:
        loop: The loop that runs.
        function: The function.
        args: Its arguments.
        cancel: Makes the function return soon. Called if the caller is cancelled, who does not
            wait for the thread. Without it, the function goes on, and its outcome is dropped.
    """
    done = loop.new_event()
    hand_over = loop.new_messenger()
    outcome: list[Any] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(function(*args))
        except BaseException as error:
            failure.append(error)
        hand_over(done.set)

    thread = threading.Thread(target=run, name="sansmcp call", daemon=True)
    thread.start()
    try:
        await done.wait()
    except BaseException:
        if cancel is not None:
            cancel()
        raise
    if failure:
        raise failure.pop()
    returned: ReturnedT = outcome.pop()
    return returned
