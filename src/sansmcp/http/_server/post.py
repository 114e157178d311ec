"""POST: one message, or a batch of 2025-03-26, from its bytes to the transport that it is for.

Source: MCP 2026-07-28, basic/transports/streamable-http; MCP 2025-11-25, basic/transports.
"""

from __future__ import annotations

from typing import Any

from ..._connection.handles import IncomingRequest, held_bytes_of
from ..._connection.notifications import LISTEN
from ..._rules.messages import NO_OBJECT, judge_unknown_object
from ..._rules.request_meta import PROTOCOL_VERSION
from ..._rules.sending import Breach
from ..._rules.state_tables import Phase
from ..._spec.errors import ErrorCode
from ..._wire.codec import refusal
from ..._wire.framing import BOM, BOM_NOTE, excerpt_of
from ..._wire.values import MISSING, JSONObject, JSONValue, id_key, is_list, is_object
from .bodies import SMALL_NOTIFICATION, has_duplicates, measured
from .core import SESSION_FIELD, VERSION_FIELD, ServerEndpointCore, Service
from .events import ToolSchemaWanted
from .exchange import ServerExchangeCore
from .head import RequestHeadJudge
from .hosted_transports import HostedTransports
from .lookups import Lookups
from .modern_headers import judge_headers, judge_params
from .routed_transport import RoutedTransport
from .session_transport import SessionTransport
from .shared_transport import PostResponse, SharedTransport
from .streams import Stream


