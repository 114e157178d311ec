"""Requests that this side sends: their arguments, and whether they can be sent now."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
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
    TaskInputRequired,
)

from .anomalies import LOGGER
from .bounds import UNSENT_BYTES, is_number, limit_of
from .call import (
    ClientSide,
    ProgressHandler,
    RequestingSide,
    check_progress_handler,
    internal_error,
    object_of,
)
from .endings import ended_text, not_sent_error, tell_opening_failed, with_stderr
from .errors import ConnectionLost, McpError, RequestTimeout
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
    task: bool | float = False

    def times(self, default: float) -> tuple[float, float | None]:
        """Return the two timeouts to use, and check `on_progress`.

        Args:
            default: Seconds, for a `timeout` of None.
        """
        check_progress_handler(self.on_progress)
        return default if self.timeout is None else self.timeout, self.max_timeout

    def of_question(self) -> tuple[str, JSONObject | None, float | None]:
        """Return the arguments of `Continued.ask_one`, where this is a question about a task.

        A client may come for the questions of its task hours later, so there is no default for the
        time that it has.

        Returns:
            The method, the params with `meta`, and seconds; None: as long as the task is kept.

        Raises:
            ValueError: `on_progress` was given: clients report no progress of such a question.
        """
        check_progress_handler(self.on_progress)
        if self.on_progress is not None:
            text = "a question about a task has no progress: call request() without on_progress"
            raise ValueError(text)
        params = self.params
        if self.meta:
            params = params or {}
            params = {**params, "_meta": {**params.get("_meta", {}), **self.meta}}
        given = [one for one in (self.timeout, self.max_timeout) if one is not None]
        return self.method, params, limit_of(min(given)) if given else None

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
            task=self.task if isinstance(self.task, bool) else milliseconds_of(self.task),
            **more,
        )


def milliseconds_of(seconds: float) -> int:
    """The time to live of a task, as the core wants it.

    Raises:
        ValueError: It is no number of seconds above zero.
    """
    if not is_number(seconds) or not 0 < seconds < math.inf:
        raise ValueError(f"task is True, or a number of seconds above zero, not {seconds!r:.40}")
    return max(round(seconds * 1000), 1)


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
        task: bool | float = False,
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
                limit. For a task: without a response to the request, and then to a poll; the time
                between two polls does not count. For a question about a task, asked by its
                handler: None is no limit, and a question that is given up is not withdrawn. The
                task stays `input_required` until the client has answered or the task has ended.
            max_timeout: Seconds allowed in all, with or without progress, and with the time that
                `on_request` takes to answer what the server asks before it answers.
            log_level: The least severe level of log messages about this request, which then come
                to `on_notification`; None: none. Before 2026-07-28 `logging/setLevel` decides.
            on_progress: Asks for progress; a plain function, called with progress, total and
                message. If it raises, the request is cancelled, and this method raises that.
            task: Whether the peer may answer with a task, which is followed to its end: the result
                is the same. If the request is cancelled, so is the task. A number: the seconds for
                which the task is to be kept, of which only peers of 2025-11-25 are told.

        Raises:
            PeerError: The peer answered with an error.
            McpError: The server asked something first, and `on_request` raised this. If it raised
                anything else, or its answer is not valid, that is logged, and this is -32603.
            RequestTimeout: The peer did not answer in time. The request was cancelled, unless it is
                a question about a task.
            RequestRefused: The server has refused the request, by a status of HTTP.
            ConnectionLost: The connection ended first.
            InvalidAnswer: The response is not valid.
            TaskCancelledError: The peer has cancelled the task.
            TaskLost: The peer does not have the task any more.
            CallCancelled: Without a loop: the peer has cancelled the call that this belongs to.
            sansmcp.LocalProtocolError: The request would break the protocol. It was not sent.
            TypeError: `on_progress` is async.
            ValueError: `on_progress` was given for a question about a task.
        """
        return self._send_request(
            RequestArguments(
                method, params, meta, timeout, max_timeout, log_level, on_progress, task
            )
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
                _objects_of(responses),
                progress=progress,
                timeout=limit_of(timeout),
                max_timeout=limit_of(deadline - now),
                data=data,
                now=now,
            )
        except Exception as error:  # also what an encoder says of values that are no JSON
            raise _unsendable(asked.request, error) from error

    def send_task_answers(
        self, asked: TaskInputRequired, responses: JSONObject, now: float
    ) -> None:
        """Send the answers to questions of a task, unless it is over.

        Raises:
            McpError: An answer has no JSON form.
        """
        try:
            answers = _objects_of(responses)
            cast(ClientSide, self._side).provide_task_input(asked.request, answers, now=now)
        except Exception as error:  # as above
            raise _unsendable(asked.request, error) from error


def _objects_of(responses: Mapping[str, object]) -> JSONObject:
    """The answers of a handler, as dicts."""
    return {key: object_of(response) for key, response in responses.items()}


def _unsendable(request: OutgoingRequest, error: Exception) -> McpError:
    """The error for answers that cannot be sent."""
    text = "the handler's answers to questions about %.80r cannot be sent"
    LOGGER.error(text, request.method, exc_info=error)
    return internal_error(error)
