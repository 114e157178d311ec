"""The tables of states: of a connection, of the opening of a conversation, a request and a task.

Rule 1: only these tables decide whether a step is legal.
Rule 2: the tables are the same for client and server.
Rule 3: a pair that is missing is an illegal step: the state does not change.

The diagrams in the documentation are drawn from these tables.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final


class State(enum.IntEnum):
    """The state of a connection: which directions still work."""

    OPEN = 0
    """Both directions work."""
    DRAINING = 1
    """The peer has ended its stream; the requests that were received may still be answered."""
    SEND_CLOSED = 2
    """Sending has failed; responses of the peer may still arrive."""
    CLOSED = 3
    """No direction works; output that was queued before may still be written."""


class StateTrigger(enum.IntEnum):
    """The causes of a step from one `State` to another."""

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

    A legacy conversation opens with a handshake, and both sides have these phases. A modern one has
    no handshake: a server is in `OPERATING` from the start, and a client is in `PROBING` until it
    knows the revisions of the server.
    """

    NEW = 0
    """No revision is agreed."""
    PROBING = 1
    """`server/discover` was sent and is not answered."""
    NEGOTIATING = 2
    """`initialize` was sent and is not answered."""
    AGREED = 3
    """`initialize` was answered with a result; `notifications/initialized` is still to come."""
    OPERATING = 4
    """The conversation is open: all that was agreed, or that requests declare, may be used."""


class PhaseTrigger(enum.IntEnum):
    """The messages that cause a step from one `Phase` to another."""

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
    """The state of one request, on the side that sent it and on the side that received it."""

    OPEN = 0
    """The request was sent or received, and has not ended."""
    ANSWERED = 1
    """The request has ended with a response: a result or an error."""
    CANCELLED = 2
    """The request has ended without a response: cancelled, timed out or lost."""
    REFUSED = 3
    """The library has answered the request with an error after the application had received it."""


class RequestTrigger(enum.IntEnum):
    """The causes of a step from one `RequestState` to another."""

    ANSWER = 0
    CANCEL = 1
    REFUSE = 2


REQUESTS: Final[Mapping[tuple[RequestState, RequestTrigger], RequestState]] = {
    (RequestState.OPEN, RequestTrigger.ANSWER): RequestState.ANSWERED,
    (RequestState.OPEN, RequestTrigger.CANCEL): RequestState.CANCELLED,
    # A response and a cancellation may cross: the later of the two changes nothing.
    (RequestState.CANCELLED, RequestTrigger.ANSWER): RequestState.CANCELLED,
    (RequestState.CANCELLED, RequestTrigger.CANCEL): RequestState.CANCELLED,
    (RequestState.ANSWERED, RequestTrigger.CANCEL): RequestState.ANSWERED,
    (RequestState.OPEN, RequestTrigger.REFUSE): RequestState.REFUSED,
    # The application may answer a refused request as usual: nothing is sent.
    (RequestState.REFUSED, RequestTrigger.ANSWER): RequestState.REFUSED,
    (RequestState.REFUSED, RequestTrigger.CANCEL): RequestState.REFUSED,
}


class TaskStatus(enum.IntEnum):
    """The status of a task. The last three are final."""

    WORKING = 0
    """The request is worked on."""
    INPUT_REQUIRED = 1
    """The work waits for answers of the side that has asked for the task."""
    COMPLETED = 2
    """The task has a result."""
    FAILED = 3
    """The task has an error; in 2025-11-25 also: the result of its tool is an error."""
    CANCELLED = 4
    """The task was cancelled before it had a result."""

    @property
    def is_final(self) -> bool:
        """Whether the task never changes again."""
        return self >= TaskStatus.COMPLETED

    @property
    def text(self) -> str:
        """The status as it stands in messages."""
        return self.name.lower()


class TaskTrigger(enum.IntEnum):
    """The causes of a step from one `TaskStatus` to another."""

    REPORT = 0
    """The message, the time to live or the poll interval has changed."""
    ASK = 1
    """A question was asked."""
    ANSWER = 2
    """A question was answered, and others wait."""
    LAST_ANSWER = 3
    """The last question was answered."""
    COMPLETE = 4
    FAIL = 5
    CANCEL = 6


TASKS: Final[Mapping[tuple[TaskStatus, TaskTrigger], TaskStatus]] = {
    # Keeps TASK-017, TASK-018, XTASK-049, XTASK-050, XTASK-051.
    (TaskStatus.WORKING, TaskTrigger.REPORT): TaskStatus.WORKING,
    (TaskStatus.WORKING, TaskTrigger.ASK): TaskStatus.INPUT_REQUIRED,
    (TaskStatus.WORKING, TaskTrigger.COMPLETE): TaskStatus.COMPLETED,
    (TaskStatus.WORKING, TaskTrigger.FAIL): TaskStatus.FAILED,
    (TaskStatus.WORKING, TaskTrigger.CANCEL): TaskStatus.CANCELLED,
    (TaskStatus.INPUT_REQUIRED, TaskTrigger.REPORT): TaskStatus.INPUT_REQUIRED,
    (TaskStatus.INPUT_REQUIRED, TaskTrigger.ASK): TaskStatus.INPUT_REQUIRED,
    (TaskStatus.INPUT_REQUIRED, TaskTrigger.ANSWER): TaskStatus.INPUT_REQUIRED,
    (TaskStatus.INPUT_REQUIRED, TaskTrigger.LAST_ANSWER): TaskStatus.WORKING,
    (TaskStatus.INPUT_REQUIRED, TaskTrigger.COMPLETE): TaskStatus.COMPLETED,
    (TaskStatus.INPUT_REQUIRED, TaskTrigger.FAIL): TaskStatus.FAILED,
    (TaskStatus.INPUT_REQUIRED, TaskTrigger.CANCEL): TaskStatus.CANCELLED,
}

TASK_STATUSES: Final[Mapping[str, TaskStatus]] = {status.text: status for status in TaskStatus}
"""Each status by its text in messages."""


def _reachable(start: TaskStatus) -> frozenset[TaskStatus]:
    found, fresh = {start}, {start}
    while fresh:
        fresh = {after for (before, _), after in TASKS.items() if before in fresh} - found
        found |= fresh
    return frozenset(found)


REACHABLE: Final[Mapping[TaskStatus, frozenset[TaskStatus]]] = {
    status: _reachable(status) for status in TaskStatus
}
"""By status: all that a task may have later, after any number of steps."""
