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
    RequestFailed,
    ResponseReceived,
)

from ._errors import ConnectionLost, InvalidAnswer, PeerError, RequestTimeout, StartFailed

Outcome: TypeAlias = ResponseReceived | ErrorReceived | RequestFailed

_REQUESTS: Final[Mapping[FailureReason, Callable[[str], Exception]]] = {
    # No CANCELLED: whoever cancels a request no longer waits for its ending.
    FailureReason.TIMED_OUT: RequestTimeout,
    FailureReason.LOST: ConnectionLost,
    FailureReason.INVALID_ANSWER: InvalidAnswer,
}
_LISTINGS: Final[Mapping[ListingEnd, Callable[[str], Exception]]] = {
    ListingEnd.TIMED_OUT: RequestTimeout,
    ListingEnd.LOST: ConnectionLost,
}
_STARTS: Final[Mapping[FailureCause, Callable[[str], Exception]]] = {
    FailureCause.INVALID_ANSWER: InvalidAnswer,
    FailureCause.TIMED_OUT: RequestTimeout,
    FailureCause.LOST: ConnectionLost,
}


def result_of(outcome: Outcome) -> JSONObject:
    """The result of a request, or the exception that says why there is none."""
    match outcome:
        case ResponseReceived():
            return outcome.result
        case ErrorReceived():
            raise PeerError(outcome.code, outcome.message, outcome.data)
        case RequestFailed():
            raise _REQUESTS[outcome.reason](outcome.text)
        case _:
            assert_never(outcome)


def check_listing(ended: ListingEnded) -> None:
    """Raise unless the listing came to its proper end: half a list must not look like a whole."""
    if ended.reason is ListingEnd.COMPLETE:
        return
    if ended.code is not None:
        raise PeerError(ended.code, ended.message or "", ended.data)
    text = f"{ended.listing.method} is incomplete: {ended.reason.value}"
    raise _LISTINGS.get(ended.reason, InvalidAnswer)(text)


def start_error(failed: ConnectionFailed) -> Exception:
    """Why a client could not be opened."""
    if failed.code is not None:
        return PeerError(failed.code, failed.message or failed.text, failed.data)
    return _STARTS.get(failed.cause, StartFailed)(failed.text)
