"""POST: one message, or a batch of 2025-03-26, from the bytes to the connection it is for.

Source: MCP 2026-07-28, basic/transports/streamable-http; MCP 2025-11-25, basic/transports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._connection.events import LimitReached
from ..._connection.notifications import LISTEN
from ..._rules.messages import NO_OBJECT, judge_unknown_object
from ..._rules.request_meta import PROTOCOL_VERSION
from ..._rules.sending import Breach
from ..._rules.state_tables import Phase
from ..._spec.errors import ErrorCode
from ..._wire.codec import refusal
from ..._wire.framing import BOM, BOM_NOTE, excerpt_of
from ..._wire.values import MISSING, JSONObject, JSONValue, id_key, is_list, is_object
from .duplicate_members import has_duplicates
from .held_memory import SMALL_NOTIFICATION, measured
from .modern_headers import judge_headers
from .negotiation import is_json
from .reply import Reply
from .session_store import SESSION_FIELD
from .streams import Stream
from .versions import ASSUMED, VERSION_FIELD, judge_version, unsupported

if TYPE_CHECKING:
    from ..._connection.handles import IncomingRequest
    from .connection import RoutedConnection
    from .exchange import ServerExchange
    from .sessions import Session


def judge_post_head(exchange: ServerExchange) -> None:
    """Refuse what the head alone shows to be no message for us."""
    fields = exchange._fields
    kind = fields.get(b"content-type")
    if kind is None or not is_json(kind):
        text = "the body must be application/json in UTF-8, and Content-Type say so"
        exchange._refuse(415, Breach("OWN-037", text))
    elif (fields.get(b"content-encoding") or "identity").lower() != "identity":
        exchange._refuse(415, Breach("OWN-037", "no Content-Encoding is taken"))
    elif not exchange._accepted.json and not exchange._accepted.stream:
        text = "Accept takes neither application/json nor text/event-stream"
        exchange._refuse(406, Breach("HTTP-009", text))


def receive_post(exchange: ServerExchange, body: bytes | bytearray) -> None:
    """The whole body is there."""
    value = _decoded(exchange, body)
    if value is MISSING:
        return
    endpoint = exchange._endpoint
    endpoint._events.message_came(len(body))
    if not endpoint._held.weigh(body, value) and _may_be_refused(body, value):
        _refuse_for_memory(exchange, value)
        return
    if endpoint._old_post_path is not None and exchange.path == endpoint._old_post_path:
        _receive_old(exchange, value, body)
        return
    if not is_object(value):
        if is_list(value):
            _receive_legacy(exchange, value, None, body)
        else:
            exchange._refuse(400, NO_OBJECT, excerpt=excerpt_of(body))
        return
    method: Any = value.get("method")
    params: Any = value.get("params")
    meta: Any = params.get("_meta") if params.__class__ is dict else None
    said: Any = meta.get(PROTOCOL_VERSION, MISSING) if meta.__class__ is dict else MISSING
    is_request = type(method) is str and "id" in value
    if is_request and said is MISSING and _receive_known(exchange, value, method):
        return
    if endpoint._modern_connection is not None:
        field = exchange._fields.get(VERSION_FIELD)
        # `initialize` asks for a session of an older revision (VER-012), unless head and body both
        # say that it does not.
        is_named = field in endpoint._modern_revisions
        is_said = said is not MISSING
        if not endpoint._legacy_revisions or (
            is_named and is_said
            if method == "initialize"
            else is_named or is_said or _lacks_version(exchange)
        ):
            _receive_modern(exchange, endpoint._modern_connection, value, field, said)
            return
    _receive_legacy(exchange, value, value, body)


def _may_be_refused(body: bytes | bytearray, value: Any) -> bool:
    """Whether this is refused when too much is held: requests are, and large notifications.

    Responses and small notifications are not: they may be what lets a request end.
    """
    is_small = len(body) <= SMALL_NOTIFICATION
    parts = value if is_list(value) else [value]
    return any(
        is_object(part) and "method" in part and not (is_small and "id" not in part)
        for part in parts
    )


def _refuse_for_memory(exchange: ServerExchange, value: Any) -> None:
    """There is no room for a message, now or ever."""
    held = exchange._endpoint._held
    id = _readable(value.get("id")) if is_object(value) else None
    if held.arriving > held.limit:
        text = f"decoded, the message takes more than {held.limit} bytes, which is the limit"
        exchange._refuse(413, Breach("OWN-053", text), id)
    else:
        exchange._refuse_for_memory(id)


def _hold(connection: RoutedConnection) -> None:
    """The requests that a message has brought hold memory until they end."""
    new: list[IncomingRequest] = []
    for request in reversed(connection.core.requests.values()):
        if request._held_bytes:
            break  # it was there before, as are all before it
        new.append(request)
    if new:
        held = connection.endpoint._held
        if new[0]._method == LISTEN:  # of which only a part is kept, for long
            held.arriving = measured(new[0]._params, held.limit)
        held.share(new)


def _lacks_version(exchange: ServerExchange) -> bool:
    """Whether a request without a session has fields of 2026-07-28, and not the one with that.

    Keeps COMPAT-015.
    """
    raw = exchange._fields.raw
    return (
        exchange._endpoint._table is not None
        and b"mcp-method" in raw
        and VERSION_FIELD not in raw
        and SESSION_FIELD not in raw
    )


def _decoded(exchange: ServerExchange, body: bytes | bytearray) -> Any:
    """The value of a body; MISSING where it was refused."""
    if body.startswith(BOM):
        exchange._endpoint._report(Breach("OWN-017", BOM_NOTE, tolerated=True))
        body = body[len(BOM) :]
    decoder = exchange._endpoint._decoder
    try:
        if len(body) <= decoder.unlimited:
            value = exchange._endpoint._config.codec.decode(body)
        else:
            value = decoder.decode(body)
        kind = type(value)
        if not (kind is dict or kind is list) or not has_duplicates(body, value):
            return value
        breach = Breach("OWN-035", "an object names a member twice")
    except (ValueError, RecursionError) as raised:
        error = refusal(raised)
        breach = Breach(error.rule, str(error), ErrorCode.PARSE_ERROR)
    exchange._refuse(400, breach, excerpt=excerpt_of(body))
    return MISSING


# ------------------------------------------------------------------------------------- modern


def _receive_modern(
    exchange: ServerExchange,
    connection: RoutedConnection,
    message: JSONObject,
    field: str | None,
    said: object,
) -> None:
    endpoint = exchange._endpoint
    method: Any = message.get("method")
    raw: Any = message.get("id", MISSING)
    if type(method) is not str:
        breach = judge_unknown_object(message)
        if "result" in message or "error" in message:
            breach = Breach("HTTP-013", "no request is open to which this could be the answer")
        exchange._refuse(400, breach, _readable(raw))
        return
    is_request = raw is not MISSING
    params: Any = message.get("params")
    fault: Breach | None = None
    if field != said or field not in endpoint._modern_revisions:
        fault = _judge_version(exchange, field, said, is_request)
    if fault is None:
        given: JSONObject = params if params.__class__ is dict else {}
        try:
            fault = judge_headers(
                exchange._fields, method, given, is_request, endpoint._tool_schema
            )
        except Exception:  # of the caller's tool_schema
            text = "the tool could not be looked up"
            body = endpoint._error_body(text, ErrorCode.INTERNAL_ERROR, _readable(raw))
            exchange._answer(500, body)
            endpoint._settle()
            raise
    if fault is not None:
        exchange._refuse(400, fault, _readable(raw))
    elif not is_request:
        connection.core.last_fault, connection.sender = None, exchange
        connection.machine.notifications.receive_notification(message, method)
        connection.sender = None
        _accept(exchange, connection)
    elif method == LISTEN and not exchange._accepted.stream and endpoint._serves_streams:
        text = f"{method} is answered by a stream, and Accept does not take text/event-stream"
        exchange._refuse(406, Breach("SUBS-018", text), _readable(raw))
    else:
        _receive_request(exchange, connection, message, method, Reply(exchange, connection, raw))


def _readable(raw: Any) -> Any:
    """The id as an error repeats it; None where it is none."""
    return None if id_key(raw) is None else raw


def _judge_version(
    exchange: ServerExchange, field: str | None, said: object, is_request: bool
) -> Breach | None:
    """Whether field and body name one revision, which is served."""
    endpoint = exchange._endpoint
    if field is None:
        text = "the field MCP-Protocol-Version is missing"
        if not endpoint._legacy_revisions:
            text += f"; this server speaks {', '.join(endpoint._modern_revisions)} only"
        return Breach("HDR-031", text, ErrorCode.HEADER_MISMATCH)
    if said is not MISSING and said != field:
        text = f"MCP-Protocol-Version says {field[:80]!r}, and the body {str(said)[:80]!r}"
        return Breach("HDR-007", text, ErrorCode.HEADER_MISMATCH)
    if field not in endpoint._modern_revisions and (said is MISSING or not is_request):
        return unsupported(endpoint, field)
    return None


def _receive_request(
    exchange: ServerExchange,
    connection: RoutedConnection,
    message: JSONObject,
    method: str,
    route: Stream | Reply,
) -> None:
    endpoint = exchange._endpoint
    connection.core.now, connection.core.at = endpoint._now, endpoint._at
    connection.machine.intake.receive_request(message, method, route, None)
    if connection.core.requests:
        _hold(connection)
    if connection.core.needs_settle or endpoint._answers == "sse":
        _after(exchange, connection, route)


def _after(exchange: ServerExchange, connection: RoutedConnection, route: Stream | Reply) -> None:
    """The connection has what came; where it is still to be answered, the stream may begin.

    In the modern revision it waits for the first message: an error has a status (HTTP-023).
    """
    if connection.core.needs_settle:
        connection.core.settle()
    endpoint = exchange._endpoint
    if (
        not route.over
        and endpoint._answers == "sse"
        and connection is not endpoint._modern_connection
        and route.takes()
        and not exchange.is_stream
    ):
        route.start()


def _accept(exchange: ServerExchange, connection: RoutedConnection) -> None:
    """Something was posted that has no answer.

    Keeps HTTP-014, HTTP-015.
    """
    fault = connection.core.last_fault
    if connection.core.needs_settle:
        connection.core.settle()
    if fault is None:
        exchange._answer(202, b"")
    else:  # it is reported already
        body = exchange._endpoint._error_body(fault.text, fault.code)
        exchange._answer(400, body)


# ------------------------------------------------------------------------------------- legacy


def _receive_known(exchange: ServerExchange, message: JSONObject, method: str) -> bool:
    """Nearly all requests are of a session, or a revision, that is known: then it is done."""
    endpoint = exchange._endpoint
    table = endpoint._table
    if table is not None:
        session = table.agreed(exchange)
        if session is None:
            return False
        stream = Stream(session, exchange)
        _receive_request(exchange, session._connection, message, method, stream)
        return True
    fields = exchange._fields
    connection = endpoint._stateless.get(fields.raw.get(VERSION_FIELD, ASSUMED))
    if connection is None or method == "initialize" or fields.repeated:
        return False
    _receive_request(
        exchange, connection, message, method, Reply(exchange, connection, message["id"])
    )
    return True


def _receive_legacy(
    exchange: ServerExchange, value: JSONValue, message: JSONObject | None, body: bytes | bytearray
) -> None:
    """`message` is the value, where it is one object."""
    endpoint = exchange._endpoint
    table = endpoint._table
    if table is not None and (session := table.agreed(exchange)) is not None:
        _receive_in_session(exchange, session, value, message, body)
        return
    if not endpoint._legacy_revisions:  # only a batch comes here
        exchange._refuse(400, Breach("BATCH-008", "there are no batches in this revision"))
        return
    method: Any = None if message is None else message.get("method")
    opens = method == "initialize" and message is not None and "id" in message
    raw: Any = None if message is None else message.get("id")
    id = raw if isinstance(method, str) and id_key(raw) is not None else None
    if not opens and not judge_version(exchange, id):
        return
    if table is None:
        _receive_stateless(exchange, value, message, body)
        return
    if SESSION_FIELD not in exchange._fields.raw and opens:
        assert message is not None  # it opens a session
        session = table.open(exchange, message, id)
        if session is not None:
            _receive_in_session(exchange, session, value, message, body)
            if session._connection.core.conversation.phase is Phase.NEW:
                table.forget(session)
        return
    session = table.find(exchange, id)
    if session is not None:
        _receive_in_session(exchange, session, value, message, body)


def _receive_in_session(
    exchange: ServerExchange,
    session: Session,
    value: JSONValue,
    message: JSONObject | None,
    body: bytes | bytearray,
) -> None:
    connection, stream = session._connection, Stream(session, exchange)
    method: Any = None if message is None else message.get("method")
    if message is not None and isinstance(method, str) and "id" in message:
        stream.is_opening = method == "initialize"
        _receive_request(exchange, connection, message, method, stream)
    else:
        connection.core.now = exchange._endpoint._now
        _receive_others(exchange, connection, stream, value, message, body)


def _receive_others(
    exchange: ServerExchange,
    connection: RoutedConnection,
    route: Stream | Reply,
    value: JSONValue,
    message: JSONObject | None,
    body: bytes | bytearray,
) -> None:
    """What needs no answer, or a batch, which may have one."""
    connection.core.last_fault, connection.sender = None, exchange
    if message is not None:
        connection.machine.receive_object(message, route, None, body)
        is_waiting = False
    else:
        assert is_list(value)
        connection.machine.receive_batch(value, route, body)
        is_waiting = not route.closing
        _hold(connection)
    connection.sender = None
    if route.over:
        connection.core.settle()
    elif is_waiting:
        _after(exchange, connection, route)
    else:
        route.over = True  # it was needed for errors only
        _accept(exchange, connection)
        route.finish()


def _receive_stateless(
    exchange: ServerExchange, value: JSONValue, message: JSONObject | None, body: bytes | bytearray
) -> None:
    """Without sessions each POST is served by itself, at the revision that it names."""
    endpoint = exchange._endpoint
    method: Any = None if message is None else message.get("method")
    if message is not None and isinstance(method, str) and "id" in message:
        if method == "initialize":
            _receive_opening(exchange, message)
            return
        connection = endpoint._stateless_connection(exchange._fields)
        reply = Reply(exchange, connection, message["id"])
        _receive_request(exchange, connection, message, method, reply)
    elif method == "notifications/initialized":
        exchange._answer(202, b"")  # nothing follows from it where nothing lasts
    else:
        connection = endpoint._stateless_connection(exchange._fields)
        connection.core.now = endpoint._now
        reply = Reply(exchange, connection, _ids_in(value))
        _receive_others(exchange, connection, reply, value, message, body)


def _ids_in(value: JSONValue) -> tuple[object, ...]:
    """The ids of the requests in a batch, as they came."""
    if not is_list(value):
        return ()
    return tuple(part.get("id") for part in value if is_object(part) and "method" in part)


def _receive_opening(exchange: ServerExchange, message: JSONObject) -> None:
    """An `initialize` outside of any session."""
    endpoint = exchange._endpoint
    limit = endpoint._config.max_requests
    if len(endpoint._openings) >= limit:
        text = f"{limit} initialize requests are open, which is the limit"
        endpoint._events.append(LimitReached(rule="OWN-004", text=text))
        id = _readable(message["id"])
        body = endpoint._error_body("too many requests", ErrorCode.INTERNAL_ERROR, id)
        exchange._answer(503, body)
        return
    connection = endpoint._opening_connection()
    connection.core.peer.principal, connection.core.peer.principal_key = (
        exchange.principal,
        exchange.principal_key,
    )
    reply = Reply(exchange, connection, message["id"])
    _receive_request(exchange, connection, message, "initialize", reply)
    if connection.core.requests:
        endpoint._openings[connection] = None


# -------------------------------------------------------------------------------- 2024-11-05


def _receive_old(exchange: ServerExchange, value: JSONValue, body: bytes | bytearray) -> None:
    """A message of a client of 2024-11-05: its answer comes on the stream of its session."""
    table = exchange._endpoint._table
    assert table is not None  # old paths need it
    session = table.find_old(exchange)
    if session is None:
        return
    connection = session._connection
    if (
        connection.core.conversation.phase is Phase.NEW
        and is_object(value)
        and value.get("method") == "initialize"
        and not table.reserve(session, exchange, value, _readable(value.get("id")))
    ):
        return
    connection.core.now = exchange._endpoint._now
    route = session._standalone
    connection.sender = exchange
    if is_object(value):
        connection.machine.receive_object(value, route, None, body)
    elif is_list(value):
        connection.machine.receive_batch(value, route, body)
    else:
        connection.machine.incoming.refuse_unreadable(NO_OBJECT, route, excerpt=excerpt_of(body))
    connection.sender = None
    _hold(connection)
    if connection.core.needs_settle:
        connection.core.settle()
    exchange._answer(202, b"")
