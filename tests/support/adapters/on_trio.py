"""Runs async test functions on trio, each with a time limit."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec

import trio
from trio.abc import Clock

Params = ParamSpec("Params")


def on_trio(
    seconds: float = 120, clock: Callable[[], Clock] | None = None
) -> Callable[[Callable[Params, Awaitable[None]]], Callable[Params, None]]:
    """Make a synchronous test of an async one, on trio.

    Args:
        seconds: The time after which the test fails, on the clock of the test. On the real clock it
            only stops a test that hangs, and is long enough for a busy machine.
        clock: Makes the clock of the test; None is the real clock.
    """

    def decorate(test: Callable[Params, Awaitable[None]]) -> Callable[Params, None]:
        @wraps(test)
        def run(*args: Params.args, **kwargs: Params.kwargs) -> None:
            async def bounded() -> None:
                with trio.fail_after(seconds):
                    await test(*args, **kwargs)

            trio.run(bounded, clock=None if clock is None else clock())

        return run

    return decorate
