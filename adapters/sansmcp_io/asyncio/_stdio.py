"""Clients and servers on stdio and on any stream, on asyncio; restarts of a server process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial

import attrs

from .._async.call import Call
from .._async.client import Client, RequestHandler, open_client
from .._async.restart import Opening, Restarter
from .._async.server import Handler, ReadyHandler, Server, ServerCall
from .._common.stderr import StderrTail
from .._options.arguments import takes
from .._options.clients import StdioClientOptions, StreamClientOptions
from .._options.servers import ServerOptions, StdioServerOptions
from ..stdio import taken_standard_streams
from ._ends import Reads, StdioInput, StdioOutput, Writes
from ._guard import finish, guarded, running
from ._loop import AsyncioLoop
from ._process import open_child
from ._session import StreamSession
from ._streams import ends_of
from ._tasks import Tasks, finished


@attrs.frozen
class _ClientOptions(StreamClientOptions[RequestHandler]):
    """The options of a client on a stream.

    Args:
        reader: As `asyncio.open_unix_connection` returns it, with `writer`.
        writer: The other direction.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@attrs.frozen
class _ServerOptions(ServerOptions[ReadyHandler]):
    """The options of a server on a stream.

    Args:
        reader: As `asyncio.start_unix_server` hands it out, with `writer`.
        writer: The other direction.
        handler: Serves the client's requests.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    handler: Handler


@takes(_ClientOptions)
@asynccontextmanager
async def connect(options: _ClientOptions) -> AsyncGenerator[Client, None]:
    """A client on a stream that the application opens and closes.

    Leaving the block cancels what is still open, flushes, and ends the sending side of the stream,
    where it has such an end.
    """
    options.check()
    writer = options.writer
    async with ends_of(options.reader, writer) as (input, output):
        try:
            async with _connected(input, output, options, stderr=None) as session:
                yield Client(session)
        finally:
            if writer.can_write_eof() and not writer.is_closing():  # uvloop refuses it then
                with suppress(OSError):
                    writer.write_eof()


@asynccontextmanager
async def _connected(
    input: Reads,
    output: Writes,
    options: StreamClientOptions[RequestHandler],
    *,
    stderr: StderrTail | None,
) -> AsyncGenerator[StreamSession, None]:
    session = StreamSession(
        options.new_connection(),
        input,
        output,
        options.for_session(Call),
        drain=0.0,
        trace=options.trace,
    )
    session.sending.stderr = stderr
    async with running(session):
        await session.start(*options.opening)
        yield session


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
            _connected(child.input, child.output, options, stderr=child.stderr) as session,
        ):
            yield session

    async with open_client(opening, keep_running, options.restarts) as client:
        yield client


@takes(_ServerOptions)
async def serve(options: _ServerOptions) -> None:
    """Serve one client on a stream that the application opens and closes."""
    options.check()
    async with ends_of(options.reader, options.writer) as (input, output):
        await _serve(input, output, options.handler, options)


@takes(StdioServerOptions[Handler, ReadyHandler])
async def serve_stdio(options: StdioServerOptions[Handler, ReadyHandler]) -> None:
    """Serve the client on standard input and output, until its input ends."""
    options.check()
    with taken_standard_streams() as (source, sink):
        input, output = StdioInput(source), StdioOutput(sink)
        try:
            await _serve(input, output, options.handler, options)
        finally:
            input.close()
            output.close()


async def _serve(
    input: Reads, output: Writes, handler: Handler, options: ServerOptions[ReadyHandler]
) -> None:
    session = StreamSession(
        options.new_connection(),
        input,
        output,
        options.for_session(handler, ServerCall),
        drain=options.drain,
        trace=options.trace,
    )
    if options.on_ready is not None:
        session.when_ready(partial(options.on_ready, Server(session)))
    await session.run()


@asynccontextmanager
async def keep_running(
    opening: Opening[StreamSession], restarts: int
) -> AsyncGenerator[Restarter, None]:
    """Start a process, and end the last one that has taken its place when the block is left."""

    @asynccontextmanager
    async def watched() -> AsyncGenerator[StreamSession, None]:
        async with opening() as session:
            session.around.append(guard)
            yield session

    async with guarded() as guard:
        tasks = Tasks(guard.fail)
        restarter = Restarter(
            watched, restarts, loop=AsyncioLoop(), tasks=tasks, abandon=tasks.cancel
        )
        try:
            await restarter.open()
            yield restarter
        finally:
            await finished(finish(restarter, tasks))
