"""A session on two ends, for all that begin one on asyncio."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sansmcp import ClientConnection, Config, JSONObject, ServerConnection

from .._async.call import Call
from .._async.client import RequestHandler
from .._async.server import Server, ServerCall
from .._common.callbacks import NotificationHandler, serves_nothing
from .._common.trace import Trace
from ._ends import Reads, Writes
from ._session import Session

if TYPE_CHECKING:
    from . import Handler, ReadyHandler


def client_session(
    input: Reads,
    output: Writes,
    *,
    info: JSONObject,
    capabilities: JSONObject | None,
    revisions: Sequence[str],
    requires: Iterable[str],
    on_request: RequestHandler | None,
    on_notification: NotificationHandler | None,
    context: Any,
    config: Config | None,
    request_timeout: float,
    trace: Trace | None,
) -> Session:
    """What a client is made of, from the arguments of `connect`."""
    connection = ClientConnection(
        info=info,
        capabilities=None if on_request is None else capabilities,
        revisions=revisions,
        requires=requires,
        config=config,
    )
    return Session(
        connection,
        input,
        output,
        handler=serves_nothing if on_request is None else on_request,
        call_type=Call,
        on_notification=on_notification,
        context=context,
        request_timeout=request_timeout,
        drain=0.0,
        trace=trace,
    )


async def serve_ends(
    input: Reads,
    output: Writes,
    handler: Handler,
    *,
    info: JSONObject,
    capabilities: JSONObject | None,
    instructions: str | None,
    revisions: Sequence[str],
    on_notification: NotificationHandler | None,
    on_ready: ReadyHandler | None,
    context: Any,
    config: Config | None,
    request_timeout: float,
    drain: float,
    trace: Trace | None,
) -> None:
    """Serve one client, with the arguments of `serve`."""
    connection = ServerConnection(
        info=info,
        capabilities=capabilities,
        instructions=instructions,
        revisions=revisions,
        config=config,
    )
    session = Session(
        connection,
        input,
        output,
        handler=handler,
        call_type=ServerCall,
        on_notification=on_notification,
        context=context,
        request_timeout=request_timeout,
        drain=drain,
        trace=trace,
    )
    if on_ready is not None:
        session.when_ready(partial(on_ready, Server(session)))
    await session.run()
