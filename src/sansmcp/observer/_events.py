"""The events of an observer. The union `Observation` is closed, like `Event`.

`number` counts lines, messages and whole batches of both sides together, from 1; over HTTP it
counts heads, too. `index` is the place of a message in its batch, from 0; None outside of a batch.
`time` is the latest time that the caller gave, in seconds; None before the first.
"""

from __future__ import annotations

import enum
from typing import TypeAlias, final

import attrs

from .._spec.rule_levels import Level
from .._wire.values import JSONObject, Record, RequestId, Side


class MessageKind(enum.Enum):
    """The kind of a message, as its members show it."""

    REQUEST = "it has a method and an id"
    NOTIFICATION = "it has a method and no id"
    RESULT = "it answers a request with a result"
    ERROR = "it answers a request with an error, or tells of one"
    INVALID = "an object that is none of these, or no object"


@final
@attrs.frozen(kw_only=True)
class MessageSeen(Record):
    """A message was seen, good or bad. All other events about it come later.

    Attributes:
        side: The side that sent it.
        kind: The kind of the message.
        method: Its method; of a response, the method of the request, where known.
        id: Its id; None where it has no string or integer as id.
        message: The decoded message, which belongs to the caller.
    """

    side: Side
    kind: MessageKind
    method: str | None
    id: RequestId | None
    message: object
    number: int
    index: int | None
    time: float | None


@final
@attrs.frozen(kw_only=True)
class TextSeen(Record):
    """Bytes that are no message were seen, such as log output among the messages.

    Attributes:
        side: The side that sent them.
        data: The line without its newline, or the start of a line that is too long. It may be
            confidential.
        text: Why the bytes are no message, in one sentence.
    """

    side: Side
    data: bytes
    text: str
    number: int
    time: float | None


@final
@attrs.frozen(kw_only=True)
class AnswerMatched(Record):
    """A response was seen that belongs to a known request.

    Attributes:
        side: The side that sent the request.
        method: The request's method.
        id: The request's id, as the request had it.
        request_number: The request's number.
        seconds: The time from the request to the response; None without times.
        code: The error code; None for a result.
        cancelled: Whether the request had been cancelled. That alone breaks no rule.
    """

    side: Side
    method: str
    id: RequestId
    request_number: int
    number: int
    index: int | None
    time: float | None
    seconds: float | None
    code: int | None
    cancelled: bool


@final
@attrs.frozen(kw_only=True)
class CancellationMatched(Record):
    """A cancellation was seen that belongs to a known request.

    Attributes:
        side: The side that cancels: that of the request or, of a subscription, the server.
        method: The request's method.
        id: The request's id, as the request had it.
        request_number: The request's number.
        reason: The reason that the side gives; None without one.
        answered: Whether the response came first. That alone breaks no rule.
    """

    side: Side
    method: str
    id: RequestId
    request_number: int
    number: int
    index: int | None
    time: float | None
    reason: str | None
    answered: bool


@final
@attrs.frozen(kw_only=True)
class RequestUnanswered(Record):
    """A request has no response, and none will come. That alone breaks no rule.

    Attributes:
        side: The side that sent the request.
        method: The request's method.
        id: The request's id.
        request_number: The request's number.
        seconds: The time from the request to the end; None without times.
        cancelled: Whether the request was cancelled.
    """

    side: Side
    method: str
    id: RequestId
    request_number: int
    seconds: float | None
    cancelled: bool


@final
@attrs.frozen(kw_only=True)
class HandshakeSeen(Record):
    """The server has answered `initialize` with a result: both sides agree on this.

    Members that are no objects are None. The objects belong to the caller.
    """

    revision: str
    client_info: JSONObject | None
    server_info: JSONObject | None
    client_capabilities: JSONObject | None
    server_capabilities: JSONObject | None
    number: int
    time: float | None


@final
@attrs.frozen(kw_only=True)
class DiscoverySeen(Record):
    """The server has answered `server/discover` with a result: it supports this.

    Attributes:
        revisions: The revisions that it supports, in its order.
        server_info: Its `Implementation` object; None where that is no object.
        server_capabilities: The capabilities that it declares.
    """

    revisions: tuple[str, ...]
    server_info: JSONObject | None
    server_capabilities: JSONObject
    number: int
    time: float | None


@final
@attrs.frozen(kw_only=True)
class TaskSeen(Record):
    """A task was made, or has another status than the one that was seen before.

    Attributes:
        side: The side that owns the task: it received the request, and tells of the task.
        task_id: The id of the task.
        method: The method of the request that became the task; None where that was not seen.
        status: The status, as it stands in the message.
    """

    side: Side
    task_id: str
    method: str | None
    status: str
    number: int
    index: int | None
    time: float | None


@final
@attrs.frozen(kw_only=True)
class ViolationSeen(Record):
    """A side broke a rule: every ordering of the two directions would show it.

    Attributes:
        side: The side that broke it.
        rule: The id of the rule; the table of rules has its sentence and page.
        level: How binding the rule is.
        text: What was wrong, in one sentence.
        method: The method of the message, or of the request that it is about, where known.
        id: The request id that it is about, where known.
    """

    side: Side
    rule: str
    level: Level
    text: str
    method: str | None
    id: RequestId | None
    number: int
    index: int | None
    time: float | None


class BlindCause(enum.Enum):
    """The cause of a blind spot."""

    MIDDLE = "the observation began in the middle of the conversation"
    ERA = "the revision is not known here"
    UNREADABLE = "something could not be read, and may have been any message"
    FORGOTTEN = "a limit of `Config` was reached, and the oldest was forgotten"


@final
@attrs.frozen(kw_only=True)
class BlindSpot(Record):
    """Less is judged from here on. Each text is reported once, or once for each side.

    Attributes:
        cause: The cause.
        side: The side whose messages are not fully known; None: both sides.
        text: What is not judged any more, in one sentence.
    """

    cause: BlindCause
    side: Side | None
    text: str
    number: int
    time: float | None


@final
@attrs.frozen(kw_only=True)
class StreamEnded(Record):
    """A side has ended its stream."""

    side: Side
    time: float | None


Observation: TypeAlias = (
    MessageSeen
    | TextSeen
    | AnswerMatched
    | CancellationMatched
    | RequestUnanswered
    | HandshakeSeen
    | DiscoverySeen
    | TaskSeen
    | ViolationSeen
    | BlindSpot
    | StreamEnded
)
