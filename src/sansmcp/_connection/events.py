"""What a connection has to say. The union `Event` is closed: end a `match` with `assert_never`.

Events are frozen. The dicts in them (params, results, data) belong to whoever took the event; the
connection keeps no reference to them.
"""

from __future__ import annotations

import enum
from typing import Any, Final, TypeAlias, TypeVar, final

import attrs

from .._rules.conversation import Peer
from .._wire.values import JSONObject, JSONValue, Record, RequestId
from .config import Config
from .handles import IncomingRequest, Listener, Listing, OutgoingRequest, Ping, Start, Subscription

# ---------------------------------------------------------------------------- the connection


@final
@attrs.frozen(kw_only=True)
class Ready(Record):
    """The peer is known.

    On a client it is the ending of `start`; on a server `initialized` came, or the first request of
    the revision without a handshake.

    Source: MCP 2025-11-25, basic/lifecycle, Initialization.
    """

    revision: str
    peer: Peer
    start: Start | None = None


class FailureCause(enum.Enum):
    """Why a client could not be opened."""

    UNSUPPORTED_REVISION = "the server answered with a revision that this client does not speak"
    REFUSED = "the server answered initialize with an error"
    INVALID_ANSWER = "the server's answer to initialize is not valid"
    MISSING_CAPABILITY = "the server lacks a capability that this client requires"
    TIMED_OUT = "the server did not answer initialize in time"
    LOST = "the connection ended before the server had answered initialize"


@final
@attrs.frozen(kw_only=True)
class ConnectionFailed(Record):
    """The other ending of `start`. `ConnectionClosed` follows.

    `code`, `message` and `data` are those of the server's error where it sent one, as in
    `ErrorReceived`. `status` and `retry_after` are those of the HTTP response that has refused the
    start, with an error in it or without.
    """

    start: Start
    cause: FailureCause
    text: str
    code: int | None = None
    message: str | None = None
    data: JSONValue = None
    status: int | None = None
    retry_after: float | None = None


class CloseCause(enum.Enum):
    """Why a connection ended."""

    EOF = "the peer ended its stream"
    CLOSED = "this side closed the connection"
    SEND_FAILED = "sending failed, and the peer ended its stream"
    START_FAILED = "the connection could not be opened"
    UNRESPONSIVE = "the peer stopped answering pings"
    OVERFLOW = "the peer stopped reading, and the limit on unsent output was reached"
    SESSION_LOST = "the server ended the session before it was open"


@final
@attrs.frozen(kw_only=True)
class ConnectionClosed(Record):
    """The last event of every connection."""

    cause: CloseCause


# ------------------------------------------------------------------------ what the peer asked


@final
@attrs.frozen(kw_only=True)
class RequestReceived(Record):
    """The peer asks: answer with `send_result` or `send_error`."""

    request: IncomingRequest


@final
@attrs.frozen(kw_only=True)
class RequestAnswered(Record):
    """The core has answered this request by itself.

    It was `ping`, `initialize` or `logging/setLevel`; or it was refused, and `code` is the error
    code.
    """

    request: IncomingRequest
    code: int | None = None


class CancelCause(enum.Enum):
    """Why a request that we were handling is over."""

    PEER = "the peer cancelled it"
    EOF = "the peer ended its stream"
    CLOSED = "this side closed the connection"
    SEND_FAILED = "sending failed"
    FAILED = "the connection broke down"


@final
@attrs.frozen(kw_only=True)
class RequestCancelled(Record):
    """Stop working on this request; an answer would not be sent (`send_result` returns False).

    `reason` and `meta` (the `_meta`) are those of the peer's cancellation; None where it has none.

    Source: MCP 2025-11-25, basic/utilities/cancellation.
    """

    request: IncomingRequest
    cause: CancelCause
    reason: str | None = None
    meta: JSONObject | None = None


