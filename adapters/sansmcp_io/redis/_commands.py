"""Commands for Redis, and the names of the keys."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

import attrs

Done: TypeAlias = Callable[[Any], object]
"""Called with the answer of Redis, or with an exception."""

Word: TypeAlias = bytes | str | int
"""A word of a command."""


@attrs.define
class Command:
    """A command for Redis.

    Attributes:
        words: The command with its arguments.
        done: Called in the thread of the loop with the answer, or with an exception; None: neither
            matters.
        only_nothing: Whether `done` is called only where the answer is nothing, or an exception.
        is_lasting: Whether it is sent again after Redis was away. If not, it fails at once then.
        answer_bytes: The bytes that its answer may have, where they are many.
        tries: How often it was sent, perhaps.
    """

    words: tuple[Word, ...]
    done: Done | None = None
    only_nothing: bool = False
    is_lasting: bool = False
    answer_bytes: int = 0
    tries: int = 0


class Engine(Protocol):
    """Takes commands in the thread of the loop, and sends them in their order."""

    def put(self, command: Command) -> None:
        """Send a command."""
        ...

    def withdraw(self, command: Command, words: tuple[Word, ...]) -> bool:
        """Send other words instead of a command, and return whether it was certainly not sent."""
        ...

    def drop_lease(self) -> None:
        """Remove the lease: after the commands before, and before those that follow."""
        ...


class Keys:
    """The names of the keys of a cluster. They are in one slot, should Redis be sharded.

    Args:
        name: The name of the cluster.
    """

    def __init__(self, name: str) -> None:
        self._prefix: Final = f"sansmcp:{{{name}}}:"
        self.changes: Final = f"{self._prefix}changes"
        self.task_changes: Final = f"{self._prefix}task-changes"
        self.task_count: Final = f"{self._prefix}task-count"
        self.task_workers: Final = f"{self._prefix}task-workers"

    def lease(self, worker: str) -> str:
        """The key that is there as long as a worker lives."""
        return f"{self._prefix}lease:{worker}"

    def inbox(self, worker: str) -> str:
        """The stream of entries for a worker."""
        return f"{self._prefix}inbox:{worker}"

    def events(self, session_id: str, principal_key: str | None) -> str:
        """The stream of events of a session: of this principal, so that no other one finds it.

        The name is a digest, since a session id is a secret.
        """
        key = "" if principal_key is None else f"={principal_key}"
        return f"{self._prefix}events:{_digest(f'{session_id} {key}')}"

    def task(self, task_id: str) -> str:
        """The hash with a task."""
        return f"{self._prefix}task:{task_id}"

    def places(self, owner: str) -> str:
        """The sorted set of the places of an owner's tasks."""
        return f"{self._prefix}tasks:{_digest(owner)}"

    def place_expiries(self, owner: str) -> str:
        """The sorted set of the times at which these tasks expire."""
        return f"{self._prefix}task-expiries:{_digest(owner)}"

    def running(self, worker: str) -> str:
        """The set of the ids of tasks that a worker works on."""
        return f"{self._prefix}running:{worker}"


def _digest(text: str) -> str:
    """A name of moderate length for a text of any length."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]
