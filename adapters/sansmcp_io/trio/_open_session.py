"""Opening a client on a byte stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Protocol

import trio

from .._async.call import Call
from .._async.client import RequestHandler
from .._common.stderr import StderrTail
from .._options.clients import StreamClientOptions
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
    options: StreamClientOptions[RequestHandler],
    *,
    stderr: StderrTail | None,
) -> AsyncGenerator[Session, None]:
    """Open a client on a stream, as `connect` and `connect_stdio` describe it."""
    session = Session(
        options.new_connection(),
        stream,
        options.for_session(Call),
        drain=0.0,
        trace=options.trace,
    )
    session.stderr = stderr
    session.shield()
    async with unwrapped(), trio.open_nursery() as nursery:
        session.around.append(nursery.cancel_scope)
        nursery.start_soon(session.run)
        try:
            await session.start(*options.opening)
            yield session
        finally:
            with trio.CancelScope(shield=True):
                await session.finish()
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError, OSError):
                    await stream.send_eof()
