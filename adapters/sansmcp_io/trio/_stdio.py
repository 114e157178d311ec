"""sansmcp on trio: clients and servers on stdio, or on any byte stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from os import PathLike
from typing import Any, TypeAlias

from .._common.extras import without_extra

try:
    import trio as _  # noqa: F401  # before the modules that need it: the error names the extra
except ModuleNotFoundError as _error:
    raise without_extra("trio", _error) from None

from sansmcp import (
    ALL_REVISIONS,
    Config,
    JSONObject,
    ServerConnection,
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
from ..stdio import DEFAULT_KILL_AFTER, DEFAULT_TERMINATE_AFTER, StderrMode
from ._open_session import HalfCloseableByteStream, connected
from ._process import open_child
from ._restart import keep_running
from ._session import Session
from ._standard_streams import open_standard_streams
from ._stream import ByteStream

Handler: TypeAlias = Callable[[ServerCall], Result]
"""Serves a client's requests: returns the result, or raises `McpError`.

An async function gets a task and a cancel scope of its own. A plain function runs inline: nothing
else of the connection moves before it returns.
"""

ReadyHandler: TypeAlias = Callable[[Server], object]
"""Called once the client is ready; an async function runs for as long as the connection."""


@asynccontextmanager
async def connect(
    stream: HalfCloseableByteStream,
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

    Leaving the block cancels what is still open, flushes, and ends the sending side of the
    stream. The arguments are those of `connect_stdio`.
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
    async with connected(
        stream,
        info=info,
        capabilities=capabilities,
        revisions=revisions,
        requires=requires,
        on_request=on_request,
        on_notification=on_notification,
        context=context,
        config=config,
        request_timeout=request_timeout,
        start_timeout=start_timeout,
        probe_timeout=probe_timeout,
        hint=hint,
        trace=trace,
        stderr=None,
    ) as session:
        yield Client(session)


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

    @asynccontextmanager
    async def opening() -> AsyncGenerator[Session, None]:
        async with (
            open_child(command, options) as child,
            connected(
                child.stream,
                info=info,
                capabilities=capabilities,
                revisions=revisions,
                requires=requires,
                on_request=on_request,
                on_notification=on_notification,
                context=context,
                config=config,
                request_timeout=request_timeout,
                start_timeout=start_timeout,
                probe_timeout=probe_timeout,
                hint=hint,
                trace=trace,
                stderr=child.stderr,
            ) as session,
        ):
            yield session

    if restarts == 0:
        async with opening() as session:
            yield Client(session)
        return
    async with keep_running(opening, restarts) as restarter:
        yield Client(restarter.session, restarter)


async def serve(
    stream: ByteStream,
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

    The arguments are those of `serve_stdio`.
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
    connection = ServerConnection(
        info=info,
        capabilities=capabilities,
        instructions=instructions,
        revisions=revisions,
        config=config,
    )

    session = Session(
        connection,
        stream,
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
    async with open_standard_streams() as stream:
        await serve(
            stream,
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
