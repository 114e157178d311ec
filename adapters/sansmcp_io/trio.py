"""sansmcp on trio: clients and servers on stdio, or on any byte stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from os import PathLike
from typing import Any, Final, Protocol, TypeAlias

import trio

from sansmcp import (
    ALL_REVISIONS,
    ClientConnection,
    Config,
    ErrorCode,
    IncomingRequest,
    JSONObject,
    JSONValue,
    Peer,
    ServerConnection,
)

from ._errors import (
    ConnectionLost,
    InvalidAnswer,
    McpError,
    PeerError,
    RequestTimeout,
    StartFailed,
)
from ._trace import Trace
from ._trio_process import open_child
from ._trio_session import (
    Bell,
    ByteStream,
    Call,
    NotificationHandler,
    ProgressHandler,
    Result,
    ServerCall,
    Session,
)
from ._trio_stdio import open_standard_streams
from ._trio_unwrap import unwrapped

__all__ = [
    "DEFAULT_DRAIN",
    "DEFAULT_REQUEST_TIMEOUT",
    "DEFAULT_START_TIMEOUT",
    "ByteStream",
    "Call",
    "Client",
    "ConnectionLost",
    "HalfCloseableByteStream",
    "Handler",
    "InvalidAnswer",
    "McpError",
    "NotificationHandler",
    "PeerError",
    "ProgressHandler",
    "RequestHandler",
    "RequestTimeout",
    "ServerCall",
    "StartFailed",
    "Trace",
    "connect",
    "connect_stdio",
    "serve",
    "serve_stdio",
]

DEFAULT_REQUEST_TIMEOUT: Final = 60.0
"""Seconds of silence after which a request is given up; progress for it starts them anew."""
DEFAULT_START_TIMEOUT: Final = 30.0
"""Seconds in which the server must have answered `initialize`."""
DEFAULT_DRAIN: Final = 1.0
"""Seconds in which a server finishes what it has read when its input ends."""

Handler: TypeAlias = Callable[[ServerCall], Result]
"""Serves a client's requests: returns the result, or raises `McpError`.

An async function gets a task and a cancel scope of its own. A plain function runs inline: nothing
else of the connection moves before it returns.
"""
RequestHandler: TypeAlias = Callable[[Call], Result]
"""Serves a server's requests (`sampling/createMessage`, `roots/list`, ...), like `Handler`."""


class HalfCloseableByteStream(ByteStream, Protocol):
    """What a client asks of a stream; every `trio.abc.HalfCloseableStream` has it."""

    async def send_eof(self) -> None:
        """End the sending side: the server sees the end of its input."""
        ...


