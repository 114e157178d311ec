"""How an application answers a request on an endpoint, and what it does with the stream of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..._connection.handles import IncomingRequest
from ..._spec.errors import LocalProtocolError
from ..._wire.setting_checks import check_whole
from ..._wire.values import MISSING, JSONObject, JSONValue, Missing
from .._sse import encode_event
from .connection import RoutedConnection, SessionConnection
from .hosting import Hosting
from .sessions import Session
from .statuses import error_status
from .streams import Stream

_RETRY_MS: Final = 1_000
"""What a client is told to wait that is sent away, where nothing else was said."""


class Answers(Hosting):
    """The verbs that are about one request of a client."""

    __slots__ = ()

    # ------------------------------------------------------------------------------ answering

    def send_result(
        self,
        request: IncomingRequest,
        result: JSONObject,
        *,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Answer a request with a result: as `ServerConnection.send_result`.

        Returns:
            Whether it goes out. False: the request was cancelled meanwhile, or its client is
            gone and cannot come back for it; the latter is reported, too.
        """
        done = self._enter(request, now).machine.incoming.send_result(request, result, meta, None)
        if self._wake is not None:
            self._settle()
        return done

    def send_error(
        self,
        request: IncomingRequest,
        code: int,
        message: str,
        data: JSONValue | Missing = MISSING,
        *,
        now: float | None = None,
    ) -> bool:
        """Answer a request with an error: as `ServerConnection.send_error`.

        In 2026-07-28 the status is 404 for -32601, 400 for -32700, -32600, -32602 and -32020 to
        -32022; else 200, as in the revisions before.
        """
        connection = self._enter(request, now)
        route: Any = request._route
        if request.open and request._batch is None:
            right = (
                connection.machine.messages.modern_code(code, data) if request._is_modern else code
            )
            route.status = error_status(right, request._is_modern)
        try:
            done = connection.machine.incoming.send_error(request, code, message, data, None)
        except LocalProtocolError:
            route.status = 200
            raise
        if request._method == "initialize" and isinstance(connection, SessionConnection):
            connection.session._table.forget(connection.session)
        self._settle()
        return done

    def send_progress(
        self,
        request: IncomingRequest,
        progress: float,
        *,
        total: float | None = None,
        message: str | None = None,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Tell how far a request has come: as `ServerConnection.send_progress`.

        It turns the answer into a stream; where the client takes none it returns False. Progress
        of a task, whose request is answered, goes to a GET stream of the session (PROG-011).
        """
        connection = self._enter(request, now)
        route: Any = request._route
        if type(request._task) is str and isinstance(connection, SessionConnection):
            request._route = connection.session._standalone
        try:
            done = connection.machine.incoming.send_progress(
                request, progress, total, message, meta, None
            )
        finally:
            request._route = route
        self._settle()
        return done

    def require_input(
        self,
        request: IncomingRequest,
        questions: Mapping[str, JSONObject] | None = None,
        *,
        state: str | None = None,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        at: float | None = None,
        now: float | None = None,
    ) -> bool:
        """Ask before a request can be answered: as `ServerConnection.require_input`."""
        connection = self._enter(request, now)
        done = connection.machine.input_required.require(
            request, questions or {}, state, meta, timeout, at, None
        )
        self._settle()
        return done

    def read_state(
        self, request: IncomingRequest, *, at: float | None = None, now: float | None = None
    ) -> str | None:
        """The state of the round before: as `ServerConnection.read_state`."""
        connection = self._enter(request, now)
        route: Any = request._route
        route.status = 400  # of the error, if there is one
        try:
            state = connection.machine.input_required.read_state(request, at, None)
        finally:
            route.status = 200
        self._settle()
        return state

    def start_stream(self, request: IncomingRequest, *, now: float | None = None) -> bool:
        """Answer a request with a stream, and begin it now.

        Without this a client hears nothing until there is something to say. With it, it knows
        that its request is served, and in a session where to go on after a break.

        Returns:
            Whether the answer is a stream. False: it is over, the client takes none, or it is that
            to `initialize`, before which there is no session.
        """
        self._enter(request, now)
        route: Any = request._route
        exchange = None if route.over or not request.open else route.exchange
        if exchange is None or not route.takes():
            return False
        if not exchange.is_stream:
            route.start()
        self._settle()
        return True

    def close_stream(
        self,
        where: IncomingRequest | Session,
        *,
        retry_ms: int | None = None,
        now: float | None = None,
    ) -> bool:
        """End the connection of a stream, and let the client come back for the rest.

        A long request need not hold a connection. What comes meanwhile waits in the event log.

        Args:
            where: A request, for the stream of its answer; or a session, for its GET streams.
            retry_ms: Milliseconds that the client waits before; None: `Sessions.retry_ms`, or a
                second.
            now: The caller's clock in seconds.

        Returns:
            Whether it was done. False: nobody reads the stream, or its client does not know how
            to come back (no event log; a revision before 2025-11-25).

        Source: MCP 2025-11-25, basic/transports, Sending Messages to the Server.
        """
        if retry_ms is not None:
            check_whole("retry_ms", retry_ms, 0)
        if isinstance(where, Session):
            self._at_session(where, now)
            streams = [one for one in where._standalone.listening if one.exchange is not None]
        else:
            self._enter(where, now)
            route: Any = where._route
            streams = [route] if isinstance(route, Stream) and route.exchange is not None else []
        closed = [_close(stream, retry_ms) for stream in streams]
        self._settle()
        return any(closed)

    # --------------------------------------------------------------------------------- finding

    def _own(
        self, connection: RoutedConnection | None, what: object, now: float | None
    ) -> RoutedConnection:
        """The connection of a handle, if it is one of ours; and the time for it."""
        if connection is None or connection.endpoint is not self:
            raise LocalProtocolError("OWN-022", f"{what!r} belongs to another endpoint")
        if now is not None:
            self._tell(now)
        connection.core.now = self._now
        return connection

    def _enter(self, request: IncomingRequest, now: float | None) -> RoutedConnection:
        route: Any = request._route
        if route is None or (connection := route._connection).endpoint is not self:
            raise LocalProtocolError("OWN-022", f"{request!r} belongs to another endpoint")
        if now is not None:
            self._tell(now)
        connection.core.now = self._now
        found: RoutedConnection = connection
        return found

    def _at_session(self, session: Session, now: float | None) -> RoutedConnection:
        return self._own(session._connection, session, now)

    def _connection_for(
        self,
        request: IncomingRequest | None,
        session: Session | None,
        now: float | None,
        what: str,
    ) -> RoutedConnection:
        if request is not None and session is None:
            return self._enter(request, now)
        if session is not None and request is None:
            return self._at_session(session, now)
        raise LocalProtocolError("OWN-038", f"{what} needs a request or a session, one of the two")


def _close(stream: Stream, retry_ms: int | None) -> bool:
    session, exchange = stream.session, stream.exchange
    if not session._has_log or not session._can_poll or exchange is None:
        return False
    if not exchange._takes_stream:
        return False
    if not exchange.is_stream:
        stream.start()
    wait = session._settings.retry_ms if retry_ms is None else retry_ms
    # SSE-019: it is always said.
    exchange._write(encode_event(None, retry_ms=_RETRY_MS if wait is None else wait))
    stream.detach()
    exchange._end()
    return True
