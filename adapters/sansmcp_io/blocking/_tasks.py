"""The work on the tasks of a client, in threads: on stdio and below WSGI."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import Context, copy_context
from typing import Any, Final, Protocol, cast

from sansmcp import (
    ErrorCode,
    IncomingRequest,
    JSONObject,
    LocalProtocolError,
    Task,
    TaskCancelled,
    TaskInputReceived,
)

from .._common.call import (
    RequireInput,
    ServerSide,
    Side,
    answer,
    answer_failure,
    ends_program,
    not_async,
)
from .._common.errors import CallCancelled
from .._common.tasks import (
    ENDED,
    NOT_TURNED_ON,
    CreateTask,
    RunningTaskBase,
    check_questions,
    new_task,
)

HANDLE: Final = object()
"""Stands for the result of a handler that the work on a task has to call first."""


class TaskHost(Protocol):
    """What the owner of a connection gives to the work on its tasks."""

    def task_lock(self) -> AbstractContextManager[object]:
        """The lock of the connection."""
        ...

    def turn(self) -> None:
        """Handle events and output after a call into the core. Called with the lock held."""
        ...

    def look_for_tasks(self) -> float:
        """Keep the time, and read what has come, unless another thread does so.

        Called with the lock held.

        Returns:
            When that has to be done again; `math.inf`: others do it.
        """
        ...

    def after_task_step(self) -> None:
        """Do what a step of the work has left to do. Called without the lock."""
        ...

    def end_program(self, failure: BaseException) -> None:
        """End, if that is possible, since the work on a task wants it. Called with the lock."""
        ...


class RunningTask(RunningTaskBase):
    """The task that a work is for, in a thread of its own."""

    def __init__(
        self,
        host: TaskHost,
        connection: ServerSide,
        request: IncomingRequest,
        task: Task | None,
        call: Any,
    ) -> None:
        super().__init__(connection, request, task, time.monotonic, host.turn)
        self._host: Final = host
        self._call: Final = call
        self._news: Final = threading.Event()

    @property
    def _lock(self) -> AbstractContextManager[object]:
        return self._host.task_lock()

    @property
    def is_cancelled(self) -> bool:
        """Whether the result is not wanted any more. For work that takes long."""
        if self.task is None:
            is_cancelled: bool = self._call.is_cancelled
            return is_cancelled
        with self._lock:
            self._host.look_for_tasks()
            return not self.task.open

    def sleep(self, seconds: float) -> None:
        """Wait as `time.sleep` does, until the task is cancelled.

        Raises:
            CallCancelled: The result is not wanted any more.
        """
        if self.task is None:
            self._call.sleep(seconds)
        else:
            self._wait(lambda: False, time.monotonic() + seconds)

    def ask(self, questions: Mapping[str, JSONObject]) -> JSONObject:
        """Ask the client questions, and wait for all answers.

        The client may take as long as the task is kept. The same key may be used again later.

        Args:
            questions: As for `RequireInput`.

        Returns:
            The answers, by the keys of the questions.

        Raises:
            CallCancelled: The result is not wanted any more.
            McpError: The client cannot answer: it has not declared the capability; or it takes no
                tasks, and its revision has no questions within a request.
            PeerError: A client without tasks has refused to answer.
            LocalProtocolError: There are no questions, or one is malformed.
        """
        if self.task is None:
            check_questions(self.request, questions)
            try:
                return {
                    key: self._call.request(question["method"], question.get("params", {}))
                    for key, question in questions.items()
                }
            except LocalProtocolError as error:
                raise self._not_asked(error) from None
        with self._lock:
            asked = self._ask(questions, self.wake)
        self._wait(lambda: asked.is_answered, math.inf)
        return asked.answers

    def ask_one(self, method: str, params: JSONObject | None, timeout: float | None) -> JSONObject:
        """Ask the client one question, and return its answer."""
        with self._lock:
            asked = self._ask({method: {"method": method, "params": params or {}}}, self.wake)
        until = math.inf if timeout is None else time.monotonic() + timeout
        self._wait(lambda: asked.is_answered, until)
        with self._lock:
            if not asked.is_answered:
                raise self._give_up(asked, method)
        answer: JSONObject = asked.answers[method]
        return answer

    def wake(self) -> None:
        """Wake the thread of the work, if it waits."""
        self._news.set()

    def _wait(self, is_done: Callable[[], bool], until: float) -> None:
        """Wait for a condition, or until a time."""
        assert self.task is not None
        while True:
            self._host.after_task_step()
            with self._lock:
                deadline = min(until, self._host.look_for_tasks())
                if not self.task.open:
                    raise CallCancelled(f"the task of {self.method} has ended")
                if is_done():
                    return
                self._news.clear()
            if time.monotonic() >= until:
                return
            seconds = min(max(deadline - time.monotonic(), 0.0), threading.TIMEOUT_MAX)
            self._news.wait(seconds)


class TaskThreads:
    """Calls handlers, and works on tasks in threads that are started for them.

    Args:
        host: The owner of the connection.
        connection: The core object.
        handler: Called with the call of a request.
        make_call: Makes the call of a request.
        most: The number of threads; more tasks wait. 0: there are no tasks.
    """

    def __init__(
        self,
        host: TaskHost,
        connection: Side | Any,
        handler: Callable[[Any], Any],
        make_call: Callable[[IncomingRequest], Any],
        most: int,
    ) -> None:
        self._host: Final = host
        self._connection: Final = cast(ServerSide, connection)
        self._handler: Final = handler
        self._make_call: Final = make_call
        self._most: Final = most
        self._waiting: deque[tuple[RunningTask, Any, Context]] = deque()
        self._threads: set[threading.Thread] = set()

    @property
    def is_working(self) -> bool:
        """Whether a task is not done. Called with the lock held."""
        return bool(self._threads)

    def handle(self, request: IncomingRequest) -> Any:
        """Call the handler, and return what `answer` takes. Called without the lock."""
        if self._most and request.asks_for_task:
            return HANDLE
        call = self._make_call(request)
        result = not_async(self._handler(call), "the handler")
        if not isinstance(result, CreateTask):
            return result
        if not self._most:
            raise LocalProtocolError("OWN-073", NOT_TURNED_ON)
        if request.accepts_task:
            return result
        running = RunningTask(self._host, self._connection, request, None, call)
        return self._outcome(running, result)

    def answer(self, request: IncomingRequest, result: Any, now: float) -> None:
        """Answer a request with the result of `handle`. Called with the lock held."""
        if result is not HANDLE and not isinstance(result, CreateTask):
            answer(self._connection, request, result, now)
            return
        if not request.open:
            return
        try:
            task = new_task(self._connection, request, result, now)
        except Exception as error:  # such as that the principal of the request has no key
            answer_failure(self._connection, request, error, now)
            return
        if task is None:
            return
        running = RunningTask(self._host, self._connection, request, task, None)
        task.data = running
        request.data = running
        self._waiting.append((running, result, copy_context()))
        if len(self._threads) < self._most:
            thread = threading.Thread(target=self._work, name="sansmcp task", daemon=True)
            self._threads.add(thread)
            thread.start()

    def _work(self) -> None:
        """Work on tasks until none waits."""
        while True:
            with self._host.task_lock():
                if not self._waiting:
                    self._threads.discard(threading.current_thread())
                    self._host.turn()  # the end of the server may wait for this
                    return
                running, wanted, context = self._waiting.popleft()
            try:
                result = context.run(self._outcome, running, wanted)
            except BaseException as error:
                with self._host.task_lock():
                    if running.open or not isinstance(error, CallCancelled):
                        running.fail(error)
                    if ends_program(error):
                        self._host.end_program(error)
                    self._host.turn()
            else:
                with self._host.task_lock():
                    running.finish(result)
                    self._host.turn()
            self._host.after_task_step()

    def _outcome(self, running: RunningTask, wanted: Any) -> Any:
        """Return the result of a handler that has returned something else."""
        first = wanted
        while True:
            if wanted is HANDLE:
                call = self._make_call(running.request)
                wanted = not_async(self._handler(call), "the handler")
            elif isinstance(wanted, CreateTask):
                if wanted is not first:
                    running.take_settings(wanted, None)
                wanted = not_async(wanted.work(running), "the work of a task")
            elif isinstance(wanted, RequireInput) and running.task is not None:
                questions = wanted.questions
                running.input_responses = running.ask(questions) if questions else {}
                running.state = wanted.state
                wanted = HANDLE
            else:
                return wanted

    # The following are called with the lock held.

    def answered(self, event: TaskInputReceived) -> None:
        """Hand the answers of the client to the work on a task."""
        event.task.data.receive(event.responses)

    def ended(self, event: TaskCancelled) -> None:
        """Tell the work on a task that it has ended otherwise."""
        if isinstance(event.task.data, RunningTask):  # else it was not begun
            self._stop(event.task.data)

    def _stop(self, running: RunningTask) -> None:
        for place in self._waiting:
            if place[0] is running:
                self._waiting.remove(place)
                return
        running.wake()

    def end_all(self) -> None:
        """Let all tasks fail: the server ends."""
        for task in self._connection.open_tasks:
            self._connection.fail_task(
                task, ErrorCode.INTERNAL_ERROR, ENDED, at=time.time(), now=time.monotonic()
            )
            self._stop(task.data)

    def join(self, seconds: float) -> None:
        """Wait for the end of the threads, for some time. Called without the lock."""
        until = time.monotonic() + seconds
        for thread in list(self._threads):
            thread.join(max(until - time.monotonic(), 0.0))
