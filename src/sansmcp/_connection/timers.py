"""The deadlines of a connection, or of all sessions of an HTTP endpoint, in one table."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush, heapreplace
from typing import Protocol

import attrs


class Timed(Protocol):
    """An object with a deadline in seconds on the caller's clock; None: it has none."""

    _deadline: float | None


class TimerOwner(Protocol):
    """The part that handles a deadline when it has passed."""

    def _timer_fired(self, subject: Timed) -> None:
        """Handle the deadline of `subject`, which has passed and is None now."""
        ...


@attrs.define(eq=False, repr=False)
class TimeoutPauses:
    """The pauses of a client's timeouts: the times in which the server waits for the client.

    Attributes:
        total: Seconds of all pauses that are over.
        since: The start of the current pause; None without a pause or without a clock.
        peer_waits: Whether the peer waits for this side, with or without a clock.
        parked: Requests whose timeout was over during the current pause.
    """

    total: float = 0.0
    since: float | None = None
    peer_waits: bool = False
    parked: dict[Timed, None] = attrs.field(factory=dict[Timed, None])

    def until(self, now: float) -> float:
        """Seconds of all pauses up to `now`."""
        return self.total if self.since is None else self.total + (now - self.since)


@attrs.define(eq=False, repr=False)
class Timers:
    """A heap of entries (time, order, owner, subject), which are checked when they come first.

    The subject holds the true deadline. To move it later or to drop it changes the subject only, so
    that progress and responses cost nothing here. An entry that comes first too early is put back,
    and one of a dropped subject is removed. The heap is rebuilt when more than half of its entries
    may be dead: those of dropped subjects, and the older ones of a subject that was armed again.
    """

    _heap: list[tuple[float, int, TimerOwner, Timed]] = attrs.field(
        factory=list[tuple[float, int, TimerOwner, Timed]], init=False
    )
    _order: int = attrs.field(default=0, init=False)
    _dead: int = attrs.field(default=0, init=False)

    def arm(self, owner: TimerOwner, subject: Timed, deadline: float) -> None:
        """Set the deadline of `subject`, in seconds on the caller's clock."""
        if subject._deadline is not None:
            self.drop(subject)
        subject._deadline = deadline
        self._order += 1
        heappush(self._heap, (deadline, self._order, owner, subject))

    def drop(self, subject: Timed) -> None:
        """Remove the deadline of `subject`, if it has one."""
        if subject._deadline is None:
            return
        subject._deadline = None
        self._dead += 1
        if self._dead > 64 and self._dead * 2 > len(self._heap):
            self._rebuild()

    def earliest(self) -> float | None:
        """The earliest deadline, or None."""
        heap = self._heap
        while heap:
            when, order, owner, subject = heap[0]
            deadline = subject._deadline
            if deadline == when:
                return when
            if deadline is None:
                heappop(heap)
                self._dead = max(0, self._dead - 1)
            else:
                heapreplace(heap, (deadline, order, owner, subject))
        return None

    def fire(self, now: float) -> None:
        """Call the owner of each deadline up to `now`, in order of time."""
        while (when := self.earliest()) is not None and when <= now:
            _, _, owner, subject = heappop(self._heap)
            subject._deadline = None
            owner._timer_fired(subject)

    def change_owner(self, subjects: Iterable[Timed], owner: TimerOwner) -> None:
        """Make `owner` the owner of the deadlines of these subjects."""
        moved = {id(subject) for subject in subjects}
        self._heap = [
            (when, order, owner if id(subject) in moved else former, subject)
            for when, order, former, subject in self._heap
        ]

    def _rebuild(self) -> None:
        """Keep only the newest entry of each subject that has a deadline."""
        live: dict[int, tuple[float, int, TimerOwner, Timed]] = {}
        for entry in self._heap:
            when, order, owner, subject = entry
            deadline = subject._deadline
            if deadline is None:
                continue
            kept = live.get(id(subject))
            if kept is None or kept[1] < order:
                live[id(subject)] = entry if when == deadline else (deadline, order, owner, subject)
        self._heap = list(live.values())
        heapify(self._heap)
        self._dead = 0
