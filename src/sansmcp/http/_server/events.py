"""What an endpoint has to say beside the events of a connection."""

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
    """The last event of a session. All that was open in it has had its ending."""

    session: Session
    cause: SessionEnd


@final
@attrs.frozen(kw_only=True)
class MessageUndelivered(Record):
    """A message of ours is lost: nobody is there, or no stream is open that could carry it.

    Requests of ours are not among these: they end in `RequestFailed(NO_STREAM)` (OWN-032).

    Attributes:
        session: The session it belongs to; None outside of one, and on a client.
        is_answer: It is the answer to a request of the other side.
    """

    session: Session | None
    is_answer: bool


HTTPEvent: TypeAlias = Event | SessionStarted | SessionEnded | MessageUndelivered
