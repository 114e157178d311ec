"""Clients and servers on stdio, without a loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias

import attrs

from sansmcp import ClientConnection, ServerConnection

from .._common.bounds import FLUSH_SECONDS
from .._common.descriptors import Sink, Source
from .._common.trace import Trace
from .._options.arguments import takes
from .._options.checks import SessionOptions
from .._options.clients import StdioClientOptions
from .._options.servers import StdioServerOptions
from ..stdio import taken_standard_streams
from ._call import Call
from ._client import Client, RequestHandler, check_plain
from ._dispatch import Result
from ._process import Child
from ._requests import RequestSender
from ._restart import Restarter, RunningServer
from ._server import Server, ServerCall
from ._stdio_wire import StdioWire, Watched

Handler: TypeAlias = Callable[[ServerCall], Result]
"""Serves a client's requests: returns the result, or raises `McpError`. A plain function."""
ReadyHandler: TypeAlias = Callable[[Server], object]
"""Called once the client is ready."""


class StdioSession(StdioWire, RequestSender):
    """A connection on a wire, on which callers ask."""

    def __init__(
        self,
        connection: ClientConnection | ServerConnection,
        source: Source,
        sink: Sink,
        options: SessionOptions,
        *,
        drain: float,
        trace: Trace | None,
        watched: Watched | None = None,
    ) -> None:
        RequestSender.__init__(
            self,
            connection,
            options,
        )
        StdioWire.__init__(
            self, connection, source, sink, drain=drain, trace=trace, watched=watched
        )

    def _time_passes(self, now: float) -> None:
        """Handle deadlines; at the end of the drain, tell whoever waits for a task that it ends."""
        if now >= self._drained_at and isinstance(self.connection, ServerConnection):
            self.tasks.end_all()
        super()._time_passes(now)


@attrs.frozen
class _ServerOptions(StdioServerOptions[Handler, ReadyHandler]):
    """The options of a server whose handlers run in threads.

    Args:
        handler: Serves the client's requests. One call at a time, unless `threads` says more, or
            a handler waits for an answer of the client: it may be called within that.
        threads: With more than one, so many threads call the handlers, several at once, and this
            one reads: cancellations and pings are heard whatever the handlers do.
    """

    threads: int = attrs.field(default=1, kw_only=True)


@takes(StdioClientOptions[RequestHandler])
@contextmanager
def connect_stdio(
    options: StdioClientOptions[RequestHandler],
) -> Generator[Client, None, None]:
    """Start a server process and talk to it on its standard input and output."""
    options.check()
    check_plain(options.on_request, options.on_notification)

    def make_session(child: Child) -> StdioSession:
        return StdioSession(
            options.new_connection(),
            child.source,
            child.sink,
            options.for_session(Call),
            drain=0.0,
            trace=options.trace,
            watched=child,
        )

    def start(session: RequestSender) -> None:
        session.start(*options.opening)

    restarter = Restarter(lambda: RunningServer(options, make_session), start, options.restarts)
    try:
        restarter.open()
        yield Client(restarter)
    finally:
        try:
            restarter.close()
        except BaseException:  # Ctrl-C may interrupt the beginning of `close`
            restarter.close()
            raise


@takes(_ServerOptions)
def serve_stdio(options: _ServerOptions) -> None:
    """Serve the client on standard input and output, until its input ends."""
    options.check()
    check_plain(options.handler, options.on_notification, options.on_ready)
    connection = options.new_connection()
    with taken_standard_streams() as (source, sink):
        try:
            session = StdioSession(
                connection,
                source,
                sink,
                options.for_session(options.handler, ServerCall),
                drain=options.drain,
                trace=options.trace,
            )
            if options.on_ready is not None:
                session.when_ready(partial(options.on_ready, Server(session)))
            _serve(session, options.threads)
        finally:
            source.close()
            sink.close()


def _serve(session: StdioSession, threads: int) -> None:
    """Serve until the connection has ended: in this thread, or in so many others."""
    failures: list[BaseException] = []

    def serve_in_thread() -> None:
        try:
            session.serve()
        except BaseException as error:  # such as `sys.exit` in a handler, which ends the program
            failures.append(error)

    helpers = (
        [threading.Thread(target=serve_in_thread, daemon=True) for _ in range(threads)]
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
            helper.join(FLUSH_SECONDS)  # a thread whose handler does not end is left behind
        session.tasks.join(FLUSH_SECONDS)
    if session.exit is not None:
        failures.append(session.exit)
    if failures:
        raise failures[0]
