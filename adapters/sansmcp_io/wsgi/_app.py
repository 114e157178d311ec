"""sansmcp below WSGI: an application to mount beside other routes, on any server and with threads.

Without sessions and without streams by default: each request stands for itself, so that any worker
can serve it, and none is tied to a client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, TypeAlias

from sansmcp import ALL_REVISIONS, Change, Config, IncomingRequest, JSONObject
from sansmcp.http import ServerEndpoint, Session, Sessions, ToolSchema

from .._common.access import PrincipalKey, check_principal_key
from .._common.callbacks import NotificationHandler, is_async
from .._common.defaults import (
    DEFAULT_REQUEST_TIMEOUT,
    check_given,
    check_path,
    check_times,
    check_waits,
)
from .._common.http_sessions import session_settings
from ._calls import Environ, ServerCall
from ._exchange import (
    Authenticate,
    Carrier,
    Result,
    Serving,
    StartResponse,
    fields_of,
    status_line,
    texts_of,
)
from ._runner import Runner

Handler: TypeAlias = Callable[[ServerCall], Result]
"""Serves a client's requests: returns the result, or raises `McpError`. A plain function, which
several threads may call at a time."""

_NOT_FOUND: Final = "nothing is served at this path"


class App:
    """A WSGI application that serves MCP over HTTP. Any number of threads may call it at a time.

    One lock guards what they share, and is never held while a handler runs. No thread is started.

    Args:
        handler: Serves the clients' requests, in the thread in which they come.
        info: The server's `Implementation` object: `name` and `version` at least.
        capabilities: What the server offers (`tools`, `resources`, `prompts`, `logging`, ...).
        instructions: How to use the server, for the model on the other side.
        revisions: The revisions to speak.
        path: The path, below the place where it is mounted, at which it serves; at others there is
            nothing. None: whatever is routed here is for it.
        hosts: Names in `Host` that are served, beside the loopback ones: `"api.example"`.
        origins: Origins of web pages that may call: see `sansmcp.http.ServerEndpoint`.
        authenticate: Called with the environment of each request; returns the principal, or raises
            `Unauthorized`. Preflights are not authenticated.
        principal_key: Called with what `authenticate` returned; returns a string that stands for
            that principal and for nobody else, such as an account's id. Needed with `authenticate`
            where `config` has `state_keys`: sealed states are bound to it. Plain.
        sessions: Whether clients of the revisions with a handshake have sessions; settings for
            them, if they are not to be the usual ones. They are in the memory of this process: all
            requests of a session must come to it.
        streams: Whether responses may last as long as clients like, as those of
            `subscriptions/listen` and the GET streams of sessions do. Each takes a thread of the
            server for all that time. Without, only responses to calls are streams, and end with
            them; `listChanged` and `resources.subscribe` are then not declared to any client.
        answers: `auto` answers with JSON where nothing comes before it; `sse` with a stream.
        keep_alive: Seconds of silence on a stream after which a comment goes out; None: never.
        tool_schema: Gives the `inputSchema` of a tool, to check `Mcp-Param-*` fields.
        on_notification: Called with method and params of each notification.
        context: Becomes `ServerCall.context`.
        config: Limits and policies of the protocol.
        request_timeout: Default for `timeout` of each request to a client, in seconds.

    Raises:
        ValueError: Settings contradict each other.
        TypeError: The handler is async.
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
        sessions: bool | Sessions = False,
        streams: bool = False,
        answers: Literal["auto", "sse"] = "auto",
        keep_alive: float | None = 15.0,
        tool_schema: ToolSchema | None = None,
        on_notification: NotificationHandler | None = None,
        context: Any = None,
        config: Config | None = None,
        request_timeout: float = DEFAULT_REQUEST_TIMEOUT,
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
        )
        check_times(request_timeout=request_timeout)
        for function in (handler, authenticate, on_notification):
            if is_async(function):
                raise TypeError(
                    f"{function!r} is async, and below WSGI there is no event loop for it: "
                    "use a plain function, or sansmcp_io.asgi"
                )
        if path is not None:
            check_path(path)
        check_principal_key(config, authenticate, principal_key)
        self._path = path
        self._runner = Runner(
            ServerEndpoint(
                info=info,
                capabilities=capabilities,
                instructions=instructions,
                revisions=revisions,
                hosts=hosts,
                origins=origins,
                sessions=session_settings(sessions, revisions),
                streams=streams,
                answers=answers,
                keep_alive=keep_alive,
                tool_schema=tool_schema,
                config=config,
            ),
            on_notification=on_notification,
            request_timeout=request_timeout,
        )
        self._serving = Serving(self._runner, handler, authenticate, principal_key, context)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one HTTP request. It returns when the response is complete."""
        if self._path is not None and environ.get("PATH_INFO") != self._path:
            status, fields, body = self._runner.endpoint.refusal(
                404, _NOT_FOUND, method=environ["REQUEST_METHOD"], headers=fields_of(environ)
            )
            start_response(status_line(status), texts_of(fields))
            return (body,)
        return Carrier(self._serving, environ, start_response).run()

    def close(self, *, drain: float = 0.0) -> None:
        """End all that is under way: requests are cancelled, streams and sessions ended.

        What comes then gets 503.

        Args:
            drain: Seconds that requests have to come to their end before; waits for it.
        """
        check_waits(drain=drain)
        self._runner.close(drain)

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The open sessions, oldest first."""
        with self._runner.lock:
            return self._runner.endpoint.sessions

    @property
    def open_requests(self) -> tuple[IncomingRequest, ...]:
        """The requests of all clients that handlers work on."""
        with self._runner.lock:
            return self._runner.endpoint.open_requests

    def publish(self, change: Change, *, meta: JSONObject | None = None) -> bool:
        """Tell all clients that are to be told that a list or a resource has changed.

        It reaches those of this process, in sessions or with `streams`.

        Returns:
            Whether anybody is, or will be, told.
        """
        return self._runner.publish(change, meta)

    def end_session(self, session: Session) -> bool:
        """End a session, and all that is under way in it.

        Returns:
            Whether it was open until now.
        """
        ended: bool = self._runner.verb(self._runner.endpoint.end_session, session)
        return ended
