"""Clients and servers over HTTP on asyncio: `connect_http` and `serve_http`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import attrs

from .._async.client import Client, RequestHandler
from .._async.server import Handler, HTTPServer, ReadyHandler
from .._common.http_server import check_addresses
from .._options.arguments import takes
from .._options.clients import HTTPClientOptions
from .._options.servers import ListeningServerOptions
from ._guard import running
from ._tasks import finished


@takes(HTTPClientOptions[RequestHandler])
@asynccontextmanager
async def connect_http(options: HTTPClientOptions[RequestHandler]) -> AsyncGenerator[Client, None]:
    """Talk to a server over HTTP, whichever of the five revisions it speaks."""
    endpoint = options.new_endpoint("AsyncClient")
    # Imported here: programs on stdio do not need HTTP, and h11 is an optional dependency.
    from ._http_client import HTTPSession

    session = HTTPSession(endpoint, options)
    async with running(session):
        await session.restore_credentials()
        await session.start(*options.opening)
        yield Client(session)


@attrs.frozen
class _HTTPServerOptions(ListeningServerOptions[Handler, ReadyHandler]):
    """The options of a server that listens, on asyncio.

    Args:
        on_listening: Called with the `HTTPServer` as soon as it listens: to keep, to print its
            port, or to set the result of a future (`on_listening=future.set_result`).
    """

    on_listening: Callable[[HTTPServer], object] | None = attrs.field(default=None, kw_only=True)


@takes(_HTTPServerOptions)
async def serve_http(options: _HTTPServerOptions) -> None:
    """Serve clients over HTTP/1.1, until cancelled or `HTTPServer.close`. Needs the extra `h11`."""
    endpoint = options.new_endpoint()
    # Imported here: programs on stdio do not need HTTP, and h11 is an optional dependency.
    from ._http_service import HTTPService

    service = HTTPService(endpoint, options)
    host, port = options.host, options.port
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    check_addresses(host, [str(address[0]) for *_, address in found], options.hosts)
    addresses = await service.listen(host, port, options.tls)
    closing = asyncio.Event()
    service.end = closing.set
    try:
        if options.on_listening is not None:
            options.on_listening(HTTPServer(service, addresses, closing.set))
        await closing.wait()
    finally:
        await finished(service.shut_down(options.drain))
    if service.failure is not None:
        raise service.failure
