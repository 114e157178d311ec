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
        is_lasting: Whether it is sent again after Redis was away. If not, it fails then.
    """

    words: tuple[Word, ...]
    done: Done | None = None
    only_nothing: bool = False
    is_lasting: bool = False


class Engine(Protocol):
    """Takes commands in the thread of the loop, and sends them in their order."""

    def put(self, command: Command) -> None:
        """Send a command."""
        ...


class Keys:
    """The names of the keys of a cluster. They are in one slot, should Redis be sharded.

    Args:
        name: The name of the cluster.
    """

    def __init__(self, name: str) -> None:
        self._prefix: Final = f"sansmcp:{{{name}}}:"
        self.changes: Final = f"{self._prefix}changes"

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
        secret = f"{session_id} {key}".encode("utf-8", "surrogatepass")
        return f"{self._prefix}events:{hashlib.sha256(secret).hexdigest()[:40]}"
