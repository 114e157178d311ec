"""The tasks of one process in memory, within bounds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter

from .records import TaskRecord
from .settings import Tasks


class MemoryTaskStore:
    """The records of tasks by id, and the places of each owner's tasks in order.

    The cost of each method does not depend on the number of tasks, but for a search
    among the sorted places of one owner.

    Attributes:
        records: The records by id.
    """

    __slots__ = ("_bytes", "_bytes_of_owner", "_of_owner", "_settings", "records")

    def __init__(self, settings: Tasks) -> None:
        self._settings = settings
        self.records: dict[str, TaskRecord] = {}
        self._of_owner: dict[str, list[str]] = {}
        self._bytes = 0
        self._bytes_of_owner: Counter[str] = Counter()

    def put(self, record: TaskRecord) -> bool:
        """Store a record; False: there is no room.

        Keeps OWN-070.
        """
        old, settings = self.records.get(record.id), self._settings
        growth = record.size - (0 if old is None else old.size)
        owner = record.owner
        own_bytes = self._bytes_of_owner[owner] + growth
        if growth > 0 and (
            self._bytes + growth > settings.max_task_bytes
            or own_bytes > settings.max_task_bytes_per_owner
        ):
            return False
        if old is None:
            own = len(self._of_owner.get(owner, ()))
            if len(self.records) >= settings.max_tasks or own >= settings.max_tasks_per_owner:
                return False
            insort(self._of_owner.setdefault(owner, []), record.place)
        self._bytes += growth
        self._bytes_of_owner[owner] = own_bytes
        self.records[record.id] = record
        return True

    def page(self, owner: str, after: str | None, limit: int) -> list[TaskRecord]:
        """So many tasks of an owner at most, oldest first, behind the place `after`."""
        places = self._of_owner.get(owner, [])
        start = 0 if after is None else bisect_right(places, after)
        return [self.records[place.partition(" ")[2]] for place in places[start : start + limit]]

    def remove(self, record: TaskRecord) -> None:
        """Forget a task that is stored."""
        del self.records[record.id]
        owner = record.owner
        self._bytes -= record.size
        self._bytes_of_owner[owner] -= record.size
        places = self._of_owner[owner]
        del places[bisect_left(places, record.place)]
        if not places:
            del self._of_owner[owner]
            del self._bytes_of_owner[owner]
