"""The events of a connection. The union `Event` is closed: end a `match` with `assert_never`.

Events are frozen. The dicts in them (params, results, data) belong to the application that takes
the event; the connection keeps no reference to them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar, final

import attrs

from .._rules.conversation import Peer
from .._wire.values import JSONObject, JSONValue, Record, RequestId
from .config import Config
from .handles import (
    IncomingRequest,
    Listener,
    Listing,
    OutgoingRequest,
    Ping,
    Start,
    Subscription,
    Task,
)
from .tasks.records import TaskRecord

# ---------------------------------------------------------------------------- the connection


@final
@attrs.frozen(kw_only=True)
class Ready(Record):
    """The conversation is open: revision, info and capabilities of the peer are known.

    On a client it is the ending of `start`. On a server it comes with `notifications/initialized`,
    or with the first request of 2026-07-28.

    Attributes:
        revision: The revision of the conversation.
        peer: The other side.
        start: On a client, the handle from `start`; on a server None.

    Source: MCP 2025-11-25, basic/lifecycle, Initialization.
    """

    revision: str
    peer: Peer
    start: Start | None = None


class FailureCause(enum.Enum):
    """The reason why `start` of a client has failed."""

    UNSUPPORTED_REVISION = "the server answered with a revision that this client does not speak"
    REFUSED = "the server answered initialize with an error"
    INVALID_ANSWER = "the server's answer to initialize is not valid"
    MISSING_CAPABILITY = "the server lacks a capability that this client requires"
    TIMED_OUT = "the server did not answer initialize in time"
    LOST = "the connection ended before the server had answered initialize"


@final
@attrs.frozen(kw_only=True)
class ConnectionFailed(Record):
    """`start` of a client has failed. This is its one ending; `ConnectionClosed` follows.

    Attributes:
        start: The handle from `start`.
        cause: Why it failed.
        text: The cause in one sentence.
        code: The code of the server's error response, as in `ErrorReceived`; None without one. The
            same holds for `message` and `data`.
        status: The status of the HTTP response that refused the start, if any.
        retry_after: Seconds to wait before the next try, from the header `Retry-After`, if any.
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
    """The reason why a connection has ended."""

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
    """The connection has ended. This is its last event."""

    cause: CloseCause


# ------------------------------------------------------------------------ messages of the peer


@final
@attrs.frozen(kw_only=True)
class RequestReceived(Record):
    """The peer has sent a request: answer it with `send_result` or `send_error`."""

    request: IncomingRequest


@final
@attrs.frozen(kw_only=True)
class RequestAnswered(Record):
    """The library has answered a request of the peer; the application has nothing to do.

    The request was `ping`, `initialize`, `server/discover` or `logging/setLevel`; or it was
    refused, and `code` is the code of the error.
    """

    request: IncomingRequest
    code: int | None = None


class CancelCause(enum.Enum):
    """The reason why a request of the peer was cancelled."""

    PEER = "the peer cancelled it"
    EOF = "the peer ended its stream"
    CLOSED = "this side closed the connection"
    SEND_FAILED = "sending failed"
    FAILED = "the connection broke down"


@final
@attrs.frozen(kw_only=True)
class RequestCancelled(Record):
    """A request of the peer was cancelled: stop the work on it.

    A response would not be sent (`send_result` returns False). `reason` and `meta` (the `_meta`)
    are those of the peer's `notifications/cancelled`; None where it has none.

    Source: MCP 2025-11-25, basic/utilities/cancellation.
    """

    request: IncomingRequest
    cause: CancelCause
    reason: str | None = None
    meta: JSONObject | None = None


@final
@attrs.frozen(kw_only=True)
class NotificationReceived(Record):
    """The peer has sent a notification; it needs no response.

    Attributes:
        method: The method name.
        params: The params object, `{}` if there was none.
        subscription: In 2026-07-28, the subscription that the notification was sent for; else None.
        peer: The sender.
        context: The context of the HTTP request that carried the notification, as in
            `IncomingRequest.context`; None on other transports.
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
    """The server has accepted a subscription of this client.

    `notifications` is the part of the filter that the server serves.

    Source: MCP 2026-07-28, basic/patterns/subscriptions.
    """

    subscription: Subscription
    notifications: JSONObject


class SubscriptionEnd(enum.Enum):
    """The reason why a subscription of this client has ended."""

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
    """A subscription of this client has ended. This is its one ending.

    `code`, `message`, `data`, `status` and `retry_after` are those of the server's error response
    if `reason` is ERROR, as in `ErrorReceived`. `text` says in one sentence why the subscription
    ended without a response; else it is empty.
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
    """A client has subscribed (2026-07-28), and the acknowledgement was queued.

    `publish` sends matching changes to the listener.
    """

    listener: Listener


