"""What an observer has to say. The union `Observation` is closed, like `Event`.

`number` counts what was seen, from 1: a line, a message or a whole batch, both sides together.
`index` is the place within a batch, from 0; None outside of one. `time` is the caller's clock in
seconds as it was last told; None before.
"""

from __future__ import annotations

import enum
from typing import TypeAlias, final

import attrs

from .._spec.rule_levels import Level
from .._wire.values import JSONObject, RequestId, Side


class MessageKind(enum.Enum):
    """What a message is, by its members."""

    REQUEST = "it has a method and an id"
    NOTIFICATION = "it has a method and no id"
    RESULT = "it answers a request with a result"
    ERROR = "it answers a request with an error, or tells of one"
    INVALID = "an object that is none of these, or no object"


@final
@attrs.frozen(kw_only=True)
class MessageSeen:
    """One message, good or bad. It comes before everything else that is said about it.

    Attributes:
        side: Who sent it.
        kind: What it is, by its members.
        method: Its method; for an answer, that of the request it belongs to, where known.
        id: Its id, or None where it has none that could be one.
        message: The decoded message; it is yours.
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
class TextSeen:
    """Bytes that are no message, such as log output among the messages.

    Attributes:
        side: Who sent them.
        data: The line without its newline; of one that is too long, the start. It is the side's
            data and may be confidential.
        text: Why it is no message.
    """

    side: Side
    data: bytes
    text: str
    number: int
    time: float | None


@final
@attrs.frozen(kw_only=True)
class AnswerMatched:
    """An answer and the request it belongs to.

    Attributes:
        side: Who asked.
        method: The request's method.
        id: The request's id, as the request had it.
        request_number: The request's number.
        seconds: From the request to the answer; None without times.
        code: The error code; None for a result.
        cancelled: The request had been cancelled. That they cross is nobody's fault.
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
class CancellationMatched:
    """A cancellation and the request it belongs to.

    Attributes:
        side: Who cancels: the side that asked or, of a subscription, the server that serves it.
        method: The request's method.
        id: The request's id, as the request had it.
        request_number: The request's number.
        reason: What the side says of why.
        answered: The answer came first. That they cross is nobody's fault.
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
class RequestUnanswered:
    """No answer to this request was seen, and none will be. That alone breaks no rule.

    Attributes:
        side: Who asked.
        method: The request's method.
        id: The request's id.
        request_number: The request's number.
        seconds: From the request to the end; None without times.
        cancelled: The request was cancelled.
    """

    side: Side
    method: str
    id: RequestId
    request_number: int
    seconds: float | None
    cancelled: bool


@final
@attrs.frozen(kw_only=True)
class HandshakeSeen:
    """The server has answered `initialize`: this is what was agreed on.

    `client_info` and the rest are None where they are no objects. They are yours.
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
class DiscoverySeen:
    """The server has answered `server/discover`: this is what it speaks and serves.

    Attributes:
        revisions: The revisions that it speaks, in its order.
        server_info: What it says of itself; None where that is no object. It is yours.
        server_capabilities: What it declares. It is yours.
    """

    revisions: tuple[str, ...]
    server_info: JSONObject | None
    server_capabilities: JSONObject
    number: int
    time: float | None


@final
@attrs.frozen(kw_only=True)
class ViolationSeen:
    """A side broke a rule: every ordering of the two directions would show it.

    Attributes:
        side: Who broke it.
        rule: The id of the rule; the table of rules has its sentence and page.
        level: How binding it is.
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
    """Why less is judged from here on."""

    MIDDLE = "the observation began in the middle of the conversation"
    ERA = "the revision is not known here"
    UNREADABLE = "something could not be read, and may have been any message"
    FORGOTTEN = "a limit of `Config` was reached, and the oldest was forgotten"


@final
@attrs.frozen(kw_only=True)
class BlindSpot:
    """From here on less is judged. Each text is told once, or once for each side.

    Attributes:
        cause: Why.
        side: Whose messages are not fully known; None: both sides'.
        text: What will go unnoticed, in one sentence.
    """

    cause: BlindCause
    side: Side | None
    text: str
    number: int
    time: float | None


@final
@attrs.frozen(kw_only=True)
class StreamEnded:
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
    | ViolationSeen
    | BlindSpot
    | StreamEnded
)
