"""Opening a client on a byte stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

import trio

from sansmcp import ClientConnection, Config, JSONObject

from .._async.call import Call
from .._async.client import RequestHandler
from .._common.callbacks import NotificationHandler, serves_nothing
from .._common.stderr import StderrTail
from .._common.trace import Trace
from ._session import Session
from ._stream import ByteStream
from ._unwrap import unwrapped


class HalfCloseableByteStream(ByteStream, Protocol):
    """What a client asks of a stream; every `trio.abc.HalfCloseableStream` has it."""

    async def send_eof(self) -> None:
        """End the sending side: the server sees the end of its input."""
        ...


@asynccontextmanager
async def connected(
    stream: HalfCloseableByteStream,
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
    start_timeout: float,
    probe_timeout: float,
    hint: str | None,
    trace: Trace | None,
    stderr: StderrTail | None,
) -> AsyncGenerator[Session, None]:
    """Open a client on a stream, as `connect` and `connect_stdio` describe it."""
    connection = ClientConnection(
        info=info,
        capabilities=None if on_request is None else capabilities,
        revisions=revisions,
        requires=requires,
        config=config,
    )

    session = Session(
        connection,
        stream,
        handler=serves_nothing if on_request is None else on_request,
        call_type=Call,
        on_notification=on_notification,
        context=context,
        request_timeout=request_timeout,
        drain=0.0,
        trace=trace,
    )
    session.stderr = stderr
    session.shield()
    async with unwrapped(), trio.open_nursery() as nursery:
        session.around.append(nursery.cancel_scope)
        nursery.start_soon(session.run)
        try:
            await session.start(start_timeout, probe_timeout, hint)
            yield session
        finally:
            with trio.CancelScope(shield=True):
                await session.finish()
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError, OSError):
                    await stream.send_eof()
