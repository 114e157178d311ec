"""The events of an endpoint, beside those of its connections."""

from __future__ import annotations

import enum
from typing import TypeAlias, final

import attrs

from ..._connection.events import Event
from ..._wire.values import Record
from .sessions import Session


@final
@attrs.frozen(kw_only=True)
class SessionStarted(Record):
    """A client of a legacy revision has opened a session: its `initialize` is answered."""

    session: Session


class SessionEnd(enum.Enum):
    """Why a session ended."""

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
        is_answer: Whether the message is the answer to a request of the other side.
    """

    session: Session | None
    is_answer: bool


HTTPEvent: TypeAlias = Event | SessionStarted | SessionEnded | MessageUndelivered
