"""The requests and questions that handlers work on, on a loop with `async`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from sansmcp import (
    IncomingRequest,
    InputRequired,
    JSONObject,
    OutgoingRequest,
    State,
    TaskInputRequired,
)

from .._common.call import CallBase, Question, failure_of
from .._common.errors import McpError
from .._common.requests import RequestArguments
from .handlers import Result
from .loop import Workers

if TYPE_CHECKING:
    from .._common.typed_requests import AsyncRequests as Requester
    from .requests import RequestSender
else:
    from .._common.requests import Requester


class Call(CallBase, Requester):
    """A request of the peer that a handler works on."""

    def __init__(self, session: RequestSender, request: IncomingRequest) -> None:
        # The base class is not called, for speed: each message makes one of these.
        self._connection = session.side
        self._request = request
        self._clock = session.clock
        self._wake = session.wake
        self._session = session
        self.context: Any = session.context

    async def _send_request(self, arguments: RequestArguments) -> JSONObject:
        return await self._session.request(arguments, self._serving)

    @property
    def _serving(self) -> IncomingRequest | None:
        return self._request


_MOST_ANSWERING: Final = 100
"""The number of questions about one request that are answered at once. The others wait."""


class QuestionCall(Question, Call):
    """A question of the server about a request of this side, which is handled like a request."""

    def __init__(
        self, session: RequestSender, about: OutgoingRequest, question: JSONObject
    ) -> None:
        self._question = question
        self._about = about
        self._session = session
        self._asker = session.side
        self.context = session.context


class Questions:
    """Calls the handler for questions of the server, several of them at once."""

    def __init__(self, session: RequestSender, handler: Callable[[Any], Result]) -> None:
        self._session: Final = session
        self._handler: Final = handler
        self._answering: dict[Workers, OutgoingRequest] = {}

    def cancel(self) -> None:
        """Cancel all answers: the connection has ended."""
        for workers in self._answering:
            workers.cancel()

    def drop(self, about: OutgoingRequest) -> None:
        """Cancel the answers about a task that is over."""
        for workers, request in self._answering.items():
            if request is about:
                workers.cancel()

    async def answer_task(self, asked: TaskInputRequired) -> None:
        """Answer the questions of a task. If the handler fails, the task is cancelled."""
        call, session = asked.request, self._session
        responses, failure = await self._answers(asked, math.inf)
        if not call.open:
            return
        try:
            if failure is not None:
                raise failure
            session.sending.send_task_answers(asked, responses, session.clock())
        except McpError as error:
            call.data.fail(error)
        session.wake()

    async def answers(self, asked: InputRequired, deadline: float) -> JSONObject:
        """Return the answers of the handler to all questions.

        Raises:
            ConnectionLost: The connection has ended.
            RequestTimeout: The deadline has come.
            McpError: The handler has failed for a question.
        """
        responses, failure = await self._answers(asked, deadline)
        self._session.sending.check_answers(asked.request.method, deadline, self._session.clock())
        if failure is not None:
            raise failure
        return responses

    async def _answers(
        self, asked: InputRequired | TaskInputRequired, deadline: float
    ) -> tuple[JSONObject, McpError | None]:
        """The answers of the handler, and the first failure; both are incomplete if cancelled."""
        responses: JSONObject = {}
        failures: list[McpError] = []
        waiting = iter(asked.questions.items())

        async def answer_some() -> None:
            for name, question in waiting:
                await self._session.loop.pause()
                try:
                    result = self._handler(QuestionCall(self._session, asked.request, question))
                    responses[name] = await result if inspect.isawaitable(result) else result
                except Exception as error:
                    failures.append(failure_of(question["method"], error))
                    workers.cancel()

        if self._session.side.state is State.OPEN:
            workers = self._session.loop.new_workers(deadline)
            self._answering[workers] = asked.request
            try:
                await workers.run(answer_some, min(_MOST_ANSWERING, len(asked.questions)))
            finally:
                del self._answering[workers]
        return responses, failures[0] if failures else None
