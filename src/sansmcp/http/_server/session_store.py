"""The sessions of an endpoint: opened, found, ended.

Source: MCP 2025-11-25, basic/transports, Session Management; MCP 2024-11-05, basic/transports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from ..._connection.core import Core
from ..._connection.handles import IncomingRequest, route_of
from ..._connection.subscriptions.changes import Change, ResourceUpdated
from ..._rules.conversation import is_same_principal
from ..._rules.sending import Breach
from ..._spec.errors import ErrorCode, LocalProtocolError
from ..._wire.values import JSONObject, is_object
from .._headers import Text
from .._sse import encode_event
from .bodies import measured
from .core import SESSION_FIELD, VERSION_FIELD, ServerEndpointCore, Service
from .events import (
    ReplayWanted,
    SessionEnd,
    SessionEnded,
    SessionRequested,
    SessionStarted,
    SessionWanted,
)
from .exchange import ServerExchangeCore
from .lookups import Lookups
from .session_transport import SessionTransport
from .sessions import ASK, Session, Sessions
from .streams import parse_event_id, tag_of

_NO_SESSION: Final = (
    "there is no such session here: open another by initialize; "
    "if several workers share this address, each knows only the sessions that it has opened"
)
_NO_SHARED_SESSION: Final = (
    "there is no such session: it has ended, or the worker that had opened it has ended; open "
    "another by initialize"
)
_OLD_QUERY: Final = "session_id="
_QUOTED: Final = re.compile("%([0-9A-Fa-f]{2})")
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
_RESERVED: Final = re.compile(r"[^-._~A-Za-z0-9]")


def _field_of(name: str) -> bytes:
    """An id as bytes; text with lone surrogates is the id of no session."""
    return name.encode("utf-8", "surrogatepass")


class SessionStore:
    """All open sessions of an endpoint.

    Args:
        core: What all parts of the endpoint share.
        service: What the endpoint serves.
        settings: How sessions are kept.
        whole: What all sessions take their facts about the server from.
        transport_settings: What the transport of each session is made with.
        lookups: The exchanges that wait for the application.

    Attributes:
        asks_opening: Whether the application is asked before a session is opened.
        transports: The transports of the sessions, oldest first, by the id as it stands in the
            header for it.
    """

    __slots__ = (
        "_core",
        "_lookups",
        "_service",
        "_settings",
        "_subscribed",
        "_transport_settings",
        "_whole",
        "asks_opening",
        "transports",
    )

    def __init__(
        self,
        core: ServerEndpointCore,
        service: Service,
        settings: Sessions,
        whole: Core,
        transport_settings: dict[str, Any],
        lookups: Lookups,
    ) -> None:
        self._core = core
        self._lookups = lookups
        self._service = service
        self._settings = settings
        self._whole = whole
        self._transport_settings = transport_settings
        self.asks_opening: bool = settings.opening == ASK
        self.transports: dict[Text, SessionTransport] = {}

        # A change of a resource costs as much as there are sessions that are subscribed to it.
        self._subscribed: dict[str, dict[SessionTransport, None]] = {}

    # ------------------------------------------------------------------------------- opening

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The open sessions, oldest first."""
        return tuple(transport.session for transport in self.transports.values())

    def session_of(self, name: str) -> Session | None:
        """The open session with this id; None: there is none."""
        transport = self.transports.get(_field_of(name))
        return None if transport is None else transport.session

    def ask_to_open(
        self,
        exchange: ServerExchangeCore,
        message: JSONObject | None,
        id: Any,
        body: bytes | bytearray = b"",
    ) -> None:
        """Ask the application whether a session may be opened, for `initialize` or a stream."""
        handle = exchange.handle
        assert handle is not None  # as long as there is no response
        params: Any = None if message is None else message.get("params")
        if message is not None and not is_object(params):
            params = {}
        question = SessionRequested(exchange=handle, params=params)
        size = len(body) + self._core.held.arriving if body else 0
        self._lookups.ask(exchange, question, id=id, body=body, size=size)

    def check_id(self, name: str) -> None:
        """Refuse a session id of the application that no session can have.

        Raises:
            LocalProtocolError: It is not visible ASCII, or that of a session that is open here.
        """
        if not _VISIBLE.fullmatch(name) or name.encode() in self.transports:
            text = "a session id is of visible ASCII, and that of no other session"
            raise LocalProtocolError("SESS-003", text)

    def open(
        self, exchange: ServerExchangeCore, message: JSONObject, id: Any, name: str | None = None
    ) -> SessionTransport | None:
        """Open a session for an `initialize`; None: there is no room, and the exchange says so."""
        transport = self._open(exchange, id, name, is_old=False)
        if transport is not None and not self.reserve(transport, exchange, message, id):
            self._remove(transport)
            return None
        return transport

    def reserve(
        self,
        transport: SessionTransport,
        exchange: ServerExchangeCore,
        message: JSONObject,
        id: Any,
    ) -> bool:
        """Count the memory of the client's facts about itself, which the session keeps.

        Returns:
            Whether there is room for it. If not, the exchange was answered.
        """
        held, params = self._core.held, message.get("params")
        limit = held.sessions_limit
        held.sessions -= transport.held_bytes  # of an `initialize` that was not agreed to
        transport.held_bytes = 0
        size = 0
        if is_object(params):
            size = measured([params.get("clientInfo"), params.get("capabilities")], limit)
        if size > limit:
            text = f"clientInfo and capabilities take more than {limit} bytes, which is the limit"
            exchange.refuse(413, Breach("OWN-053", text), id)
            return False
        if held.sessions + size > limit:
            exchange.refuse_for_memory(id, f"sessions hold {held.sessions} bytes", limit)
            return False
        transport.held_bytes = size
        held.sessions += size
        return True

    def _open(
        self, exchange: ServerExchangeCore, id: Any, name: str | None, *, is_old: bool
    ) -> SessionTransport | None:
        core, limit = self._core, self._settings.max_sessions
        if len(self.transports) >= limit and core.now is not None:
            core.timers.fire(core.now)  # callers without a loop do it at no other time
        if len(self.transports) >= limit:
            core.limit_reached("OWN-030", f"{limit} sessions are open, which is the limit")
            body = core.error_body("too many sessions", ErrorCode.INTERNAL_ERROR, id)
            exchange.answer(503, body)
            return None
        name = self._settings.new_id() if name is None else name
        if not _VISIBLE.fullmatch(name) or name.encode() in self.transports:
            text = "Sessions.new_id must give another id at each call, of visible ASCII"
            exchange.answer(500, core.error_body("no session", ErrorCode.INTERNAL_ERROR, id))
            raise LocalProtocolError("SESS-003", text)
        transport = SessionTransport(
            core,
            self,
            self._whole,
            self._settings,
            name.encode(),
            exchange.principal,
            exchange.principal_key,
            is_old=is_old,
            **self._transport_settings,
        )
        self.transports[transport.field] = transport
        transport.touch()
        return transport

    def started(self, transport: SessionTransport, request: IncomingRequest) -> None:
        """A session begins: the result of its `initialize` follows."""
        transport.revision_field = (transport.session.revision or "").encode()
        exchange = None if transport.is_old else route_of(request).exchange
        if exchange is not None:
            exchange.common += ((SESSION_FIELD, transport.field),)
        self._core.events.append(SessionStarted(session=transport.session))

    def forget(self, transport: SessionTransport) -> None:
        """Forget a session, since its `initialize` was refused.

        An application that has granted the session learns that it is over.
        """
        if transport.is_open and self._settings.opening == ASK:
            ended = SessionEnded(session=transport.session, cause=SessionEnd.REFUSED)
            self._core.events.append(ended)
        self._remove(transport)

    def _remove(self, transport: SessionTransport) -> None:
        transport.is_open = False
        self._core.held.sessions -= transport.held_bytes
        transport.held_bytes = 0
        self.transports.pop(transport.field, None)
        transport.stop_waiting()

    # ------------------------------------------------------------------------------- finding

    def agreed(self, exchange: ServerExchangeCore) -> SessionTransport | None:
        """The session of a request with the usual headers; None for unusual ones (see `find`)."""
        fields = exchange.fields
        raw = fields.raw
        transport = self.transports.get(raw.get(SESSION_FIELD, b""))
        if (
            transport is None
            or raw.get(VERSION_FIELD) != transport.revision_field
            or not is_same_principal(transport, exchange)
            or transport.is_old
            or fields.repeated
        ):
            return None
        transport.touch()
        return transport

    def find(
        self, exchange: ServerExchangeCore, id: Any, body: bytes | bytearray = b""
    ) -> SessionTransport | None:
        """The session that a request names; None: there is none, and the exchange says so.

        Where the application is asked for sessions that are not open here, the exchange waits.
        """
        fields, modern = exchange.fields, self._service.modern_revisions
        name = fields.get(SESSION_FIELD)
        if name is None or SESSION_FIELD in fields.repeated:
            text = "Mcp-Session-Id is missing, or came more than once: open a session by initialize"
            code = ErrorCode.INVALID_REQUEST
            if modern:
                code = ErrorCode.INVALID_PARAMS
                text += f", or speak {modern[-1]}, which has no sessions"
            exchange.refuse(400, Breach("SESS-006", text, code), id)
            return None
        transport = self.transports.get(_field_of(name))
        if transport is None and self._asks_for(exchange, name):
            self._ask_for(exchange, name, id, body)
            return None
        # A session of another principal is no session: nothing else may be learned of it.
        if transport is None or transport.is_old or not is_same_principal(transport, exchange):
            self.refuse_unknown(exchange, id)
            return None
        revision, agreed = fields.get(VERSION_FIELD), transport.session.revision
        if revision is not None and revision != agreed:
            text = f"MCP-Protocol-Version says {revision}, and agreed was {agreed}"
            self._core.report(Breach("HDR-002", text, tolerated=True))
        transport.touch()
        return transport

    def refuse_unknown(self, exchange: ServerExchangeCore, id: Any) -> None:
        """Say that there is no such session.

        Keeps SESS-008.
        """
        # Where the application knows the sessions of all workers, another cause is likely.
        text = _NO_SHARED_SESSION if self._settings.unknown == ASK else _NO_SESSION
        exchange.refuse(404, Breach("SESS-008", text), id)

    def _asks_for(self, exchange: ServerExchangeCore, name: str) -> bool:
        """Whether the application is asked for a session that is not open here."""
        settings = self._settings
        return (
            settings.unknown == ASK
            and not exchange.is_carried  # whoever has carried it has asked
            and _VISIBLE.fullmatch(name) is not None
        )

    def _ask_for(
        self, exchange: ServerExchangeCore, name: str, id: Any, body: bytes | bytearray
    ) -> None:
        """Ask the application for a session that is not open here."""
        handle = exchange.handle
        assert handle is not None  # as long as there is no response
        last = exchange.fields.get(b"last-event-id") if exchange.method == "GET" else None
        resumed = None if last is None else parse_event_id(last, tag_of(name.encode()))
        stream, after = (None, 0) if resumed is None else resumed
        question = SessionWanted(exchange=handle, session_id=name, stream=stream, after=after)
        self._lookups.ask(exchange, question, id=id, body=body)

    def ask_to_replay(
        self, exchange: ServerExchangeCore, session: Session, stream: int, after: int, upto: int
    ) -> bool:
        """Ask the application for stored events; False: the exchange was ended instead."""
        handle = exchange.handle
        assert handle is not None  # as long as the response is not over
        question = ReplayWanted(exchange=handle, session=session, stream=stream, after=after)
        return self._lookups.ask(exchange, question, upto=upto)

    # -------------------------------------------------------------------------------- ending

    def over(self, transport: SessionTransport) -> None:
        """Report the end of a session: everything that was open in it has ended."""
        cause = transport.end_cause or SessionEnd.OVERFLOW
        self._remove(transport)
        transport.streams.end()
        self._core.events.append(SessionEnded(session=transport.session, cause=cause))

    # ------------------------------------------------------------------------- subscriptions

    def subscribed(self, uri: str, transport: SessionTransport) -> None:
        """A client has subscribed to a resource."""
        self._subscribed.setdefault(uri, {})[transport] = None

    def unsubscribed(self, uri: str, transport: SessionTransport) -> None:
        """A client is not subscribed to a resource any more."""
        transports = self._subscribed.get(uri, {})
        transports.pop(transport, None)
        if not transports:
            self._subscribed.pop(uri, None)

    def told_of(self, change: Change) -> Iterable[SessionTransport]:
        """The transports of the sessions that may be told of a change."""
        if isinstance(change, ResourceUpdated):
            uri = change.uri if change.subscribed is None else change.subscribed
            return tuple(self._subscribed.get(uri, ()))
        return tuple(self.transports.values())

    # ---------------------------------------------------------------------------- 2024-11-05

    def open_old(self, exchange: ServerExchangeCore, name: str | None = None) -> bool:
        """Open the session of a client of 2024-11-05, and tell the client where it may post.

        Returns:
            Whether there is room for it. If not, the exchange was answered.

        Keeps HSSE-002.
        """
        old_paths = self._service.old_paths
        assert old_paths is not None  # one of which the client has called
        transport = self._open(exchange, None, name, is_old=True)
        if transport is None:
            return False
        transport.streams.open_old(exchange)
        id = transport.session.id
        quoted = _RESERVED.sub(lambda match: f"%{ord(match[0]):02X}", id)
        target = f"{old_paths.post}?{_OLD_QUERY}{quoted}"
        exchange.write(encode_event(target.encode(), type="endpoint"))
        return True

    def find_old(
        self, exchange: ServerExchangeCore, id: Any, body: bytes | bytearray
    ) -> SessionTransport | None:
        """The session that a query names; None: there is none, and the exchange says so."""
        parts = exchange.query.split("&")
        names = [part.removeprefix(_OLD_QUERY) for part in parts if part.startswith(_OLD_QUERY)]
        if len(names) > 1:  # as for the header: a proxy may have read the other one
            text = "session_id stands in the query more than once"
            exchange.refuse(400, Breach("SESS-006", text))
            return None
        for quoted in names:
            name = _QUOTED.sub(lambda match: chr(int(match[1], 16)), quoted)
            transport = self.transports.get(_field_of(name))
            if (
                transport is not None
                and transport.is_old
                and is_same_principal(transport, exchange)
                # Requests have the principal of the one stream, since all responses go there.
                and transport.principal == exchange.principal
            ):
                transport.touch()
                return transport
            if transport is None and self._asks_for(exchange, name):
                self._ask_for(exchange, name, id, body)
                return None
        breach = Breach("SESS-008", "there is no such session: connect to the stream first")
        exchange.refuse(404, breach)
        return None
