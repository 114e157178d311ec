"""sansmcp on asyncio: clients and servers on stdio, on any stream, and over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from os import PathLike
from typing import Any, TypeAlias

from sansmcp import (
    ALL_REVISIONS,
    Config,
    JSONObject,
)

from .._async.client import Client, RequestHandler
from .._async.handlers import Result
from .._async.process import ProcessOptions
from .._async.server import Server, ServerCall
from .._common.callbacks import NotificationHandler
from .._common.defaults import (
    DEFAULT_DRAIN,
    DEFAULT_PROBE_TIMEOUT,
    DEFAULT_REQUEST_TIMEOUT,
    DEFAULT_START_TIMEOUT,
    check_count,
    check_given,
    check_times,
    check_waits,
)
from .._common.trace import Trace
from ..stdio import DEFAULT_KILL_AFTER, DEFAULT_TERMINATE_AFTER, StderrMode, taken_standard_streams
from ._ends import Input, Output
from ._guard import running
from ._open_session import client_session, serve_ends
from ._process import open_child
from ._restart import keep_running
from ._session import Session
from ._streams import ends_of

Handler: TypeAlias = Callable[[ServerCall], Result]
"""Serves a client's requests: returns the result, or raises `McpError`.

An async function gets a task of its own. A plain function runs inline: nothing
else of the connection moves before it returns.
"""

ReadyHandler: TypeAlias = Callable[[Server], object]
"""Called once the client is ready; an async function runs for as long as the connection."""


@asynccontextmanager
async def connect(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    info: JSONObject,
    capabilities: JSONObject | None = None,
    revisions: Sequence[str] = ALL_REVISIONS,
    requires: Iterable[str] = (),
    on_request: RequestHandler | None = None,
    on_notification: NotificationHandler | None = None,
    context: Any = None,
    config: Config | None = None,
    request_timeout: float = DEFAULT_REQUEST_TIMEOUT,
    start_timeout: float = DEFAULT_START_TIMEOUT,
    probe_timeout: float = DEFAULT_PROBE_TIMEOUT,
    hint: str | None = None,
    trace: Trace | None = None,
) -> AsyncGenerator[Client, None]:
    """A client on a stream that somebody else has opened, and closes.

    As `asyncio.open_unix_connection` returns it. Leaving the block cancels what is still open,
    flushes, and ends the sending side of the stream, where it has such an end. The other arguments
    are those of `connect_stdio`.
    """
    check_given(
        info=info,
        capabilities=capabilities,
        revisions=revisions,
        requires=requires,
        on_request=on_request,
        on_notification=on_notification,
        config=config,
    )
    check_times(
        request_timeout=request_timeout, start_timeout=start_timeout, probe_timeout=probe_timeout
    )
    async with ends_of(reader, writer) as (input, output):
        session = client_session(
            input,
            output,
            info=info,
            capabilities=capabilities,
            revisions=revisions,
            requires=requires,
            on_request=on_request,
            on_notification=on_notification,
            context=context,
            config=config,
            request_timeout=request_timeout,
            trace=trace,
        )
        try:
            async with running(session):
                await session.start(start_timeout, probe_timeout, hint)
                yield Client(session)
        finally:
            if writer.can_write_eof() and not writer.is_closing():  # uvloop refuses it then
                with suppress(OSError):
                    writer.write_eof()


@asynccontextmanager
async def connect_stdio(
    command: Sequence[str | PathLike[str]],
    *,
    info: JSONObject,
    capabilities: JSONObject | None = None,
    revisions: Sequence[str] = ALL_REVISIONS,
    requires: Iterable[str] = (),
    on_request: RequestHandler | None = None,
    on_notification: NotificationHandler | None = None,
    context: Any = None,
    config: Config | None = None,
    request_timeout: float = DEFAULT_REQUEST_TIMEOUT,
    start_timeout: float = DEFAULT_START_TIMEOUT,
    probe_timeout: float = DEFAULT_PROBE_TIMEOUT,
    hint: str | None = None,
    trace: Trace | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | PathLike[str] | None = None,
    stderr: StderrMode = "inherit",
    on_stderr: Callable[[str], object] | None = None,
    terminate_after: float = DEFAULT_TERMINATE_AFTER,
    kill_after: float = DEFAULT_KILL_AFTER,
    restarts: int = 0,
) -> AsyncGenerator[Client, None]:
    """Start a server process and talk to it on its standard input and output.

    Leaving the block closes the server's input; a server that stays is ended by SIGTERM, then by
    SIGKILL, and so is what it has started and left behind. It has always been waited for when the
    block is left.

    Args:
        command: The program and its arguments. No shell is involved.
        info: The client's `Implementation` object: `name` and `version` at least.
        capabilities: What `on_request` can do for the server. Without `on_request` none is
            declared.
        revisions: The revisions to speak.
        requires: Capabilities that the server must declare, as dotted paths.
        on_request: Serves the server's requests.
        on_notification: Called with method and params of each notification; async or plain.
        context: Becomes `Call.context`.
        config: Limits and policies.
        request_timeout: Default for `timeout` of each request, in seconds; `math.inf`: no limit.
        start_timeout: Seconds that the opening may take.
        probe_timeout: Seconds of them after which a server that does not answer
            `server/discover` is taken for one that knows a handshake only.
        hint: The revision of `peer` when this server was last opened; it spares the probe, or
            the fear of it.
        trace: Told of everything that happens on this side.
        env: Variables for the server, besides those that are safe to inherit
            (`sansmcp_io.stdio.SAFE_VARIABLES`).
        cwd: The server's working directory.
        stderr: What becomes of the server's standard error: `"inherit"`, `"capture"` or
            `"ignore"`. What is captured last can be read from `ConnectionLost.stderr`.
        on_stderr: Called with each line of the server's standard error, which is captured then.
        terminate_after: Seconds that the server has to end after its input was closed.
        kill_after: Seconds that it has to end after SIGTERM.
        restarts: How often a server that has ended is started again, with a new handshake, for
            the next request (not for a notification). The requests that were in flight end with
            `ConnectionLost`.

    Raises:
        OSError: The process could not be started.
        PeerError: The server refused `initialize`.
        RequestTimeout: It did not answer in time.
        ConnectionLost: It ended before it answered.
        InvalidAnswer: Its answer is not valid.
        StartFailed: There is no common revision, or a required capability is missing.
    """
    check_given(
        command=command,
        info=info,
        capabilities=capabilities,
        revisions=revisions,
        requires=requires,
        on_request=on_request,
        on_notification=on_notification,
        config=config,
        env=env,
        stderr=stderr,
        on_stderr=on_stderr,
    )
    check_times(
        request_timeout=request_timeout, start_timeout=start_timeout, probe_timeout=probe_timeout
    )
    check_waits(terminate_after=terminate_after, kill_after=kill_after)
    check_count("restarts", restarts, least=0)
    options = ProcessOptions(
        env=env,
        cwd=cwd,
        stderr=stderr,
        on_stderr=on_stderr,
        terminate_after=terminate_after,
        kill_after=kill_after,
    )

    wanted = tuple(requires)

    @asynccontextmanager
    async def opening() -> AsyncGenerator[Session, None]:
        async with open_child(command, options) as child:
            session = client_session(
                child.input,
                child.output,
                info=info,
                capabilities=capabilities,
                revisions=revisions,
                requires=wanted,
                on_request=on_request,
                on_notification=on_notification,
                context=context,
                config=config,
                request_timeout=request_timeout,
                trace=trace,
            )
            session.stderr = child.stderr
            async with running(session):
                await session.start(start_timeout, probe_timeout, hint)
                yield session

    if restarts == 0:
        async with opening() as session:
            yield Client(session)
        return
    async with keep_running(opening, restarts) as restarter:
        yield Client(restarter.session, restarter)


async def serve(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    handler: Handler,
    *,
    info: JSONObject,
    capabilities: JSONObject | None = None,
    instructions: str | None = None,
    revisions: Sequence[str] = ALL_REVISIONS,
    on_notification: NotificationHandler | None = None,
    on_ready: ReadyHandler | None = None,
    context: Any = None,
    config: Config | None = None,
    request_timeout: float = DEFAULT_REQUEST_TIMEOUT,
    drain: float = DEFAULT_DRAIN,
    trace: Trace | None = None,
) -> None:
    """Serve one client on a stream that somebody else has opened, and closes.

    As `asyncio.start_unix_server` hands it out. The other arguments are those of `serve_stdio`.
    """
    check_given(
        handler=handler,
        info=info,
        capabilities=capabilities,
        instructions=instructions,
        revisions=revisions,
        on_notification=on_notification,
        on_ready=on_ready,
        config=config,
    )
    check_times(request_timeout=request_timeout)
    check_waits(drain=drain)
    async with ends_of(reader, writer) as (input, output):
        await serve_ends(
            input,
            output,
            handler,
            info=info,
            capabilities=capabilities,
            instructions=instructions,
            revisions=revisions,
            on_notification=on_notification,
            on_ready=on_ready,
            context=context,
            config=config,
            request_timeout=request_timeout,
            drain=drain,
            trace=trace,
        )


async def serve_stdio(
    handler: Handler,
    *,
    info: JSONObject,
    capabilities: JSONObject | None = None,
    instructions: str | None = None,
    revisions: Sequence[str] = ALL_REVISIONS,
    on_notification: NotificationHandler | None = None,
    on_ready: ReadyHandler | None = None,
    context: Any = None,
    config: Config | None = None,
    request_timeout: float = DEFAULT_REQUEST_TIMEOUT,
    drain: float = DEFAULT_DRAIN,
    trace: Trace | None = None,
) -> None:
    """Serve the client on standard input and output, until its input ends.

    While this runs, what handlers and their child processes print goes to standard error, and
    they find standard input empty. Both are put back afterwards.

    Args:
        handler: Serves the client's requests.
        info: The server's `Implementation` object: `name` and `version` at least.
        capabilities: What the server offers (`tools`, `resources`, `prompts`, `logging`, ...).
        instructions: How to use the server, for the model on the other side.
        revisions: The revisions to speak.
        on_notification: Called with method and params of each notification; async or plain.
        on_ready: Called with the `Server` once, when the client is first ready; an async function
            runs for as long as the connection.
        context: Becomes `ServerCall.context`.
        config: Limits and policies.
        request_timeout: Default for `timeout` of each request to the client, in seconds;
            `math.inf`: no limit.
        drain: Seconds to finish what was read when the input ends; then it is cancelled.
        trace: Told of everything that happens on this side.
    """
    check_given(
        handler=handler,
        info=info,
        capabilities=capabilities,
        instructions=instructions,
        revisions=revisions,
        on_notification=on_notification,
        on_ready=on_ready,
        config=config,
    )
    check_times(request_timeout=request_timeout)
    check_waits(drain=drain)
    with taken_standard_streams() as (source, sink):
        input, output = Input(source), Output(sink)
        try:
            await serve_ends(
                input,
                output,
                handler,
                info=info,
                capabilities=capabilities,
                instructions=instructions,
                revisions=revisions,
                on_notification=on_notification,
                on_ready=on_ready,
                context=context,
                config=config,
                request_timeout=request_timeout,
                drain=drain,
                trace=trace,
            )
        finally:
            input.close()
            output.close()
