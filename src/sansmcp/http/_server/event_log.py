"""The events of a session's streams, kept so that a client can resume a stream after a break.

`EventLog` is what an application may implement, `MemoryEventLog` is the default, and `History` uses
one of them for the streams of a session.

Source: MCP 2025-11-25, basic/transports, Resumability and Redelivery.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, final

from ..._connection.config import MIB
from ..._connection.handles import OutgoingRequest
from ..._wire.setting_checks import check_whole


class EventLog(Protocol):
    """Where one session keeps its events. Its methods do not wait: they return at once.

    A method that raises is reported (OWN-033), until the log works again; the session goes on, and
    an event that could not be kept is lost if no client reads it at once.
    """

    def append(self, stream: int, event: int, message: bytes) -> int:
        """Keep one event of one stream; events of a stream come with rising numbers.

        Returns:
            How many events were dropped to make room, the oldest ones of the session.
        """
        ...

    def replay(self, stream: int, after: int) -> Sequence[tuple[int, bytes]] | None:
        """Number and message of each event of this stream after that one, oldest first.

        None where nothing is known of the stream, up to that event and beyond.
        """
        ...


@final
class MemoryEventLog:
    """An event log in memory with bounds; the oldest events are dropped first.

    Args:
        max_events: Events kept.
        max_bytes: Bytes of messages kept.

    Raises:
        ValueError: One of them is no integer above zero.
    """

    __slots__ = ("_bytes", "_events", "_max_bytes", "_max_events")

    def __init__(self, max_events: int = 1_000, max_bytes: int = 4 * MIB) -> None:
        check_whole("max_events", max_events)
        check_whole("max_bytes", max_bytes)
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._bytes = 0
        self._events: dict[tuple[int, int], bytes] = {}

    def append(self, stream: int, event: int, message: bytes) -> int:
        """Keep one event; return how many old ones were dropped."""
        self._events[stream, event] = message
        self._bytes += len(message)
        dropped = 0
        while len(self._events) > self._max_events or self._bytes > self._max_bytes:
            oldest = next(iter(self._events))
            self._bytes -= len(self._events.pop(oldest))
            dropped += 1
        return dropped

    def replay(self, stream: int, after: int) -> Sequence[tuple[int, bytes]] | None:
        """The events of a stream after the event with this number."""
        known = [(event, text) for (name, event), text in self._events.items() if name == stream]
        if not known:
            return None
        return [(event, text) for event, text in known if event > after]


class LoggedStream(Protocol):
    """A stream whose events are kept.

    Attributes:
        number: The number of the stream within its session.
        events: How many events it has had.
        unseen: The number of its first event that was not sent in any exchange.
    """

    number: int
    events: int
    unseen: int


class HistoryOwner(Protocol):
    """The session whose events are kept."""

    def lose(self, call: OutgoingRequest) -> None:
        """End a request of the server that no client will read."""
        ...

    def report_log(self, what: str) -> None:
        """Report what has happened to the event log (OWN-033)."""
        ...


class History:
    """Keeps the events of a session in its log, and reports where the log drops some or fails.

    Attributes:
        has_failed: Whether the log raised an exception when it was last used.
    """

    __slots__ = (
        "_calls",
        "_dropped",
        "_factory",
        "_kept",
        "_log",
        "_owner",
        "_was_full",
        "has_failed",
    )

    def __init__(self, owner: HistoryOwner, factory: Callable[[], EventLog]) -> None:
        self._owner = owner
        self._factory = factory
        self._log: EventLog | None = None
        self._kept = 0  # events, since the beginning
        self._dropped = 0  # of these, the oldest first
        self._was_full = False
        self.has_failed: bool = False
        # Requests of the server that no client has read yet, each with its place in the log, its
        # stream, and the number of its event there.
        self._calls: dict[OutgoingRequest, tuple[int, LoggedStream, int]] = {}

    def keep(self, stream: LoggedStream, message: bytes, call: OutgoingRequest | None) -> bool:
        """Put the newest event of a stream into the log.

        Args:
            stream: The stream, which has counted the event.
            message: The encoded message.
            call: The request of the server that the message is, where it waits in the log only.

        Returns:
            Whether it is kept. False: the log has failed.
        """
        try:
            if self._log is None:
                self._log = self._factory()
            dropped = self._log.append(stream.number, stream.events, message)
        except Exception as error:  # of any kind: the session goes on without the event
            self._report_failure(error)
            return False
        self.has_failed = False
        self._kept += 1
        if call is not None:
            while self._calls and not (oldest := next(iter(self._calls))).open:
                del self._calls[oldest]
            self._calls[call] = self._kept, stream, stream.events
        if dropped:
            self.dropped(dropped)
        return True

    def after(self, number: int, event: int) -> Sequence[tuple[int, bytes]] | None:
        """The events of a stream after that one; None: nothing is known of the stream."""
        try:
            events = None if self._log is None else self._log.replay(number, event)
        except Exception as error:
            self._report_failure(error)
            return None
        self.has_failed = False
        return events

    def dropped(self, count: int) -> None:
        """The oldest events are gone: requests of the server among them that were not read end."""
        self._dropped += count
        if not self._was_full:
            self._was_full = True
            self._owner.report_log("is full: its oldest events were dropped")
        calls = self._calls
        while calls:
            call = next(iter(calls))
            position, stream, event = calls[call]
            if call.open and position > self._dropped:
                break
            del calls[call]
            if call.open and event >= stream.unseen:
                self._owner.lose(call)

    def store_failed(self, number: int, event: int, text: str) -> None:
        """The application could not store an event: a request of the server that waited ends.

        Args:
            number: The number of the stream.
            event: The number of the event.
            text: What has failed.
        """
        self._owner.report_log(f"has failed: {text}")
        for call, (_, stream, place) in tuple(self._calls.items()):
            if stream.number == number and place == event:
                del self._calls[call]
                if call.open and event >= stream.unseen:
                    self._owner.lose(call)

    def report_lost(self, events: int) -> None:
        """Report that a client has resumed a stream too late for so many events."""
        self._owner.report_log(f"has lost {events} of the events that its client has come back for")

    def _report_failure(self, error: Exception) -> None:
        if not self.has_failed:
            self.has_failed = True
            self._owner.report_log(f"has failed: {error!r}")