@final
@attrs.frozen(kw_only=True)
class NotificationReceived(Record):
    """The peer tells something; there is nothing to answer. `params` is `{}` where absent.

    `subscription` is the one that it was sent for, in the modern revision; `peer` is who sent it,
    where that may be one of several; `context` is what the transport knows of the HTTP request
    that brought it (as `IncomingRequest.context`), None elsewhere.
    """

    method: str
    params: JSONObject
    subscription: Subscription | None = None
    peer: Peer | None = attrs.field(default=None, eq=False)  # it is compared by identity
    context: Any = attrs.field(default=None, eq=False)


# ------------------------------------------------------------------------------ subscriptions


@final
@attrs.frozen(kw_only=True)
class SubscriptionAcknowledged(Record):
    """The server has taken a subscription of ours, as far as `notifications` says.

    Source: MCP 2026-07-28, basic/patterns/subscriptions.
    """

    subscription: Subscription
    notifications: JSONObject


class SubscriptionEnd(enum.Enum):
    """Why a subscription of ours ended."""

    ENDED = "the server ended it"
    ERROR = "the server answered with an error"
    CANCELLED = "this side cancelled it"
    TIMED_OUT = "the server did not acknowledge it in time"
    LOST = "the connection ended first"
    INVALID_ANSWER = "the server's answer is not valid"
    REFUSED = "the server refused the HTTP request that carried it"


@final
@attrs.frozen(kw_only=True)
class SubscriptionEnded(Record):
    """The one ending of a subscription of ours.

    `code`, `message`, `data`, `status` and `retry_after` are those of the server's error where
    `reason` is ERROR, as in `ErrorReceived`. `text` says in one sentence why it ended without a
    result or an error; else it is empty.
    """

    subscription: Subscription
    reason: SubscriptionEnd
    code: int | None = None
    message: str | None = None
    data: JSONValue = None
    status: int | None = None
    retry_after: float | None = None
    text: str = ""


@final
@attrs.frozen(kw_only=True)
class ListenerAdded(Record):
    """The client has subscribed, and was told what is honoured. `publish` serves it."""

    listener: Listener


@final
@attrs.frozen(kw_only=True)
class ListenerRemoved(Record):
    """A subscription of the client is over, for a reason that is not `end_listener`.

    `reason` and `meta` are as in `RequestCancelled`.
    """

    listener: Listener
    cause: CancelCause
    reason: str | None = None
    meta: JSONObject | None = None


# ------------------------------------------------------------------ how our requests came out


@final
@attrs.frozen(kw_only=True)
class ResponseReceived(Record):
    """A request of ours was answered with a result. This is its one ending."""

    request: OutgoingRequest
    result: JSONObject


@final
@attrs.frozen(kw_only=True)
class ErrorReceived(Record):
    """A request of ours was answered with an error. This is its one ending.

    Attributes:
        request: The request of ours.
        code: The JSON-RPC error code.
        message: The peer's sentence.
        data: What the peer added, or None.
        status: The HTTP status of the response that brought the error; None where there was none,
            and where it came on a stream that belongs to no single request.
        retry_after: Seconds after which the server wants to be asked again (`Retry-After`); None
            where it did not say.
    """

    request: OutgoingRequest
    code: int
    message: str
    data: JSONValue = None
    status: int | None = None
    retry_after: float | None = None


@final
@attrs.frozen(kw_only=True)
class InputRequired(Record):
    """The server asks before it can answer a request of ours. This is the request's one ending.

    Go on with `provide_input`, which sends the request again with the answers, or let it be:
    nobody waits for them.

    Attributes:
        request: The request of ours.
        questions: What is asked, by the server's key: each an object with `method`
            (`elicitation/create`, `sampling/createMessage` or `roots/list`) and, if it has any,
            `params`. Checked to be what this client has declared.

    Source: MCP 2026-07-28, basic/patterns/mrtr.
    """

    request: OutgoingRequest
    questions: dict[str, JSONObject]


