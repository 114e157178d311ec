"""Moves bytes from one file to another, in a thread of its own, and tells what it has read."""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final, Literal, TextIO

import attrs

from sansmcp import Side

from ..._common.descriptors import wait_for_room

_READ_BYTES: Final = 65_536
_MOST_READS: Final = 64
"""So many reads may wait to be looked at. Then no more is read, as if the reader were slow."""


@attrs.frozen
class Read:
    """A side has sent this."""

    side: Side
    data: bytes
    time: float


@attrs.frozen
class Ended:
    """Nothing more passes in the direction of a side.

    Attributes:
        by_itself: The side has ended its stream; if not, nobody takes what it sends.
    """

    side: Side
    by_itself: bool
    time: float


@attrs.frozen
class Exited:
    """The server's process has ended; a negative return code is the number of a signal."""

    returncode: int
    time: float


Happening = Read | Ended | Exited


class Happenings:
    """What has happened, in the order in which it was seen, and not more than a little at a time.

    What is read gets its place before it is written, so that no answer comes before its request.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[Happening] = SimpleQueue()
        self._room = threading.Semaphore(_MOST_READS)

    def wait_for_room(self) -> None:
        """To be called before each read."""
        self._room.acquire()

    def add(self, happening: Happening) -> None:
        """It has happened."""
        self._queue.put(happening)

    def take(self, timeout: float | None) -> Happening:
        """The next one.

        Raises:
            queue.Empty: There was none for so many seconds.
        """
        return self._queue.get(timeout=timeout)

    def done(self, happening: Happening) -> None:
        """It was dealt with."""
        if isinstance(happening, Read):
            self._room.release()


class Pump(threading.Thread):
    """Moves what a side sends to the other one, and ends what can go no further.

    Args:
        side: Who sends.
        source: From where, unbuffered; the pump closes it.
        sink: Where to, unbuffered; the pump closes it.
        happenings: Told of what was read before it is written, and of the end.
        clock: The time in seconds.

    Attributes:
        is_busy: Whether something was read that is not written yet.
    """

    def __init__(
        self,
        side: Side,
        source: io.FileIO,
        sink: io.FileIO,
        happenings: Happenings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(daemon=True)  # it may wait for somebody who never says anything
        self.is_busy = False
        self._side = side
        self._source = source
        self._sink = sink
        self._happenings = happenings
        self._clock = clock
        self._poll: Callable[[], list[tuple[int, int]]] | None = None
        if hasattr(select, "poll"):
            poller = select.poll()
            poller.register(source.fileno(), select.POLLIN)
            poller.register(sink.fileno(), 0)  # tells only that nobody reads there any more
            self._poll = poller.poll

    def run(self) -> None:
        """Work until one of the two ends."""
        by_itself = self._move_all()
        self._happenings.add(Ended(self._side, by_itself, self._clock()))
        for file in (self._sink, self._source):
            with contextlib.suppress(OSError):
                file.close()

    def _move_all(self) -> bool:
        """Returns whether the source has ended, and not the sink."""
        while True:
            self._happenings.wait_for_room()
            data = None
            while data is None:  # None: somebody else took it
                self.is_busy = False
                if not self._wait():
                    return False
                self.is_busy = True
                try:
                    data = self._source.read(_READ_BYTES)
                except OSError:  # a terminal that was hung up, a connection that was reset
                    return True
            if not data:
                return True
            self._happenings.add(Read(self._side, data, self._clock()))
            if not self._write(data):
                return False

    def _wait(self) -> bool:
        """Until there is something to read; False where nobody would take it.

        Whoever writes to a pipe that is read no more is told so at once. Without the look at the
        sink, the source would learn of it one message later than without a tap.
        """
        if self._poll is None:
            return True
        sink = self._sink.fileno()
        return not any(fd == sink for fd, _ in self._poll())

    def _write(self, data: bytes) -> bool:
        """Write all of it, however long that takes; False if it is taken no more."""
        rest = memoryview(data)
        while rest:
            try:
                count = self._sink.write(rest)
            except OSError:
                return False
            if count is None:  # a descriptor that somebody else has made non-blocking
                wait_for_room(self._sink.fileno())
                continue
            rest = rest[count:]
        return True


def standard_streams() -> tuple[io.FileIO, io.FileIO]:
    """Standard input and output as files of our own: once closed, they are for everyone.

    In their places come an input that is empty and an output that nobody reads.
    """
    return _taken(0, sys.__stdin__, "r"), _taken(1, sys.__stdout__, "w")


def _taken(number: int, stream: TextIO | None, mode: Literal["r", "w"]) -> io.FileIO:
    reading, writing = os.pipe()
    ended, other = (reading, writing) if mode == "r" else (writing, reading)
    os.close(other)
    if stream is None:  # it was closed when this began, and may be any other file by now
        return io.FileIO(ended, mode)
    kept = os.dup(number)
    os.dup2(ended, number, inheritable=False)
    os.close(ended)
    return io.FileIO(kept, mode)
