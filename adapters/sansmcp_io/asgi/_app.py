"""sansmcp below ASGI: an application to mount beside other routes, on any server on asyncio."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from sansmcp import ALL_REVISIONS, Change, Config, IncomingRequest, JSONObject
from sansmcp.http import OldPaths, ServerEndpoint, Session, Sessions, ToolSchema

from .._async.server import Server
from .._common.access import PrincipalKey, check_principal_key
from .._common.callbacks import NotificationHandler
from .._common.defaults import (
    DEFAULT_DRAIN,
    DEFAULT_REQUEST_TIMEOUT,
    check_given,
    check_path,
    check_times,
    check_waits,
    kept,
)
from .._common.http_sessions import session_settings
from ..asyncio._tasks import finished
from ._calls import Scope, ServerCall
from ._exchange import Authenticate, Receive, Send, carry, respond
from ._runner import Result, Runner

Handler: TypeAlias = Callable[[ServerCall], Result]
"""Serves a client's requests: returns the result, or raises `McpError`.

An async function gets a task of its own. A plain function runs inline: nothing else of the event
loop moves before it returns.
"""

ReadyHandler: TypeAlias = Callable[[Server], object]
"""Called once the client of a session is ready; an async function runs as long as the session."""

_NOT_FOUND: Final = "nothing is served at this path"


class App:
    """An ASGI application that serves MCP over HTTP, for one event loop of asyncio at a time.

    It can be the whole application of a server, or be mounted anywhere below another one. It needs
    no `lifespan`: without one it begins with its first request. With one, its own or `lifespan` in
    that of the application around it, what is under way when the server ends has `drain` seconds,
    and then ends as it should. It may be started again after that.

    Args:
        handler: Serves the clients' requests.
        info: The server's `Implementation` object: `name` and `version` at least.
        capabilities: What the server offers (`tools`, `resources`, `prompts`, `logging`, ...).
        instructions: How to use the server, for the model on the other side.
        revisions: The revisions to speak.
        path: The path, below the place where it is mounted, at which it serves; at others there is
            nothing. None: whatever is routed here is for it.
        hosts: Names in `Host` that are served, beside the loopback ones: `"api.example"`.
        origins: Origins of web pages that may call: see `sansmcp.http.ServerEndpoint`.
        authenticate: Called with the scope of each request; returns the principal, or raises
            `Unauthorized`. Plain or async. Sessions are open only to the principal that has opened
            them. Preflights are not authenticated.
        principal_key: Called with what `authenticate` returned; returns a string that stands for
            that principal and for nobody else, such as an account's id. Needed with `authenticate`
            where `config` has `state_keys`: sealed states are bound to it. Plain.
        sessions: Whether clients of the revisions with a handshake have sessions, in this process;
            settings for them, if they are not to be the usual ones.
        answers: `auto` answers with JSON where nothing comes before it; `sse` with a stream.
        keep_alive: Seconds of silence on a stream after which a comment goes out; None: never.
        tool_schema: Gives the `inputSchema` of a tool, to check `Mcp-Param-*` fields.
        old_paths: Where clients of 2024-11-05 are served, beside `path`: as the clients see them,
            with the place where the application is mounted.
        on_notification: Called with method and params of each notification; async or plain.
        on_ready: Called with the `Server` of each session when its client is ready; an async
            function runs for as long as the session. Clients without one cause no call.
        context: Becomes `ServerCall.context`.
        config: Limits and policies of the protocol.
        request_timeout: Default for `timeout` of each request to a client, in seconds.
        drain: Seconds that requests have to come to their end when the server does.

    Raises:
        ValueError: Settings contradict each other.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        info: JSONObject,
        capabilities: JSONObject | None = None,
        instructions: str | None = None,
        revisions: Sequence[str] = ALL_REVISIONS,
        path: str | None = None,
        hosts: Sequence[str] = (),
        origins: Sequence[str] | None = None,
        authenticate: Authenticate | None = None,
        principal_key: PrincipalKey | None = None,
        sessions: bool | Sessions = True,
        answers: Literal["auto", "sse"] = "auto",
        keep_alive: float | None = 15.0,
        tool_schema: ToolSchema | None = None,
        old_paths: OldPaths | None = None,
        on_notification: NotificationHandler | None = None,
        on_ready: ReadyHandler | None = None,
        context: Any = None,
        config: Config | None = None,
        request_timeout: float = DEFAULT_REQUEST_TIMEOUT,
        drain: float = DEFAULT_DRAIN,
    ) -> None:
        check_given(
            handler=handler,
            info=info,
            capabilities=capabilities,
            instructions=instructions,
            revisions=revisions,
            authenticate=authenticate,
            principal_key=principal_key,
            tool_schema=tool_schema,
            on_notification=on_notification,
            config=config,
            on_ready=on_ready,
        )
        check_times(request_timeout=request_timeout)
        check_waits(drain=drain)
        if path is not None:
            check_path(path)
        check_principal_key(config, authenticate, principal_key)
        make_endpoint = partial(
            ServerEndpoint,
            instructions=instructions,
            revisions=tuple(revisions),
            hosts=kept(hosts),
            origins=kept(origins),
            sessions=session_settings(sessions, revisions),
            answers=answers,
            keep_alive=keep_alive,
            tool_schema=tool_schema,
            old_paths=old_paths,
            config=config,
        )

        def make_runner() -> Runner:
            return Runner(
                make_endpoint(info=info, capabilities=capabilities),
                handler=handler,
                on_notification=on_notification,
                on_ready=on_ready,
                context=context,
                request_timeout=request_timeout,
            )

        self._make_runner = make_runner
        self._runner = make_runner()
        # For the next one. The first has seen that they have a form in JSON, and so can be copied.
        info, capabilities = copy.deepcopy((info, capabilities))
        self._path = path
        self._old_paths = () if old_paths is None else (old_paths.stream, old_paths.post)
        self._authenticate = authenticate
        self._principal_key = principal_key
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request, or the lifespan of the server.

        Raises:
            ValueError: It is something else, as a WebSocket is.
            RuntimeError: The application is used by another event loop, or the loop is none of
                asyncio.
        """
        if scope["type"] == "http":
            if self._path is not None and not self._serves(scope):
                response = self._runner.endpoint.refusal(
                    404, _NOT_FOUND, method=scope["method"], headers=scope["headers"]
                )
                await respond(send, response)
                return
            runner = self._runner_here()
            await carry(runner, self._authenticate, self._principal_key, scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            raise ValueError(f"MCP is served over HTTP only, not over {scope['type']}")

    def _serves(self, scope: Scope) -> bool:
        path: str = scope["path"]
        if path == self._path or path in self._old_paths:
            return True
        root: str = scope.get("root_path", "")
        return path in (f"{root}{self._path}", f"{root.rstrip('/')}{self._path}")

    # ------------------------------------------------------------------------------- running

    def _runner_here(self) -> Runner:
        """The runner, in the loop that calls; another one if nothing can be done with it."""
        loop = _running_loop()
        if not self._runner.adopt(loop):
            self._runner = self._make_runner()
            self._runner.adopt(loop)
        return self._runner

    def _begin(self) -> Runner:
        if self._runner.is_closed:
            self._runner = self._make_runner()
        return self._runner_here()

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncGenerator[None, None]:
        """For as long as the application around it runs: `Starlette(lifespan=app.lifespan)`.

        At the end of the block, what is under way has `drain` seconds; then it is ended, and so are
        all sessions and streams.
        """
        runner = self._begin()
        try:
            yield
        finally:
            await finished(runner.shut_down(self._drain))

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()  # lifespan.startup
        try:
            self._begin()
        except RuntimeError as error:  # not to be used here: otherwise each request would say it
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        async with self.lifespan():
            await send({"type": "lifespan.startup.complete"})
            await receive()  # lifespan.shutdown
        await send({"type": "lifespan.shutdown.complete"})

    def close(self) -> None:
        """End all that is under way, now: requests are cancelled, streams and sessions ended.

        What comes then gets 503, until the application is started again by `lifespan`. To be called
        in the thread of the event loop, where no `lifespan` is there to do it.
        """
        self._runner.close()

    # ------------------------------------------------------------------------------- looking

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The open sessions, oldest first."""
        return self._runner.endpoint.sessions

    @property
    def open_requests(self) -> tuple[IncomingRequest, ...]:
        """The requests of all clients that handlers work on."""
        return self._runner.endpoint.open_requests

    # ------------------------------------------------------------------------------- telling

    def publish(self, change: Change, *, meta: JSONObject | None = None) -> bool:
        """Tell all clients that are to be told that a list or a resource has changed.

        To be called in the thread of the event loop; from others, by `loop.call_soon_threadsafe`.

        Returns:
            Whether anybody is, or will be, told.
        """
        return self._runner.publish(change, meta)

    def end_session(self, session: Session) -> bool:
        """End a session, and all that is under way in it.

        Returns:
            Whether it was open until now.
        """
        return self._runner.end_session(session)


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "the application needs an event loop of asyncio; on trio there is"
            " sansmcp_io.trio.serve_http"
        ) from None