@final
@attrs.frozen(kw_only=True)
class ListenerRemoved(Record):
    """A subscription of a client has ended, but not by `end_listener`.

    `reason` and `meta` are as in `RequestCancelled`.
    """

    listener: Listener
    cause: CancelCause
    reason: str | None = None
    meta: JSONObject | None = None


# ------------------------------------------------------------------------ tasks of this side


@final
@attrs.frozen(kw_only=True)
class TaskInputReceived(Record):
    """The peer has answered questions that `require_task_input` has asked.

    Attributes:
        task: The task.
        responses: The answers that are new, by the keys of the questions.
        missing: The keys of the questions that still wait. If there are none, the task works on.
    """

    task: Task
    responses: dict[str, JSONObject]
    missing: tuple[str, ...] = ()


class TaskEnd(enum.Enum):
    """The reason why a task has ended without a result of this side."""

    PEER = "the peer cancelled it"
    ELSEWHERE = "another process has ended it"
    EXPIRED = "its time to live is over"
    LOST = "the store does not have it any more"
    UNANSWERED = "the peer did not answer a question"
    NO_ROOM = "there is no room for it, or for its result"
    FAILED = "the store has failed"
    CLOSED = "the connection that kept it has ended"


@final
@attrs.frozen(kw_only=True)
class TaskCancelled(Record):
    """A task has ended without a result of this side: stop the work on it.

    `complete_task` and the other verbs return False from now on. `text` has the cause in one
    sentence, if there is more to say than `cause` does; else it is empty.
    """

    task: Task
    cause: TaskEnd
    text: str = ""


@final
@attrs.frozen(kw_only=True)
class TaskWanted(Record):
    """The library needs the record of a task: give it by `provide_task`.

    `fail_task_lookup` says that it cannot be found out now. It comes where `Tasks.store` is
    `"ask"`, at most one at a time for each task.

    Attributes:
        number: The number of the question.
        task_id: The id of the task, as the peer has given it; it may be of any form.
    """

    number: int
    task_id: str = attrs.field(repr=False)


@final
@attrs.frozen(kw_only=True)
class TasksWanted(Record):
    """The library needs a page of an owner's tasks: give it by `provide_tasks`.

    `fail_task_lookup` says that they cannot be found out now. It comes where `Tasks.store` is
    `"ask"`, in 2025-11-25 only.

    Attributes:
        number: The number of the question.
        owner: The owner whose tasks are wanted, and no others.
        after: The place behind which the page begins (`TaskRecord.place`); None: at the first.
        limit: The most records that are wanted.
    """

    number: int
    owner: str = attrs.field(repr=False)
    after: str | None
    limit: int


@final
@attrs.frozen(kw_only=True)
class TaskToStore(Record):
    """A record is to be stored: say what became of it by `task_stored`.

    Write it only if the stored record of the same id has the version before `record.version`; for
    version 1, only if there is none. Compare and write in one step. `fail_task_lookup` says that
    it could not be stored, or has no room. It comes where `Tasks.store` is `"ask"`.
    """

    number: int
    record: TaskRecord


TaskQuestion: TypeAlias = TaskWanted | TasksWanted | TaskToStore
"""An event by which the library asks the application about stored tasks."""

# ---------------------------------------------------------------- endings of our own requests


@final
@attrs.frozen(kw_only=True)
class CacheHit(Record):
    """A result comes from the cache of this client, and not from the server.

    Attributes:
        age: Seconds since it was received.
        failure: Why a stale result is used (`Cache.stale_if_error`), in one sentence: the failure
            of the request that was sent for a new one. Empty: the result is fresh.

    Source: MCP 2026-07-28, server/utilities/caching.
    """

    age: float
    failure: str = ""


@final
@attrs.frozen(kw_only=True)
class ResponseReceived(Record):
    """The peer has answered a request of this side with a result. This is its one ending.

    `cached` is None, unless the result comes from the cache of this client.
    """

    request: OutgoingRequest
    result: JSONObject
    cached: CacheHit | None = None


