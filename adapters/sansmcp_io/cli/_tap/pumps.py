"""Moves bytes from one file to another, in a thread of its own, and reports the bytes."""

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
"""The number of reads that may wait to be recorded. With more, reading pauses."""


@attrs.frozen
class Read:
    """Bytes that a side has sent."""

    side: Side
    data: bytes
    time: float


@attrs.frozen
class Ended:
    """The stream of a side has ended.

    Attributes:
        by_itself: Whether the side has ended its stream. Otherwise, the receiver has.
    """

    side: Side
    by_itself: bool
    time: float


@attrs.frozen
class Exited:
    """The end of the server process. A negative return code is the number of a signal."""

    returncode: int
    time: float


TapEvent = Read | Ended | Exited


class TapEventQueue:
    """A queue of events, the oldest first, with a limit on the reads in it.

    A read is queued before its bytes are written, so that no response comes before its request.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[TapEvent] = SimpleQueue()
        self._room = threading.Semaphore(_MOST_READS)

    def wait_for_room(self) -> None:
        """Wait until another read may be queued. Call this before each read."""
        self._room.acquire()

    def add(self, event: TapEvent) -> None:
        """Queue an event."""
        self._queue.put(event)

    def take(self, timeout: float | None) -> TapEvent:
        """Return the oldest event, and wait for one if there is none.

        Raises:
            queue.Empty: No event came within `timeout` seconds.
        """
        return self._queue.get(timeout=timeout)

    def done(self, event: TapEvent) -> None:
        """Release the room of an event that was handled."""
        if isinstance(event, Read):
            self._room.release()


class Pump(threading.Thread):
    """Moves bytes from one side to the other, until one of the two ends.

    Args:
        side: The sender.
        source: The file to read from, unbuffered; the pump closes it.
        sink: The file to write to, unbuffered; the pump closes it.
        events: Gets each read before its bytes are written, and the end.
        clock: The time in seconds.

    Attributes:
        is_busy: Whether bytes were read that are not written yet.
    """

    def __init__(
        self,
        side: Side,
        source: io.FileIO,
        sink: io.FileIO,
        events: TapEventQueue,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(daemon=True)  # the sender may never send a byte
        self.is_busy = False
        self._side = side
        self._source = source
        self._sink = sink
        self._events = events
        self._clock = clock
        self._poll: Callable[[], list[tuple[int, int]]] | None = None
        if hasattr(select, "poll"):
            poller = select.poll()
            poller.register(source.fileno(), select.POLLIN)
            poller.register(sink.fileno(), 0)  # reports only that the reading end is closed
            self._poll = poller.poll

    def run(self) -> None:
        """Move bytes until the source or the sink ends."""
        by_itself = self._move_all()
        self._events.add(Ended(self._side, by_itself, self._clock()))
        for file in (self._sink, self._source):
            with contextlib.suppress(OSError):
                file.close()

    def _move_all(self) -> bool:
        """Move all bytes, and return whether the source has ended, and not the sink."""
        while True:
            self._events.wait_for_room()
            data = None
            while data is None:  # None: another process has read the bytes
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
            self._events.add(Read(self._side, data, self._clock()))
            if not self._write(data):
                return False

    def _wait(self) -> bool:
        """Wait for bytes to read. Returns False if the reading end of the sink is closed.

        A process that writes to a pipe without a reader gets an error at once. If the sink were not
        watched, the source would get that error one message later than without a tap.
        """
        if self._poll is None:
            return True
        sink = self._sink.fileno()
        return not any(fd == sink for fd, _ in self._poll())

    def _write(self, data: bytes) -> bool:
        """Write all bytes, however long that takes. Returns False if the sink is closed."""
        rest = memoryview(data)
        while rest:
            try:
                count = self._sink.write(rest)
            except OSError:
                return False
            if count is None:  # another process has made the descriptor non-blocking
                wait_for_room(self._sink.fileno())
                continue
            rest = rest[count:]
        return True


def standard_streams() -> tuple[io.FileIO, io.FileIO]:
    """Take standard input and output out of their places, and return them as unbuffered files.

    Their places get an input that is empty, and an output without a reader.
    """
    return _taken(0, sys.__stdin__, "r"), _taken(1, sys.__stdout__, "w")


def _taken(number: int, stream: TextIO | None, mode: Literal["r", "w"]) -> io.FileIO:
    reading, writing = os.pipe()
    ended, other = (reading, writing) if mode == "r" else (writing, reading)
    os.close(other)
    if stream is None:  # closed at the start; the number may belong to another file now
        return io.FileIO(ended, mode)
    kept = os.dup(number)
    os.dup2(ended, number, inheritable=False)
    os.close(ended)
    return io.FileIO(kept, mode)
