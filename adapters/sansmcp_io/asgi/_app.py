"""The ASGI application and its options."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

import attrs

from sansmcp.http import ServerEndpoint

from .._async.handlers import Result
from .._async.server import Server
from .._common.http_server import Response
from .._common.server import AllClients
from .._options.arguments import described, init_takes
from .._options.checks import check_path, kept
from .._options.servers import LoopHTTPServerOptions
from ..asyncio._tasks import finished
from ._exchange import Authenticate, Receive, Send, respond, serve
from ._runner import ASGIRunner, Scope, ServerCall

Handler: TypeAlias = Callable[[ServerCall], Result]
"""Serves a client's requests: returns the result, or raises `McpError`.

An async function gets a task of its own. A plain function runs inline: nothing else of the event
loop moves before it returns.
"""

ReadyHandler: TypeAlias = Callable[[Server], object]
"""Called once the client of a session is ready; an async function runs as long as the session."""

_NOT_FOUND: Final = "nothing is served at this path"


@attrs.frozen
class _AppOptions(LoopHTTPServerOptions[Authenticate, ReadyHandler]):
    """The options of the application.

    Args:
        handler: Serves the clients' requests.
        path: The path of the endpoint, below the place where the application is mounted; other
            paths get 404. None: all requests that are routed here are served.
        authenticate: Called with the scope of each request; returns the principal, or raises
            `Unauthorized`. Plain or async. Sessions are open only to the principal that has opened
            them. Preflights are not authenticated.
        old_paths: The paths for clients of 2024-11-05, beside `path`: the paths that clients
            see, which include the place where the application is mounted.
    """

    handler: Handler
    path: str | None = attrs.field(default=None, kw_only=True)


@described(_AppOptions)
class App(AllClients):
    """An ASGI application that serves MCP over HTTP, for one event loop of asyncio at a time.

    It can be the whole application of a server, or be mounted anywhere below another one. It needs
    no lifespan: without one it begins with its first request. With one (its own, or `lifespan` in
    that of the application around it), open requests have `drain` seconds when the server ends, and
    are then ended in order. It may be started again after that.

    Its methods are called in the thread of the event loop; from another thread, by
    `loop.call_soon_threadsafe`.

    Raises:
        ValueError: Settings contradict each other.
    """

    @init_takes(_AppOptions)
    def __init__(self, options: _AppOptions) -> None:
        options.check()
        if options.path is not None:
            check_path(options.path)
        self._options = options = attrs.evolve(
            options,
            revisions=tuple(options.revisions),
            hosts=kept(options.hosts),
            origins=kept(options.origins),
        )
        self._runner = self._new_runner()
        # For the next endpoint. The first one has checked that they are JSON, and so can be copied.
        info, capabilities = copy.deepcopy((options.info, options.capabilities))
        self._options = attrs.evolve(options, info=info, capabilities=capabilities)

    def _new_runner(self) -> ASGIRunner:
        options = self._options
        endpoint = options.new_endpoint(old_paths=options.old_paths)
        return ASGIRunner(endpoint, options.handler, options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request, or the lifespan of the server.

        Raises:
            ValueError: The scope is of another type, such as a WebSocket.
            RuntimeError: Another event loop uses the application, or this loop is not one of
                asyncio.
        """
        if scope["type"] == "http":
            document = self._document(scope)
            if document is not None:
                await respond(send, document)
                return
            if self._options.path is not None and not self._serves(scope):
                response = self._runner.endpoint.refusal(
                    404, _NOT_FOUND, method=scope["method"], headers=scope["headers"]
                )
                await respond(send, response)
                return
            runner = self._runner_here()
            options = self._options
            key = options.key_of_principal
            await serve(runner, options.authenticate, key, scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            raise ValueError(f"MCP is served over HTTP only, not over {scope['type']}")

    def _document(self, scope: Scope) -> Response | None:
        """The response to a request for the metadata of the resource; None: it is for MCP."""
        access = self._options.access
        if access is None:
            return None
        method, path, root = scope["method"], scope["path"], scope.get("root_path", "")
        document = access.resource.respond(method, path)
        if document is None and root:
            # Some frameworks have the place where the application is mounted in the path, some not.
            document = access.resource.respond(method, root + path)
        return document

    def _serves(self, scope: Scope) -> bool:
        path: str = scope["path"]
        own = self._options.path
        if path == own or path in self._options.paths_of_old:
            return True
        root: str = scope.get("root_path", "")
        return path in (f"{root}{own}", f"{root.rstrip('/')}{own}")

    # ------------------------------------------------------------------------------- running

    def _runner_here(self) -> ASGIRunner:
        """The runner, in the loop of the caller; a new one if the old one cannot be used."""
        loop = _running_loop()
        if not self._runner.adopt(loop):
            self._runner = self._new_runner()
            self._runner.adopt(loop)
        return self._runner

    def _begin(self) -> ASGIRunner:
        if self._runner.is_closed:
            self._runner = self._new_runner()
        return self._runner_here()

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncGenerator[None, None]:
        """The lifespan of the application around this one: `Starlette(lifespan=app.lifespan)`.

        At the end of the block, open requests have `drain` seconds; then they are cancelled, and
        all sessions and streams are ended.
        """
        runner = self._begin()
        await runner.join_cluster()
        try:
            yield
        finally:
            await finished(runner.shut_down(self._options.drain))

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()  # lifespan.startup
        try:
            await self._begin().join_cluster()
        except (RuntimeError, ConnectionError) as error:  # not raised by each request
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        async with self.lifespan():
            await send({"type": "lifespan.startup.complete"})
            await receive()  # lifespan.shutdown
        await send({"type": "lifespan.shutdown.complete"})

    def close(self) -> None:
        """Cancel all open requests, and end all streams and sessions, at once.

        Further requests get 503, until `lifespan` starts the application again. It is for programs
        without a lifespan.
        """
        self._runner.close()

    @property
    def _endpoint(self) -> ServerEndpoint:
        return self._runner.endpoint

    def _verb(self, function: Callable[..., Any], *args: object, **options: Any) -> Any:
        return self._runner.verb(function, *args, **options)

    @property
    def _publisher(self) -> Callable[..., Any]:
        return self._runner.publish


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "the application needs an event loop of asyncio; on trio there is"
            " sansmcp_io.trio.serve_http"
        ) from None
