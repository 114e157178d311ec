"""Opening a client over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from .._async.client import Client, RequestHandler
from .._options.arguments import takes
from .._options.clients import HTTPClientOptions
from ._unwrap import unwrapped


@takes(HTTPClientOptions[RequestHandler])
@asynccontextmanager
async def connect_http(options: HTTPClientOptions[RequestHandler]) -> AsyncGenerator[Client, None]:
    """Talk to a server over HTTP, whichever of the five revisions it speaks."""
    endpoint = options.new_endpoint()
    # Here, since programs on stdio need none of it, and not all have h11.
    from ._http_client import HTTPSession

    session = HTTPSession(endpoint, options)
    async with unwrapped(), trio.open_nursery() as nursery:
        session.around.append(nursery.cancel_scope)
        nursery.start_soon(session.run)
        try:
            await session.start(*options.opening)
            yield Client(session)
        finally:
            with trio.CancelScope(shield=True):
                await session.finish()
