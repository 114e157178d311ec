"""Runs an endpoint below ASGI, in one event loop after another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, MutableMapping
from functools import partial
from typing import Any, TypeAlias

from sansmcp import IncomingRequest
from sansmcp.http import ServerEndpoint

from .._async.handlers import Result
from .._async.server import HTTPServerCall, SessionServer
from .._common.anomalies import LOGGER
from .._options.servers import LoopHTTPServerOptions
from ..asyncio._http_runner import AsyncioRunner, Companions
from ..asyncio._loop import AsyncioLoop

Scope: TypeAlias = MutableMapping[str, Any]
"""The ASGI scope of a request."""


class ServerCall(HTTPServerCall):
    """A client's request that a handler works on."""

    @property
    def scope(self) -> Scope:
        """The ASGI scope of the HTTP request, with what middleware has added."""
        scope: Scope = self._request.context
        return scope


class ASGIRunner(AsyncioRunner):
    """Runs an endpoint. It adopts an event loop when it is first used there.

    Attributes:
        failures: Exceptions of handlers that end the program, by the identity of the scope.
    """

    def __init__(
        self,
        endpoint: ServerEndpoint,
        handler: Callable[[ServerCall], Result],
        options: LoopHTTPServerOptions[Any, Any],
    ) -> None:
        super().__init__(
            endpoint,
            options.for_session(handler, ServerCall),
            now=time.monotonic,  # and not that of a loop: there may be several in a row
            trace=None,
            lookups=options.lookups,
        )
        self._has_changed = asyncio.Event()
        if options.on_ready is not None:
            self.companions = Companions(options.on_ready, partial(SessionServer, self))
        self.is_closed = False
        self.failures: dict[int, list[BaseException]] = {}

    def adopt(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Go on in this loop. Tasks of the loop before have ended with that loop.

        Returns:
            Whether that is possible: not if the loop before was closed while tasks ran in it, which
            never end then.

        Raises:
            RuntimeError: The loop before still runs.
        """
        if self._loop is loop:
            return True
        if self._loop is not None:
            if self._loop.is_running():
                raise RuntimeError("the application is used by an event loop that still runs")
            if self._loop.is_closed() and (self.wires or self.tasks.running):
                return False
        self.loop = AsyncioLoop()
        self._enter(loop)
        return True

    def _end_program(self, request: IncomingRequest, failure: BaseException) -> None:
        """Let the call of the application for this request raise it, after the response."""
        failures = self.failures.get(id(request.context))
        if failures is None:  # that call has returned
            LOGGER.error("the handler of %.80r failed", request.method, exc_info=failure)
        else:
            failures.append(failure)

    def close(self) -> None:
        """Serve no more: further requests get 503, and open ones are cancelled."""
        self.is_closed = True
        self.endpoint.close(now=self.now())
        self.turn()

    async def shut_down(self, drain: float) -> None:
        """Give open requests `drain` seconds to finish, then end them, and wait for that."""
        await self._end_requests(drain)
        self.is_closed = True
        await self._flush(self.wires)
        await self._end_tasks()
