"""A server behind HTTP, on trio."""

from __future__ import annotations

import secrets
import socket
import ssl
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import trio

from sansmcp import (
    ALL_REVISIONS,
    LEGACY_REVISIONS,
    Change,
    Config,
    IncomingRequest,
    JSONObject,
)

from ._http_limits import HTTPLimits
from ._listening import Authenticate, check_addresses
from ._surface import NotificationHandler
from ._trace import HTTPTrace
from ._trio_http_calls import HTTPServerCall, SessionServer
from ._trio_unwrap import unwrapped

if TYPE_CHECKING:
    from sansmcp.http import OldPaths, Session, Sessions, ToolSchema

    from ._trio_http_service import HTTPService
    from .trio import Handler, ReadyHandler

_BACKLOG: Final = 1024
Address: TypeAlias = tuple[str, int]


class HTTPServer:
    """A server that is running. To be used in trio's thread, by any number of tasks."""

    def __init__(self, service: HTTPService, addresses: Sequence[Address]) -> None:
        self._service = service
        self._addresses = tuple(addresses)
        self._closing = trio.Event()

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Addresses and ports on which it listens."""
        return self._addresses

    @property
    def port(self) -> int:
        """The port on which it listens; the first one, should there be several."""
        return self._addresses[0][1]

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The open sessions, oldest first."""
        return self._service.endpoint.sessions

    @property
    def open_requests(self) -> tuple[IncomingRequest, ...]:
        """The requests of all clients that handlers work on."""
        return self._service.endpoint.open_requests

    def publish(self, change: Change, *, meta: JSONObject | None = None) -> bool:
        """Tell all clients that are to be told that a list or a resource has changed.

        Returns:
            Whether anybody is, or will be, told.
        """
        told = self._service.endpoint.publish(change, meta=meta, now=trio.current_time())
        self._service.turn()
        return told

    def end_session(self, session: Session) -> bool:
        """End a session, and all that is under way in it.

        Returns:
            Whether it was open until now.
        """
        ended = self._service.endpoint.end_session(session, now=trio.current_time())
        self._service.turn()
        return ended

    def close(self) -> None:
        """Accept no more, and have `serve_http` return when what is under way has ended."""
        self._closing.set()


