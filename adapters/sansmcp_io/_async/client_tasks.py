"""The handle of a task of the server, on a loop with `async`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from sansmcp import JSONObject, OutgoingRequest

from .._common.call import ProgressHandler
from .._common.client_tasks import ClientTaskBase, FollowedTask, TaskUpdate

if TYPE_CHECKING:
    from .requests import RequestSender


class LoopTask(FollowedTask):
    """What is known of a task, with an event for the tasks of the loop that wait for a change."""

    def __init__(
        self, session: RequestSender, method: str, on_progress: ProgressHandler | None
    ) -> None:
        super().__init__(method, on_progress)
        self._session: Final = session
        self._news = session.loop.new_event()

    def _wake(self) -> None:
        news, self._news = self._news, self._session.loop.new_event()
        news.set()

    def _cancel(self, call: OutgoingRequest) -> None:
        self._session.side.cancel(call, now=self._session.clock())
        self._session.wake()

    async def take(self) -> Any:
        """Wait for an answer to the request; see `take_answer`."""
        await self.wait_for(lambda: self.has_answer)
        return self.take_answer()

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition is true, which may become true with a change."""
        while not condition():
            await self._news.wait()


@final
class ClientTask(ClientTaskBase[LoopTask]):
    """A task of the server that is followed. Any number of tasks of the loop may use it at once.

    Dropping the handle ends nothing but this: the task goes on at the server, and is not polled any
    more. Leaving the block of the client does the same, and `resume_task` follows it again; on
    stdio the server ends with the block.
    """

    def __init__(self, session: RequestSender, followed: LoopTask) -> None:
        self._session: Final = session
        self._followed = followed
        self._post: Final = session.loop.new_postman()

    async def result(self, *, timeout: float | None = None) -> JSONObject:
        """Wait for the end of the task, and return its result: as that of `request`.

        It may be called again, and by several tasks of the loop. If the wait is cancelled, the task
        goes on.

        Args:
            timeout: Seconds to wait; None: until the end.

        Raises:
            TimeoutError: It is not over in this time, and goes on.
            PeerError: It has failed: the server has answered the request with this error.
            TaskCancelledError: The server has cancelled it, or `cancel` has.
            TaskLost: The server does not have it any more.
            McpError: `on_request` has raised this, for a question of the task.
            RequestTimeout, RequestRefused, ConnectionLost, InvalidAnswer: As `request`.
        """
        followed = self._followed
        if not followed.is_over:
            is_over = partial(followed.wait_for, lambda: followed.is_over)
            if timeout is None:
                await is_over()
            elif not await self._session.loop.wait_until(self._session.clock() + timeout, is_over):
                raise TimeoutError(f"the task of {self.method} is not over after {timeout} s")
        return followed.result(self._session.sending.stderr)

    async def updates(self) -> AsyncGenerator[TaskUpdate, None]:
        """Iterate over the states of the task: `async for update in task.updates()`.

        The first one is the state at this time. If it changes several times before the next one is
        taken, only the last of these counts. The iteration ends with the task; what has become of
        it, `result` tells.
        """
        followed, seen = self._followed, 0
        while True:
            await followed.wait_for(partial(followed.is_newer, seen))
            if (update := followed.update_after(seen)) is None:
                return
            seen = followed.changes
            yield update

    async def cancel(self, *, reason: str | None = None) -> bool:
        """Cancel the task: it ends here at once, and the server is told to end it.

        Args:
            reason: Why, for logs.

        Returns:
            Whether it was open until now.
        """
        cancelled = False
        if (call := self._followed.call) is not None and call.open:
            cancelled = self._session.side.cancel(call, reason=reason, now=self._session.clock())
            self._session.wake()
            await self._followed.wait_for(lambda: self._followed.is_over)
        return cancelled

    def __del__(self) -> None:
        followed = getattr(self, "_followed", None)
        if followed is not None and not followed.is_over and followed.call is not None:
            self._post(partial(self._session.leave_task, followed.call))
