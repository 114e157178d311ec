"""Tests that run on asyncio only, in debug mode, and leave nothing behind."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Final, ParamSpec

from .processes import has_children

Params = ParamSpec("Params")
SECONDS: Final = 60


def on_asyncio(
    test: Callable[Params, Awaitable[None]],
) -> Callable[Params, None]:
    """Run a test in debug mode; at its end nothing may be left, or have been complained of."""

    @wraps(test)
    def run(*args: Params.args, **kwargs: Params.kwargs) -> None:
        complaints: list[object] = []

        async def bounded() -> None:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: complaints.append(context))
            async with asyncio.timeout(SECONDS):
                await test(*args, **kwargs)
            assert asyncio.all_tasks() == {asyncio.current_task()}

        asyncio.run(bounded(), debug=True)
        assert complaints == []
        assert not has_children()

    return run
