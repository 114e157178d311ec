"""GET, DELETE and OPTIONS: streams that listen or go on, the end of a session, CORS.

Source: MCP 2025-11-25, basic/transports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._rules.sending import Breach
from ..._spec.errors import ErrorCode
from .events import SessionEnd
from .streams import Stream, read_event_id
from .versions import judge_version

if TYPE_CHECKING:
    from .exchange import ServerExchange
    from .sessions import Session


def receive_get(exchange: ServerExchange) -> None:
    """Open a stream, or take one up again.

    Keeps HTTP-022.
    """
    endpoint = exchange._endpoint
    table = endpoint._table
    assert table is not None  # else there is no GET
    if exchange.path == endpoint._old_stream_path:
        table.open_old(exchange)
        return
    if not judge_version(exchange, None):
        return
    session = table.find(exchange, None)
    if session is None:
        return
    last = exchange._fields.get(b"last-event-id")
    if last:
        _resume(exchange, session, last)
    else:
        session._standalone.open(exchange)
    session._connection.release_changes()
    session._connection.core.settle()


def _resume(exchange: ServerExchange, session: Session, last: str) -> None:
    named = read_event_id(session, last) if session._has_log else None
    stream = None if named is None else session._streams.get(named[0])
    if named is not None and stream is not None and 1 <= named[1] <= stream.events:
        stream.go_on(exchange, named[1])
        if stream.listens:
            session._standalone.taken_up(stream)
        return
    if named is not None and stream is None:
        number, event = named
        if session._history.after(number, event) is not None:
            Stream.ended(session, number).go_on(exchange, event)
            return
    text = "Last-Event-ID names no event of this session that is known"
    exchange._refuse(400, Breach("SSE-035", text, ErrorCode.INVALID_REQUEST))


def receive_delete(exchange: ServerExchange) -> None:
    """The client ends its session."""
    table = exchange._endpoint._table
    assert table is not None  # else there is no DELETE
    if not judge_version(exchange, None):
        return
    session = table.find(exchange, None)
    if session is not None:
        table.end(session, SessionEnd.DELETED)
        exchange._answer(204, b"")


def receive_options(exchange: ServerExchange) -> None:
    """What may be done here; and whether a page of another origin may do it."""
    endpoint = exchange._endpoint
    methods = b", ".join(endpoint._heads.methods_at(exchange))
    preflight = endpoint._heads.origins.preflight(exchange._fields, methods)
    exchange._answer(204, b"", ((b"allow", methods), *preflight))
