"""The state of the traffic of one worker with another: numbers, losses, and room.

Redis may lose entries, and an entry that was perhaps written is written again. So the entries from
one worker to another are numbered: one with a number that was there before is dropped, and a number
that is missing shows that entries were lost.
"""

from __future__ import annotations

import enum
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from sansmcp.http import SessionWanted

from ._entries import Entry, Kind

if TYPE_CHECKING:
    from ._carried import CarriedIn, CarriedOut

LINK_BYTES: Final = 4 * 1024 * 1024
"""Bytes of requests and responses that may be on their way to one worker: as much may be in Redis
for each pair of workers."""
_IDLE_TICKS: Final = 100
"""Ticks without an exchange after which another worker is forgotten."""


class Arrival(enum.Enum):
    """The meaning of the number of an entry."""

    NEXT = "it follows the one before"
    AGAIN = "it was there before"
    LATER = "others before it were lost"


class Link:
    """The entries to and from one other worker.

    Args:
        worker: This worker.
        peer: The other one.
        base: The time at which this object was made; a later one has a larger value.

    Attributes:
        peer: The other worker.
        base: The time at which this object was made.
        number: The number of the last entry that was sent.
        read_base: The base of the entries received; 0: there was none yet.
        read: The number of the last entry received.
        alive_at: When the other worker was last known to be alive.
        has_left: Whether the other worker has told that it ends.
        waiting: The questions that wait for Redis to say whether the other worker is alive.
        carried_out: The exchanges that the other worker serves for this one, by number.
        carried_in: The exchanges that this worker serves for the other one, by number.
        stalled: What waits for room, oldest first.
    """

    def __init__(self, worker: str, peer: str, base: int) -> None:
        self._worker = worker
        self.peer: Final = peer
        self.base: Final = base
        self.number = 0
        self.read_base = 0
        self.read = 0
        self.alive_at = float("-inf")
        self.has_left = False
        self.waiting: Final[list[SessionWanted]] = []
        self.carried_out: Final[dict[int, CarriedOut]] = {}
        self.carried_in: Final[dict[int, CarriedIn]] = {}
        self.stalled: Final[dict[CarriedIn | CarriedOut, None]] = {}
        self._on_way: deque[tuple[int, int]] = deque()  # number and size
        self._on_way_bytes = 0
        self._unread_bytes = 0  # received, and not told to the other worker

    # ------------------------------------------------------------------------------- sending

    @property
    def has_room(self) -> bool:
        """Whether another entry of a client may be sent now."""
        return self._on_way_bytes < LINK_BYTES

    @property
    def is_idle(self) -> bool:
        """Whether no exchange is open."""
        return not self.carried_in and not self.carried_out

    def next_entry(self, kind: Kind, rest: Sequence[Any] = (), body: bytes = b"") -> Entry:
        """Number the next entry to send."""
        self.number += 1
        self._unread_bytes = 0  # this entry tells that it was read
        entry = Entry(
            sender=self._worker,
            base=self.base,
            number=self.number,
            read_base=self.read_base,
            read=self.read,
            kind=kind,
            rest=rest,
            body=body,
        )
        if entry.size:
            self._on_way.append((entry.number, entry.size))
            self._on_way_bytes += entry.size
        return entry

    def forget_sent(self) -> None:
        """Forget the entries on their way, which will not be read: their exchanges have ended."""
        self._on_way.clear()
        self._on_way_bytes = 0

    # ----------------------------------------------------------------------------- receiving

    def receive(self, entry: Entry) -> Arrival:
        """Note the number of an entry, and what it says of the entries sent.

        Where others were lost before it, the entry itself counts as received after `proceed`, so
        that what is sent meanwhile says what was read before.
        """
        if entry.base < self.read_base:
            return Arrival.AGAIN
        is_first = self.read_base == 0
        if entry.base > self.read_base:  # the other worker has begun anew
            self.read_base, self.read = entry.base, 0
            is_next = is_first and entry.number == 1
        else:
            is_next = entry.number == self.read + 1
        if entry.number <= self.read:
            return Arrival.AGAIN
        if entry.read_base == self.base:
            while self._on_way and self._on_way[0][0] <= entry.read:
                self._on_way_bytes -= self._on_way.popleft()[1]
        self.read = entry.number - 1
        if is_next:
            self.proceed(entry)
            return Arrival.NEXT
        return Arrival.LATER

    def proceed(self, entry: Entry) -> None:
        """The entry is received."""
        self.read = entry.number
        self._unread_bytes += entry.size

    @property
    def owes_sync(self) -> bool:
        """Whether the other worker waits to learn that its entries were read."""
        return self._unread_bytes >= LINK_BYTES // 4


class Links:
    """The entries to and from all other workers that are known.

    Args:
        worker: This worker.
    """

    def __init__(self, worker: str) -> None:
        self._worker: Final = worker
        self._links: Final[dict[str, Link]] = {}
        self._idle: Final[dict[str, int]] = {}  # ticks

    def __iter__(self) -> Iterator[Link]:
        """Those known now; others may become known, or be forgotten, meanwhile."""
        return iter(tuple(self._links.values()))

    def to(self, peer: str) -> Link:
        """The link with another worker, which is known from now on."""
        link = self._links.get(peer)
        if link is None:
            link = self._links[peer] = Link(self._worker, peer, time.monotonic_ns())
        return link

    def forget(self, link: Link) -> None:
        """Forget another worker."""
        self._links.pop(link.peer, None)
        self._idle.pop(link.peer, None)

    def tick(self) -> None:
        """Part of a lease has passed: forget the workers without exchanges for many of them."""
        for link in self:
            if not link.is_idle or link.waiting:
                self._idle.pop(link.peer, None)
                continue
            self._idle[link.peer] = self._idle.get(link.peer, 0) + 1
            if self._idle[link.peer] > _IDLE_TICKS:
                self.forget(link)
