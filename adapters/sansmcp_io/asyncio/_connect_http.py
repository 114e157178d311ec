"""Opening a client over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from .._async.client import Client, RequestHandler
from .._options.arguments import takes
from .._options.clients import HTTPClientOptions
from ._guard import running


@takes(HTTPClientOptions[RequestHandler])
@asynccontextmanager
async def connect_http(options: HTTPClientOptions[RequestHandler]) -> AsyncGenerator[Client, None]:
    """Talk to a server over HTTP, whichever of the five revisions it speaks."""
    endpoint = options.new_endpoint()
    # Here, since programs on stdio need none of it, and not all have h11.
    from ._http_client import HTTPSession

    session = HTTPSession(endpoint, options)
    async with running(session):
        await session.start(*options.opening)
        yield Client(session)
