"""Results and exceptions for the endings that the core reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, assert_never

from sansmcp import (
    CloseCause,
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

from .errors import (
    AuthorizationError,
    ConnectionLost,
    InvalidAnswer,
    PeerError,
    Refusal,
    RequestRefused,
    RequestTimeout,
    StartFailed,
    TaskCancelledError,
    TaskLost,
)
from .stderr import StderrTail

_NOT_KEPT: Final = (
    "the session was lost, and no new one could be kept; the next request tries again"
)
_NOT_OPENED: Final = (
    "the session was lost, and no new one could be opened: %s; the next request tries again"
)

_LEAST_ERROR_STATUS: Final = 400
"""HTTP statuses from this one on are errors."""

Outcome: TypeAlias = ResponseReceived | ErrorReceived | RequestFailed

_REQUESTS: Final[Mapping[FailureReason, type[Exception]]] = {
    # A caller that cancels a request no longer waits for its ending, but for that of a task.
    FailureReason.CANCELLED: TaskCancelledError,
    FailureReason.TASK_CANCELLED: TaskCancelledError,
    FailureReason.TASK_LOST: TaskLost,
    FailureReason.TIMED_OUT: RequestTimeout,
    FailureReason.LOST: ConnectionLost,
    FailureReason.NO_STREAM: ConnectionLost,
    FailureReason.REFUSED: RequestRefused,
    FailureReason.INVALID_ANSWER: InvalidAnswer,
    FailureReason.TOO_MANY_ROUNDS: InvalidAnswer,
}
_LISTINGS: Final[Mapping[ListingEnd, type[Exception]]] = {
    ListingEnd.TIMED_OUT: RequestTimeout,
    ListingEnd.LOST: ConnectionLost,
    ListingEnd.REFUSED: RequestRefused,
}
_SUBSCRIPTIONS: Final[Mapping[SubscriptionEnd, type[Exception]]] = {
    SubscriptionEnd.TIMED_OUT: RequestTimeout,
    SubscriptionEnd.LOST: ConnectionLost,
    SubscriptionEnd.INVALID_ANSWER: InvalidAnswer,
    SubscriptionEnd.REFUSED: RequestRefused,
}
_STARTS: Final[Mapping[FailureCause, type[Exception]]] = {
    FailureCause.INVALID_ANSWER: InvalidAnswer,
    FailureCause.TIMED_OUT: RequestTimeout,
    FailureCause.LOST: ConnectionLost,
}


def result_of(outcome: Outcome, stderr: StderrTail | None = None) -> JSONObject:
    """Return the result of a request, or raise the exception that says why there is none."""
    match outcome:
        case ResponseReceived():
            return outcome.result
        case ErrorReceived():
            raise _peer_error(outcome, outcome.code)
        case RequestFailed(reason=FailureReason.CANCELLED | FailureReason.TASK_CANCELLED):
            who = "this side" if outcome.reason is FailureReason.CANCELLED else "the server"
            raise TaskCancelledError(f"{who} has cancelled the task of {outcome.request.method}")
        case RequestFailed():
            kind = _REQUESTS[outcome.reason]
            if kind is InvalidAnswer:
                raise InvalidAnswer(outcome.text, outcome.result)
            raise _failure(kind, outcome.text, outcome.request.data, stderr)
        case _:
            assert_never(outcome)


def seconds_of(ended: PingEnded, stderr: StderrTail | None = None) -> float:
    """Return the seconds that a ping took, or raise the error of a failed ping."""
    if ended.failure is not None:
        text = f"ping: {ended.text}"
        raise _failure(_REQUESTS[ended.failure], text, ended.ping.data, stderr)
    assert ended.seconds is not None  # adapters always tell the time
    return ended.seconds


def check_listing(ended: ListingEnded, stderr: StderrTail | None = None) -> None:
    """Raise unless the listing is complete: half a list must not look like a whole one."""
    if ended.reason is ListingEnd.COMPLETE:
        return
    if ended.code is not None:
        raise _peer_error(ended, ended.code)
    text = f"{ended.listing.method} is incomplete: {ended.text or ended.reason.value}"
    kind = _LISTINGS.get(ended.reason, InvalidAnswer)
    raise _failure(kind, text, ended.listing.data, stderr)


def check_subscription(ended: SubscriptionEnded, stderr: StderrTail | None = None) -> None:
    """Raise unless the subscription was ended on purpose."""
    if ended.code is not None:
        raise _peer_error(ended, ended.code)
    if ended.reason in _SUBSCRIPTIONS:
        text = f"the subscription has ended: {ended.text or ended.reason.value}"
        kind = _SUBSCRIPTIONS[ended.reason]
        raise _failure(kind, text, ended.subscription.data, stderr)


def start_error(failed: ConnectionFailed, stderr: StderrTail | None = None) -> Exception:
    """Return the exception that says why a client could not be opened."""
    if failed.code is not None:
        return _peer_error(failed, failed.code, failed.text)
    kind = _STARTS.get(failed.cause, StartFailed)
    if failed.cause is FailureCause.REFUSED and failed.start.data.refusal.status is not None:
        kind = RequestRefused
    elif failed.status is not None:
        return RequestRefused(failed.text, failed.status, (), failed.retry_after)
    return _failure(kind, failed.text, failed.start.data, stderr)


def tell_opening_failed(event: object, opening: ConnectionFailed) -> None:
    """Note for a request that was lost with its session why no other session could be opened."""
    may_have_run = False  # listings and pings may be repeated whatever has become of them
    match event:
        case RequestFailed(reason=FailureReason.LOST):
            waiting: Any = event.request.data
            may_have_run = not event.not_run
        case ListingEnded(reason=ListingEnd.LOST):
            waiting = event.listing.data
        case PingEnded(failure=FailureReason.LOST):
            waiting = event.ping.data
        case _:
            return
    waiting.refusal = Refusal(opening=opening, may_have_run=may_have_run)


def not_sent_error(method: str, opening: ConnectionFailed | None) -> Exception:
    """Return the exception for a request that cannot be sent, since there is no session.

    Args:
        method: That of the request.
        opening: Why no session could be opened; None if one was opened, and lost at once.
    """
    if opening is None:
        return ConnectionLost(f"{method} was not sent: {_NOT_KEPT}")
    return _opening_error(f"{method} was not sent: {_NOT_OPENED % opening.text}", opening)


def _opening_error(
    text: str, opening: ConnectionFailed, *, may_have_run: bool = False
) -> Exception:
    """The exception where a lost session could not be replaced, with the HTTP status if any.

    `RequestRefused` invites callers to send the request again. For a request that the server may
    have run, it is therefore `ConnectionLost`, and the status is in its cause.
    """
    cause = start_error(opening)
    error: Exception = ConnectionLost(text)
    if not may_have_run:
        if isinstance(cause, RequestRefused):
            error = RequestRefused(text, cause.status, cause.challenges, cause.retry_after)
        elif isinstance(cause, PeerError) and (cause.status or 0) >= _LEAST_ERROR_STATUS:
            error = RequestRefused(text, cause.status, (), cause.retry_after)
    error.__cause__ = cause
    return error


def _peer_error(
    ended: ErrorReceived | ListingEnded | SubscriptionEnded | ConnectionFailed,
    code: int,
    text: str | None = None,
) -> PeerError:
    """The exception for an error of the peer."""
    return PeerError(
        code,
        ended.message or "",
        ended.data,
        text,
        status=ended.status,
        retry_after=ended.retry_after,
    )


def _failure(
    kind: type[Exception], text: str, waiting: Any, stderr: StderrTail | None
) -> Exception:
    """The exception for a caller that waits, with all that is known of the reason."""
    refusal: Refusal = waiting.refusal
    if kind is ConnectionLost and refusal.opening is not None:
        return _opening_error(text, refusal.opening, may_have_run=refusal.may_have_run)
    if kind is RequestRefused:
        if isinstance(refusal.cause, AuthorizationError):
            text += f": {refusal.cause}"
        elif refusal.cause is not None:
            text += f"; on_unauthorized raised {type(refusal.cause).__name__}"
        refused = RequestRefused(text, refusal.status, refusal.challenges, refusal.retry_after)
        refused.__cause__ = refusal.cause
        return refused
    error = with_stderr(kind(text), stderr)
    if kind is ConnectionLost:
        error.__cause__ = refusal.hook_error
    return error


def ended_text(cause: CloseCause | None) -> str:
    """A text that says that the connection has ended, and why if that is known."""
    text = "the connection has ended"
    return text if cause is None else f"{text}: {cause.value}"


def with_stderr(error: Exception, stderr: StderrTail | None) -> Exception:
    """Give an error the end of standard error, which often says why a process has ended."""
    if isinstance(error, ConnectionLost):
        error._tail = stderr
    return error
