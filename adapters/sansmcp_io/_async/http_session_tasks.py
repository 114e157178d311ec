"""What goes along with a session of an HTTP server, from its first moment to its end."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from sansmcp import Peer
from sansmcp.http import Session

from .background import logged


class Cancellable(Protocol):
    """What stands for something that runs."""

    def cancel(self) -> object:
        """Stop it."""
        ...


class CompanionsBase:
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
        self._running: Final[dict[Session, Cancellable]] = {}

    @abstractmethod
    def _start(self, awaitable: Awaitable[object], session: Session, tasks: Any) -> Cancellable:
        """Have a task `_run` this."""

    def begin(self, session: Session, tasks: Any) -> None:
        """The client of a session is ready."""
        with logged("on_ready"):
            outcome = self._function(self._make_server(session.peer))
            if inspect.isawaitable(outcome):
                self._running[session] = self._start(outcome, session, tasks)

    def end(self, session: Session) -> None:
        """The session is over."""
        if running := self._running.pop(session, None):
            running.cancel()

    async def _run(self, awaitable: Awaitable[object], session: Session) -> None:
        with logged("on_ready"):
            await awaitable
        self._running.pop(session, None)
