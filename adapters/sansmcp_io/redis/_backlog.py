"""Reads all entries that were sent to a worker during a pause, before any of them is handled.

A worker that was paused, or could not reach Redis, finds requests that the others have ended
meanwhile: their clients got errors, so the requests must not be served. Which ones they are is
known when all was read that the others had sent until now: when the worker reads a mark, which it
sends to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ._commands import Command, Engine
from ._entries import MARK, Fields


class Backlog:
    """Holds entries for a moment after a pause.

    Args:
        engine: Sends commands to Redis.
        inbox: The stream of this worker.
        take: Takes entries.
        pause: Seconds without a move after which entries are held.
    """

    def __init__(
        self,
        engine: Engine,
        inbox: str,
        take: Callable[[Sequence[Fields]], object],
        pause: float,
    ) -> None:
        self._engine: Final = engine
        self._inbox: Final = inbox
        self._take: Final = take
        self._pause: Final = pause
        self._moved_at: float | None = None
        self._held: list[Fields] | None = None
        self._mark = 0

    def moved(self, now: float) -> None:
        """The worker moves: hold what comes, if it has not moved for long."""
        is_late = self._moved_at is not None and now - self._moved_at > self._pause
        self._moved_at = now
        if is_late:
            self.hold()

    def hold(self) -> None:
        """Hold what comes, until all was read that was sent before now."""
        if self._held is None:
            self._held = []
            self._mark += 1
            words = ("XADD", self._inbox, "NOMKSTREAM", "*", MARK, self._mark)
            self._engine.put(Command(words, self._not_marked, only_nothing=True))

    def _not_marked(self, _outcome: Any) -> None:
        """The stream is gone, or Redis is away: nothing more can come of what was sent."""
        self._release()

    def receive(self, entries: Sequence[Fields], now: float) -> None:
        """Take entries, or hold them."""
        self.moved(now)
        mark = b"%d" % self._mark
        is_over = any(fields[0] == MARK and fields[1] == mark for fields in entries)
        found = [fields for fields in entries if fields[0] != MARK]
        if self._held is None:
            self._take(found)
            return
        self._held += found
        if is_over:
            self._release()

    def _release(self) -> None:
        held, self._held = self._held or [], None
        self._take(held)
