"""The requests that handlers work on, on a connection that threads share."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

from sansmcp import (
    IncomingRequest,
    InputRequired,
    JSONObject,
    OutgoingRequest,
    State,
    TaskInputRequired,
)

from .._common.call import CallBase, Question, failure_of
from .._common.errors import CallCancelled
from .._common.requests import RequestArguments

if TYPE_CHECKING:
    from .._common.typed_requests import BlockingRequests as Requester
    from ._requests import RequestSender
else:
    from .._common.requests import Requester


class Call(CallBase, Requester):
    """A request of the peer that a handler works on."""

    def __init__(self, session: RequestSender, request: IncomingRequest) -> None:
        self._connection = session.side
        self._request = request
        self._clock = time.monotonic
        self._wake = session.turn
        self._session = session
        self.context: Any = session.context

    def _send_request(self, arguments: RequestArguments) -> JSONObject:
        return self._session.request(arguments, self._serving)

    @property
    def _lock(self) -> AbstractContextManager[object]:
        return self._session

    @property
    def is_cancelled(self) -> bool:
        """Whether the call was cancelled, or its client has disconnected.

        For handlers that take long. It reads what has come, if no other thread does so, and never
        blocks.
        """
        with self._session:
            self._session.look()
            return not self._request.open

    def sleep(self, seconds: float) -> None:
        """Wait as `time.sleep` does, and read and serve meanwhile.

        Raises:
            CallCancelled: The peer has cancelled the call.
        """
        self._session.sleep(self._request, seconds)

    def progress(
        self, progress: float, *, total: float | None = None, message: str | None = None
    ) -> bool:
        """Report progress to the peer, and read a cancellation of the call if one has arrived.

        Never blocks.

        Returns:
            Whether it will be sent: not if the peer asked for no progress, or the call has ended.

        Raises:
            LocalProtocolError: `progress` does not increase, or a number is not finite.
        """
        with self._session:
            self._session.look()
            return super().progress(progress, total=total, message=message)

    @property
    def _serving(self) -> IncomingRequest | None:
        return self._request


class QuestionCall(Question, Call):
    """A question of the server about a request of this side, which is handled like a request."""

    def __init__(
        self, session: RequestSender, about: OutgoingRequest, question: JSONObject, deadline: float
    ) -> None:
        self._question = question
        self._about = about
        self._is_of_task = about.open
        self._deadline = deadline
        self._session = session
        self._asker = session.side
        self.context = session.context

    @property
    def is_cancelled(self) -> bool:
        """Whether the connection or the task has ended, or the time is over."""
        with self._session:
            self._session.look()
            return self.is_over()

    def sleep(self, seconds: float) -> None:
        """Wait, as `Call.sleep` does."""
        until = min(time.monotonic() + seconds, self._deadline)
        with self._session:
            self._session.wait(self.is_over, until)
            if self.is_over():
                raise CallCancelled(f"{self._about.method} has ended")

    def is_over(self) -> bool:
        """Whether the call is cancelled, without reading."""
        is_open = self._asker.state is State.OPEN and (self._about.open or not self._is_of_task)
        return not is_open or time.monotonic() >= self._deadline


def answers(
    session: RequestSender, asked: InputRequired | TaskInputRequired, deadline: float
) -> JSONObject:
    """Return the answers of the handler to all questions.

    It is called in one thread, for one question after the other.

    Raises:
        ConnectionLost: The connection has ended.
        RequestTimeout: The deadline has come.
        McpError: The handler has failed for a question.
    """
    responses: JSONObject = {}
    for name, question in asked.questions.items():
        failure: Exception | None = None
        if session.side.state is State.OPEN:
            try:
                call = QuestionCall(session, asked.request, question, deadline)
                responses[name] = cast(JSONObject, session.call(call))
            except Exception as error:
                failure = error
        session.sending.check_answers(asked.request.method, deadline, time.monotonic())
        if failure is not None:
            raise failure_of(question["method"], failure)
    return responses
