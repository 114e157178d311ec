"""What the application answers to the questions of an endpoint, and how each request goes on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..._rules.sending import Breach
from ..._spec.errors import ErrorCode, LocalProtocolError
from ..._wire.setting_checks import check_object, check_text, check_whole
from ..._wire.values import JSONObject
from .._headers import Text, text_of
from .._sse import encode_event
from .bodies import HeldOutput
from .core import ServerEndpointCore
from .events import (
    CredentialsReceived,
    EventToStore,
    LookupEnded,
    Question,
    ReplayWanted,
    SessionRequested,
    SessionWanted,
    ToolSchemaWanted,
)
from .exchange import LookupEnd, ServerExchangeCore
from .lookups import Lookup, Lookups
from .methods import Methods
from .post import PostReceiver
from .relay import CarriedRequest, Relay
from .session_store import SessionStore
from .session_transport import SessionTransport
from .sessions import Session, state_of
from .streams import Stream, event_id, tag_of

StoredEvents = Sequence[tuple[int, bytes]]
"""Number and message of each event, oldest first."""


class LookupAnswers:
    """Takes the answers of the application, and goes on with the requests that have waited.

    Args:
        core: What all parts of the endpoint share.
        lookups: The exchanges that wait.
        methods: The part that serves requests whose bodies are complete.
        post: The part that serves POST.
        store: The sessions; None: there are none.
    """

    __slots__ = ("_core", "_lookups", "_methods", "_post", "_store")

    def __init__(
        self,
        core: ServerEndpointCore,
        lookups: Lookups,
        methods: Methods,
        post: PostReceiver,
        store: SessionStore | None,
    ) -> None:
        self._core = core
        self._lookups = lookups
        self._methods = methods
        self._post = post
        self._store = store

    def _take(self, question: Question, kind: type[Any]) -> Lookup | None:
        """The lookup that is answered now; None: its exchange was ended meanwhile."""
        _check_kind(question, kind)
        return self._lookups.take(question)

    # ---------------------------------------------------------------------------- credentials

    def ask_for_credentials(self, exchange: ServerExchangeCore) -> None:
        """Have the application find out who sends a request whose head is accepted."""
        handle, fields = exchange.handle, exchange.fields
        assert handle is not None
        if b"authorization" in fields.repeated:
            exchange.refuse(400, Breach("OWN-037", "authorization came more than once"))
            return
        headers = {text_of(name): text_of(value) for name, value in fields.raw.items()}
        self._lookups.ask(exchange, CredentialsReceived(exchange=handle, headers=headers))

    def admit(
        self, question: CredentialsReceived, principal: Any, principal_key: str | None
    ) -> bool:
        """Serve a request as that of a principal."""
        check_text("principal_key", principal_key, optional=True)
        lookup = self._take(question, CredentialsReceived)
        if lookup is None:
            return False
        exchange = lookup.exchange
        exchange.principal, exchange.principal_key = principal, principal_key
        if exchange.is_complete:
            self._core.at = lookup.at
            try:
                self._methods.receive(exchange, lookup.body)
            finally:
                self._lookups.release(lookup)
        return True

    # --------------------------------------------------------------------------- tool schemas

    def provide_tool_schema(self, question: ToolSchemaWanted, schema: JSONObject | None) -> bool:
        """Judge the headers of a call by the schema of its tool, and serve it."""
        check_object("schema", schema, optional=True)
        lookup = self._take(question, ToolSchemaWanted)
        if lookup is None:
            return False
        self._core.at, message = lookup.at, lookup.message
        self._post.schema_found(lookup.exchange, message, schema)
        self._lookups.release(lookup)
        return True

    # ------------------------------------------------------------------------------- sessions

    def open_session(self, question: SessionRequested, session_id: str | None) -> bool:
        """Open the session that a client has asked for."""
        store = self._store
        if store is None:
            raise LocalProtocolError("OWN-022", f"{question!r} was not asked by this endpoint")
        if session_id is not None:
            check_text("session_id", session_id)
            store.check_id(session_id)
        lookup = self._take(question, SessionRequested)
        if lookup is None:
            return False
        self._core.at, exchange = lookup.at, lookup.exchange
        if exchange.method == "GET":
            is_there = store.open_old(exchange, session_id)
        else:
            is_there = self._post.session_granted(exchange, lookup.body, lookup.id, session_id)
        self._lookups.release(lookup)
        return is_there

    def refuse_session(self, question: SessionWanted) -> bool:
        """Say that there is no such session: 404."""
        lookup = self._take(question, SessionWanted)
        if lookup is None:
            return False
        assert self._store is not None  # which has asked
        self._store.refuse_unknown(lookup.exchange, lookup.id)
        self._lookups.release(lookup)
        return True

    def carry(self, question: SessionWanted) -> CarriedRequest | None:
        """Hand over a whole request; its response comes by the relay."""
        lookup = self._take(question, SessionWanted)
        if lookup is None:
            return None
        exchange = lookup.exchange
        request = CarriedRequest(
            method=exchange.method,
            target=text_of(exchange.target),
            headers=tuple(
                (_encoded(name), _encoded(value)) for name, value in exchange.fields.raw.items()
            ),
            body=bytes(lookup.body),
            principal=exchange.principal,
            principal_key=exchange.principal_key,
        )
        lookup.relay = Relay(self._lookups, exchange, question.exchange)
        self._lookups.release(lookup)
        return request

    def replay_ended(self, question: SessionWanted, events: StoredEvents) -> bool:
        """Give what is left of a stream whose session is over, and end it."""
        _check_kind(question, SessionWanted)
        stream = question.stream
        if stream is None:
            raise LocalProtocolError("OWN-063", f"{question!r} resumes no stream")
        checked = _checked_events(events, question.after)
        size = sum(len(message) for _, message in checked)
        limit = self._core.config.max_unsent_bytes
        if size > limit:
            text = f"the events have {size} bytes, and max_unsent_bytes is {limit}"
            raise LocalProtocolError("OWN-063", text)
        lookup = self._take(question, SessionWanted)
        if lookup is None:
            return False
        exchange, held = lookup.exchange, self._core.held
        tag = tag_of(question.session_id.encode())
        if held.has_room_for(size):
            exchange.start_ended(
                [encode_event(text, id=event_id(tag, stream, event)) for event, text in checked],
                HeldOutput(held),
            )
        else:
            exchange.refuse_for_memory(lookup.id)
        self._lookups.release(lookup)
        return True

    # ------------------------------------------------------------------------- stored events

    def replay(self, question: ReplayWanted, events: StoredEvents | None, more: bool) -> bool:
        """Give the next portion of the events that a client has come back for."""
        _check_kind(question, ReplayWanted)
        checked = _checked_events(events or (), question.after)
        if more and not checked:
            raise LocalProtocolError("OWN-063", "more=True needs events to go on from")
        lookup = self._lookups.take(question)
        if lookup is None:
            return False
        stream = lookup.exchange.route
        assert isinstance(stream, Stream)  # which has asked
        transport = self._at(question.session)
        if events is None and stream.is_unknown:
            stream.refuse_unknown()
        else:
            stream.replayed(checked, more, lookup.upto)
        self._lookups.release(lookup)
        transport.core.settle()
        return True

    def store_failed(self, event: EventToStore, text: str) -> bool:
        """Note that an event could not be stored."""
        transport = self._at(event.session)
        if not transport.is_open:
            return False
        transport.streams.history().store_failed(event.stream, event.event, text)
        transport.core.settle()
        return True

    def store_dropped(self, session: Session, count: int) -> bool:
        """Note that the oldest stored events of a session were dropped."""
        check_whole("count", count)
        transport = self._at(session)
        if not transport.is_open:
            return False
        transport.streams.history().dropped(count)
        transport.core.settle()
        return True

    def _at(self, session: Session) -> SessionTransport:
        transport: SessionTransport = state_of(session)
        if transport.endpoint is not self._core:
            raise LocalProtocolError("OWN-022", f"{session!r} belongs to another endpoint")
        transport.core.now = self._core.now
        return transport

    # -------------------------------------------------------------------------------- failures

    def fail(self, question: Question, text: str, status: int, retry_after: int | None) -> bool:
        """Answer with an error, since something could not be looked up.

        Keeps OWN-062.
        """
        check_whole("status", status, 500)
        if status > 599:
            raise ValueError(f"status must be from 500 to 599, not {status}")
        more: tuple[tuple[bytes, bytes], ...] = ()
        if retry_after is not None:
            check_whole("retry_after", retry_after, 0)
            more = ((b"retry-after", b"%d" % retry_after),)
        lookup = self._lookups.take(question)
        if lookup is None:
            return False
        exchange = lookup.exchange
        route = exchange.route
        if isinstance(route, Stream):
            route.detach()
        exchange.drop_body()
        if exchange.status:
            exchange.end()
        else:
            body = self._core.error_body(text, ErrorCode.INTERNAL_ERROR, lookup.id)
            exchange.answer(status, body, more)
        self._lookups.release(lookup)
        self._core.events.append(LookupEnded(exchange=question.exchange, cause=LookupEnd.FAILED))
        return True


def _check_kind(question: object, kind: type[Any]) -> None:
    """Refuse the answer to a question of another kind."""
    if not isinstance(question, kind):
        raise LocalProtocolError("OWN-063", f"{question!r} is no {kind.__name__}")


def _encoded(text: Text) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1", "replace")


def _checked_events(events: Iterable[Any], after: int) -> list[tuple[int, bytes]]:
    """Stored events, read once and checked before their request is gone on with.

    Raises:
        LocalProtocolError: They are no pairs of a number and bytes, or do not follow that event in
            rising order.
    """
    checked: list[tuple[int, bytes]] = []
    last = after
    for event, message in events:
        if type(event) is not int or not isinstance(message, bytes):
            kinds = f"{type(event).__name__} and {type(message).__name__}"
            text = f"a stored event is its number and the bytes of its message, not {kinds}"
            raise LocalProtocolError("OWN-063", text)
        if event <= last:
            raise LocalProtocolError("OWN-063", f"event {event} does not follow event {last}")
        last = event
        checked.append((event, message))
    return checked
