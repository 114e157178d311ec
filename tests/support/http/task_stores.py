"""Stores of tasks such as applications have: synchronous, async, and with failures, on a dict."""

from collections.abc import Awaitable, Callable

from sansmcp import TaskRecord
from sansmcp_io import TaskStoreFull


class DictTasks:
    """A synchronous store, which keeps records as bytes."""

    def __init__(self) -> None:
        self.records: dict[str, bytes] = {}
        self.failure: Exception | None = None
        self.most: int | None = None  # bytes of one record

    def get(self, task_id: str) -> TaskRecord | None:
        self._fail()
        data = self.records.get(task_id)
        return None if data is None else TaskRecord.from_bytes(data)

    def put(self, record: TaskRecord) -> bool:
        old = self.get(record.id)
        if (0 if old is None else old.version) != record.version - 1:
            return False
        data = record.to_bytes()
        if self.most is not None and len(data) > self.most:
            raise TaskStoreFull(f"{self.most} bytes are kept")
        self.records[record.id] = data
        return True

    def page(self, owner: str, after: str | None, limit: int) -> list[TaskRecord]:
        self._fail()
        records = [TaskRecord.from_bytes(data) for data in self.records.values()]
        own = [one for one in records if one.owner == owner]
        found = [one for one in own if after is None or one.place > after]
        return sorted(found, key=lambda one: one.place)[:limit]

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure


class AsyncTasks:
    """The same store with async methods."""

    def __init__(self) -> None:
        self.kept = DictTasks()
        self.wait: Callable[[], Awaitable[object]] | None = None  # each call awaits it

    async def get(self, task_id: str) -> TaskRecord | None:
        await self._pause()
        return self.kept.get(task_id)

    async def put(self, record: TaskRecord) -> bool:
        await self._pause()
        return self.kept.put(record)

    async def page(self, owner: str, after: str | None, limit: int) -> tuple[TaskRecord, ...]:
        await self._pause()
        return tuple(self.kept.page(owner, after, limit))

    async def _pause(self) -> None:
        if self.wait is not None:
            await self.wait()
