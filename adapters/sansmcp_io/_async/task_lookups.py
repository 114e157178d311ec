"""Answers the questions of an endpoint about tasks by a store of the application."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from sansmcp import TaskQuestion, TaskRecord, TasksWanted, TaskToStore, TaskWanted

from .._common.anomalies import LOGGER
from .._common.lookups import LookupTimeout
from .._common.task_stores import (
    LOOK_SECONDS,
    TASK_FAILED,
    TASK_LATE,
    TaskStore,
    TaskStoreFull,
)
from .http_lookups import LookupHost

_TEXT_CHARACTERS: Final = 300
"""The most characters of the text of `TaskStoreFull` that a client gets."""


class TaskLookups:
    """Calls the methods of a store, each in a task and for a limited time.

    Args:
        host: Runs the endpoint.
        store: The store.
        bounded: Awaits something of the application for a limited time.
    """

    def __init__(
        self,
        host: LookupHost,
        store: TaskStore,
        bounded: Callable[[str, Awaitable[Any]], Awaitable[Any]],
    ) -> None:
        self._host: Final = host
        self._store: Final = store
        self._bounded: Final = bounded
        self._has_failed = False
        self._is_looking = False
        self._n_storing = 0
        self._under_way: dict[str, int] = {}  # how many calls for questions about a task

    @property
    def is_storing(self) -> bool:
        """Whether records wait to be stored."""
        return self._n_storing > 0

    def handle(self, event: TaskQuestion) -> None:
        """Begin the lookup that an event asks for."""
        self._n_storing += isinstance(event, TaskToStore)
        self._host.tasks.start_soon(self._answer, event)

    async def _answer(self, event: TaskQuestion) -> None:
        try:
            await self._ask_store(event)
        finally:
            self._n_storing -= isinstance(event, TaskToStore)
        self._host.turn()
        self._follow()

    async def _ask_store(self, event: TaskQuestion) -> None:
        try:
            match event:
                case TaskWanted():
                    await self._find(event)
                case TasksWanted():
                    await self._list(event)
                case TaskToStore():
                    await self._put(event)
        except Exception as error:  # of the application, or of its return value
            text = TASK_LATE if isinstance(error, LookupTimeout) else TASK_FAILED
            self._complain(error)
            self._host.endpoint.fail_task_lookup(event, text, now=self._host.now())
        else:
            self._has_failed = False

    async def _find(self, wanted: TaskWanted) -> None:
        with self._marked(wanted.task_id):
            record = await self._call("get", partial(self._store.get, wanted.task_id))
        self._host.endpoint.provide_task(wanted, record, now=self._host.now())

    async def _list(self, wanted: TasksWanted) -> None:
        page = partial(self._store.page, wanted.owner, wanted.after, wanted.limit)
        records = list(await self._call("page", page))
        self._host.endpoint.provide_tasks(wanted, records, now=self._host.now())

    async def _put(self, asked: TaskToStore) -> None:
        host = self._host
        try:
            with self._marked(asked.record.id):
                is_stored = await self._call("put", partial(self._store.put, asked.record))
        except TaskStoreFull as error:
            text = str(error)[:_TEXT_CHARACTERS] or None
            host.endpoint.fail_task_lookup(asked, text, no_room=True, now=host.now())
            return
        if type(is_stored) is not bool:
            raise TypeError(f"task_store.put must return True or False, not {is_stored!r:.80}")
        host.endpoint.task_stored(asked, is_stored, now=host.now())

    @contextmanager
    def _marked(self, task_id: str) -> Generator[None, None, None]:
        """Mark a task about which the store is asked: its answer tells more than a look."""
        self._under_way[task_id] = self._under_way.get(task_id, 0) + 1
        try:
            yield
        finally:
            left = self._under_way.pop(task_id) - 1
            if left:
                self._under_way[task_id] = left

    async def _call(self, what: str, function: Callable[[], Any]) -> Any:
        outcome = function()
        if inspect.isawaitable(outcome):
            outcome = await self._bounded(f"task_store.{what}", outcome)
        return outcome

    def _complain(self, error: Exception) -> None:
        """Log the first of several failures in a row."""
        if not self._has_failed:
            self._has_failed = True
            LOGGER.error("task_store failed", exc_info=error)

    # ------------------------------------------------------------------------ changes of others

    def _follow(self) -> None:
        """Look for changes of other processes, as long as tasks here depend on them."""
        if not self._is_looking and self._host.endpoint.followed_tasks:
            self._is_looking = True
            self._host.tasks.start_soon(self._look)

    async def _look(self) -> None:
        host, loop = self._host, self._host.loop
        try:
            while host.endpoint.followed_tasks:
                never = loop.new_event()
                await loop.wait_until(loop.now() + LOOK_SECONDS, never.wait)
                for task_id in host.endpoint.followed_tasks:
                    await loop.pause()  # a store with plain methods lets nothing else run
                    if task_id not in self._under_way:
                        await self._look_at(task_id)
        finally:
            self._is_looking = False

    async def _look_at(self, task_id: str) -> None:
        try:
            record = await self._call("get", partial(self._store.get, task_id))
            if isinstance(record, TaskRecord):
                self._host.endpoint.task_changed(record, now=self._host.now())
                self._host.turn()
        except Exception as error:
            self._complain(error)
