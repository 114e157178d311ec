"""Clients and servers over HTTP on trio: `connect_http` and `serve_http`."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import attrs
import trio

from .._async.client import Client, RequestHandler
from .._async.server import BACKLOG, Handler, HTTPServer, ReadyHandler
from .._common.http_server import check_addresses
from .._options.arguments import takes
from .._options.clients import HTTPClientOptions
from .._options.servers import ListeningServerOptions
from ._loop import unwrapped


@takes(HTTPClientOptions[RequestHandler])
@asynccontextmanager
async def connect_http(options: HTTPClientOptions[RequestHandler]) -> AsyncGenerator[Client, None]:
    """Talk to a server over HTTP, whichever of the five revisions it speaks."""
    endpoint = options.new_endpoint("AsyncClient")
    # Imported here: programs on stdio do not need HTTP, and h11 is an optional dependency.
    from ._http_client import HTTPSession

    session = HTTPSession(endpoint, options)
    async with unwrapped(), trio.open_nursery() as nursery:
        session.around.append(nursery.cancel_scope)
        nursery.start_soon(session.run)
        try:
            await session.restore_credentials()
            await session.start(*options.opening)
            yield Client(session)
        finally:
            with trio.CancelScope(shield=True):
                await session.finish()


@attrs.frozen
class _HTTPServerOptions(ListeningServerOptions[Handler, ReadyHandler]):
    """The options of a server that listens, on trio.

    Args:
        task_status: For `nursery.start`.
    """

    task_status: trio.TaskStatus[HTTPServer] = attrs.field(
        default=trio.TASK_STATUS_IGNORED, kw_only=True
    )


@takes(_HTTPServerOptions)
async def serve_http(options: _HTTPServerOptions) -> None:
    """Serve clients over HTTP/1.1, until cancelled or `HTTPServer.close`. Needs the extra `h11`.

    `await nursery.start(serve_http, ...)` returns the `HTTPServer` as soon as it listens.
    """
    endpoint = options.new_endpoint()
    # Imported here: programs on stdio do not need HTTP, and h11 is an optional dependency.
    from ._http_service import HTTPService

    service = HTTPService(endpoint, options)
    host, port = options.host, options.port
    found = await trio.socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    check_addresses(host, [str(address[0]) for *_, address in found], options.hosts)
    await service.join_cluster()
    listeners = await trio.open_tcp_listeners(port, host=host, backlog=BACKLOG)
    addresses = [listener.socket.getsockname()[:2] for listener in listeners]
    closing = trio.Event()
    service.end = closing.set
    server = HTTPServer(service, addresses, closing.set)
    async with unwrapped(), trio.open_nursery() as nursery:

        async def run() -> None:
            with trio.CancelScope(shield=True):
                await service.run(listeners, options.tls)
            nursery.cancel_scope.cancel()

        nursery.start_soon(run)
        try:
            options.task_status.started(server)
            await closing.wait()
        finally:
            with trio.CancelScope(shield=True):
                await service.shut_down(options.drain)
    if service.failure is not None:
        raise service.failure
