"""Requests that this side sends: their arguments, and whether they can be sent now."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from sansmcp import (
    CloseCause,
    ConnectionFailed,
    Event,
    InputRequired,
    JSONObject,
    OutgoingRequest,
    Phase,
    Ready,
    State,
)

from .anomalies import LOGGER
from .bounds import UNSENT_BYTES, limit_of
from .call import (
    ClientSide,
    ProgressHandler,
    RequestingSide,
    check_progress_handler,
    internal_error,
)
from .endings import ended_text, not_sent_error, tell_opening_failed, with_stderr
from .errors import ConnectionLost, RequestTimeout
from .stderr import StderrTail

if TYPE_CHECKING:
    from sansmcp.http import ClientEndpoint

_NOT_OPEN: Final = "the session was lost, and is not open again yet"


@attrs.define
class RequestArguments:
    """The arguments of `Requester.request`."""

    method: str
    params: JSONObject | None
    meta: JSONObject | None
    timeout: float | None
    max_timeout: float | None
    log_level: str | None
    on_progress: ProgressHandler | None

    def times(self, default: float) -> tuple[float, float | None]:
        """Return the two timeouts to use, and check `on_progress`.

        Args:
            default: Seconds, for a `timeout` of None.
        """
        check_progress_handler(self.on_progress)
        return default if self.timeout is None else self.timeout, self.max_timeout

    def send(
        self,
        send_request: Callable[..., OutgoingRequest],
        timeout: float,
        max_timeout: float | None,
        **more: Any,
    ) -> OutgoingRequest:
        """Send the request.

        Args:
            send_request: The method of the core.
            timeout: Used in place of the attribute, which may be None; `max_timeout` likewise.
            max_timeout: Seconds allowed in all.
            more: Arguments of `send_request` that not every side has.
        """
        return send_request(
            self.method,
            self.params,
            meta=self.meta,
            progress=self.on_progress is not None,
            timeout=limit_of(timeout),
            max_timeout=None if max_timeout is None else limit_of(max_timeout),
            **more,
        )


class Requester(ABC):
    """Sends requests to the peer. `typed_requests` has the types of each method, for checkers."""

    def request(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
        log_level: str | None = None,
        on_progress: ProgressHandler | None = None,
    ) -> Any:
        """Send a request to the peer, wait for the response, and return its result.

        On asyncio and trio this is awaited. The request is cancelled when the waiting caller is
        (by its loop, by Ctrl-C, or since the call that it belongs to is cancelled).

        Args:
            method: The method name.
            params: The params object.
            meta: Merged into `params._meta`.
            timeout: Seconds allowed without a response or progress, with the time that the request
                waits for others to be sent; None: the default of the connection; `math.inf`: no
                limit.
            max_timeout: Seconds allowed in all, with or without progress, and with the time that
                `on_request` takes to answer what the server asks before it answers.
            log_level: The least severe level of log messages about this request, which then come
                to `on_notification`; None: none. Before 2026-07-28 `logging/setLevel` decides.
            on_progress: Asks for progress; a plain function, called with progress, total and
                message. If it raises, the request is cancelled, and this method raises that.

        Raises:
            PeerError: The peer answered with an error.
            McpError: The server asked something first, and `on_request` raised this. If it raised
                anything else, or its answer is not valid, that is logged, and this is -32603.
            RequestTimeout: The peer did not answer in time. The request was cancelled.
            RequestRefused: The server has refused the request, by a status of HTTP.
            ConnectionLost: The connection ended first.
            InvalidAnswer: The response is not valid.
            CallCancelled: Without a loop: the peer has cancelled the call that this belongs to.
            sansmcp.LocalProtocolError: The request would break the protocol. It was not sent.
            TypeError: `on_progress` is async.
        """
        return self._send_request(
            RequestArguments(method, params, meta, timeout, max_timeout, log_level, on_progress)
        )

    @abstractmethod
    def _send_request(self, arguments: RequestArguments) -> Any:
        """Send the request: an awaitable of the result, or the result."""


class SendState:
    """Whether requests can be sent now, and if not, why.

    Attributes:
        stderr: Standard error of the server process, which errors show.
        ended_by: Why the connection has ended, as far as it is known.
        is_lost: The session over HTTP was lost and is not open again: nothing can be sent.
        needs_reopening: No other session is being opened: the next request has to open one.
    """

    def __init__(self, side: RequestingSide) -> None:
        self.stderr: StderrTail | None = None
        self.ended_by: CloseCause | None = None
        self.is_lost: bool = False
        self.needs_reopening: bool = False
        self._side: Final = side
        self._was_open = False  # a session over HTTP
        self._opening_failed: ConnectionFailed | None = None  # of the session that is wanted

    @property
    def has_room(self) -> bool:
        """Whether output may be added that can wait as well."""
        return not self._has_no_session and self._side.unsent_bytes <= UNSENT_BYTES

    @property
    def _has_no_session(self) -> bool:
        """Whether a session over HTTP is lost, also where its event was not handled yet."""
        if self.is_lost or not self._was_open:
            return self.is_lost
        return cast("ClientEndpoint", self._side).phase is not Phase.OPERATING

    @property
    def is_hopeless(self) -> bool:
        """Whether there will be no room, however long one waits."""
        return self.needs_reopening or self._side.state is State.CLOSED

    def check_open(self, method: str) -> None:
        """Raise `ConnectionLost` unless the connection is open."""
        if self._side.state is not State.OPEN:
            lost = ConnectionLost(f"{method} was not sent: {ended_text(self.ended_by)}")
            raise with_stderr(lost, self.stderr)

    def check_session(self, method: str) -> None:
        """Raise `ConnectionLost` if the session is lost: a notification does not wait for one."""
        if self._has_no_session:
            raise ConnectionLost(f"{method} was not sent: {_NOT_OPEN}")

    def check_reopened(self, method: str) -> None:
        """Raise why there is still no session, after a wait for room."""
        if self.is_lost:
            raise not_sent_error(method, self._opening_failed)

    def no_room_error(self, method: str, seconds: float) -> RequestTimeout:
        """The exception after a wait for room that was too long."""
        why = _NOT_OPEN if self.is_lost else f"the peer has not read for {seconds} s"
        return RequestTimeout(f"{method} was not sent: {why}")

    def start(
        self, timeout: float, probe_timeout: float, hint: str | None, *, data: object, now: float
    ) -> None:
        """Begin to open the conversation of a client. `data` becomes that of the handle."""
        cast(ClientSide, self._side).start(
            timeout=limit_of(timeout),
            probe_timeout=limit_of(probe_timeout),
            hint=hint,
            data=data,
            now=now,
        )

    def reopen(self, data: object, now: float) -> None:
        """Begin to open another session, in place of the lost one."""
        self.needs_reopening = False
        cast("ClientEndpoint", self._side).reopen(now=now).data = data

    def lose_session(self, *, needs_reopening: bool) -> None:
        """The session was lost. The core opens another one, unless that is left to this side."""
        self.is_lost = True
        self.needs_reopening |= needs_reopening

    def note(self, event: Event) -> None:
        """Update `is_lost` from an HTTP event. Call this before the event is handled."""
        if isinstance(event, Ready):
            self.is_lost = False
            self._was_open = True
            self._opening_failed = None
        elif isinstance(event, ConnectionFailed):
            self._opening_failed = event
        elif self._opening_failed is not None:
            tell_opening_failed(event, self._opening_failed)

    def check_answers(self, method: str, deadline: float, now: float) -> None:
        """Raise if it is too late for answers to the questions about a request."""
        if self._side.state is not State.OPEN:
            lost = ConnectionLost(f"{method} was not answered: the connection has ended")
            raise with_stderr(lost, self.stderr)
        if now >= deadline:
            raise RequestTimeout(f"{method} was not answered in the time allowed in all")

    def send_answers(
        self,
        asked: InputRequired,
        responses: JSONObject,
        *,
        progress: bool,
        timeout: float,
        deadline: float,
        data: object,
        now: float,
    ) -> OutgoingRequest:
        """Send the next round of a request, with the answers to its questions.

        Raises:
            McpError: An answer has no JSON form.
        """
        try:
            return cast(ClientSide, self._side).provide_input(
                asked.request,
                responses,
                progress=progress,
                timeout=limit_of(timeout),
                max_timeout=limit_of(deadline - now),
                data=data,
                now=now,
            )
        except Exception as error:  # also what an encoder says of values that are no JSON
            text = "the handler's answers to questions about %.80r cannot be sent"
            LOGGER.error(text, asked.request.method, exc_info=error)
            raise internal_error(error) from error
