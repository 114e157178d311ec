"""What goes along with a session of an HTTP server, on trio."""

from __future__ import annotations

from collections.abc import Awaitable

import trio

from sansmcp.http import Session

from .._async.http_session_tasks import CompanionsBase


class Companions(CompanionsBase):
    """Has a task for each session whose function is async."""

    def _start(
        self, awaitable: Awaitable[object], session: Session, tasks: trio.Nursery
    ) -> trio.CancelScope:
        scope = trio.CancelScope()

        async def run() -> None:
            with scope:
                await self._run(awaitable, session)

        tasks.start_soon(run)
        return scope
