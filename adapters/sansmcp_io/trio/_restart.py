"""A server process on trio that is started again when it has ended unexpectedly."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import trio

from .._async.restart import Restarter
from ._loop import TrioLoop
from ._session import StreamSession
from ._unwrap import unwrapped


@asynccontextmanager
async def keep_running(
    opening: Callable[[], AbstractAsyncContextManager[StreamSession]], restarts: int
) -> AsyncGenerator[Restarter, None]:
    """Start a process; in the end, end it or the one that has taken its place.

    Raises:
        Exception: What `opening` raises when it fails for the first time.
    """

    @asynccontextmanager
    async def shielded() -> AsyncGenerator[StreamSession, None]:
        with trio.CancelScope() as scope:
            async with opening() as session:
                # Those who use it may still have things to say when all around is cancelled.
                # The shield is outside of the block: what fails within must get out.
                scope.shield = True
                session.around.append(tasks.cancel_scope)
                yield session

    async with unwrapped(), trio.open_nursery() as tasks:
        restarter = Restarter(
            shielded, restarts, loop=TrioLoop(), tasks=tasks, abandon=tasks.cancel_scope.cancel
        )
        try:
            await restarter.open()
            yield restarter
        finally:
            with trio.CancelScope(shield=True):
                await restarter.close()