async def serve_http(
    handler: Handler,
    host: str | None = "127.0.0.1",
    port: int = 8000,
    *,
    info: JSONObject,
    capabilities: JSONObject | None = None,
    instructions: str | None = None,
    revisions: Sequence[str] = ALL_REVISIONS,
    path: str = "/mcp",
    tls: ssl.SSLContext | None = None,
    hosts: Sequence[str] = (),
    origins: Sequence[str] | None = None,
    authenticate: Authenticate | None = None,
    sessions: bool | Sessions = True,
    answers: Literal["auto", "sse"] = "auto",
    keep_alive: float | None = 15.0,
    tool_schema: ToolSchema | None = None,
    old_paths: OldPaths | None = None,
    on_notification: NotificationHandler | None = None,
    on_ready: ReadyHandler | None = None,
    context: Any = None,
    config: Config | None = None,
    request_timeout: float = 60.0,
    drain: float = 1.0,
    limits: HTTPLimits | None = None,
    trace: HTTPTrace | None = None,
    task_status: trio.TaskStatus[HTTPServer] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve clients over HTTP/1.1, until cancelled or `HTTPServer.close`. Needs the extra `h11`.

    However it ends, requests under way have `drain` seconds to come to their end; then they are
    cancelled, and streams are ended so that clients know it. `await nursery.start(serve_http, ...)`
    returns the `HTTPServer` as soon as it listens.

    Args:
        handler: Serves the clients' requests, as for `serve_stdio`.
        host: Where to listen: an address, a name, or None for all addresses. What others can
            reach needs `hosts`.
        port: The port; 0: any that is free, see `HTTPServer.port`.
        info: The server's `Implementation` object: `name` and `version` at least.
        capabilities: What the server offers (`tools`, `resources`, `prompts`, `logging`, ...).
        instructions: How to use the server, for the model on the other side.
        revisions: The revisions to speak.
        path: The path of the endpoint; at others there is nothing.
        tls: For HTTPS. Without it credentials can be read by whoever is on the way.
        hosts: Names in `Host` that are served, beside the loopback ones: `"api.example"`.
        origins: Origins of web pages that may call: see `sansmcp.http.ServerEndpoint`.
        authenticate: Called with the fields of each request, by names in lower case; returns the
            principal, or raises `Unauthorized`. Plain or async. Sessions are open only to the
            principal that has opened them. Preflights are not authenticated.
        sessions: Whether clients of the revisions with a handshake have sessions; settings for
            them, if they are not to be the usual ones.
        answers: `auto` answers with JSON where nothing comes before it; `sse` with a stream.
        keep_alive: Seconds of silence on a stream after which a comment goes out; None: never.
        tool_schema: Gives the `inputSchema` of a tool, to check `Mcp-Param-*` fields.
        old_paths: Where clients of 2024-11-05 are served, beside `path`.
        on_notification: Called with method and params of each notification; async or plain.
        on_ready: Called with the `Server` of each session when its client is ready; an async
            function runs for as long as the session. Clients without one cause no call.
        context: Becomes `ServerCall.context`.
        config: Limits and policies of the protocol.
        request_timeout: Default for `timeout` of each request to a client, in seconds.
        drain: Seconds that requests have to come to their end when the server does.
        limits: Limits on connections.
        trace: Told of everything that happens on this side.
        task_status: For `nursery.start`.

    Raises:
        ValueError: Others can reach `host`, and `hosts` is empty; or settings contradict each
            other.
        OSError: It is not possible to listen there.
    """
    # Here, since programs on stdio need none of it, and not all have h11.
    from sansmcp.http import ServerEndpoint, Sessions

    from ._trio_http_ready import Companions
    from ._trio_http_service import HTTPService

    if not path.startswith("/") or not path.isascii():
        raise ValueError(f"the path of an endpoint begins with /, unlike {path!r}")
    settings: Sessions | None
    if not isinstance(sessions, bool):
        settings = sessions
    elif sessions and any(revision in LEGACY_REVISIONS for revision in revisions):
        settings = Sessions(new_id=new_session_id)
    else:
        settings = None
    endpoint = ServerEndpoint(
        info=info,
        capabilities=capabilities,
        instructions=instructions,
        revisions=revisions,
        hosts=hosts,
        origins=origins,
        sessions=settings,
        answers=answers,
        keep_alive=keep_alive,
        tool_schema=tool_schema,
        old_paths=old_paths,
        config=config,
    )
    paths = (path,) if old_paths is None else (path, old_paths.stream, old_paths.post)
    service = HTTPService(
        endpoint,
        handler=handler,
        call_type=HTTPServerCall,
        on_notification=on_notification,
        authenticate=authenticate,
        paths=paths,
        context=context,
        request_timeout=request_timeout,
        limits=limits or HTTPLimits(),
        trace=trace,
    )
    if on_ready is not None:
        service.companions = Companions(on_ready, partial(SessionServer, service))
    found = await trio.socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    check_addresses(host, [str(address[0]) for *_, address in found], hosts)
    listeners = await trio.open_tcp_listeners(port, host=host, backlog=_BACKLOG)
    addresses = [listener.socket.getsockname()[:2] for listener in listeners]
    server = HTTPServer(service, addresses)
    async with unwrapped(), trio.open_nursery() as nursery:

        async def run() -> None:
            with trio.CancelScope(shield=True):
                await service.run(listeners, tls)
            nursery.cancel_scope.cancel()

        nursery.start_soon(run)
        try:
            task_status.started(server)
            await server._closing.wait()
        finally:
            with trio.CancelScope(shield=True):
                await service.shut_down(drain)


def new_session_id() -> str:
    """A session id that nobody can guess."""
    return secrets.token_urlsafe(24)
