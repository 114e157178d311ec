"""What goes along with a session of an HTTP server, on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from sansmcp.http import Session

from .._async.http_session_tasks import CompanionsBase
from ._tasks import Tasks


class Companions(CompanionsBase):
    """Has a task for each session whose function is async."""

    def _start(
        self, awaitable: Awaitable[object], session: Session, tasks: Tasks
    ) -> asyncio.Task[None]:
        return tasks.start_soon(self._run, awaitable, session)
