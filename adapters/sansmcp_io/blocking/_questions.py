"""Who answers what a server asks about a request of ours before it answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

from sansmcp import InputRequired, JSONObject, OutgoingRequest, State

from .._common.call import failure_of
from .._common.endings import with_stderr
from .._common.errors import CallCancelled, ConnectionLost, RequestTimeout
from .._common.questions import Question
from ._call import Call

if TYPE_CHECKING:
    from ._requests import RequestSender


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
    method = asked.request.method
    responses: JSONObject = {}
    for name, question in asked.questions.items():
        failure: Exception | None = None
        if session.side.state is State.OPEN:
            try:
                call = QuestionCall(session, asked.request, question, deadline)
                responses[name] = cast(JSONObject, session.call(call))
            except Exception as error:
                failure = error
        if session.side.state is not State.OPEN:
            lost = ConnectionLost(f"{method} was not answered: the connection has ended")
            raise with_stderr(lost, session.stderr)
        if time.monotonic() >= deadline:
            raise RequestTimeout(f"{method} was not answered in the time allowed in all")
        if failure is not None:
            raise failure_of(question["method"], failure)
    return responses
