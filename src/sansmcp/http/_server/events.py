"""The events of an endpoint, beside those of its connections."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TypeAlias, final

import attrs

from ..._connection.events import Event
from ..._wire.values import JSONObject, Record
from .exchange import LookupEnd, ServerExchange
from .sessions import Session


@final
@attrs.frozen(kw_only=True)
class SessionStarted(Record):
    """A client of a legacy revision has opened a session: its `initialize` is answered."""

    session: Session


class SessionEnd(enum.Enum):
    """Why a session ended."""

    REFUSED = "the `initialize` for which it was granted was refused"
    DELETED = "the client deleted it"
    EXPIRED = "the client was silent for too long"
    CLOSED = "this side ended it"
    DISCONNECTED = "the client closed the one stream that it had (2024-11-05)"
    OVERFLOW = "the client stopped reading, and the limit on unsent output was reached"


@final
@attrs.frozen(kw_only=True)
class SessionEnded(Record):
    """The last event of a session. Every open request in it has had its ending before."""

    session: Session
    cause: SessionEnd


@final
@attrs.frozen(kw_only=True)
class MessageUndelivered(Record):
    """A message of this side is lost: its client is gone, or no open stream could carry it.

    Requests are not reported in this way: they end in `RequestFailed(NO_STREAM)` (OWN-032).

    Attributes:
        session: The session that the message belongs to; None outside of one, and on a client.
        is_answer: Whether the message is the response to a request of the other side.
    """

    session: Session | None
    is_answer: bool


# ------------------------------------------------------------------ questions to the application


@final
@attrs.frozen(kw_only=True)
class CredentialsReceived(Record):
    """The head of a request is accepted: say who sends it, by `ServerEndpoint.admit`.

    `ServerExchange.refuse` refuses it with 401 or 403. It comes where `ServerEndpoint` was made
    with `credentials="ask"`.

    Attributes:
        exchange: The request. The body may come meanwhile, and is served when both are there.
        headers: The headers of the request, by names in lower case. They may hold secrets.
    """

    exchange: ServerExchange
    headers: Mapping[str, str] = attrs.field(repr=False)


@final
@attrs.frozen(kw_only=True)
class ToolSchemaWanted(Record):
    """A `tools/call` waits for the schema of its tool: `ServerEndpoint.provide_tool_schema`.

    It comes where `ServerEndpoint` was made with `tool_schema="ask"`, in 2026-07-28.

    Attributes:
        exchange: The request.
        name: The name of the tool.
    """

    exchange: ServerExchange
    name: str


@final
@attrs.frozen(kw_only=True)
class SessionRequested(Record):
    """A client wants to open a session: `ServerEndpoint.open_session` opens it.

    `ServerExchange.refuse` refuses it. It comes where `Sessions.opening` is `"ask"`.

    Attributes:
        exchange: The request.
        params: The params of `initialize`; None for a client of 2024-11-05, which opens a stream
            before.
    """

    exchange: ServerExchange
    params: JSONObject | None


@final
@attrs.frozen(kw_only=True)
class SessionWanted(Record):
    """A request names a session that is not open here.

    `ServerEndpoint.refuse_session` says that there is none, `carry` takes the request to the
    process that has the session, `replay_ended` gives the rest of a stream whose session is over,
    and `fail_lookup` says that it cannot be found out now. It comes where `Sessions.unknown` is
    `"ask"`.

    Whoever answers has to make sure that the session belongs to `exchange.principal`: one of
    another principal does not exist for this client.

    Attributes:
        exchange: The request.
        session_id: The session that it names.
        stream: The stream that a GET resumes; None: it resumes none of this session.
        after: The number of the last event that the client has of that stream; else 0.
    """

    exchange: ServerExchange
    session_id: str = attrs.field(repr=False)
    stream: int | None
    after: int


@final
@attrs.frozen(kw_only=True)
class EventToStore(Record):
    """An event of a stream of a session: store it, so that the client can resume the stream.

    It needs no answer; `ServerEndpoint.store_failed` and `store_dropped` say what became of it.
    Events of a session are to be stored in the order in which they come. They may be forgotten with
    `SessionEnded`. It comes where `Sessions.event_log` is `"ask"`.

    Attributes:
        session: The session.
        stream: The number of the stream within the session.
        event: The number of the event within the stream.
        message: The encoded message; empty where the event is only a mark to resume from.
    """

    session: Session
    stream: int
    event: int
    message: bytes = attrs.field(repr=False)


@final
@attrs.frozen(kw_only=True)
class ReplayWanted(Record):
    """A client resumes a stream: give the stored events that follow, by `ServerEndpoint.replay`.

    Give all of which `EventToStore` told before this event, or a portion of them. It comes where
    `Sessions.event_log` is `"ask"`.

    Attributes:
        exchange: The request.
        session: The session.
        stream: The number of the stream within the session.
        after: The number of the last event that the client has; those after it are wanted.
    """

    exchange: ServerExchange
    session: Session
    stream: int
    after: int


@final
@attrs.frozen(kw_only=True)
class LookupEnded(Record):
    """A question about an exchange needs no answer any more: the exchange was ended without it.

    Attributes:
        exchange: The exchange of the question.
        cause: Why it ended.
    """

    exchange: ServerExchange
    cause: LookupEnd


@final
@attrs.frozen(kw_only=True)
class RelayEnded(Record):
    """An exchange that was carried to another process ended before its response was complete.

    The process that serves it is to be told that the client is gone.

    Attributes:
        exchange: The exchange.
        cause: Why it ended.
    """

    exchange: ServerExchange
    cause: LookupEnd


Question: TypeAlias = (
    CredentialsReceived | ToolSchemaWanted | SessionRequested | SessionWanted | ReplayWanted
)
"""An event that asks the application: its exchange waits for the answer."""

HTTPEvent: TypeAlias = (
    Event
    | SessionStarted
    | SessionEnded
    | MessageUndelivered
    | Question
    | EventToStore
    | LookupEnded
    | RelayEnded
)