class FailureReason(enum.Enum):
    """Why a request of ours ended without a proper answer."""

    CANCELLED = "this side cancelled it"
    TIMED_OUT = "no answer came in time"
    LOST = "the connection ended first"
    INVALID_ANSWER = "the answer is not valid"
    NO_STREAM = "there is no stream on which it could be sent"
    TOO_MANY_ROUNDS = "the server asked for input more often than the limit allows"
    REFUSED = "the server refused the HTTP request that carried it"


@final
@attrs.frozen(kw_only=True)
class RequestFailed(Record):
    """A request of ours ended without a proper answer from the peer. This is its one ending.

    It is not shaped like an error of the peer, so that the two cannot be confused.

    Attributes:
        request: The request of ours.
        reason: Why it ended.
        text: The reason in one sentence, with what is known of the cause.
        result: The `result` member of the answer that was refused, where `reason` is
            INVALID_ANSWER and the answer has one; else None.
        not_run: The server has certainly not run the request. Only `ClientEndpoint` says so, of a
            request that waited for a new session when it ended: the old one was lost before it was
            sent, or the server had refused it with 404. False: the server may have run it.
    """

    request: OutgoingRequest
    reason: FailureReason
    text: str
    result: JSONValue = None
    not_run: bool = False


@final
@attrs.frozen(kw_only=True)
class ProgressReceived(Record):
    """The peer is getting on with a request of ours.

    `progress` has increased since the last one; `total` has the same unit, where known. `meta` is
    the `_meta` of the notification, None where it has none.
    """

    request: OutgoingRequest
    progress: float
    total: float | None = None
    message: str | None = None
    meta: JSONObject | None = None


@final
@attrs.frozen(kw_only=True)
class PageReceived(Record):
    """One page of a listing. `items` is the list inside `result` (tools, prompts, ...)."""

    listing: Listing
    items: list[Any]
    result: JSONObject


class ListingEnd(enum.Enum):
    """Why a listing ended."""

    COMPLETE = "the last page came"
    CYCLE = "a cursor came a second time"
    PAGES = "the limit on pages was reached"
    ITEMS = "the limit on items was reached"
    EMPTY_PAGES = "the limit on empty pages in a row was reached"
    ERROR = "the peer answered with an error"
    CANCELLED = "this side cancelled it"
    TIMED_OUT = "a page did not come in time"
    LOST = "the connection ended first"
    INVALID_ANSWER = "a page is not valid"
    REFUSED = "the server refused the HTTP request for a page"


@final
@attrs.frozen(kw_only=True)
class ListingEnded(Record):
    """The one ending of a listing.

    `stale`: what was listed is out of date, since the peer said meanwhile that the list had
    changed, or refused a cursor with -32602. Throw away the pages that were kept, and list again
    without a cursor.

    `code`, `message`, `data`, `status` and `retry_after` are those of the peer's error where
    `reason` is ERROR, as in `ErrorReceived`. `text` says in one sentence why a page has failed
    without an error of the peer; else it is empty.
    """

    listing: Listing
    reason: ListingEnd
    stale: bool
    code: int | None = None
    message: str | None = None
    data: JSONValue = None
    status: int | None = None
    retry_after: float | None = None
    text: str = ""


@final
@attrs.frozen(kw_only=True)
class PingEnded(Record):
    """The one ending of a ping.

    `failure` is None where the peer answered (an error counts: it shows that the peer is alive);
    `seconds` is the time it took, where a clock was told; `text` says in one sentence why it has
    failed, and is empty where it has not.
    """

    ping: Ping
    failure: FailureReason | None = None
    seconds: float | None = None
    text: str = ""


# ------------------------------------------------------------------------------- what is odd


