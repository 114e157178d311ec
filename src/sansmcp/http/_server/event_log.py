"""What was sent on the streams of a session, kept so that a client can go on after a break.

Source: MCP 2025-11-25, basic/transports, Resumability and Redelivery.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, final

from ..._connection.config import MIB
from ..._wire.setting_checks import check_whole


class EventLog(Protocol):
    """Where one session keeps its events. Its methods do not wait: they answer at once.

    A method that raises is reported (OWN-033), until the log works again; the session goes on, and
    what could not be kept is lost if nobody reads it at once.
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
    """An event log in memory, with bounds; the oldest events give way.

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
        """Keep one event."""
        self._events[stream, event] = message
        self._bytes += len(message)
        dropped = 0
        while len(self._events) > self._max_events or self._bytes > self._max_bytes:
            oldest = next(iter(self._events))
            self._bytes -= len(self._events.pop(oldest))
            dropped += 1
        return dropped

    def replay(self, stream: int, after: int) -> Sequence[tuple[int, bytes]] | None:
        """What followed on a stream."""
        known = [(event, text) for (name, event), text in self._events.items() if name == stream]
        if not known:
            return None
        return [(event, text) for event, text in known if event > after]
