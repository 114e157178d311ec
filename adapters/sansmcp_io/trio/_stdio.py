"""Clients and servers on stdio and on any stream, on trio; restarts of a server process."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial

import attrs
import trio

from .._async.call import Call
from .._async.client import Client, RequestHandler, open_client
from .._async.restart import Opening, Restarter
from .._async.server import Handler, ReadyHandler, Server, ServerCall
from .._common.stderr import StderrTail
from .._options.arguments import takes
from .._options.clients import StdioClientOptions, StreamClientOptions
from .._options.servers import ServerOptions, StdioServerOptions
from ._loop import TrioLoop, unwrapped
from ._process import open_child
from ._session import StreamSession
from ._streams import ByteStream, HalfCloseableByteStream, open_standard_streams


@attrs.frozen
class _ClientOptions(StreamClientOptions[RequestHandler]):
    """The options of a client on a stream.

    Args:
        stream: Read and written until the block is left.
    """

    stream: HalfCloseableByteStream


@attrs.frozen
class _ServerOptions(ServerOptions[ReadyHandler]):
    """The options of a server on a stream.

    Args:
        stream: Read and written until the connection has ended.
        handler: Serves the client's requests.
    """

    stream: ByteStream
    handler: Handler


@takes(_ClientOptions)
@asynccontextmanager
async def connect(options: _ClientOptions) -> AsyncGenerator[Client, None]:
    """A client on a stream that the application opens and closes.

    Leaving the block cancels what is still open, flushes, and ends the sending side of the
    stream.
    """
    options.check()
    async with _connected(options.stream, options, stderr=None) as session:
        yield Client(session)


@takes(StdioClientOptions[RequestHandler])
@asynccontextmanager
async def connect_stdio(
    options: StdioClientOptions[RequestHandler],
) -> AsyncGenerator[Client, None]:
    """Start a server process and talk to it on its standard input and output."""
    options.check()

    @asynccontextmanager
    async def opening() -> AsyncGenerator[StreamSession, None]:
        async with (
            open_child(options) as child,
            _connected(child.stream, options, stderr=child.stderr) as session,
        ):
            yield session

    async with open_client(opening, keep_running, options.restarts) as client:
        yield client


@takes(_ServerOptions)
async def serve(options: _ServerOptions) -> None:
    """Serve one client on a stream that the application opens and closes."""
    options.check()
    await _serve(options.stream, options.handler, options)


@takes(StdioServerOptions[Handler, ReadyHandler])
async def serve_stdio(options: StdioServerOptions[Handler, ReadyHandler]) -> None:
    """Serve the client on standard input and output, until its input ends."""
    options.check()
    async with open_standard_streams() as stream:
        await _serve(stream, options.handler, options)


async def _serve(
    stream: ByteStream, handler: Handler, options: ServerOptions[ReadyHandler]
) -> None:
    session = StreamSession(
        options.new_connection(),
        stream,
        options.for_session(handler, ServerCall),
        drain=options.drain,
        trace=options.trace,
    )
    if options.on_ready is not None:
        session.when_ready(partial(options.on_ready, Server(session)))
    await session.run()


@asynccontextmanager
async def _connected(
    stream: HalfCloseableByteStream,
    options: StreamClientOptions[RequestHandler],
    *,
    stderr: StderrTail | None,
) -> AsyncGenerator[StreamSession, None]:
    """Open a client on a stream, as `connect` and `connect_stdio` describe it."""
    session = StreamSession(
        options.new_connection(),
        stream,
        options.for_session(Call),
        drain=0.0,
        trace=options.trace,
    )
    session.sending.stderr = stderr
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


@asynccontextmanager
async def keep_running(
    opening: Opening[StreamSession], restarts: int
) -> AsyncGenerator[Restarter, None]:
    """Start a process, and end the last one that has taken its place when the block is left."""

    @asynccontextmanager
    async def shielded() -> AsyncGenerator[StreamSession, None]:
        with trio.CancelScope() as scope:
            async with opening() as session:
                # Those who use it may still have things to say when all around is cancelled.
                # The shield is outside of the block: what fails within must get out.
                scope.shield = True
                session.around.append(tasks.cancel_scope)
                yield session

    async with unwrapped(), trio.open_nursery() as tasks:
        restarter = Restarter(
            shielded, restarts, loop=TrioLoop(), tasks=tasks, abandon=tasks.cancel_scope.cancel
        )
        try:
            await restarter.open()
            yield restarter
        finally:
            with trio.CancelScope(shield=True):
                await restarter.close()
