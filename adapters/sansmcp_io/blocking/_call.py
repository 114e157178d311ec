"""The requests that handlers work on, on a connection that threads share."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

from sansmcp import IncomingRequest, InputRequired, JSONObject, OutgoingRequest, State

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
        """Whether nobody waits for the answer any more: a handler that takes long may look.

        It takes in what has come, if no other thread does so. Never blocks.
        """
        with self._session:
            self._session.look()
            return not self._request.open

    def sleep(self, seconds: float) -> None:
        """Wait, and serve and read meanwhile: what `time.sleep` does, for handlers.

        Raises:
            CallCancelled: The peer has cancelled the call, before or meanwhile.
        """
        self._session.sleep(self._request, seconds)

    def progress(
        self, progress: float, *, total: float | None = None, message: str | None = None
    ) -> bool:
        """Tell the peer how far this has come, and look whether it has cancelled the call.

        Never blocks.

        Returns:
            Whether it will be sent: not if the peer asked for no progress, or the call is over.

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
    """What a server asks before it answers a request of ours: it is handled like a request."""

    def __init__(
        self, session: RequestSender, about: OutgoingRequest, question: JSONObject, deadline: float
    ) -> None:
        self._question = question
        self._about = about
        self._deadline = deadline
        self._session = session
        self._asker = session.side
        self.context = session.context

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for the answer: the connection has ended, or the time is over."""
        with self._session:
            self._session.look()
            return self.is_over()

    def sleep(self, seconds: float) -> None:
        """Wait, as `Call.sleep` does."""
        until = min(time.monotonic() + seconds, self._deadline)
        with self._session:
            self._session.wait(self.is_over, until)
            if self.is_over():
                raise CallCancelled(f"{self._about.method} is over")

    def is_over(self) -> bool:
        """The same as `is_cancelled`, as far as it is known."""
        is_open = self._asker.state is State.OPEN
        return not is_open or time.monotonic() >= self._deadline


def answers(session: RequestSender, asked: InputRequired, deadline: float) -> JSONObject:
    """What the handler of the server's requests has to say to each question.

    It is called in the thread that has made the request, for one question after the other.

    Raises:
        ConnectionLost: The connection has ended, before or meanwhile.
        RequestTimeout: The deadline has come.
        McpError: The handler could not answer: the request cannot go on.
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
