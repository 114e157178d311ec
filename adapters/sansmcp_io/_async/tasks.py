"""The work on the tasks of a client, on a loop with `async`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from sansmcp import IncomingRequest, JSONObject, LocalProtocolError, Task

from .._common.call import ServerSide
from .._common.tasks import RunningTaskBase, check_questions
from .turns import Turn, Turns

if TYPE_CHECKING:
    from .loop import Event


class RunningTask(RunningTaskBase):
    """The task that a work is for. The work is cancelled when its result is not wanted any more.

    Attributes:
        turn: The turn of the task among those that work; set before the work begins.
    """

    def __init__(
        self,
        connection: ServerSide,
        request: IncomingRequest,
        task: Task | None,
        clock: Callable[[], float],
        wake: Callable[[], None],
        *,
        new_event: Callable[[], Event],
        wait: Callable[[Event, float], Awaitable[bool]],
        turns: Turns,
        ask_within: Callable[[str, JSONObject], Any],
    ) -> None:
        super().__init__(connection, request, task, clock, wake)
        self._new_event = new_event
        self._wait = wait
        self._turns = turns
        self.turn: Turn
        self._ask_within = ask_within

    async def ask(self, questions: Mapping[str, JSONObject]) -> JSONObject:
        """Ask the client questions, and wait for all answers.

        The client may take as long as the task is kept. The same key may be used again later.

        Args:
            questions: As for `RequireInput`.

        Returns:
            The answers, by the keys of the questions.

        Raises:
            McpError: The client cannot answer: it has not declared the capability; or it takes no
                tasks, and its revision has no questions within a request.
            PeerError: A client without tasks has refused to answer.
            LocalProtocolError: There are no questions, or one is malformed.
        """
        if self.task is None:
            check_questions(self.request, questions)
            try:
                return {
                    key: await self._ask_within(question["method"], question.get("params", {}))
                    for key, question in questions.items()
                }
            except LocalProtocolError as error:
                raise self._not_asked(error) from None
        event = self._new_event()
        asked = self._ask(questions, event.set)
        await self._answered(event, None)
        return asked.answers

    async def ask_one(
        self, method: str, params: JSONObject | None, timeout: float | None
    ) -> JSONObject:
        """Ask the client one question, and return its answer."""
        event = self._new_event()
        asked = self._ask({method: {"method": method, "params": params or {}}}, event.set)
        await self._answered(event, timeout)
        if not asked.is_answered:
            raise self._give_up(asked, method)
        answer: JSONObject = asked.answers[method]
        return answer

    async def _answered(self, event: Event, timeout: float | None) -> None:
        """Wait for answers, for at most `timeout` seconds. Other tasks may work meanwhile."""
        if not event.is_set():
            self._turns.pause(self.turn)
        try:
            if timeout is None:
                await event.wait()
            else:
                await self._wait(event, timeout)
            await self._turns.resume(self.turn)
        except BaseException:
            self._turns.take(self.turn)
            raise
