"""Judges, shows and captures the bytes that pass the tap."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sansmcp import MessageSeen, Observation, Observer, Side
from sansmcp.observer import HTTPObserver

from .._diagnosis import signal_name
from . import captures
from .findings import Findings
from .trace import trace


def drain(observer: Observer | HTTPObserver) -> list[Observation]:
    """Take all observations that an observer has now."""
    events: list[Observation] = []
    while (event := observer.next_event()) is not None:
        events.append(event)
    return events


class Recorder:
    """Records the bytes of both sides, cut anywhere, in order, with seconds since the start.

    The observer gets the same pieces as the capture, in the same order, so that a replay of
    the capture has the same findings.

    Args:
        show: Takes lines of the trace; None: there is none.
        keep: Takes lines of the capture; None: there is none.
    """

    def __init__(
        self, show: Callable[[str], object] | None, keep: Callable[[bytes], object] | None
    ) -> None:
        self._observer = Observer()
        self._findings = Findings()
        self._show = show
        self._keep = keep
        self._pieces = {side: captures.Pieces() for side in Side}

    def sent(self, side: Side, data: bytes, time: float) -> None:
        """A side has sent this."""
        for piece in self._pieces[side].feed(data):
            self._see(side, piece, time)

    def _see(self, side: Side, piece: bytes, time: float) -> None:
        self._observer.receive_data(side, piece, now=time)
        events = drain(self._observer)
        if self._keep is not None:
            is_message = any(isinstance(event, MessageSeen) for event in events)
            self._keep(captures.sent(side, piece, time, is_message=is_message))
        self._tell(events, time)

    def ended(self, side: Side, time: float) -> None:
        """The side has ended its stream."""
        self._see_rest(side, time)
        self._observer.receive_eof(side, now=time)
        if self._keep is not None:
            self._keep(captures.ended(side, time))
        self._tell(drain(self._observer), time)

    def refused(self, side: Side, time: float) -> None:
        """Record that the receiver has closed the stream of a side, which has not ended it."""
        self._see_rest(side, time)
        if self._show is not None:
            other = side.other.name.lower()
            self._show(f"{time:9.3f} * the {other} reads no more")

    def _see_rest(self, side: Side, time: float) -> None:
        if rest := self._pieces[side].end():
            self._see(side, rest, time)

    def exited(self, returncode: int, time: float) -> None:
        """The server's process has ended."""
        if self._keep is not None:
            self._keep(captures.exited(returncode, time))
        if self._show is not None:
            self._show(f"{time:9.3f} * the server {ending(returncode)}")

    def close(self, time: float) -> Iterator[str]:
        """End the recording, and return the lines of the summary."""
        for side in Side:
            self._see_rest(side, time)
        self._observer.close(now=time)
        self._tell(drain(self._observer), time)
        count = self._observer.messages
        yield f"{count} {'message' if count == 1 else 'messages'} in {time:.1f} s"
        yield from self._findings.lines()

    def _tell(self, events: list[Observation], time: float) -> None:
        for event in events:
            self._findings.add(event)
        if self._show is not None:
            for line in trace(events, time):
                self._show(line)


def ending(returncode: int) -> str:
    """A text on the end of a process, for use in a sentence."""
    if returncode >= 0:
        return f"has ended with exit status {returncode}"
    return f"was ended by {signal_name(-returncode)}"
