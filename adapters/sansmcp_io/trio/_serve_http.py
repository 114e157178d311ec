"""A server behind HTTP, on trio."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import trio

from sansmcp import ALL_REVISIONS, Config, JSONObject

from .._async.http_calls import SessionServer
from .._async.http_server import BACKLOG, HTTPServer, new_endpoint
from .._common.access import Authenticate, PrincipalKey, check_addresses, check_principal_key
from .._common.callbacks import NotificationHandler
from .._common.defaults import check_given, check_limits, check_times, check_waits
from .._common.extras import check_extra
from .._common.http_limits import HTTPLimits
from .._common.trace import HTTPTrace
from ._unwrap import unwrapped

if TYPE_CHECKING:
    from sansmcp.http import OldPaths, Sessions, ToolSchema

    from . import Handler, ReadyHandler


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
        principal_key: Called with what `authenticate` returned; returns a string that stands for
            that principal and for nobody else, such as an account's id. Needed with `authenticate`
            where `config` has `state_keys`: sealed states are bound to it. Plain.
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
        ModuleNotFoundError: The extra `h11` is not installed.
    """
    check_given(
        port=port,
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
        tls=tls,
    )
    check_limits(limits, HTTPLimits)
    check_times(request_timeout=request_timeout)
    check_waits(drain=drain)
    check_extra("h11")
    # Here, since programs on stdio need none of it, and not all have h11.
    from ._http_service import HTTPService
    from ._http_session_tasks import Companions

    check_principal_key(config, authenticate, principal_key)
    endpoint, paths = new_endpoint(
        path,
        sessions,
        revisions,
        old_paths,
        info=info,
        capabilities=capabilities,
        instructions=instructions,
        hosts=hosts,
        origins=origins,
        answers=answers,
        keep_alive=keep_alive,
        tool_schema=tool_schema,
        config=config,
    )
    service = HTTPService(
        endpoint,
        handler=handler,
        on_notification=on_notification,
        authenticate=authenticate,
        principal_key=principal_key,
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
    listeners = await trio.open_tcp_listeners(port, host=host, backlog=BACKLOG)
    addresses = [listener.socket.getsockname()[:2] for listener in listeners]
    closing = trio.Event()
    service.end = closing.set
    server = HTTPServer(service, addresses, closing.set)
    async with unwrapped(), trio.open_nursery() as nursery:

        async def run() -> None:
            with trio.CancelScope(shield=True):
                await service.run(listeners, tls)
            nursery.cancel_scope.cancel()

        nursery.start_soon(run)
        try:
            task_status.started(server)
            await closing.wait()
        finally:
            with trio.CancelScope(shield=True):
                await service.shut_down(drain)
    if service.failure is not None:
        raise service.failure