@final
@attrs.frozen(kw_only=True)
class ErrorReceived(Record):
    """The peer has answered a request of this side with an error. This is its one ending.

    Attributes:
        request: The handle of the request.
        code: The JSON-RPC error code.
        message: The message of the error.
        data: The data of the error, or None.
        status: The status of the HTTP response that carried the error; None on other transports,
            and on a stream that belongs to no single request.
        retry_after: Seconds to wait before the next try, from the header `Retry-After`; None
            without the header.
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
    """The server has answered a request of this client with questions. This is its one ending.

    `provide_input` sends the request again with the answers. The application may also drop the
    request: the server does not wait for the answers.

    Attributes:
        request: The handle of the request.
        questions: The questions by the server's key. Each is an object with `method`
            (`elicitation/create`, `sampling/createMessage` or `roots/list`) and perhaps `params`.
            The client has declared the capability that each of them needs.

    Source: MCP 2026-07-28, basic/patterns/mrtr.
    """

    request: OutgoingRequest
    questions: dict[str, JSONObject]


class FailureReason(enum.Enum):
    """The reason why a request of this side has ended without a valid response."""

    CANCELLED = "this side cancelled it"
    TIMED_OUT = "no response came in time"
    LOST = "the connection ended first"
    INVALID_ANSWER = "the response is not valid"
    NO_STREAM = "there is no stream on which it could be sent"
    TOO_MANY_ROUNDS = "the server asked for input more often than the limit allows"
    REFUSED = "the server refused the HTTP request that carried it"
    TASK_CANCELLED = "the task that it had become was cancelled"
    TASK_LOST = "the other side does not have the task that it had become"


@final
@attrs.frozen(kw_only=True)
class RequestFailed(Record):
    """A request of this side has ended without a valid response. This is its one ending.

    The event has other attributes than `ErrorReceived`, so that a failure of the library or of the
    transport cannot be taken for an error of the peer.

    Attributes:
        request: The handle of the request.
        reason: Why it has ended.
        text: The reason in one sentence, with the cause as far as known.
        result: The `result` member of the response that was refused, if `reason` is
            INVALID_ANSWER and the response has one; else None.
        not_run: True: the server has certainly not run the request. Only `ClientEndpoint` knows
            this, of a request that waited for a new session when it ended: the old session was
            lost before the request was sent, or the server had refused it with 404. False: the
            server may have run it.
    """

    request: OutgoingRequest
    reason: FailureReason
    text: str
    result: JSONValue = None
    not_run: bool = False


@final
@attrs.frozen(kw_only=True)
class ProgressReceived(Record):
    """The peer has sent progress of a request of this side.

    `progress` is larger than in the event before; `total` has the same unit, if known. `meta` is
    the `_meta` of the notification; None if it has none.
    """

    request: OutgoingRequest
    progress: float
    total: float | None = None
    message: str | None = None
    meta: JSONObject | None = None


@final
@attrs.frozen(kw_only=True)
class TaskUpdated(Record):
    """A request of this side has become a task, or its status or message has changed.

    The request stays open; its ending brings the result. `task` is the task as the peer has told
    it; `request.task_id` is the id to keep for `resume_task`.
    """

    request: OutgoingRequest
    task: JSONObject


@final
@attrs.frozen(kw_only=True)
class TaskInputRequired(Record):
    """The task that a request has become asks questions (2026-07-28): `provide_task_input`.

    The request stays open. `questions` are as in `InputRequired`, each of them once. In 2025-11-25
    such questions come as requests of the server, whose `_meta` names the task.
    """

    request: OutgoingRequest
    questions: dict[str, JSONObject]


@final
@attrs.frozen(kw_only=True)
class PageReceived(Record):
    """The peer has sent one page of a listing.

    `items` is the list in `result` (the tools, prompts and so on). `cached` is None, unless the
    page comes from the cache of this client.
    """

    listing: Listing
    items: list[Any]
    result: JSONObject
    cached: CacheHit | None = None


class ListingEnd(enum.Enum):
    """The reason why a listing has ended."""

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
    """A listing has ended. This is its one ending.

    `stale` is True if the pages are out of date: the peer has announced a change of the list
    meanwhile, or has refused a cursor with -32602. Drop all pages, and list again without a cursor.

    `code`, `message`, `data`, `status` and `retry_after` are those of the peer's error response if
    `reason` is ERROR, as in `ErrorReceived`. `text` says in one sentence why a page has failed
    without an error response; else it is empty.
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
    """A ping has ended. This is its one ending.

    Attributes:
        ping: The handle from `ping`.
        failure: Why there was no response; None if there was one. An error response counts as one:
            it shows that the peer is alive.
        seconds: The time from ping to response; None without a clock.
        text: The failure in one sentence; empty if there was none.
    """

    ping: Ping
    failure: FailureReason | None = None
    seconds: float | None = None
    text: str = ""


