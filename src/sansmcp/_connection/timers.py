"""One table of deadlines, of a connection or shared by all sessions of an endpoint."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush, heapreplace
from typing import Protocol

import attrs


class Timed(Protocol):
    """Something that has a deadline, or None when it has none any more."""

    _deadline: float | None


class TimerOwner(Protocol):
    """Who is told that a deadline has passed."""

    def _timer_fired(self, subject: Timed) -> None:
        """The deadline of `subject` has passed; it has none any more."""
        ...


@attrs.define(eq=False, repr=False)
class TimeoutPauses:
    """The time in which the silence of the peer does not count, since it waits for this side.

    Attributes:
        total: Seconds of the pauses that are over.
        since: Start of the current pause, or None; without a clock it is None, too.
        peer_waits: Whether the peer waits for this side, clock or not.
        parked: Requests whose silence was over during a pause.
    """

    total: float = 0.0
    since: float | None = None
    peer_waits: bool = False
    parked: dict[Timed, None] = attrs.field(factory=dict[Timed, None])

    def until(self, now: float) -> float:
        """Seconds of all pauses up to now."""
        return self.total if self.since is None else self.total + (now - self.since)


@attrs.define(eq=False, repr=False)
class Timers:
    """A heap of (time, order, owner, subject) whose entries are checked when they surface.

    The subject holds the true deadline. Moving it later or dropping it touches only the subject,
    so that progress and answers cost nothing here; an entry that surfaces too early is put back,
    a dropped one is thrown away, and the heap is rebuilt when most of its entries may be dead:
    those of dropped subjects, and all but one of a subject that was armed again.
    """

    _heap: list[tuple[float, int, TimerOwner, Timed]] = attrs.field(
        factory=list[tuple[float, int, TimerOwner, Timed]], init=False
    )
    _order: int = attrs.field(default=0, init=False)
    _dead: int = attrs.field(default=0, init=False)

    def arm(self, owner: TimerOwner, subject: Timed, deadline: float) -> None:
        """Note the deadline of `subject`, in seconds on the caller's clock."""
        if subject._deadline is not None:
            self.drop(subject)
        subject._deadline = deadline
        self._order += 1
        heappush(self._heap, (deadline, self._order, owner, subject))

    def drop(self, subject: Timed) -> None:
        """The deadline of `subject` no longer matters."""
        if subject._deadline is None:
            return
        subject._deadline = None
        self._dead += 1
        if self._dead > 64 and self._dead * 2 > len(self._heap):
            self._rebuild()

    def earliest(self) -> float | None:
        """The next deadline, or None."""
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
        """Tell the owner of each deadline that has passed, in order of time."""
        while (when := self.earliest()) is not None and when <= now:
            _, _, owner, subject = heappop(self._heap)
            subject._deadline = None
            owner._timer_fired(subject)

    def change_owner(self, subjects: Iterable[Timed], owner: TimerOwner) -> None:
        """Have another owner told of the deadlines of these subjects."""
        moved = {id(subject) for subject in subjects}
        self._heap = [
            (when, order, owner if id(subject) in moved else former, subject)
            for when, order, former, subject in self._heap
        ]

    def _rebuild(self) -> None:
        """Keep one entry for each subject that has a deadline, the newest."""
        live: dict[int, tuple[float, int, TimerOwner, Timed]] = {}
        for entry in [entry for entry in self._heap if entry[3]._deadline is not None]:
            _, order, owner, subject = entry
            deadline, kept = subject._deadline, live.get(id(subject))
            if deadline is not None and (kept is None or kept[1] < order):
                live[id(subject)] = deadline, order, owner, subject
        self._heap = list(live.values())
        heapify(self._heap)
        self._dead = 0
