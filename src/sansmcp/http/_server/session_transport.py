"""The server's end of the conversation with one session.

Source: MCP 2025-11-25, basic/transports, Session Management; MCP 2024-11-05, basic/transports.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from ..._connection.core import Core
from ..._connection.events import CancelCause, CloseCause, LimitReached
from ..._connection.handles import (
    Batch,
    IncomingRequest,
    OutgoingRequest,
    Purpose,
    is_task,
    purpose_of,
    route_of,
    set_route,
)
from ..._connection.timers import Timed
from ..._rules.sending import Breach
from ..._rules.state_tables import StateTrigger
from ..._wire.values import JSONObject, JSONValue, Missing, RequestId
from .._headers import Headers
from .core import ServerEndpointCore
from .events import EventToStore, SessionEnd
from .exchange import ServerExchangeCore
from .routed_transport import RoutedTransport
from .sessions import Session, Sessions
from .streams import SessionStreams, Stream


class SessionOwner(Protocol):
    """The store that a session is kept in."""

    def started(self, transport: SessionTransport, request: IncomingRequest) -> None:
        """The session begins with the response to this `initialize`, which follows."""
        ...

    def forget(self, transport: SessionTransport) -> None:
        """The `initialize` of the session was refused: no client knows of it."""
        ...

    def over(self, transport: SessionTransport) -> None:
        """Everything that was open in the session has ended."""
        ...

    def ask_to_replay(
        self, exchange: ServerExchangeCore, session: Session, stream: int, after: int, upto: int
    ) -> bool:
        """Ask the application for stored events."""
        ...

    def subscribed(self, uri: str, transport: SessionTransport) -> None:
        """The client has subscribed to a resource."""
        ...

    def unsubscribed(self, uri: str, transport: SessionTransport) -> None:
        """The client is not subscribed to a resource any more."""
        ...


class SessionTransport(RoutedTransport):
    """The transport of one session; the route of each request is the stream that it came with.

    Args:
        endpoint: What all parts of the endpoint share.
        owner: The store that the session is kept in.
        whole: The core of another transport, whose facts about the server all sessions share. That
            saves a third of the memory of each session.
        settings: How sessions are kept.
        field: The id of the session, as it stands in the header for it.
        principal: Who opens the session.
        principal_key: A string that stands for the principal.
        is_old: Whether it is the session of a client of 2024-11-05.
        transport_settings: As for `RoutedTransport`.

    Attributes:
        end_cause: Why the session is being ended from this side; None: it is not.
        field: The id of the session, as it stands in the header for it.
        held_bytes: Memory that the client's facts about itself take, in bytes, by estimate.
        is_open: Whether requests of the client are still served.
        is_old: Whether it is the session of a client of 2024-11-05.
        principal: Who opened the session.
        principal_key: A string that stands for the principal.
        revision_field: The agreed revision, as it stands in the header for it; empty before.
        session: The handle of the session.
        streams: The streams of the session.
    """

    __slots__ = (
        "_deadline",
        "_idle",
        "_overflowed",
        "_overflowing",
        "_owner",
        "end_cause",
        "field",
        "held_bytes",
        "is_old",
        "is_open",
        "principal",
        "principal_key",
        "revision_field",
        "session",
        "streams",
    )

    def __init__(
        self,
        endpoint: ServerEndpointCore,
        owner: SessionOwner,
        whole: Core,
        settings: Sessions,
        field: bytes,
        principal: Any,
        principal_key: str | None = None,
        *,
        is_old: bool = False,
        **transport_settings: Any,
    ) -> None:
        super().__init__(endpoint, **transport_settings)
        self._owner = owner
        self._idle = settings.idle
        self._deadline: float | None = None
        self._overflowed: Any = None  # the route of the message that was too much
        self._overflowing: list[Stream] = []  # while everything ends because of it
        self.end_cause: SessionEnd | None = None
        self.field: bytes = field
        self.held_bytes: int = 0
        self.is_open: bool = True
        self.is_old: bool = is_old
        self.principal: Any = principal
        self.principal_key: str | None = principal_key
        self.revision_field: bytes = b""
        self.streams: SessionStreams = SessionStreams(
            self, settings, field, principal, is_old=is_old
        )
        self.session: Session = Session(self)
        core = self.core
        core.peer.session = self.session
        core.peer.principal, core.peer.principal_key = principal, principal_key
        core.info, core.capabilities = whole.info, whole.capabilities
        core.decoder = whole.decoder
        core.conversation.gates[core.side] = whole.conversation.gates[core.side]

    @property
    def tag(self) -> str:
        """A short name of the session that is no secret."""
        return self.streams.tag

    # -------------------------------------------------------------------------------- output

    def queue(self, message: bytes, route: Any) -> None:
        """Write a message to the stream of its request, or to a GET stream."""
        core = self.core
        where = self.streams if route is None else route
        if core.unsent + len(message) > core.config.max_unsent_bytes:
            if core.is_refused(message, "a message"):
                self.finish_without(where)
            else:
                core.overflowing = core.needs_settle = True
                self._overflowed = where
        elif not where.deliver(message):
            self.lost(where)

    def is_congested(self, route: Any) -> bool:
        """Whether output that may be dropped is to be dropped, on this stream."""
        where = self.streams if route is None else route
        return super().is_congested(route) or not where.takes()

    def holds_changes(self) -> bool:
        """Changes wait for a stream that is open, and for room."""
        return super().is_congested(None) or self.streams.connected is None

    def reaches_peer(self) -> bool:
        """Whether a GET stream of the client is open."""
        return self.streams.connected is not None

    def anonymous_owner(self) -> str:
        """Without a principal, tasks belong to the session; its id is a secret, and not told."""
        import hashlib  # imported only where there are tasks

        return f"session {hashlib.sha256(self.field).hexdigest()}"

    def response_replaced(self, request: IncomingRequest) -> None:
        """There is no session without the response to `initialize`."""
        if request.method == "initialize":
            self.core.overflowing = self.core.needs_settle = True
        super().response_replaced(request)

    def before_send(self, call: OutgoingRequest) -> None:
        """A request that belongs to none of the client's requests goes to a GET stream.

        So does a poll of a task whose own stream is over.
        """
        route = route_of(call)
        if route is None or (purpose_of(call) is Purpose.TASK and not _arrives(route)):
            set_route(call, self.streams)  # by which the endpoint finds this transport
        super().before_send(call)

    def cancellation(self, call: OutgoingRequest, message: bytes | None) -> bytes | None:
        """A cancellation goes where it can still arrive."""
        if not _arrives(route_of(call)):
            set_route(call, self.streams)
        return message

    def taken(self, size: int) -> None:
        """So many bytes were taken off an exchange."""
        self.core.unsent -= size
        self.release_changes()

    def waits(self, size: int) -> None:
        """So many bytes wait to be taken off an exchange."""
        self.core.unsent += size

    def release_changes(self) -> None:
        """Send the changes that wait for a stream, or for room on it, if there is one now."""
        publisher = self.machine.publisher
        if publisher.held and not self.holds_changes():
            publisher.release_held()
            if self.core.needs_settle:
                self.core.settle()

    def overflow_begins(self) -> None:
        """Drop the output that no client reads, before the endings, whose messages are sent."""
        routes: list[Any] = [route_of(request) for request in self.core.requests.values()]
        routes += [*self.streams.listening, self._overflowed]
        self._overflowing = [route for route in routes if isinstance(route, Stream)]
        self.machine.publisher.held.clear()
        for stream in self._overflowing:
            if stream.exchange is not None:
                stream.exchange.drop()

    def overflow_ended(self) -> None:
        """Finish the streams whose own response exceeded the limit."""
        streams, self._overflowing = self._overflowing, []
        for stream in streams:
            if not stream.over:
                stream.finish(503, stream.request_id)

    # --------------------------------------------------------------------- opening and ending

    def send_error(
        self,
        request: IncomingRequest,
        code: int,
        message: str,
        data: JSONValue | Missing,
        status: int | None = None,
        more: Headers = (),
    ) -> bool:
        """Answer a request with an error; there is no session without a result of `initialize`."""
        done = super().send_error(request, code, message, data, status, more)
        if request.method == "initialize":
            self._owner.forget(self)
        return done

    def send_progress(
        self,
        request: IncomingRequest,
        progress: float,
        total: float | None,
        message: str | None,
        meta: JSONObject | None,
    ) -> bool:
        """Send progress; that of a task, whose request is answered, goes to a GET stream."""
        if not is_task(request):
            return super().send_progress(request, progress, total, message, meta)
        route = route_of(request)
        set_route(request, self.streams)
        try:
            return super().send_progress(request, progress, total, message, meta)
        finally:
            set_route(request, route)

    def is_left(self) -> bool:
        """Whether the client itself has ended the session."""
        return self.end_cause is SessionEnd.DELETED

    def server_agreed(self, request: IncomingRequest) -> None:
        """The session begins with the response to `initialize`."""
        self._owner.started(self, request)

    def subscribed(self, uri: str) -> None:
        """File the session under a resource that its client is subscribed to."""
        self._owner.subscribed(uri, self)

    def unsubscribed(self, uris: Collection[str]) -> None:
        """Take the session out of the files of these resources."""
        for uri in uris:
            self._owner.unsubscribed(uri, self)

    def closed(self, cause: CloseCause) -> None:
        """The session is over; its own event says so."""
        self._owner.over(self)

    def end_session(self, cause: SessionEnd) -> None:
        """End the session from this side: each open request has its ending."""
        self.end_cause = cause
        self.core.now = self.endpoint.now
        self.core.end(StateTrigger.CLOSE, CloseCause.CLOSED, CancelCause.CLOSED)

    # ---------------------------------------------------------------------------- signs of life

    def touch(self) -> None:
        """The client has shown a sign of life."""
        now = self.endpoint.now
        if now is None:
            return
        if self._deadline is None:
            self.endpoint.timers.arm(self, self, now + self._idle)
        else:
            self._deadline = now + self._idle  # the timers put their entry right by themselves

    def stop_waiting(self) -> None:
        """The session is over: its silence does not count any more."""
        self.endpoint.timers.drop(self)

    def _timer_fired(self, subject: Timed) -> None:
        """End the session of a client that was silent for too long, unless a request is open."""
        if self.streams.connected is not None or self.core.requests:
            self.touch()
        else:
            self.end_session(SessionEnd.EXPIRED)

    def stream_left(self) -> None:
        """The client has closed the connection of a stream; before 2025-03-26 it leaves so."""
        if self.is_old:
            self.end_session(SessionEnd.DISCONNECTED)
        else:
            self.touch()

    def tell_to_store(self, stream: int, event: int, message: bytes) -> None:
        """Tell the application of an event that it is to store."""
        self.endpoint.events.append(
            EventToStore(session=self.session, stream=stream, event=event, message=message)
        )

    def ask_to_replay(self, stream: Stream, exchange: ServerExchangeCore, upto: int) -> bool:
        """Ask the application for the events that an exchange has missed.

        Returns:
            Whether the exchange waits for them. False: it was ended instead.
        """
        return self._owner.ask_to_replay(exchange, self.session, stream.number, stream.sent, upto)

    def report_log(self, what: str) -> None:
        """Report what has happened to the event log of the session."""
        text = f"the event log of {self.session!r} {what}"
        self.core.events.append(LimitReached(rule="OWN-033", text=text))

    # ------------------------------------------------------------------- clients of 2024-11-05

    def duplicate_refused(self, raw: RequestId, route: Any, batch: Batch | None) -> None:
        """A client of 2024-11-05 gets no error in the response to its POST."""
        if not self.is_old:
            super().duplicate_refused(raw, route, batch)

    def answers_unreadable(
        self, breach: Breach, route: Any, raw_id: Any, batch: Batch | None
    ) -> bool:
        """A client of 2024-11-05 is answered on its stream."""
        return not self.is_old and super().answers_unreadable(breach, route, raw_id, batch)


def _arrives(route: Any) -> bool:
    """Whether a message before the last one would arrive by this route."""
    return not route.over and bool(route.takes())
