"""sansmcp without a loop: clients on stdio and over HTTP, and servers on stdio, that may wait.

No thread is started for a client, and no event loop hidden: whoever waits for an answer reads.
Several threads may share a client. One of those that wait reads for all of them, and one lock
guards the rest; it is never held while a thread waits or runs a function of yours.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from typing import Any, TypeAlias

from sansmcp import (
    ALL_REVISIONS,
    ClientConnection,
    Config,
    JSONObject,
    ServerConnection,
)

from .._common.callbacks import FLUSH_SECONDS, NotificationHandler, serves_nothing
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
from ._call import Call
from ._client import Client, RequestHandler, check_plain
from ._process import Child, ProcessOptions
from ._requests import Asking
from ._restart import Keeper, Running
from ._server import Server, ServerCall
from ._session import Result
from ._stdio_session import StdioSession

Handler: TypeAlias = Callable[[ServerCall], Result]
"""Serves a client's requests: returns the result, or raises `McpError`. A plain function."""
ReadyHandler: TypeAlias = Callable[[Server], object]
"""Called once the client is ready."""


@contextmanager
def connect_stdio(
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
) -> Generator[Client, None, None]:
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
        on_request: Serves the server's requests, in whichever thread waits for something.
        on_notification: Called with method and params of each notification.
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
    check_plain(on_request, on_notification)
    options = ProcessOptions(
        command=command,
        env=env,
        cwd=cwd,
        stderr=stderr,
        on_stderr=on_stderr,
        terminate_after=terminate_after,
        kill_after=kill_after,
    )
    wanted = tuple(requires)

    def make_session(child: Child) -> StdioSession:
        return StdioSession(
            ClientConnection(
                info=info,
                capabilities=None if on_request is None else capabilities,
                revisions=revisions,
                requires=wanted,
                config=config,
            ),
            child.source,
            child.sink,
            handler=serves_nothing if on_request is None else on_request,
            call_type=Call,
            on_notification=on_notification,
            context=context,
            request_timeout=request_timeout,
            drain=0.0,
            trace=trace,
            watched=child,
        )

    def start(session: Asking) -> None:
        session.start(start_timeout, probe_timeout, hint)

    keeper = Keeper(lambda: Running(options, make_session), start, restarts)
    try:
        keeper.open()
        yield Client(keeper)
    finally:
        try:
            keeper.close()
        except BaseException:  # Ctrl-C may come when that has hardly begun
            keeper.close()
            raise


def serve_stdio(
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
    threads: int = 1,
    trace: Trace | None = None,
) -> None:
    """Serve the client on standard input and output, until its input ends.

    While this runs, what handlers and their child processes print goes to standard error, and
    they find standard input empty. Both are put back afterwards.

    Args:
        handler: Serves the client's requests. One call at a time, unless `threads` says more, or
            a handler waits for an answer of the client: it may be called within that.
        info: The server's `Implementation` object: `name` and `version` at least.
        capabilities: What the server offers (`tools`, `resources`, `prompts`, `logging`, ...).
        instructions: How to use the server, for the model on the other side.
        revisions: The revisions to speak.
        on_notification: Called with method and params of each notification.
        on_ready: Called with the `Server` once, when the client is first ready.
        context: Becomes `ServerCall.context`.
        config: Limits and policies.
        request_timeout: Default for `timeout` of each request to the client, in seconds;
            `math.inf`: no limit.
        drain: Seconds to finish what was read when the input ends; then it is cancelled.
        threads: With more than one, so many threads call the handlers, several at once, and this
            one reads: cancellations and pings are heard whatever the handlers do.
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
    check_count("threads", threads, least=1)
    check_plain(handler, on_notification, on_ready)
    connection = ServerConnection(
        info=info,
        capabilities=capabilities,
        instructions=instructions,
        revisions=revisions,
        config=config,
    )
    with taken_standard_streams() as (source, sink):
        try:
            session = StdioSession(
                connection,
                source,
                sink,
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
            _serve(session, threads)
        finally:
            source.close()
            sink.close()


def _serve(session: StdioSession, threads: int) -> None:
    """Serve until the connection has ended: in this thread, or in so many others."""
    failures: list[BaseException] = []

    def help_out() -> None:
        try:
            session.serve()
        except BaseException as error:  # as `sys.exit` in a handler: it is meant for the program
            failures.append(error)

    helpers = (
        [threading.Thread(target=help_out, daemon=True) for _ in range(threads)]
        if threads > 1
        else []
    )
    for helper in helpers:
        helper.start()
    try:
        session.serve(only_reads=threads > 1)
    finally:
        with session:
            session.finish()
        for helper in helpers:
            helper.join(FLUSH_SECONDS)  # one whose handler does not end is left behind
    if failures:
        raise failures[0]
