"""The store of tasks that an application supplies, and the choice between stores."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Final, Protocol

import attrs

from sansmcp import TaskRecord, Tasks

TASK_LATE: Final = "the store of tasks took too long: try again later"
"""The text of the error for a request that needs it."""
TASK_FAILED: Final = "the store of tasks has failed: try again later"
"""The text of the error where a method of the store has raised an exception."""
LOOK_SECONDS: Final = 3.0
"""How often the tasks that matter here are read, since other processes may have changed them."""


class TaskStoreFull(Exception):
    """Raised by `TaskStore.put`: the store works, and has no room for the record.

    The text of the exception tells the client why. What is stored must stay as it was. A request
    that would make a task, or answers questions, gets an error; a task whose result has no room
    fails, with a record that is short.
    """


class TaskStore(Protocol):
    """Keeps the records of tasks outside of this process, for several processes that serve as one.

    The methods are plain or async. Several of them may run at the same time, but no two for one
    task. A record is plain data: `TaskRecord.to_bytes` and `from_bytes` turn it into bytes and
    back. An exception answers the request of the client with an error, and ends the work on a task
    whose change it concerns: a method that can try again should.
    """

    def get(self, task_id: str, /) -> TaskRecord | Awaitable[TaskRecord | None] | None:
        """Return the record of a task; None: there is none.

        Args:
            task_id: The id, as the client has given it: a text of any form.
        """
        ...

    def put(self, record: TaskRecord, /) -> bool | Awaitable[bool]:
        """Store a record, if the stored one of the same id has the version before.

        For version 1, only if there is none. Compare and write in one step: other processes do the
        same. The record may be removed from `TaskRecord.expires_at` on, a time in Unix seconds.

        Returns:
            Whether it is stored. False: another version is stored, or none.

        Raises:
            TaskStoreFull: There is no room for it.
        """
        ...

    def page(
        self, owner: str, after: str | None, limit: int, /
    ) -> Sequence[TaskRecord] | Awaitable[Sequence[TaskRecord]]:
        """Return the tasks of an owner, in the order of `TaskRecord.place`.

        Args:
            owner: The owner (`TaskRecord.owner`).
            after: The place behind which the page begins; None: at the first. A text of any form.
            limit: The most records to return; fewer say that there are no more.
        """
        ...


def check_task_store(store: object, tasks: Tasks | None) -> None:
    """Raise `ValueError` unless this can keep tasks, or is None."""
    if store is None:
        return
    if tasks is None:
        raise ValueError("task_store keeps tasks, and they are not turned on: pass tasks=")
    for name in ("get", "put", "page"):
        if not callable(getattr(store, name, None)):
            raise ValueError(f"task_store needs a method {name}, unlike {store!r:.80}")


def check_own_store(tasks: Tasks) -> None:
    """Refuse settings by which an endpoint would ask questions that adapters do not answer.

    Raises:
        ValueError: The store is `"ask"`.
    """
    if tasks.store == "ask":
        raise ValueError(
            "Tasks.store must be 'memory': 'ask' is for endpoints that are driven by hand; pass"
            " task_store= or cluster=, which keep the tasks"
        )


def asking(tasks: Tasks) -> Tasks:
    """The same settings, for tasks that are kept outside of the endpoint."""
    return attrs.evolve(tasks, store="ask")
