"""Runs tests on each loop of asyncio, in debug mode, and checks that they leave nothing."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Final, ParamSpec

import pytest

from tests.support.adapters.loops import ASYNCIO
from tests.support.processes import has_children

Params = ParamSpec("Params")
SECONDS: Final = 60


def on_asyncio(test: Callable[Params, Awaitable[None]]) -> Callable[..., None]:
    """Run a test in debug mode, and fail if it leaves anything open or the loop complains."""

    @pytest.mark.parametrize("loop", ASYNCIO)
    @wraps(test)
    def run(*args: Any, loop: str, **kwargs: Any) -> None:
        complaints: list[object] = []

        async def bounded() -> None:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: complaints.append(context))
            async with asyncio.timeout(SECONDS):
                await test(*args, **kwargs)
            assert asyncio.all_tasks() == {asyncio.current_task()}

        with asyncio.Runner(debug=True, loop_factory=ASYNCIO[loop]) as runner:
            runner.run(bounded())
        assert complaints == []
        assert not has_children()

    signature = inspect.signature(test)
    extra = inspect.Parameter("loop", inspect.Parameter.KEYWORD_ONLY)
    vars(run)["__signature__"] = signature.replace(
        parameters=[*signature.parameters.values(), extra]
    )
    test_on_each: Callable[..., None] = run
    return test_on_each
