"""From the endings that the core reports to results and exceptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, assert_never

from sansmcp import (
    ConnectionFailed,
    ErrorReceived,
    FailureCause,
    FailureReason,
    JSONObject,
    ListingEnd,
    ListingEnded,
    PingEnded,
    RequestFailed,
    ResponseReceived,
    SubscriptionEnd,
    SubscriptionEnded,
)

from ._errors import (
    ConnectionLost,
    InvalidAnswer,
    PeerError,
    RequestRefused,
    RequestTimeout,
    StartFailed,
)
from ._stderr import StderrTail

Outcome: TypeAlias = ResponseReceived | ErrorReceived | RequestFailed

_REQUESTS: Final[Mapping[FailureReason, Callable[[str], Exception]]] = {
    # No CANCELLED: whoever cancels a request no longer waits for its ending.
    FailureReason.TIMED_OUT: RequestTimeout,
    FailureReason.LOST: ConnectionLost,
    FailureReason.NO_STREAM: ConnectionLost,
    FailureReason.REFUSED: RequestRefused,
    FailureReason.INVALID_ANSWER: InvalidAnswer,
    FailureReason.TOO_MANY_ROUNDS: InvalidAnswer,
}
_LISTINGS: Final[Mapping[ListingEnd, Callable[[str], Exception]]] = {
    ListingEnd.TIMED_OUT: RequestTimeout,
    ListingEnd.LOST: ConnectionLost,
}
_SUBSCRIPTIONS: Final[Mapping[SubscriptionEnd, Callable[[str], Exception]]] = {
    SubscriptionEnd.TIMED_OUT: RequestTimeout,
    SubscriptionEnd.LOST: ConnectionLost,
    SubscriptionEnd.INVALID_ANSWER: InvalidAnswer,
}
_STARTS: Final[Mapping[FailureCause, Callable[[str], Exception]]] = {
    FailureCause.INVALID_ANSWER: InvalidAnswer,
    FailureCause.TIMED_OUT: RequestTimeout,
    FailureCause.LOST: ConnectionLost,
}


def result_of(outcome: Outcome, stderr: StderrTail | None = None) -> JSONObject:
    """The result of a request, or the exception that says why there is none."""
    match outcome:
        case ResponseReceived():
            return outcome.result
        case ErrorReceived():
            raise PeerError(outcome.code, outcome.message, outcome.data)
        case RequestFailed():
            raise with_stderr(_REQUESTS[outcome.reason](outcome.text), stderr)
        case _:
            assert_never(outcome)


def seconds_of(ended: PingEnded, stderr: StderrTail | None = None) -> float:
    """How long a ping took, or the exception that says why it did not come back."""
    if ended.failure is not None:
        raise with_stderr(_REQUESTS[ended.failure](f"ping: {ended.failure.value}"), stderr)
    assert ended.seconds is not None  # adapters always tell the time
    return ended.seconds


def check_listing(ended: ListingEnded, stderr: StderrTail | None = None) -> None:
    """Raise unless the listing came to its proper end: half a list must not look like a whole."""
    if ended.reason is ListingEnd.COMPLETE:
        return
    if ended.code is not None:
        raise PeerError(ended.code, ended.message or "", ended.data)
    text = f"{ended.listing.method} is incomplete: {ended.reason.value}"
    raise with_stderr(_LISTINGS.get(ended.reason, InvalidAnswer)(text), stderr)


def check_subscription(ended: SubscriptionEnded, stderr: StderrTail | None = None) -> None:
    """Raise unless somebody has ended the subscription on purpose."""
    if ended.code is not None:
        raise PeerError(ended.code, ended.message or "", ended.data)
    if ended.reason in _SUBSCRIPTIONS:
        text = f"the subscription is over: {ended.reason.value}"
        raise with_stderr(_SUBSCRIPTIONS[ended.reason](text), stderr)


def start_error(failed: ConnectionFailed, stderr: StderrTail | None = None) -> Exception:
    """Why a client could not be opened."""
    if failed.code is not None:
        return PeerError(failed.code, failed.message or "", failed.data, failed.text)
    return with_stderr(_STARTS.get(failed.cause, StartFailed)(failed.text), stderr)


def with_stderr(error: Exception, stderr: StderrTail | None) -> Exception:
    """What a process wrote last often says why it is gone."""
    if isinstance(error, ConnectionLost):
        error._tail = stderr
    return error
