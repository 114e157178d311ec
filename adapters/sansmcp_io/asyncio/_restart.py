"""A server process on asyncio that is started again when it has ended unexpectedly."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from .._async.restart import Restarter
from ._guard import guarded
from ._loop import AsyncioLoop
from ._session import StreamSession
from ._tasks import Tasks, finished


@asynccontextmanager
async def keep_running(
    opening: Callable[[], AbstractAsyncContextManager[StreamSession]], restarts: int
) -> AsyncGenerator[Restarter, None]:
    """Start a process; in the end, end it or the one that has taken its place.

    Raises:
        Exception: What `opening` raises when it fails for the first time.
    """

    @asynccontextmanager
    async def watched() -> AsyncGenerator[StreamSession, None]:
        async with opening() as session:
            session.around.append(guard)
            yield session

    async with guarded() as guard:
        tasks = Tasks(guard.fail)
        restarter = Restarter(
            watched, restarts, loop=AsyncioLoop(), tasks=tasks, abandon=tasks.cancel
        )
        try:
            await restarter.open()
            yield restarter
        finally:
            await finished(_end(restarter, tasks))


async def _end(restarter: Restarter, tasks: Tasks) -> None:
    restarter.finish()
    try:
        await tasks.join()
    finally:
        await tasks.end()
