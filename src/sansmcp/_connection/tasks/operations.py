"""The operations on tasks: what a request of the peer, or the application, does to a record.

Each is plain data with the steps that the board calls: `change` decides on the record that is
stored, and `done` takes the outcome.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs

from ..._rules.state_tables import TaskTrigger
from ..._spec.errors import ErrorCode
from ..._wire.values import JSONObject
from ..events import TaskEnd
from ..handles import IncomingRequest, Listener, Task
from .records import TaskRecord

if TYPE_CHECKING:
    from .board import TaskBoard
    from .owner import TaskOwner
    from .subscriptions import TaskSubscriptions

NO_ROOM: Final = "the task has no room"
_SMALL: Final = ("ttl_ms", "poll_ms")
"""The fields of a record that need no room."""


class TaskCreation:
    """A request that is being answered with a new task: the answer follows the record."""

    __slots__ = ("known", "meta", "part", "request", "task", "task_id")

    def __init__(
        self, part: TaskOwner, task: Task, request: IncomingRequest, meta: JSONObject | None
    ) -> None:
        self.part: TaskOwner = part
        self.task: Task = task
        self.task_id: str = task.id
        self.known: TaskRecord | None = attrs.evolve(task._record, version=0)
        self.request: IncomingRequest | None = request  # None: it was cancelled meanwhile
        self.meta: JSONObject | None = meta

    def change(self, record: TaskRecord | None, at: float | None) -> TaskRecord | None:
        """The new record; None if another task has this id, which never happens by chance."""
        return self.task._record if record is None or record.version == 0 else None

    def done(self, record: TaskRecord | None) -> None:
        """Answer the request: the task can be found from now on."""
        if record is not self.task._record:
            self.failed("another task has the id of the new one")
        else:
            self.part.created(self)

    def failed(self, text: str) -> None:
        """Refuse the request: its task cannot be stored."""
        self.part.not_created(self, text)

    def no_room(self, text: str | None) -> None:
        """Refuse the request: there are too many tasks."""
        self.part.no_room_for(self, text)


class TaskLookup:
    """A request of the peer about one task."""

    __slots__ = ("is_changed", "known", "part", "request", "task_id")

    def __init__(self, part: TaskOwner, request: IncomingRequest) -> None:
        self.part: TaskOwner = part
        self.request: IncomingRequest = request
        self.task_id: str = request._params["taskId"]
        self.known: TaskRecord | None = None
        self.is_changed: bool = False

    def change(self, record: TaskRecord | None, at: float | None) -> TaskRecord | None:
        """The cancelled record, or the one with the answers; None for the other methods."""
        changed = None
        if record is not None and self.part.is_owner(self.request, record):
            changed = self.part.changed_by_peer(self.request, record, at)
        self.is_changed = changed is not None
        return changed

    def done(self, record: TaskRecord | None) -> None:
        """Answer the request."""
        self.request._subject = None
        self.part.found(self.request, record, self.is_changed)

    def failed(self, text: str) -> None:
        """Refuse the request: the store has failed."""
        self.request._subject = None
        self.part.refuse(self.request, ErrorCode.INTERNAL_ERROR, text)

    def no_room(self, text: str | None) -> None:
        """Refuse the request: the answers have no room."""
        self.request._subject = None
        self.part.refuse_full(self.request, "the answers have no room", text)


class TaskPage:
    """A `tasks/list` of the peer."""

    __slots__ = ("part", "request", "size")

    def __init__(self, part: TaskOwner, request: IncomingRequest, size: int) -> None:
        self.part: TaskOwner = part
        self.request: IncomingRequest = request
        self.size: int = size

    def listed(self, records: list[TaskRecord], at: float | None) -> None:
        """Answer the request with one page, and a cursor if there are more tasks."""
        self.part.listed(self.request, records, self.size, at)

    def failed(self, text: str) -> None:
        """Refuse the request: the store has failed."""
        self.part.refuse(self.request, ErrorCode.INTERNAL_ERROR, text)


class TaskFilter:
    """The tasks in the filter of a subscription, which are looked up before it is acknowledged.

    Attributes:
        listener: The subscription.
        lookups: One operation for each task.
        records: The tasks that were accepted, as they were found.
        waiting: The number of tasks that are being looked up.
    """

    __slots__ = ("listener", "lookups", "part", "records", "waiting")

    def __init__(
        self, part: TaskSubscriptions, listener: Listener, wanted: tuple[str, ...]
    ) -> None:
        self.part: TaskSubscriptions = part
        self.listener: Listener = listener
        self.lookups: tuple[FilteredTask, ...] = tuple(FilteredTask(self, id) for id in wanted)
        self.records: list[TaskRecord] = []
        self.waiting: int = len(wanted)


class FilteredTask:
    """One task in the filter of a subscription."""

    __slots__ = ("filter", "known", "task_id")

    def __init__(self, filter: TaskFilter, task_id: str) -> None:
        self.filter: TaskFilter = filter
        self.task_id: str = task_id
        self.known: TaskRecord | None = None

    def change(self, record: TaskRecord | None, at: float | None) -> TaskRecord | None:
        """Nothing: the task is only looked up."""
        return None

    def done(self, record: TaskRecord | None) -> None:
        """Accept the task if it belongs to the client."""
        self.filter.part.filtered(self.filter, record)

    def failed(self, text: str) -> None:
        """Leave the task out: the client polls it."""
        self.filter.part.filtered(self.filter, None)

    def no_room(self, text: str | None) -> None:
        """Nothing was to be stored."""


class TaskChange:
    """A change of a task by the application.

    Attributes:
        answer: The JSON of the answers that are added, or empty.
        asked: The JSON of the questions that are added, or empty.
        is_last: Whether the task fails because the change before had no room.
        fields: The fields of the record that get these values.
        is_done: Whether the record has the change; with a store of the application, once it is
            stored.
        trigger: What has happened.
    """

    __slots__ = (
        "answer",
        "asked",
        "board",
        "fields",
        "is_done",
        "is_last",
        "task",
        "task_id",
        "trigger",
    )

    def __init__(
        self,
        board: TaskBoard,
        task: Task,
        trigger: TaskTrigger,
        fields: dict[str, Any],
        *,
        asked: bytes = b"",
        answer: bytes = b"",
        is_last: bool = False,
    ) -> None:
        self.board: TaskBoard = board
        self.task: Task = task
        self.task_id: str = task.id
        self.trigger: TaskTrigger = trigger
        self.fields: dict[str, Any] = fields
        self.asked: bytes = asked
        self.answer: bytes = answer
        self.is_last: bool = is_last
        self.is_done: bool = False

    @property
    def known(self) -> TaskRecord | None:
        """The record as this process knows it when the change begins."""
        return self.task._record

    def change(self, record: TaskRecord | None, at: float | None) -> TaskRecord | None:
        """The changed record; None: it is over, or gone."""
        if self.task._report is self:
            self.task._report = None  # it has begun
        unsaved, self.task._unsaved = self.task._unsaved, None
        if unsaved is not None:
            self.fields = {**(small(unsaved) if self.is_last else unsaved), **self.fields}
        if record is None:
            return None
        fields = dict(self.fields)
        if self.asked:
            fields["questions"] = joined(record.questions, self.asked)
        elif self.answer:
            fields["answers"] = joined(record.answers, self.answer)
        changed = record.after(self.trigger, at, fields)
        self.is_done = changed is not None
        return changed

    def done(self, record: TaskRecord | None) -> None:
        """End the task if the store does not have it any more."""
        if record is None:
            self.board.give_up(self.task, TaskEnd.LOST)

    def failed(self, text: str) -> None:
        """End the task: its change cannot be stored. An update of it is left to the next change."""
        if self.trigger is TaskTrigger.REPORT:
            self.task._unsaved = self.fields
        else:
            self.board.give_up(self.task, TaskEnd.FAILED, text)

    def no_room(self, text: str | None) -> None:
        """Let the task fail, or end it if the store has no room for that either."""
        self.is_done = False
        if self.is_last:
            self.board.give_up(self.task, TaskEnd.NO_ROOM, text or NO_ROOM)
        else:
            self.task._part.change_refused(self.task, text, small(self.fields))


def small(fields: dict[str, Any]) -> dict[str, Any]:
    """Those among the fields of a record that need no room."""
    return {name: value for name, value in fields.items() if name in _SMALL}


def joined(one: bytes, other: bytes) -> bytes:
    """The JSON of an object with the members of two, of which the first may be empty."""
    if len(one) <= len(b"{}"):
        return other
    return one[:-1] + b"," + other[1:]