class Client:
    """An open connection to a server. Its methods may be used by any number of tasks at once."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def peer(self) -> Peer:
        """What is known of the server: revision, info, capabilities, instructions."""
        return self._session.connection.peer

    async def request(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
        on_progress: ProgressHandler | None = None,
    ) -> JSONObject:
        """Ask the server, and return the result. Cancelling the caller cancels the request.

        Args:
            method: The method name.
            params: The params object.
            meta: Merged into `params._meta`.
            timeout: Seconds of silence allowed; None: the client's default; `math.inf`: no limit.
            max_timeout: Seconds allowed in all, with or without progress.
            on_progress: Asks for progress; a plain function, called with progress, total and
                message.

        Raises:
            PeerError: The server answered with an error.
            RequestTimeout: It did not answer in time. The request was cancelled.
            ConnectionLost: The connection ended first.
            InvalidAnswer: The answer is not valid.
            sansmcp.LocalProtocolError: The request would break the protocol. It was not sent.
        """
        return await self._session.request(
            method, params, meta, timeout, max_timeout, on_progress, None
        )

    def items(
        self, method: str, params: JSONObject | None = None, *, timeout: float | None = None
    ) -> AsyncGenerator[JSONValue, None]:
        """Iterate over a listing (`tools/list` and the like), page after page.

        Args:
            method: A method that is paginated.
            params: The params of each page but for the cursor.
            timeout: Seconds allowed for each page, as for `request`.

        Raises:
            PeerError, RequestTimeout, ConnectionLost, sansmcp.LocalProtocolError: As `request`.
            InvalidAnswer: A page is not valid, or the listing does not end.
        """
        return self._session.items(method, params, timeout)

    def notify(
        self, method: str, params: JSONObject | None = None, *, meta: JSONObject | None = None
    ) -> None:
        """Send a notification. Never blocks.

        Raises:
            ConnectionLost: The connection has ended.
            sansmcp.LocalProtocolError: It would break the protocol. It was not sent.
        """
        self._session.notify(method, params, meta)


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
    trace: Trace | None = None,
) -> AsyncGenerator[Client, None]:
    """A client on a stream that somebody else has opened, and closes.

    Leaving the block cancels what is still open, flushes, and ends the sending side of the
    stream. The arguments are those of `connect_stdio`.
    """
    bell = Bell()
    connection = ClientConnection(
        info=info,
        capabilities=None if on_request is None else capabilities,
        revisions=revisions,
        requires=requires,
        config=config,
        wake=bell.ring,
    )

    def handle(request: IncomingRequest) -> Result:
        if on_request is None:
            raise McpError(ErrorCode.METHOD_NOT_FOUND, "this client serves no requests")
        return on_request(Call(session, request))

    session = Session(
        connection,
        stream,
        bell,
        handle=handle,
        on_notification=on_notification,
        context=context,
        request_timeout=request_timeout,
        drain=0.0,
        trace=trace,
    )
    session.shield()
    async with unwrapped(), trio.open_nursery() as nursery:
        nursery.start_soon(session.run)
        try:
            await session.start(start_timeout)
            yield Client(session)
        finally:
            with trio.CancelScope(shield=True):
                await session.finish()
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError, OSError):
                    await stream.send_eof()


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
    trace: Trace | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | PathLike[str] | None = None,
    on_stderr: Callable[[str], object] | None = None,
) -> AsyncGenerator[Client, None]:
    """Start a server process and talk to it on its standard input and output.

    Leaving the block closes the server's input; a server that stays is ended by SIGTERM, then by
    SIGKILL. It has always been waited for when the block is left.

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
        start_timeout: Seconds that the server has to answer `initialize`.
        trace: Told of everything that happens on this side.
        env: The server's environment; None: this process's.
        cwd: The server's working directory.
        on_stderr: Called with each line of the server's standard error; None: it is inherited.

    Raises:
        OSError: The process could not be started.
        PeerError: The server refused `initialize`.
        RequestTimeout: It did not answer in time.
        ConnectionLost: It ended before it answered.
        InvalidAnswer: Its answer is not valid.
        StartFailed: There is no common revision, or a required capability is missing.
    """
    async with (
        open_child(command, env=env, cwd=cwd, on_stderr=on_stderr) as child,
        connect(
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
            trace=trace,
        ) as client,
    ):
        yield client


async def serve(
    stream: ByteStream,
    handler: Handler,
    *,
    info: JSONObject,
    capabilities: JSONObject | None = None,
    instructions: str | None = None,
    revisions: Sequence[str] = ALL_REVISIONS,
    on_notification: NotificationHandler | None = None,
    context: Any = None,
    config: Config | None = None,
    request_timeout: float = DEFAULT_REQUEST_TIMEOUT,
    drain: float = DEFAULT_DRAIN,
    trace: Trace | None = None,
) -> None:
    """Serve one client on a stream that somebody else has opened, and closes.

    The arguments are those of `serve_stdio`.
    """
    bell = Bell()
    connection = ServerConnection(
        info=info,
        capabilities=capabilities,
        instructions=instructions,
        revisions=revisions,
        config=config,
        wake=bell.ring,
    )

    def handle(request: IncomingRequest) -> Result:
        return handler(ServerCall(session, request))

    session = Session(
        connection,
        stream,
        bell,
        handle=handle,
        on_notification=on_notification,
        context=context,
        request_timeout=request_timeout,
        drain=drain,
        trace=trace,
    )
    async with unwrapped():
        await session.run()


async def serve_stdio(
    handler: Handler,
    *,
    info: JSONObject,
    capabilities: JSONObject | None = None,
    instructions: str | None = None,
    revisions: Sequence[str] = ALL_REVISIONS,
    on_notification: NotificationHandler | None = None,
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
        context: Becomes `ServerCall.context`.
        config: Limits and policies.
        request_timeout: Default for `timeout` of each request to the client, in seconds;
            `math.inf`: no limit.
        drain: Seconds to finish what was read when the input ends; then it is cancelled.
        trace: Told of everything that happens on this side.
    """
    async with open_standard_streams() as stream:
        await serve(
            stream,
            handler,
            info=info,
            capabilities=capabilities,
            instructions=instructions,
            revisions=revisions,
            on_notification=on_notification,
            context=context,
            config=config,
            request_timeout=request_timeout,
            drain=drain,
            trace=trace,
        )
