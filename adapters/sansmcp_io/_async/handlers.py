"""Runs handlers and answers their requests, the same on all loops with `async`."""

from __future__ import annotations

import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

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
    HandlerResult,
    RequireInput,
    ServerCallBase,
    ServerSide,
    Side,
    answer,
    answer_failure,
    ends_program,
)
from .._common.tasks import (
    ENDED,
    NOT_TURNED_ON,
    CreateTask,
    KeptRequest,
    is_result,
    new_task,
    read_kept,
)
from .tasks import RunningTask
from .turns import Turn, Turns

if TYPE_CHECKING:
    from .loop import Event

Outcome: TypeAlias = HandlerResult | RequireInput | CreateTask
Result: TypeAlias = Outcome | Awaitable[Outcome]


def _nothing(_task: Task) -> None:
    """Do nothing: there is no other process."""


class HandlerRunner(ABC):
    """Runs the handlers of requests of a peer, and can cancel them. Each loop has a subclass.

    Args:
        connection: The core object that sends the answers.
        handler: Called with the call of a request.
        make_call: Makes the call of a request.
        clock: Tells the time, in seconds.
        most_running: The number of tasks that are worked on at a time, without those that wait for
            answers of the client; more wait. 0: there are no tasks.
        until_room: Waits until an answer may be added to an output that all requests share; the
            answers of plain functions do not wait.
        wake: Called when an answer outside of `begin` has added output.
        keep: What a task keeps, so that another process can call its handler again, from the call
            of the handler; None: there is no other process.
        release: Leaves such a task to the other processes.
        end_program: Called with SystemExit or KeyboardInterrupt of a handler, after its request was
            answered; the server raises it.
    """

    _new_event: Callable[[], Event]  # which each loop has

    def __init__(
        self,
        connection: Side,
        handler: Callable[[Any], Result],
        make_call: Callable[[IncomingRequest], Any],
        *,
        clock: Callable[[], float],
        most_running: int,
        until_room: Callable[[], Awaitable[None]] | None,
        wake: Callable[[], None],
        keep: Callable[[ServerCallBase], JSONObject] | None = None,
        release: Callable[[Task], object] = _nothing,
        end_program: Callable[[IncomingRequest, BaseException], None],
    ) -> None:
        self._connection: Final = connection
        self._handler: Final = handler
        self._make_call: Final = make_call
        self._clock: Final = clock
        self._until_room: Final = until_room
        self._wake: Final = wake
        self._keep: Final = keep
        self._release: Final = release
        self._end_program: Final = end_program
        self._most_running: Final = most_running
        self._turns: Final = Turns(most_running, self._new_event)
        self._n_working = 0  # those that wait for answers among them
        self._waiting: dict[RunningTask, Any] = {}  # not begun, with what the handler returned

    def begin(self, request: IncomingRequest, tasks: Any) -> None:
        """Call the handler; an async handler runs in a task of its own."""
        if request.open:  # otherwise, it was cancelled before this
            # A handler does not see the context variables that another handler has set.
            copy_context().run(self._begin, request, tasks)

    def _begin(self, request: IncomingRequest, tasks: Any) -> None:
        try:
            result = self._handler(self._make_call(request))
        except BaseException as error:
            self._failed(request, error)
            return
        if self._most_running and request.asks_for_task:
            self._begin_task(request, result, tasks)
        elif type(result) is dict:
            answer(self._connection, request, cast(JSONObject, result), self._clock())
        elif inspect.isawaitable(result):
            self._start(request, result, tasks)
        else:
            self._take(request, result, tasks)

    def _take(self, request: IncomingRequest, result: Any, tasks: Any) -> None:
        """Take what a handler has returned: answer the request, or begin a task."""
        if not isinstance(result, CreateTask) or not request.open:
            answer(self._connection, request, cast(Any, result), self._clock())
        elif not self._most_running:
            self._failed(request, LocalProtocolError("OWN-073", NOT_TURNED_ON))
        elif request.accepts_task:
            self._begin_task(request, result, tasks)
        else:
            self._start(request, self._outcome(self._running(request, None), result), tasks)

    def _failed(self, subject: IncomingRequest | RunningTask, failure: BaseException) -> None:
        """End a request or a task with an error, for an exception that its handler has raised."""
        if isinstance(subject, RunningTask):
            subject.fail(failure)
            request = subject.request
        else:
            request = subject
            answer_failure(self._connection, request, failure, self._clock())
        if ends_program(failure):
            self._end_program(request, failure)

    def _answer(self, subject: IncomingRequest | RunningTask, result: Any, tasks: Any) -> None:
        """End a request or a task with what its handler has returned."""
        if isinstance(subject, RunningTask):
            subject.finish(result)
        else:
            self._take(subject, result, tasks)

    def cancel(self, request: IncomingRequest) -> None:
        """Cancel the handler of a request that is no longer open, if it still runs."""
        self._cancel(request)

    @abstractmethod
    def _cancel(self, subject: IncomingRequest | RunningTask) -> None:
        """Cancel what `_start` has started, if it still runs."""

    @abstractmethod
    async def _wait(self, event: Event, seconds: float) -> bool:
        """Wait for an event, and return whether it was set in time."""

    @abstractmethod
    def _start(
        self,
        subject: IncomingRequest | RunningTask,
        awaitable: Awaitable[Outcome],
        tasks: Any,
    ) -> None:
        """Await the result in a new one of `tasks`, and end the request or the task with it."""

    # ----------------------------------------------------------------------------------- tasks

    @property
    def is_working(self) -> bool:
        """Whether a task is not done."""
        return bool(self._n_working or self._waiting)

    def _running(self, request: IncomingRequest, task: Task | None) -> RunningTask:
        """Make what the work on a task is given."""
        return RunningTask(
            cast(ServerSide, self._connection),
            request,
            task,
            self._clock,
            self._wake,
            new_event=self._new_event,
            wait=self._wait,
            turns=self._turns,
            ask_within=self._make_call(request).request,
        )

    def _begin_task(self, request: IncomingRequest, wanted: Any, tasks: Any) -> None:
        """Answer a request with a task, and begin with the work if not too many tasks run.

        Args:
            request: The request, which accepts a task.
            wanted: What the handler has returned.
            tasks: The tasks of the loop.
        """
        try:
            keep = self._kept(request, wanted)
            task = None
            if request.open:  # it is refused if its state has no valid seal
                connection = cast(ServerSide, self._connection)
                task = new_task(connection, request, wanted, self._clock(), keep)
        except Exception as error:  # such as that the principal of the request has no key
            _drop(wanted)
            self._failed(request, error)
            return
        if task is None:
            _drop(wanted)
            return
        self._file(self._running(request, task), wanted, tasks)

    def _file(self, running: RunningTask, wanted: Any, tasks: Any) -> None:
        """Begin with the work on a task if not too many tasks run, else later."""
        assert running.task is not None
        running.task.data = running
        running.request.data = running
        self._waiting[running] = wanted
        # The work of another task, which lets this one begin, has context variables of its own.
        begin = partial(self._begin_work, running, tasks)
        running.turn = Turn(partial(copy_context().run, begin))
        self._turns.request(running.turn)

    def _kept(self, request: IncomingRequest, wanted: Any) -> JSONObject | None:
        """What a task keeps, so that its handler can be called again; None: nothing."""
        if self._keep is None or not isinstance(wanted, CreateTask) or not wanted.may_restart:
            return None
        return self._keep(self._make_call(request))

    def restart(self, task: Task, principal: object, tasks: Any) -> None:
        """Call the handler of a task again, on which another process has worked.

        Args:
            task: The task, which this process has taken over.
            principal: The principal of its request.
            tasks: The tasks of the loop.
        """
        kept = read_kept(task)
        assert kept is not None
        request = KeptRequest(
            method=task.record.method, params=kept["params"], peer=task.peer, principal=principal
        )
        running = self._running(cast(IncomingRequest, request), task)
        running.restart(kept)
        self._file(running, self._again(running), tasks)

    async def _again(self, running: RunningTask) -> Result:
        """Call the handler again."""
        return self._handler(self._make_call(running.request))

    def _begin_work(self, running: RunningTask, tasks: Any) -> None:
        """Begin with the work on a task, whose turn has come."""
        wanted = self._waiting.pop(running)
        if is_result(wanted) and not inspect.isawaitable(wanted):
            running.finish(wanted)
            self._turns.end(running.turn)
        else:
            self._n_working += 1
            self._start(running, self._work(running, wanted), tasks)

    async def _work(self, running: RunningTask, wanted: Any) -> Any:
        """Do the work of a task, and let the next one begin."""
        try:
            return await self._outcome(running, wanted)
        finally:
            self._n_working -= 1
            self._turns.end(running.turn)

    async def _outcome(self, running: RunningTask, wanted: Any) -> Any:
        """Return the result of a handler that has returned something else."""
        first = wanted
        while True:
            if inspect.isawaitable(wanted):
                wanted = await wanted
            elif isinstance(wanted, CreateTask):
                if wanted is not first:
                    is_new = running.task is not None and not running.is_restarted
                    keep = self._kept(running.request, wanted) if is_new else None
                    running.take_settings(wanted, keep)
                wanted = wanted.work(running)
            elif isinstance(wanted, RequireInput) and running.task is not None:
                questions = wanted.questions
                running.input_responses = await running.ask(questions) if questions else {}
                running.state = wanted.state
                wanted = self._handler(self._make_call(running.request))
            else:
                return wanted

    def answered(self, event: TaskInputReceived) -> None:
        """Hand the answers of the client to the work on a task."""
        running = event.task.data
        if isinstance(running, RunningTask):  # else it was taken over, and has failed
            running.receive(event.responses)

    def ended(self, event: TaskCancelled) -> None:
        """Cancel the work on a task that has ended otherwise."""
        running = event.task.data
        if isinstance(running, RunningTask):  # else it was not begun
            self._stop(running)

    def _stop(self, running: RunningTask) -> None:
        if running in self._waiting:
            _drop(self._waiting.pop(running))
            self._turns.end(running.turn)
        else:
            self._cancel(running)

    def end_tasks(self) -> None:
        """Cancel the work on all tasks: the server ends.

        Tasks whose handler may be called again are left to other processes; the others fail.
        """
        connection = cast(ServerSide, self._connection)
        for task in connection.open_tasks:
            running: RunningTask | None = task.data
            if running is None:
                continue  # it was taken over, and has failed
            if self._keep is not None and read_kept(task) is not None:
                running.release()
                self._release(task)
            else:
                connection.fail_task(
                    task, ErrorCode.INTERNAL_ERROR, ENDED, at=time.time(), now=self._clock()
                )
            self._stop(running)


def _drop(wanted: Any) -> None:
    """Close a coroutine that is not awaited."""
    if inspect.iscoroutine(wanted):
        wanted.close()
