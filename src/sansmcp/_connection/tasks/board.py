"""All tasks that this side owns: their store, their clock, and who waits for their changes.

A connection has one board, and so has an HTTP endpoint for all its transports. Each operation on a
task reads its record, decides on a change, and stores the changed record if no other process was
faster; else it begins again. In memory this is one step. Where the application has the store, the
operation waits for its answers, and the operations on one task wait for each other.
"""

from __future__ import annotations

from collections import Counter, deque
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..._rules.state_tables import TaskStatus
from ..._spec.errors import LocalProtocolError
from ..._wire.setting_checks import check_flag, check_kind, check_text
from ..._wire.values import is_list
from ..events import (
    LimitReached,
    TaskCancelled,
    TaskEnd,
    TaskInputReceived,
    TaskQuestion,
    TasksWanted,
    TaskToStore,
    TaskWanted,
)
from ..handles import IncomingRequest, Listener, Task
from ..timers import Timed, Timers
from .records import TaskRecord
from .settings import Tasks
from .store import MemoryTaskStore

if TYPE_CHECKING:
    from ..core import Core
    from .owner import TaskOwner
    from .questions import TaskQuestions
    from .subscriptions import TaskSubscriptions

_SPARE_EXPIRIES: Final = 64
"""The most times in the heap that belong to no task any more, in addition to one for each task."""
_STORE_FAILED: Final = "the task cannot be looked up now"
_NO_ROOM: Final = "the store of tasks is full"
_BUSY: Final = "too many requests about tasks wait for the store"
_SLACK: Final = 0.001
"""Seconds that a timer is late, so that the time of a record is over when it fires."""


def _is_shortened(before: float | None, after: float | None) -> bool:
    """Whether the time to live ends earlier than before; a later end is noted at the earlier."""
    return after is not None and (before is None or after < before)


class BoardHost(Protocol):
    """What a board uses of a connection's core, or of an endpoint's.

    Attributes:
        at: The Unix time of the message that is being received; None where it was not told.
        events: The events that the application has not taken yet.
        now: The largest time that was told, in seconds; None before any.
        timers: The deadlines of all parts.
    """

    at: float | None
    events: Any
    timers: Timers

    @property
    def now(self) -> float | None:
        """The largest time that was told, in seconds; None before any."""
        ...


class TaskOperation(Protocol):
    """One operation on one task, from its question to the store until its outcome.

    Attributes:
        task_id: The id of the task.
    """

    task_id: str

    @property
    def known(self) -> TaskRecord | None:
        """The record that is changed first, without a question to the store; None: it is read."""
        ...

    def change(self, record: TaskRecord | None, at: float | None) -> TaskRecord | None:
        """The record that is to be stored in place of `record`; None: it stays as it is."""
        ...

    def done(self, record: TaskRecord | None) -> None:
        """Take the outcome: the record that is stored now; None: there is no such task."""
        ...

    def failed(self, text: str) -> None:
        """Take the failure of the store."""
        ...

    def no_room(self, text: str | None) -> None:
        """Take the refusal of the store: it has no room for the record.

        Args:
            text: Why, in one sentence; None: the bounds of `Tasks` are reached.
        """
        ...


class ListOperation(Protocol):
    """A request for a page of tasks."""

    def listed(self, records: list[TaskRecord], at: float | None) -> None:
        """Take the page, and the first task behind it if there is one.

        Args:
            records: The tasks, some of which may be over.
            at: The time in Unix seconds; None: it is unknown.
        """
        ...

    def failed(self, text: str) -> None:
        """Take the failure of the store."""
        ...


class TaskWatch:
    """Who waits for the changes of one task.

    Attributes:
        record: The record that they were told of last.
        listeners: The subscriptions to the task, each with its part.
        waiting: The open `tasks/result`, each with its part.
    """

    __slots__ = ("listeners", "record", "waiting")

    def __init__(self, record: TaskRecord) -> None:
        self.record: TaskRecord = record
        self.listeners: dict[Listener, TaskSubscriptions] = {}
        self.waiting: dict[IncomingRequest, TaskOwner] = {}


