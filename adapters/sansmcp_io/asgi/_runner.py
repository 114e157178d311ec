"""Runs an endpoint below ASGI, in one event loop after another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, MutableMapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from sansmcp import IncomingRequest
from sansmcp.http import ServerEndpoint

from .._async.handlers import Result
from .._async.server import HTTPServerCall, SessionServer
from .._common.anomalies import LOGGER
from .._options.servers import LoopHTTPServerOptions
from ..asyncio._http_server_runner import AsyncioRunner, AsyncioSessionTasks
from ..asyncio._loop import AsyncioLoop

Scope: TypeAlias = MutableMapping[str, Any]
"""The ASGI scope of a request."""


class ServerCall(HTTPServerCall):
    """A client's request that a handler works on."""

    @property
    def scope(self) -> Scope:
        """The ASGI scope of the HTTP request, with the additions of middleware.

        Where another worker has begun the task that this call is for, it has no headers.
        """
        scope: Scope | None = self._request.context
        return self._service.carried_context("POST", "/", ()) if scope is None else scope


class ASGIRunner(AsyncioRunner):
    """Runs an endpoint below ASGI, in the event loop that has adopted the application last.

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
            new_handler_runner=AsyncioLoop.new_handler_runner,
            now=time.monotonic,  # not the clock of a loop: there may be several loops in a row
            trace=None,
            lookups=options.lookups,
            new_member=options.new_member,
        )
        self.access = self._new_access(options)
        self._has_changed = asyncio.Event()
        if options.on_ready is not None:
            self.session_tasks = AsyncioSessionTasks(options.on_ready, partial(SessionServer, self))
        self.is_closed = False
        self.failures: dict[int, list[BaseException]] = {}

    def adopt(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Run in a loop from now on. Tasks of the former loop have ended with that loop.

        Returns:
            Whether that is possible. It is not if the former loop was closed while tasks ran in
            it, since these never end.

        Raises:
            RuntimeError: The former loop still runs.
        """
        if self._loop is loop:
            if self.cluster is not None:
                self.cluster.begin(self.loop)  # again, if it could not join
            return True
        if self._loop is not None:
            if self._loop.is_running():
                raise RuntimeError("the application is used by an event loop that still runs")
            if self._loop.is_closed() and (self.wires or self.tasks.running):
                if self.cluster is not None:
                    self.cluster.end()
                return False
        self.loop = AsyncioLoop()
        self._enter(loop)
        if self.cluster is not None:
            self.cluster.begin(self.loop)  # not awaited without a lifespan
        return True

    def _end_program(self, request: IncomingRequest, failure: BaseException) -> None:
        """Let the ASGI call of this request raise the exception, after the response."""
        failures = self.failures.get(id(request.context))
        if failures is None:  # that ASGI call has returned
            LOGGER.error("the handler of %.80r failed", request.method, exc_info=failure)
        else:
            failures.append(failure)

    def carried_context(
        self, method: str, target: str, headers: Sequence[tuple[bytes, bytes]]
    ) -> Scope:
        """The scope of a request that another worker has carried here."""
        path, _, query = target.partition("?")
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "query_string": query.encode("latin-1"),
            "headers": list(headers),
        }

    def close(self) -> None:
        """Refuse further requests with 503, and cancel open requests."""
        self.is_closed = True
        self.drain_cluster()
        self.close_endpoint()
        if self.cluster is not None:
            self.cluster.end()

    async def shut_down(self, drain: float) -> None:
        """Give open requests `drain` seconds to finish, then cancel them, and end all tasks."""
        await self._end_requests(drain)
        self.is_closed = True
        await self._flush(self.wires)
        await self.leave_cluster()
        await self._end_tasks()
