"""The sessions of an endpoint: opened, found, expired, ended.

Source: MCP 2025-11-25, basic/transports, Session Management; MCP 2024-11-05, basic/transports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from ..._connection.changes import Change, ResourceUpdated
from ..._connection.events import LimitReached
from ..._connection.handles import IncomingRequest
from ..._rules.sending import Breach
from ..._spec.errors import ErrorCode, LocalProtocolError
from ..._wire.values import JSONObject, is_object
from .._headers import Text
from .._sse import encode_event
from .events import SessionEnd, SessionEnded, SessionStarted
from .held_memory import measured
from .sessions import Session, Sessions
from .streams import Stream
from .versions import VERSION_FIELD

if TYPE_CHECKING:
    from .connection import SessionConnection
    from .endpoint import ServerEndpoint
    from .exchange import ServerExchange

SESSION_FIELD: Final = b"mcp-session-id"
_NO_SESSION: Final = (
    "there is no such session here: open another by initialize; "
    "if several workers share this address, each knows only the sessions that it has opened"
)
_OLD_QUERY: Final = "session_id="
_QUOTED: Final = re.compile("%([0-9A-Fa-f]{2})")
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
_RESERVED: Final = re.compile(r"[^-._~A-Za-z0-9]")


def _field_of(name: str) -> bytes:
    """An id as bytes; what is no text, as some servers decode fields, is the id of no session."""
    return name.encode("utf-8", "surrogatepass")


class SessionTable:
    """All sessions, by what stands in the field for the id."""

    __slots__ = ("_endpoint", "_subscribed", "sessions", "settings")

    def __init__(self, endpoint: ServerEndpoint, settings: Sessions) -> None:
        self._endpoint = endpoint
        self.settings: Final = settings
        self.sessions: dict[Text, Session] = {}

        # A change of a resource costs as much as there are sessions that are subscribed to it.
        self._subscribed: dict[str, dict[SessionConnection, None]] = {}

    # ------------------------------------------------------------------------------- opening

    def open(self, exchange: ServerExchange, message: JSONObject, id: Any) -> Session | None:
        """A session for this `initialize`; None where there is no room, which was answered."""
        session = self._open(exchange, id, is_old=False)
        if session is not None and not self.reserve(session, exchange, message, id):
            self.forget(session)
            return None
        return session

    def reserve(
        self, session: Session, exchange: ServerExchange, message: JSONObject, id: Any
    ) -> bool:
        """Count what the client says of itself in `initialize`: the session keeps that.

        Returns:
            Whether there is room for it. If not, the exchange was answered.
        """
        held, params = self._endpoint._held, message.get("params")
        limit = held.sessions_limit
        held.sessions -= session._held_bytes  # of an `initialize` that was not agreed to
        session._held_bytes = 0
        size = 0
        if is_object(params):
            size = measured([params.get("clientInfo"), params.get("capabilities")], limit)
        if size > limit:
            text = f"clientInfo and capabilities take more than {limit} bytes, which is the limit"
            exchange._refuse(413, Breach("OWN-053", text), id)
            return False
        if held.sessions + size > limit:
            exchange._refuse_for_memory(id, f"sessions hold {held.sessions} bytes", limit)
            return False
        session._held_bytes = size
        held.sessions += size
        return True

    def _open(self, exchange: ServerExchange, id: Any, *, is_old: bool) -> Session | None:
        endpoint, limit = self._endpoint, self.settings.max_sessions
        if len(self.sessions) >= limit and endpoint._now is not None:
            endpoint._timers.fire(endpoint._now)  # callers without a loop do it at no other time
        if len(self.sessions) >= limit:
            text = f"{limit} sessions are open, which is the limit"
            endpoint._events.append(LimitReached(rule="OWN-030", text=text))
            body = endpoint._error_body("too many sessions", ErrorCode.INTERNAL_ERROR, id)
            exchange._answer(503, body)
            return None
        name = self.settings.new_id()
        if not _VISIBLE.fullmatch(name) or name.encode() in self.sessions:
            text = "Sessions.new_id must give another id at each call, of visible ASCII"
            exchange._answer(500, endpoint._error_body("no session", ErrorCode.INTERNAL_ERROR, id))
            raise LocalProtocolError("SESS-003", text)
        connection = endpoint._session_connection()
        session = Session(name, exchange.principal, connection, self, is_old=is_old)
        self.sessions[session._field] = session
        self.touch(session)
        return session

    def started(self, session: Session, request: IncomingRequest) -> None:
        """`initialize` is being answered with a result."""
        session._revision_field = (session.revision or "").encode()
        route: Any = request._route
        exchange = None if session._is_old else route.exchange
        if exchange is not None:
            exchange._common += ((SESSION_FIELD, session._field),)
        self._endpoint._events.append(SessionStarted(session=session))

    def forget(self, session: Session) -> None:
        """`initialize` came to nothing: nobody knows of the session."""
        session._open = False
        self._endpoint._held.sessions -= session._held_bytes
        session._held_bytes = 0
        self.sessions.pop(session._field, None)
        self._endpoint._timers.drop(session)

    # ------------------------------------------------------------------------------- finding

    def agreed(self, exchange: ServerExchange) -> Session | None:
        """The session of a request of which all is as it nearly always is, else None."""
        fields = exchange._fields
        raw = fields.raw
        session = self.sessions.get(raw.get(SESSION_FIELD, b""))
        if (
            session is None
            or raw.get(VERSION_FIELD) != session._revision_field
            or session._principal != exchange.principal
            or session._is_old
            or fields.repeated
        ):
            return None
        self.touch(session)
        return session

    def find(self, exchange: ServerExchange, id: Any) -> Session | None:
        """The session that a request names; None where there is none, which was answered."""
        fields, endpoint = exchange._fields, self._endpoint
        name = fields.get(SESSION_FIELD)
        if name is None or SESSION_FIELD in fields.repeated:
            text = "Mcp-Session-Id is missing, or came more than once: open a session by initialize"
            code = ErrorCode.INVALID_REQUEST
            if endpoint._modern_connection is not None:
                code = ErrorCode.INVALID_PARAMS
                text += f", or speak {endpoint._modern_revisions[-1]}, which has no sessions"
            exchange._refuse(400, Breach("SESS-006", text, code), id)
            return None
        session = self.sessions.get(_field_of(name))
        # A session of somebody else is no session: nothing else may be learned of it.
        if session is None or session._is_old or session._principal != exchange.principal:
            breach = Breach("SESS-008", _NO_SESSION)
            exchange._refuse(404, breach, id)
            return None
        revision = fields.get(VERSION_FIELD)
        if revision is not None and revision != session.revision:
            text = f"MCP-Protocol-Version says {revision}, and agreed was {session.revision}"
            endpoint._report(Breach("HDR-002", text, tolerated=True))
        self.touch(session)
        return session

    def touch(self, session: Session) -> None:
        """A session has shown a sign of life."""
        now = self._endpoint._now
        if now is None:
            return
        if session._deadline is None:
            self._endpoint._timers.arm(self._endpoint, session, now + self.settings.idle)
        else:
            session._deadline = now + self.settings.idle  # its entry is put right by itself

    def expire(self, session: Session) -> None:
        """Nothing was heard for long; it ends, unless something in it is under way."""
        if session._standalone.connected is not None or session._connection.core.requests:
            self.touch(session)
        else:
            self.end(session, SessionEnd.EXPIRED)

    # -------------------------------------------------------------------------------- ending

    def end(self, session: Session, cause: SessionEnd) -> None:
        """End a session from this side: all that is open in it has its ending."""
        session._end = cause
        session._connection.end_all()

    def over(self, session: Session) -> None:
        """Its connection has ended everything."""
        cause = session._end or SessionEnd.OVERFLOW
        self.forget(session)
        session._standalone.end()
        past, session._past = session._past, None
        if past is not None:
            past.end()
        self._endpoint._events.append(SessionEnded(session=session, cause=cause))

    # ------------------------------------------------------------------------- subscriptions

    def file(self, uri: str, connection: SessionConnection) -> None:
        """A session is subscribed to a resource from now on."""
        self._subscribed.setdefault(uri, {})[connection] = None

    def unfile(self, uri: str, connection: SessionConnection) -> None:
        """It is not any more."""
        machines = self._subscribed.get(uri, {})
        machines.pop(connection, None)
        if not machines:
            self._subscribed.pop(uri, None)

    def told_of(self, change: Change) -> Iterable[SessionConnection]:
        """The machines of sessions that may be told of a change."""
        if isinstance(change, ResourceUpdated):
            uri = change.uri if change.subscribed is None else change.subscribed
            return tuple(self._subscribed.get(uri, ()))
        return [session._connection for session in self.sessions.values()]

    # ---------------------------------------------------------------------------- 2024-11-05

    def open_old(self, exchange: ServerExchange) -> None:
        """A client of 2024-11-05 connects: say where it may post.

        Keeps HSSE-002.
        """
        session = self._open(exchange, None, is_old=True)
        if session is None:
            return
        standalone = session._standalone
        standalone.context = exchange.context
        stream = Stream(session, exchange, listens=True)
        standalone.listening.append(stream)
        exchange._start_stream()
        name = _RESERVED.sub(lambda match: f"%{ord(match[0]):02X}", session.id)
        target = f"{self._endpoint._old_post_path}?{_OLD_QUERY}{name}"
        exchange._write(encode_event(target.encode(), type="endpoint"))

    def find_old(self, exchange: ServerExchange) -> Session | None:
        """The session that the query of a POST names; None where there is none."""
        parts = exchange._query.split("&")
        names = [part.removeprefix(_OLD_QUERY) for part in parts if part.startswith(_OLD_QUERY)]
        if len(names) > 1:  # as for the field: whoever is in front may have read the other one
            text = "session_id stands in the query more than once"
            exchange._refuse(400, Breach("SESS-006", text))
            return None
        for quoted in names:
            name = _QUOTED.sub(lambda match: chr(int(match[1], 16)), quoted)
            session = self.sessions.get(_field_of(name))
            if session is not None and session._is_old and session._principal == exchange.principal:
                self.touch(session)
                return session
        breach = Breach("SESS-008", "there is no such session: connect to the stream first")
        exchange._refuse(404, breach)
        return None