class PostReceiver:
    """Serves POST: decodes the body, and finds the transport that the message is for.

    Args:
        core: What all parts of the endpoint share.
        service: What the endpoint serves.
        hosted: The transports of the endpoint.
        heads: The judge of heads, for the revision that a head names.
        lookups: The exchanges that wait for the application.
    """

    __slots__ = ("_core", "_heads", "_hosted", "_lookups", "_old_path", "_service")

    def __init__(
        self,
        core: ServerEndpointCore,
        service: Service,
        hosted: HostedTransports,
        heads: RequestHeadJudge,
        lookups: Lookups,
    ) -> None:
        self._core = core
        self._lookups = lookups
        self._service = service
        self._hosted = hosted
        self._heads = heads
        self._old_path = None if service.old_paths is None else service.old_paths.post

    def receive(self, exchange: ServerExchangeCore, body: bytes | bytearray) -> None:
        """Serve a POST whose body is complete."""
        value = self._decoded(exchange, body)
        if value is MISSING:
            return
        core, service = self._core, self._service
        core.events.message_came(len(body))
        if not core.held.weigh(body, value) and _may_be_refused(body, value):
            self._refuse_for_memory(exchange, value)
            return
        if self._old_path is not None and exchange.path == self._old_path:
            self._receive_old(exchange, value, body)
            return
        if value.__class__ is not dict:
            if is_list(value):
                self._receive_legacy(exchange, value, None, body)
            else:
                exchange.refuse(400, NO_OBJECT, excerpt=excerpt_of(body))
            return
        method: Any = value.get("method")
        params: Any = value.get("params")
        meta: Any = params.get("_meta") if params.__class__ is dict else None
        said: Any = meta.get(PROTOCOL_VERSION, MISSING) if meta.__class__ is dict else MISSING
        is_request = type(method) is str and "id" in value
        if is_request and said is MISSING and self._receive_known(exchange, value, method):
            return
        modern = self._hosted.modern
        if modern is not None:
            field = exchange.fields.get(VERSION_FIELD)
            # `initialize` asks for a session of an older revision (VER-012), unless head and body
            # both say that it does not.
            is_named = field in service.modern_revisions
            is_said = said is not MISSING
            if not service.legacy_revisions or (
                is_named and is_said
                if method == "initialize"
                else is_named or is_said or self._lacks_version(exchange)
            ):
                self._receive_modern(exchange, modern, value, field, said)
                return
        self._receive_legacy(exchange, value, value, body)

    def _refuse_for_memory(self, exchange: ServerExchangeCore, value: Any) -> None:
        """Refuse a message for which there is no room, now or ever."""
        held = self._core.held
        id = _readable(value.get("id")) if is_object(value) else None
        if held.arriving > held.limit:
            text = f"decoded, the message takes more than {held.limit} bytes, which is the limit"
            exchange.refuse(413, Breach("OWN-053", text), id)
        else:
            exchange.refuse_for_memory(id)

    def _hold(self, transport: RoutedTransport) -> None:
        """Count the memory of the requests that a message has brought, until they end."""
        new: list[IncomingRequest] = []
        for request in reversed(transport.core.requests.values()):
            if held_bytes_of(request):
                break  # it was there before, as are all before it
            new.append(request)
        if new:
            held = self._core.held
            if new[0].method == LISTEN:  # of which only a part is kept, for long
                held.arriving = measured(new[0].params, held.limit)
            held.share(new)

    def _lacks_version(self, exchange: ServerExchangeCore) -> bool:
        """Whether a request without a session has headers of 2026-07-28, but does not name it.

        Keeps COMPAT-015.
        """
        raw = exchange.fields.raw
        return (
            self._hosted.store is not None
            and b"mcp-method" in raw
            and VERSION_FIELD not in raw
            and SESSION_FIELD not in raw
        )

    def _decoded(self, exchange: ServerExchangeCore, body: bytes | bytearray) -> Any:
        """The value of a body; MISSING where the exchange was refused."""
        core = self._core
        if body.startswith(BOM):
            core.report(Breach("OWN-017", BOM_NOTE, tolerated=True))
            body = body[len(BOM) :]
        decoder = core.decoder
        try:
            if len(body) <= decoder.unlimited:
                value = core.config.codec.decode(body)
            else:
                value = decoder.decode(body)
            kind = type(value)
            if not (kind is dict or kind is list) or not has_duplicates(body, value):
                return value
            breach = Breach("OWN-035", "an object names a member twice")
        except (ValueError, RecursionError) as raised:
            error = refusal(raised)
            breach = Breach(error.rule, str(error), ErrorCode.PARSE_ERROR)
        exchange.refuse(400, breach, excerpt=excerpt_of(body))
        return MISSING

    # ------------------------------------------------------------------------------------- modern

    def _receive_modern(
        self,
        exchange: ServerExchangeCore,
        transport: SharedTransport,
        message: JSONObject,
        field: str | None,
        said: object,
    ) -> None:
        method: Any = message.get("method")
        raw: Any = message.get("id", MISSING)
        if type(method) is not str:
            unknown = judge_unknown_object(message)
            if "result" in message or "error" in message:
                unknown = Breach("HTTP-013", "no open request matches this response")
            exchange.refuse(400, unknown, _readable(raw))
            return
        is_request = raw is not MISSING
        params: Any = message.get("params")
        breach: Breach | None = None
        if field != said or field not in self._service.modern_revisions:
            breach = self._judge_version(field, said, is_request)
        if breach is None:
            given: JSONObject = params if params.__class__ is dict else {}
            try:
                breach = judge_headers(
                    exchange.fields, method, given, is_request, self._service.tool_schema
                )
            except Exception:  # of the caller's tool_schema
                text = "the tool could not be looked up"
                body = self._core.error_body(text, ErrorCode.INTERNAL_ERROR, _readable(raw))
                exchange.answer(500, body)
                self._core.settle()
                raise
        if breach is not None:
            exchange.refuse(400, breach, _readable(raw))
        elif not is_request:
            transport.core.last_breach, transport.sender = None, exchange
            transport.machine.notifications.receive_notification(message, method)
            transport.sender = None
            self._accept(exchange, transport)
        elif method == LISTEN and not exchange.accepted.stream and self._service.streams:
            text = f"{method} is answered by a stream, and Accept does not take text/event-stream"
            exchange.refuse(406, Breach("SUBS-018", text), _readable(raw))
        elif not self._service.asks_tool_schema or not self._asks_for_schema(exchange, message):
            response = PostResponse(exchange, transport, raw)
            self._receive_request(exchange, transport, message, method, response)

    def _asks_for_schema(self, exchange: ServerExchangeCore, message: JSONObject) -> bool:
        """Have the application give the schema of a tool that is called; False: none is called."""
        params: Any = message.get("params")
        name: Any = params.get("name") if params.__class__ is dict else None
        if message["method"] != "tools/call" or type(name) is not str:
            return False
        handle = exchange.handle
        assert handle is not None  # as long as there is no response
        question = ToolSchemaWanted(exchange=handle, name=name)
        id, size = _readable(message["id"]), self._core.held.arriving
        self._lookups.ask(exchange, question, id=id, message=message, size=size)
        return True

    def schema_found(
        self, exchange: ServerExchangeCore, message: JSONObject, schema: JSONObject | None
    ) -> None:
        """Go on with a call whose tool the application has looked up."""
        transport, params = self._hosted.modern, message["params"]
        assert transport is not None  # which the call is for
        assert is_object(params)
        breach = judge_params(exchange.fields, params.get("arguments"), schema)
        if breach is not None:
            exchange.refuse(400, breach, _readable(message["id"]))
        else:
            response = PostResponse(exchange, transport, message["id"])
            self._receive_request(exchange, transport, message, "tools/call", response)

    def _judge_version(self, field: str | None, said: object, is_request: bool) -> Breach | None:
        """Return the breach if header and body do not name one served revision; else None."""
        service = self._service
        if field is None:
            text = "the header MCP-Protocol-Version is missing"
            if not service.legacy_revisions:
                text += f"; this server speaks {', '.join(service.modern_revisions)} only"
            return Breach("HDR-031", text, ErrorCode.HEADER_MISMATCH)
        if said is not MISSING and said != field:
            text = f"MCP-Protocol-Version says {field[:80]!r}, and the body {str(said)[:80]!r}"
            return Breach("HDR-007", text, ErrorCode.HEADER_MISMATCH)
        if field not in service.modern_revisions and (said is MISSING or not is_request):
            return self._heads.unsupported(field)
        return None

    def _receive_request(
        self,
        exchange: ServerExchangeCore,
        transport: RoutedTransport,
        message: JSONObject,
        method: str,
        route: Stream | PostResponse,
    ) -> None:
        core = transport.core
        core.now, core.at = self._core.now, self._core.at
        transport.machine.intake.receive_request(message, method, route, None)
        if core.requests:
            self._hold(transport)
        if core.needs_settle or self._service.answers == "sse":
            self._after(exchange, transport, route)

    def _after(
        self,
        exchange: ServerExchangeCore,
        transport: RoutedTransport,
        route: Stream | PostResponse,
    ) -> None:
        """Settle a transport that has received a message, and begin the stream if it is time.

        With `answers="sse"` the stream of a legacy request begins at once (SSE-015). In 2026-07-28
        it waits for the first message, since an error has a status (HTTP-023).
        """
        if transport.core.needs_settle:
            transport.core.settle()
        if (
            not route.over
            and self._service.answers == "sse"
            and not transport.is_modern
            and route.takes()
            and not exchange.is_stream
        ):
            route.start()

    def _accept(self, exchange: ServerExchangeCore, transport: RoutedTransport) -> None:
        """Answer the POST of a message that needs no response: 202, or the error of its breach.

        Keeps HTTP-014, HTTP-015.
        """
        breach = transport.core.last_breach
        if transport.core.needs_settle:
            transport.core.settle()
        if breach is None:
            exchange.answer(202, b"")
        else:  # it is reported already
            exchange.answer(400, self._core.error_body(breach.text, breach.code))

    # ------------------------------------------------------------------------------------- legacy

    def _receive_known(
        self, exchange: ServerExchangeCore, message: JSONObject, method: str
    ) -> bool:
        """Serve a request of a known session or revision, as nearly all requests are.

        Returns:
            Whether it was served. False: nothing was done.
        """
        store = self._hosted.store
        if store is not None:
            session = store.agreed(exchange)
            if session is None:
                return False
            stream = Stream(session.streams, exchange)
            self._receive_request(exchange, session, message, method, stream)
            return True
        transport = self._hosted.known_stateless(exchange.fields)
        if transport is None or method == "initialize" or exchange.fields.repeated:
            return False
        response = PostResponse(exchange, transport, message["id"])
        self._receive_request(exchange, transport, message, method, response)
        return True

    def _receive_legacy(
        self,
        exchange: ServerExchangeCore,
        value: JSONValue,
        message: JSONObject | None,
        body: bytes | bytearray,
    ) -> None:
        """Serve a message of a legacy client; `message` is the value, where that is one object."""
        store = self._hosted.store
        if store is not None and (session := store.agreed(exchange)) is not None:
            self._receive_in_session(exchange, session, value, message, body)
            return
        if not self._service.legacy_revisions:  # only a batch comes here
            exchange.refuse(400, Breach("BATCH-008", "there are no batches in this revision"))
            return
        method: Any = None if message is None else message.get("method")
        opens = method == "initialize" and message is not None and "id" in message
        raw: Any = None if message is None else message.get("id")
        id = raw if isinstance(method, str) and id_key(raw) is not None else None
        if not opens and not self._heads.judge_version(exchange, id):
            return
        if store is None:
            self._receive_stateless(exchange, value, message, body)
            return
        if SESSION_FIELD not in exchange.fields.raw and opens:
            assert message is not None  # it opens a session
            if store.asks_opening:
                store.ask_to_open(exchange, message, id, body)
            else:
                self._open(exchange, message, id, body, None)
            return
        session = store.find(exchange, id, body)
        if session is not None:
            self._receive_in_session(exchange, session, value, message, body)

    def session_granted(
        self, exchange: ServerExchangeCore, body: bytes | bytearray, id: Any, name: str | None
    ) -> bool:
        """Go on with an `initialize` whose session the application has granted.

        Returns:
            Whether there was room for the session.
        """
        # Decoded again: the application owns the params that it was shown.
        message: Any = self._core.config.codec.decode(body.removeprefix(BOM))
        return self._open(exchange, message, id, body, name)

    def _open(
        self,
        exchange: ServerExchangeCore,
        message: JSONObject,
        id: Any,
        body: bytes | bytearray,
        name: str | None,
    ) -> bool:
        """Open a session, unless its `initialize` comes to nothing; False: there was no room."""
        store = self._hosted.store
        assert store is not None  # which opens it
        session = store.open(exchange, message, id, name)
        if session is not None:
            self._receive_in_session(exchange, session, message, message, body)
            if session.core.conversation.phase is Phase.NEW:
                store.forget(session)
        return session is not None

    def _receive_in_session(
        self,
        exchange: ServerExchangeCore,
        transport: SessionTransport,
        value: JSONValue,
        message: JSONObject | None,
        body: bytes | bytearray,
    ) -> None:
        stream = Stream(transport.streams, exchange)
        method: Any = None if message is None else message.get("method")
        if message is not None and isinstance(method, str) and "id" in message:
            stream.is_opening = method == "initialize"
            self._receive_request(exchange, transport, message, method, stream)
        else:
            transport.core.now = self._core.now
            self._receive_others(exchange, transport, stream, value, message, body)

    def _receive_others(
        self,
        exchange: ServerExchangeCore,
        transport: RoutedTransport,
        route: Stream | PostResponse,
        value: JSONValue,
        message: JSONObject | None,
        body: bytes | bytearray,
    ) -> None:
        """Serve a message that needs no response, or a batch, which may need one."""
        transport.core.last_breach, transport.sender = None, exchange
        if message is not None:
            transport.machine.receive_object(message, route, None, body)
            is_waiting = False
        else:
            assert is_list(value)
            route.is_batch = True
            transport.machine.receive_batch(value, route, body)
            is_waiting = not route.closing
            self._hold(transport)
        transport.sender = None
        if route.over:
            transport.core.settle()
        elif is_waiting:
            self._after(exchange, transport, route)
        else:
            route.over = True  # it was needed for errors only
            self._accept(exchange, transport)
            route.finish()

    def _receive_stateless(
        self,
        exchange: ServerExchangeCore,
        value: JSONValue,
        message: JSONObject | None,
        body: bytes | bytearray,
    ) -> None:
        """Serve a POST by itself, at the revision that it names, since there are no sessions."""
        method: Any = None if message is None else message.get("method")
        if message is not None and isinstance(method, str) and "id" in message:
            if method == "initialize":
                self._receive_opening(exchange, message)
                return
            transport = self._hosted.stateless(exchange.fields)
            response = PostResponse(exchange, transport, message["id"])
            self._receive_request(exchange, transport, message, method, response)
        elif method == "notifications/initialized":
            exchange.answer(202, b"")  # nothing follows from it where nothing lasts
        else:
            transport = self._hosted.stateless(exchange.fields)
            transport.core.now = self._core.now
            response = PostResponse(exchange, transport, _ids_in(value))
            self._receive_others(exchange, transport, response, value, message, body)

    def _receive_opening(self, exchange: ServerExchangeCore, message: JSONObject) -> None:
        """Serve an `initialize` outside of any session."""
        core, openings = self._core, self._hosted.openings
        limit = core.config.max_requests
        if len(openings) >= limit:
            text = f"{limit} initialize requests are open, which is the limit"
            core.limit_reached("OWN-004", text)
            id = _readable(message["id"])
            body = core.error_body("too many requests", ErrorCode.INTERNAL_ERROR, id)
            exchange.answer(503, body)
            return
        transport = self._hosted.opening()
        peer = transport.core.peer
        peer.principal, peer.principal_key = exchange.principal, exchange.principal_key
        response = PostResponse(exchange, transport, message["id"])
        self._receive_request(exchange, transport, message, "initialize", response)
        if transport.core.requests:
            openings[transport] = None

    # -------------------------------------------------------------------------------- 2024-11-05

    def _receive_old(
        self, exchange: ServerExchangeCore, value: JSONValue, body: bytes | bytearray
    ) -> None:
        """Serve a message of a client of 2024-11-05: its response goes to its one stream."""
        store = self._hosted.store
        assert store is not None  # old paths need it
        id = _readable(value.get("id")) if is_object(value) else None
        transport = store.find_old(exchange, id, body)
        if transport is None:
            return
        if (
            transport.core.conversation.phase is Phase.NEW
            and is_object(value)
            and value.get("method") == "initialize"
            and not store.reserve(transport, exchange, value, id)
        ):
            return
        transport.core.now = self._core.now
        route = transport.streams
        route.principal = exchange.principal  # with newer credentials, perhaps
        transport.sender = exchange
        if is_object(value):
            transport.machine.receive_object(value, route, None, body)
        elif is_list(value):
            transport.machine.receive_batch(value, route, body)
        else:
            transport.machine.incoming.refuse_unreadable(NO_OBJECT, route, excerpt=excerpt_of(body))
        transport.sender = None
        self._hold(transport)
        if transport.core.needs_settle:
            transport.core.settle()
        exchange.answer(202, b"")


def _may_be_refused(body: bytes | bytearray, value: Any) -> bool:
    """Whether a body is refused when too much is held: requests are, and large notifications.

    Responses and small notifications are not: a request may end because of them.
    """
    is_small = len(body) <= SMALL_NOTIFICATION
    parts = value if is_list(value) else [value]
    return any(
        is_object(part) and "method" in part and not (is_small and "id" not in part)
        for part in parts
    )


def _readable(raw: Any) -> Any:
    """An id as an error repeats it; None where it is no valid id."""
    return None if id_key(raw) is None else raw


def _ids_in(value: JSONValue) -> tuple[object, ...]:
    """The ids of the requests in a batch, as they came."""
    if not is_list(value):
        return ()
    return tuple(part.get("id") for part in value if is_object(part) and "method" in part)