# -------------------------------------------------------------- breaches, limits, late messages


@final
@attrs.frozen(kw_only=True)
class ProtocolViolation(Record):
    """The peer has broken a rule of the protocol.

    Attributes:
        rule: The id of the rule; the table of rules has its text and its page.
        text: The breach in one sentence.
        tolerated: Whether the message was handled all the same.
        fatal: Whether the connection ends because of the breach; `ConnectionClosed` follows.
        excerpt: The first bytes of data that was no valid message; else None. A note in it says
            where the data was cut and how long it was. It is data of the peer: keep it out of logs
            that others read.
        code: The JSON-RPC code of the error response to the message, or of the one that would be
            sent if the message could be answered; None if there is none.
        request: The request of either side that the breach is about, if any.
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
    """A message of the peer had no effect: it came too late, or it names no open request.

    Such messages are part of normal operation; neither side has broken a rule.

    Attributes:
        rule: The id of the rule on such messages.
        text: The reason in one sentence.
        method: The method; None for a response.
        id: The request id or the progress token in the message.
        answer: The whole message, if it is a response; else None. A late response to
            `server/discover` tells which revisions the server speaks.
    """

    rule: str
    text: str
    method: str | None
    id: RequestId | None
    answer: JSONObject | None = None


@final
@attrs.frozen(kw_only=True)
class ErrorWithoutIdReceived(Record):
    """The peer has sent an error without an id: it could not read the id of a message.

    Source: MCP 2025-11-25, basic/index, Responses.
    """

    code: int
    message: str
    data: JSONValue = None


@final
@attrs.frozen(kw_only=True)
class LimitReached(Record):
    """A limit of `Config` was reached; `text` says what was refused or forgotten."""

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
    | TaskInputReceived
    | TaskCancelled
    | TaskQuestion
    | ResponseReceived
    | ErrorReceived
    | InputRequired
    | RequestFailed
    | ProgressReceived
    | TaskUpdated
    | TaskInputRequired
    | PageReceived
    | ListingEnded
    | PingEnded
    | ProtocolViolation
    | MessageIgnored
    | ErrorWithoutIdReceived
    | LimitReached
)

# --------------------------------------------------------------------------------- the queue

Item = TypeVar("Item")

_TAKEN: Final[Any] = None
"""Stands in the place of an event that was taken: the queue keeps no reference to the event."""
_LEAST_CUT: Final = 32
"""So many places of taken events are removed at a time, or more."""


@final
class EventQueue(list[Item]):
    """The events that the application has not taken yet, and the bytes that they may hold.

    The queue is a list whose first items may be taken already; it is cleared when all are taken. An
    empty list needs a tenth of the memory of an empty deque, and most connections are idle.

    Attributes:
        n_bytes: Bytes of the messages that were received since the queue was empty.
    """

    __slots__ = ("_n_taken", "n_bytes")

    def __init__(self) -> None:
        super().__init__()
        self.n_bytes: int = 0
        self._n_taken = 0

    def take(self) -> Item:
        """Take the oldest event; the queue must not be empty."""
        n_taken = self._n_taken
        event = self[n_taken]
        self[n_taken] = _TAKEN
        n_taken += 1
        if n_taken == len(self):
            self.clear()
            n_taken = 0
        elif n_taken >= _LEAST_CUT and 2 * n_taken >= len(self):  # linear in all events
            del self[:n_taken]
            n_taken = 0
        self._n_taken = n_taken
        return event

    def withdraw(self, is_stale: Callable[[Item], bool]) -> None:
        """Remove the events that were not taken and say what is no longer so."""
        self[:] = [event for event in self.waiting if not is_stale(event)]
        self._n_taken = 0

    @property
    def waiting(self) -> list[Item]:
        """The events that were not taken, oldest first."""
        return self[self._n_taken :]

    def message_came(self, size: int) -> None:
        """Count a received message of `size` bytes; its events follow."""
        self.n_bytes = self.n_bytes + size if self else size

    def is_over(self, config: Config) -> bool:
        """Whether more events, or more bytes, wait than the limits of `config` allow."""
        n_waiting = len(self) - self._n_taken
        return n_waiting > config.max_events or (
            self.n_bytes > config.max_event_bytes and n_waiting > 0
        )
