"""The handle of a task of the server, without a loop."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from sansmcp import JSONObject, OutgoingRequest

from .._common.call import ProgressHandler, not_async
from .._common.client_tasks import ClientTaskBase, FollowedTask, TaskUpdate

if TYPE_CHECKING:
    from ._mailbox import Bell, Progress
    from ._requests import RequestSender


@final
class ThreadTask(FollowedTask):
    """What is known of a task, for threads that wait for a change. Guarded by the lock.

    It takes the place of a mailbox, whose attributes it has. Progress is told by any thread that
    waits, as notifications are: no thread waits for the task all the time.
    """

    def __init__(
        self, session: RequestSender, method: str, on_progress: ProgressHandler | None
    ) -> None:
        super().__init__(method, None if on_progress is None else self._tell_progress)
        self.is_closed: bool = True
        self.bell: Bell | None = None
        self.progress: Final[deque[Progress]] = deque()  # always empty
        self._told = on_progress
        self._session: Final = session

    def _wake(self) -> None:
        self._session.ring_all()

    def _cancel(self, call: OutgoingRequest) -> None:
        self._session.side.cancel(call, now=time.monotonic())

    def _tell_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Tell the application of progress; if that fails, the task is cancelled."""
        assert self._told is not None
        try:
            not_async(self._told(progress, total, message), "on_progress")
        except Exception as error:
            with self._session:
                self.fail(error)
                self._session.turn()

    @property
    def has_mail(self) -> bool:
        """Whether the request was answered."""
        return self.has_answer

    def take(self) -> Any:
        """The answer to the request; see `take_answer`."""
        return self.take_answer()


@final
class ClientTask(ClientTaskBase[ThreadTask]):
    """A task of the server that is followed. Any number of threads may use it at once.

    The task is polled, its questions are answered, and its progress is told while a thread waits:
    in a method of this handle, or of the client, such as `poll`.

    Dropping the handle ends nothing but this: the task goes on at the server, and is not polled any
    more. Leaving the block of the client does the same, and `resume_task` follows it again; on
    stdio the server ends with the block.
    """

    def __init__(self, session: RequestSender, followed: ThreadTask) -> None:
        self._session: Final = session
        self._followed = followed

    def result(self, *, timeout: float | None = None) -> JSONObject:
        """Wait for the end of the task, and return its result: as that of `request`.

        It may be called again, and by several threads. If the wait is interrupted, the task goes
        on.

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
        session, followed = self._session, self._followed
        with session:
            if not self._wait(lambda: followed.is_over, timeout):
                raise TimeoutError(f"the task of {self.method} is not over after {timeout} s")
            session.tell_all()
        return followed.result(session.sending.stderr)

    def updates(self, *, timeout: float | None = None) -> Iterator[TaskUpdate]:
        """Iterate over the states of the task: `for update in task.updates()`.

        The first one is the state at this time. If it changes several times before the next one is
        taken, only the last of these counts. The iteration ends with the task; what has become of
        it, `result` tells.

        Args:
            timeout: Seconds to wait for each of them; None: any time.

        Raises:
            TimeoutError: There was no change in this time; the task goes on.
        """
        session, followed, seen = self._session, self._followed, 0
        while True:
            with session:
                if not self._wait(partial(followed.is_newer, seen), timeout):
                    raise TimeoutError(f"the task has not changed within {timeout} s")
                session.tell_all()
                update, seen = followed.update_after(seen), followed.changes
            if update is None:
                return
            yield update

    def _wait(self, condition: Any, timeout: float | None) -> bool:
        """Wait for a condition, and return whether it is true."""
        until = time.monotonic() + (math.inf if timeout is None else timeout)
        if not condition():
            self._session.look()
        return self._session.wait(condition, until)

    def cancel(self, *, reason: str | None = None) -> bool:
        """Cancel the task: it ends here at once, and the server is told to end it.

        Args:
            reason: Why, for logs.

        Returns:
            Whether it was open until now.
        """
        session, call = self._session, self._followed.call
        with session:
            if call is None or not call.open:
                return False
            session.side.cancel(call, reason=reason, now=time.monotonic())
            session.turn()
            session.flush()
            return True

    def __del__(self) -> None:
        followed: ThreadTask | None = getattr(self, "_followed", None)
        if followed is not None and followed.call is not None and followed.call.open:
            self._session.leave_task_soon(followed.call)
