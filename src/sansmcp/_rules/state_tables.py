"""Which state may follow which: for the connection, the handshake, and one request.

Rule 1: whether a step is legal is decided by these tables and nowhere else.
Rule 2: no table knows which role we play; both sides walk the same ones.
Rule 3: a missing pair is a mistake of whoever tried the step, and the state stays as it was.

The diagrams in the documentation are drawn from these tables.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final


class State(enum.IntEnum):
    """What still works on the connection."""

    OPEN = 0
    """Both directions."""
    DRAINING = 1
    """The peer has ended its stream; requests already read are being finished."""
    SEND_CLOSED = 2
    """Sending has failed; answers that are on their way may still arrive."""
    CLOSED = 3
    """Nothing; output queued before may still be written."""


class StateTrigger(enum.IntEnum):
    """What moves a connection."""

    EOF = 0
    EOF_WITH_DRAIN = 1
    DRAINED = 2
    SEND_FAILED = 3
    CLOSE = 4


STATES: Final[Mapping[tuple[State, StateTrigger], State]] = {
    (State.OPEN, StateTrigger.EOF): State.CLOSED,
    (State.OPEN, StateTrigger.EOF_WITH_DRAIN): State.DRAINING,
    (State.OPEN, StateTrigger.SEND_FAILED): State.SEND_CLOSED,
    (State.OPEN, StateTrigger.CLOSE): State.CLOSED,
    (State.DRAINING, StateTrigger.DRAINED): State.CLOSED,
    (State.DRAINING, StateTrigger.SEND_FAILED): State.CLOSED,
    (State.DRAINING, StateTrigger.CLOSE): State.CLOSED,
    (State.SEND_CLOSED, StateTrigger.EOF): State.CLOSED,
    (State.SEND_CLOSED, StateTrigger.EOF_WITH_DRAIN): State.CLOSED,
    (State.SEND_CLOSED, StateTrigger.CLOSE): State.CLOSED,
}


class Phase(enum.IntEnum):
    """How far the opening of a conversation has come.

    A legacy one opens with a handshake, which both sides see. A modern one needs none: a server
    never has a phase of it, and a client only until it knows what the server speaks.
    """

    NEW = 0
    """Nothing agreed."""
    PROBING = 1
    """`server/discover` was sent to find out what the server speaks, and is not answered."""
    NEGOTIATING = 2
    """`initialize` was sent and is not answered."""
    AGREED = 3
    """`initialize` was answered with a result; `notifications/initialized` is still to come."""
    OPERATING = 4
    """Everything that was negotiated, or that each request declares, may be used."""


class PhaseTrigger(enum.IntEnum):
    """The messages that move the opening."""

    INITIALIZE = 0
    INITIALIZE_RESULT = 1
    INITIALIZE_ERROR = 2
    INITIALIZED = 3
    DISCOVER = 4
    DISCOVER_RESULT = 5
    DISCOVER_ERROR = 6


PHASES: Final[Mapping[tuple[Phase, PhaseTrigger], Phase]] = {
    (Phase.NEW, PhaseTrigger.INITIALIZE): Phase.NEGOTIATING,
    (Phase.NEGOTIATING, PhaseTrigger.INITIALIZE_RESULT): Phase.AGREED,
    (Phase.NEGOTIATING, PhaseTrigger.INITIALIZE_ERROR): Phase.NEW,
    (Phase.AGREED, PhaseTrigger.INITIALIZED): Phase.OPERATING,
    (Phase.NEW, PhaseTrigger.DISCOVER): Phase.PROBING,
    (Phase.PROBING, PhaseTrigger.DISCOVER_RESULT): Phase.OPERATING,
    (Phase.PROBING, PhaseTrigger.DISCOVER_ERROR): Phase.NEW,
}


class RequestState(enum.IntEnum):
    """Where one request stands, seen from either of its ends."""

    OPEN = 0
    """Sent or received, and not over."""
    ANSWERED = 1
    """Over by an answer: a result or an error."""
    CANCELLED = 2
    """Over without one: cancelled, timed out, or lost with the connection."""
    REFUSED = 3
    """Over by an error of the library, which found a fault when the application had it already."""


class RequestTrigger(enum.IntEnum):
    """What happens to a request."""

    ANSWER = 0
    CANCEL = 1
    REFUSE = 2


REQUESTS: Final[Mapping[tuple[RequestState, RequestTrigger], RequestState]] = {
    (RequestState.OPEN, RequestTrigger.ANSWER): RequestState.ANSWERED,
    (RequestState.OPEN, RequestTrigger.CANCEL): RequestState.CANCELLED,
    # Losing a race is no mistake: an answer may cross a cancellation, either way round.
    (RequestState.CANCELLED, RequestTrigger.ANSWER): RequestState.CANCELLED,
    (RequestState.CANCELLED, RequestTrigger.CANCEL): RequestState.CANCELLED,
    (RequestState.ANSWERED, RequestTrigger.CANCEL): RequestState.ANSWERED,
    (RequestState.OPEN, RequestTrigger.REFUSE): RequestState.REFUSED,
    # The application need not look whether what it has read was good.
    (RequestState.REFUSED, RequestTrigger.ANSWER): RequestState.REFUSED,
    (RequestState.REFUSED, RequestTrigger.CANCEL): RequestState.REFUSED,
}