class TaskBoard:
    """The tasks that this side owns.

    Args:
        settings: How tasks are kept.
        host: The core whose clock, timers and events are used.

    Attributes:
        handles: The tasks that this process works on, by id.
        host: The core whose clock, timers and events are used.
        settings: How tasks are kept.
        store: The records in memory; None where the application keeps them.
    """

    __slots__ = (
        "_asked",
        "_at",
        "_deadline",
        "_expiries",
        "_now",
        "_number",
        "_owners",
        "_queues",
        "_waiting",
        "_watched",
        "handles",
        "host",
        "settings",
        "store",
    )

    def __init__(self, settings: Tasks, host: BoardHost) -> None:
        self.settings: Tasks = settings
        self.host: BoardHost = host
        in_memory = settings.store == "memory"
        self.store: MemoryTaskStore | None = MemoryTaskStore(settings) if in_memory else None
        self.handles: dict[str, Task] = {}
        self._watched: dict[str, TaskWatch] = {}
        self._at: float | None = None  # the latest time that was told, and the clock at that time
        self._now: float | None = None
        self._deadline: float | None = None
        self._expiries: list[tuple[float, str]] = []  # a heap
        self._number = 0
        self._owners: Counter[str] = Counter()  # of the tasks that this process works on
        self._asked: dict[int, Any] = {}  # the operations that wait, by number of their question
        self._queues: dict[str, deque[TaskOperation]] = {}  # the first of each is under way
        self._waiting = 0  # the operations that wait for the store, those in the queues among them

    # ------------------------------------------------------------------------------------ the time

    def time(self, at: float | None = None) -> float | None:
        """The time in Unix seconds; None: nobody has told it.

        It goes on with the caller's clock between the times that were told.
        """
        given = self.host.at if at is None else at
        if given is not None and given >= 0:
            known = self._estimate()
            if known is None or given > known:
                self._at, self._now = given, self.host.now
        return self._estimate()

    def time_at(self, now: float | None) -> float | None:
        """The time in Unix seconds at a time of the caller's clock that is not told yet."""
        told = self.host.now
        known = self.time()
        if known is None or now is None or told is None or self._now is None:
            return known
        return known + max(0.0, now - told)

    def _estimate(self) -> float | None:
        now = self.host.now
        if self._at is None or now is None or self._now is None:
            return self._at
        return self._at + (now - self._now)

    # ---------------------------------------------------------------------------------- operations

    def run(self, operation: TaskOperation) -> None:
        """Begin an operation, and finish it if the store is in memory."""
        at = self.time()
        self._purge(at)
        if self.store is None:
            queue = self._queues.setdefault(operation.task_id, deque())
            queue.append(operation)
            self._waiting += 1
            if len(queue) == 1:
                self._begin_all(operation.task_id)
            return
        record = self.store.records.get(operation.task_id)
        changed = operation.change(record, at)
        if changed is None:
            operation.done(record)
        elif not self.store.put(changed):
            operation.no_room(None)
        else:
            operation.done(changed)
            self.changed(changed)

    def look_up(self, operation: TaskOperation) -> None:
        """Begin an operation for a request of the peer, or refuse it if too many wait."""
        if self._is_busy:
            self._refuse_busy(operation)
        else:
            self.run(operation)

    def withdraw(self, operation: TaskOperation) -> None:
        """Forget an operation that is not needed any more, unless the store was asked already."""
        queue = self._queues.get(operation.task_id)
        if queue is not None and operation in queue and queue[0] is not operation:
            queue.remove(operation)
            self._waiting -= 1

    def run_list(self, operation: ListOperation, owner: str, after: str | None, limit: int) -> None:
        """Begin a listing, and finish it if the store is in memory."""
        at = self.time()
        self._purge(at)
        if self._is_busy:
            self._refuse_busy(operation)
        elif self.store is None:
            self._waiting += 1
            number = self._file(operation)
            self.host.events.append(
                TasksWanted(number=number, owner=owner, after=after, limit=limit)
            )
        else:
            operation.listed(self.store.page(owner, after, limit), at)

    @property
    def _is_busy(self) -> bool:
        """Whether as many operations wait for the application's store as may."""
        return self._waiting >= self.settings.max_lookups

    def _refuse_busy(self, operation: TaskOperation | ListOperation) -> None:
        """Refuse an operation for a request of the peer.

        Keeps OWN-070.
        """
        text = f"{_BUSY}: {self.settings.max_lookups} is the limit"
        self.host.events.append(LimitReached(rule="OWN-070", text=text))
        operation.failed(_BUSY)

    def add(self, task: Task) -> None:
        """File a task that this process works on."""
        record = task._record
        self.handles[record.id] = task
        self._owners[record.owner] += 1
        self._note_expiry(record)

    def _remove(self, task: Task) -> None:
        """Forget a task that this process works on no more."""
        del self.handles[task.id]
        owner = task._record.owner
        self._owners[owner] -= 1
        if not self._owners[owner]:
            del self._owners[owner]

    @property
    def is_full(self) -> bool:
        """Whether this process works on as many tasks of the application's store as it may."""
        return self.store is None and len(self.handles) >= self.settings.max_tasks

    def is_full_for(self, owner: str) -> bool:
        """Whether there is no room for one more task of an owner in the application's store."""
        own = self._owners[owner]
        return self.is_full or (self.store is None and own >= self.settings.max_tasks_per_owner)

    def watch(self, record: TaskRecord) -> TaskWatch:
        """The table of those who wait for changes of a task."""
        watch = self._watched.get(record.id)
        if watch is None:
            watch = self._watched[record.id] = TaskWatch(record)
            if self.store is None:
                self._note_expiry(record)
        return watch

    def unwatch(self, task_id: str, who: IncomingRequest | Listener) -> None:
        """Remove one of those who wait for changes of a task, if it is among them."""
        watch = self._watched.get(task_id)
        if watch is None:
            return
        if isinstance(who, Listener):
            watch.listeners.pop(who, None)
        else:
            watch.waiting.pop(who, None)
        if not watch.listeners and not watch.waiting:
            del self._watched[task_id]

    def watched(self, task_id: str) -> TaskRecord | None:
        """The record of which those who wait for its changes were told last; None: nobody waits."""
        watch = self._watched.get(task_id)
        return None if watch is None else watch.record

    @property
    def followed(self) -> tuple[str, ...]:
        """The ids of the tasks of which somebody here waits to learn changes."""
        return tuple(dict.fromkeys((*self.handles, *self._watched)))

    def follows(self, task_id: str) -> bool:
        """Whether somebody here waits to learn changes of a task."""
        return task_id in self.handles or task_id in self._watched

    def waiting_for(self, task_id: str, questions: TaskQuestions) -> IncomingRequest | None:
        """An open `tasks/result` for a task, of the peer that these questions go to; or None."""
        watch = self._watched.get(task_id)
        waiting = {} if watch is None else watch.waiting
        return next((one for one, part in waiting.items() if part.questions is questions), None)

    # --------------------------------------------------------------------- answers of the store

    def provide(self, wanted: TaskWanted, record: TaskRecord | None) -> None:
        """Go on with an operation that has waited for a record."""
        if record is not None:
            check_kind("record", record, TaskRecord)
            if record.id != wanted.task_id:
                raise LocalProtocolError("OWN-071", "this is the record of another task")
        operation: TaskOperation = self._take(wanted, TaskWanted)
        at = self.time()
        if record is not None and record.is_expired(at):
            record = None
        if self._decide(operation, record, at):
            self._next(operation)

    def provide_page(self, wanted: TasksWanted, records: list[TaskRecord]) -> None:
        """Answer a request for a page of tasks."""
        if not is_list(records) or not all(isinstance(one, TaskRecord) for one in records):
            raise LocalProtocolError("OWN-071", "records are a list of TaskRecord")
        if any(one.owner != wanted.owner for one in records):
            raise LocalProtocolError("OWN-071", "a record belongs to another owner")
        operation: ListOperation = self._take(wanted, TasksWanted)
        self._waiting -= 1
        operation.listed(records[: wanted.limit], self.time())

    def stored(self, asked: TaskToStore, done: bool) -> None:
        """Finish an operation whose record was stored, or begin it again."""
        operation: TaskOperation = self._take(asked, TaskToStore)
        if done:
            operation.done(asked.record)
            self.changed(asked.record)
            self._next(operation)
        else:
            self._ask(operation)

    def fail(self, asked: TaskQuestion, text: str | None, *, no_room: bool) -> None:
        """End an operation whose question cannot be answered, or whose record has no room.

        Keeps OWN-070.
        """
        check_flag("no_room", no_room)
        if text is not None:
            check_text("text", text)
        if no_room and not isinstance(asked, TaskToStore):
            raise LocalProtocolError("OWN-071", f"{asked!r} asks for no room")
        operation: Any = self._take(asked, type(asked))
        if no_room:
            operation.no_room(text or _NO_ROOM)
        else:
            operation.failed(text or _STORE_FAILED)
        if isinstance(asked, TasksWanted):
            self._waiting -= 1
        else:
            self._next(operation)

    def _begin_all(self, task_id: str) -> None:
        """Begin the operations on one task in order, until one waits for the store."""
        queue = self._queues[task_id]
        while queue:
            if not self._begin(queue[0]):
                return
            queue.popleft()
            self._waiting -= 1
        del self._queues[task_id]

    def _begin(self, operation: TaskOperation) -> bool:
        """Begin an operation; return whether it is finished, and does not wait for the store."""
        if operation.known is None:
            self._ask(operation)
            return False
        return self._decide(operation, operation.known, self.time())

    def _ask(self, operation: TaskOperation) -> None:
        number = self._file(operation)
        self.host.events.append(TaskWanted(number=number, task_id=operation.task_id))

    def _decide(
        self, operation: TaskOperation, record: TaskRecord | None, at: float | None
    ) -> bool:
        """Let an operation decide; return whether it is finished, and stores nothing."""
        changed = operation.change(record, at)
        if changed is None:
            operation.done(record)
            if record is not None:
                self.changed(record)  # another process may have changed it
            return True
        self.host.events.append(TaskToStore(number=self._file(operation), record=changed))
        return False

    def _next(self, operation: TaskOperation) -> None:
        """Go on with the next operation on the same task."""
        self._queues[operation.task_id].popleft()
        self._waiting -= 1
        self._begin_all(operation.task_id)

    def _file(self, operation: TaskOperation | ListOperation) -> int:
        self._number += 1
        self._asked[self._number] = operation
        return self._number

    def _take(self, asked: TaskQuestion, kind: type[object]) -> Any:
        """The operation that has asked this.

        Keeps OWN-071.
        """
        check_kind("asked", asked, kind)
        operation = self._asked.pop(asked.number, None)
        if operation is None:
            raise LocalProtocolError("OWN-071", f"{asked!r} was answered, or was not asked here")
        return operation

    # ------------------------------------------------------------------------- changes and endings

    def learn(self, record: TaskRecord) -> None:
        """Take the record that another process has stored."""
        check_kind("record", record, TaskRecord)
        self.changed(record)

    def changed(self, record: TaskRecord) -> None:
        """Tell all who wait for it that a task has changed, by this process or by another."""
        task = self.handles.get(record.id)
        if task is not None and record.version > task._record.version:
            self._tell_handle(task, record)
        watch = self._watched.get(record.id)
        if watch is None or record.version <= watch.record.version:
            return
        before, watch.record = watch.record, record
        if self.store is None and _is_shortened(before.expires_at, record.expires_at):
            self._note_expiry(record)
        for listener, subscriptions in list(watch.listeners.items()):
            subscriptions.notify(listener, record)
        if record.status.is_final:
            for request, owner in list(watch.waiting.items()):
                self.unwatch(record.id, request)
                owner.answer_result(request, record)

    def _tell_handle(self, task: Task, record: TaskRecord) -> None:
        """Tell the application what another has done to a task that it works on."""
        before, task._record = task._record, record
        if _is_shortened(before.expires_at, record.expires_at):
            self._note_expiry(record)
        part = task._part
        if record.status.is_final:
            self._remove(task)
            is_cancelled = record.status is TaskStatus.CANCELLED
            self.stop_work(task, TaskEnd.PEER if is_cancelled else TaskEnd.ELSEWHERE)
        elif len(record.answers) > len(before.answers):
            answers, missing = part.answers_of(task, before.answers)
            fresh = {key: value for key, value in answers.items() if key not in task._given}
            task._given.update(dict.fromkeys(fresh))
            self.host.events.append(TaskInputReceived(task=task, responses=fresh, missing=missing))
        part.task_changed(task, before)

    def stop_work(self, task: Task, cause: TaskEnd, text: str = "") -> None:
        """Tell the application, once, that a task has ended without it."""
        if task._open:
            task._open = False
            self.host.events.append(TaskCancelled(task=task, cause=cause, text=text))

    def finish_output(self, core: Core) -> None:
        """Finish output of a connection of the endpoint, which an event of another has caused."""
        if self.host is not core and core.needs_settle:
            core.settle()

    def give_up(self, task: Task, cause: TaskEnd, text: str = "") -> None:
        """End a task whose record is gone, or cannot be stored."""
        if self.handles.get(task.id) is task:
            self._remove(task)
            task._part.questions.withdraw(task)
        self.stop_work(task, cause, text)
        self._forget_watch(task.id, cause, text)

    def close(self) -> None:
        """End all tasks in memory: the connection that keeps them has ended."""
        if self.store is not None:
            for task in list(self.handles.values()):
                self.give_up(task, TaskEnd.CLOSED)
        self.host.timers.drop(self)

    def _forget_watch(self, task_id: str, cause: TaskEnd, text: str = "") -> None:
        """Refuse all who wait for a task that is gone, or whose change cannot be stored."""
        watch = self._watched.pop(task_id, None)
        if watch is not None:
            for request, part in list(watch.waiting.items()):
                part.refuse_waiting(request, cause, text)

    # ------------------------------------------------------------------------------------- expiry

    def _note_expiry(self, record: TaskRecord) -> None:
        """Remember when the time of a task is over."""
        expires = record.expires_at
        if expires is None:
            return
        heappush(self._expiries, (expires, record.id))
        count = len(self.handles) + len(self._watched)
        if self.store is not None:
            count += len(self.store.records)
        if len(self._expiries) > 2 * count + _SPARE_EXPIRIES:
            ids = dict.fromkeys(id for _, id in self._expiries)
            records = [known for id in ids if (known := self._known(id)) is not None]
            self._expiries[:] = [
                (one.expires_at, one.id) for one in records if one.expires_at is not None
            ]
            heapify(self._expiries)
        self._arm()

    def _known(self, task_id: str) -> TaskRecord | None:
        """The record of a task that is kept, worked on or watched here; else None."""
        if self.store is not None:
            return self.store.records.get(task_id)
        known = self.handles.get(task_id)
        if known is not None:
            return known._record
        watch = self._watched.get(task_id)
        return None if watch is None else watch.record

    def _arm(self) -> None:
        """Arm the timer for the task whose time is over first."""
        now, at = self.host.now, self._estimate()
        if not self._expiries or now is None or at is None:
            return
        deadline = now + max(0.0, self._expiries[0][0] - at) + _SLACK
        if self._deadline is None or deadline < self._deadline:
            self.host.timers.arm(self, self, deadline)

    def _timer_fired(self, subject: Timed) -> None:
        self._purge(self.time())
        self._arm()

    def _purge(self, at: float | None) -> None:
        """Forget the tasks whose time is over.

        Keeps XTASK-084.
        """
        expiries = self._expiries
        while at is not None and expiries and expiries[0][0] <= at:
            _, id = heappop(expiries)
            record = self._known(id)
            if record is None:
                continue
            if not record.is_expired(at):
                self._note_expiry(record)  # its time to live was changed
                continue
            if self.store is not None:
                self.store.remove(record)
            task = self.handles.get(id)
            if task is not None:
                self.give_up(task, TaskEnd.EXPIRED)
            self._forget_watch(id, TaskEnd.EXPIRED)
