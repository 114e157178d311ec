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
    """Make a plain test of an async one.

    Args:
        seconds: When it has failed, on the test's clock. On the real one this is against hanging
            only, and long enough for a machine that has much else to do.
        clock: Makes the test's clock; None: the real one.
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
