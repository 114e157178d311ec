"""What goes along with a session of an HTTP server, from its first moment to its end."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from sansmcp import Peer
from sansmcp.http import Session

from ._async_callbacks import logged


class Companions:
    """Calls a function for each session that is ready; an async one is cancelled with its session.

    Args:
        function: Called with what `make_server` has made of a session.
        make_server: Makes what stands for a session, from what is known of its client.
    """

    def __init__(
        self, function: Callable[[Any], object], make_server: Callable[[Peer], Any]
    ) -> None:
        self._function: Final = function
        self._make_server: Final = make_server
        self._running: dict[Session, trio.CancelScope] = {}

    def begin(self, session: Session, tasks: trio.Nursery) -> None:
        """The client of a session is ready."""
        with logged("on_ready"):
            outcome = self._function(self._make_server(session.peer))
            if inspect.isawaitable(outcome):
                scope = self._running[session] = trio.CancelScope()
                tasks.start_soon(self._run, session, outcome, scope)

    async def _run(
        self, session: Session, awaitable: Awaitable[object], scope: trio.CancelScope
    ) -> None:
        with scope, logged("on_ready"):
            await awaitable
        self._running.pop(session, None)

    def end(self, session: Session) -> None:
        """The session is over."""
        scope = self._running.pop(session, None)
        if scope is not None:
            scope.cancel()