@final
@attrs.frozen(kw_only=True)
class ProtocolViolation(Record):
    """The peer broke a rule.

    Attributes:
        rule: The id of the rule; the table of rules has its sentence and page.
        text: What was wrong, in one sentence.
        tolerated: The message was handled all the same.
        fatal: The connection ends because of it; `ConnectionClosed` follows.
        excerpt: The start of the offending bytes, where they were no message; a note in it says
            where it is cut, and how long the whole was. Not for logs that others read: it is the
            peer's data.
        code: The JSON-RPC error code that was or would be answered, where there is one.
        request: The request of ours, or of the peer's, that this is about, where there is one.
    """

    rule: str
    text: str
    tolerated: bool = False
    fatal: bool = False
    excerpt: bytes | None = None
    code: int | None = None
    request: IncomingRequest | OutgoingRequest | None = None


@final
@attrs.frozen(kw_only=True)
class MessageIgnored(Record):
    """A message that lost a race, or names nothing that is in flight. It is nobody's fault.

    `method` is None for an answer; `id` is the request id or progress token it names. `answer` is
    the whole message where it is an answer: a late one to `server/discover` says what the server
    speaks.
    """

    rule: str
    text: str
    method: str | None
    id: RequestId | None
    answer: JSONObject | None = None


@final
@attrs.frozen(kw_only=True)
class ErrorWithoutIdReceived(Record):
    """The peer could not read a message of ours so far as to say which one it was.

    Source: MCP 2025-11-25, basic/index, Responses.
    """

    code: int
    message: str
    data: JSONValue = None


@final
@attrs.frozen(kw_only=True)
class LimitReached(Record):
    """A limit of `Config` was reached and something was refused or forgotten, as `text` says."""

    rule: str
    text: str


Event: TypeAlias = (
    Ready
    | ConnectionFailed
    | ConnectionClosed
    | RequestReceived
    | RequestAnswered
    | RequestCancelled
    | NotificationReceived
    | SubscriptionAcknowledged
    | SubscriptionEnded
    | ListenerAdded
    | ListenerRemoved
    | ResponseReceived
    | ErrorReceived
    | InputRequired
    | RequestFailed
    | ProgressReceived
    | PageReceived
    | ListingEnded
    | PingEnded
    | ProtocolViolation
    | MessageIgnored
    | ErrorWithoutIdReceived
    | LimitReached
)

# ------------------------------------------------------------------------------- those that wait

Item = TypeVar("Item")

_TAKEN_TOGETHER: Final = 32
"""So many events that were taken are let go of at a time, while others wait."""


@final
class EventQueue(list[Item]):
    """Events that the caller has not taken yet, and how much of what was received they may hold.

    It is a list whose first items may have been taken already, and empty as soon as all of them
    are: without items it takes a tenth of what a deque takes, and most connections are idle.

    Attributes:
        n_bytes: Bytes of the messages that were received since it was empty.
    """

    __slots__ = ("_n_taken", "n_bytes")

    def __init__(self) -> None:
        super().__init__()
        self.n_bytes: int = 0
        self._n_taken = 0

    def take(self) -> Item:
        """Take the oldest event; there is one as long as the queue is true."""
        n_taken = self._n_taken
        event = self[n_taken]
        n_taken += 1
        if n_taken == len(self):
            self.clear()
            n_taken = 0
        elif n_taken == _TAKEN_TOGETHER:
            del self[:n_taken]
            n_taken = 0
        self._n_taken = n_taken
        return event

    @property
    def waiting(self) -> list[Item]:
        """A list of the events that were not taken, the oldest first."""
        return self[self._n_taken :]

    def message_came(self, size: int) -> None:
        """Count a message of so many bytes, whose events follow."""
        self.n_bytes = self.n_bytes + size if self else size

    def is_over(self, config: Config) -> bool:
        """Whether more waits than the limits say."""
        n_waiting = len(self) - self._n_taken
        return n_waiting > config.max_events or (
            self.n_bytes > config.max_event_bytes and n_waiting > 0
        )
