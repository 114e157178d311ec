"""The event log of a session, and what comes of it when that drops something or fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..._connection.events import LimitReached
from ..._connection.handles import OutgoingRequest

if TYPE_CHECKING:
    from .event_log import EventLog
    from .sessions import Session
    from .streams import Stream


class History:
    """Keeps the events of the streams of a session in the caller's log.

    Attributes:
        followers: Streams that are read out of the log, for what their exchanges missed.
        has_failed: The log has raised something when it was used last.
    """

    __slots__ = (
        "_calls",
        "_dropped",
        "_kept",
        "_log",
        "_session",
        "_was_full",
        "followers",
        "has_failed",
    )

    def __init__(self, session: Session) -> None:
        self._session = session
        self._log: EventLog | None = None
        self._kept = 0  # events, since the beginning
        self._dropped = 0  # of these, the oldest first
        self._was_full = False
        self.has_failed = False
        self.followers: dict[Stream, None] = {}
        # Requests of ours that nobody has read yet: which event of the log, and of which stream.
        self._calls: dict[OutgoingRequest, tuple[int, Stream, int]] = {}

    def keep(self, stream: Stream, message: bytes, call: OutgoingRequest | None) -> bool:
        """Put the newest event of a stream into the log; False: the log has failed.

        `call` is given for a request of ours that waits there only.
        """
        try:
            if self._log is None:
                factory = self._session._settings.event_log
                assert factory is not None
                self._log = factory()
            dropped = self._log.append(stream.number, stream.events, message)
        except Exception as error:  # whatever it is: the session goes on without what was kept
            self._report_failure(error)
            return False
        self.has_failed = False
        self._kept += 1
        if call is not None:
            while self._calls and not (oldest := next(iter(self._calls))).open:
                del self._calls[oldest]
            self._calls[call] = self._kept, stream, stream.events
        if dropped:
            self._give_up(dropped)
        return True

    def after(self, number: int, event: int) -> Sequence[tuple[int, bytes]] | None:
        """The events of a stream after that one; None: nothing is known of it."""
        try:
            events = None if self._log is None else self._log.replay(number, event)
        except Exception as error:
            self._report_failure(error)
            return None
        self.has_failed = False
        return events

    def _give_up(self, dropped: int) -> None:
        """The oldest events are gone: requests of ours among them that nobody has read are over."""
        self._dropped += dropped
        if not self._was_full:
            self._was_full = True
            self._say("is full: its oldest events were dropped")
        calls, connection = self._calls, self._session._connection
        while calls:
            call = next(iter(calls))
            position, stream, event = calls[call]
            if call.open and position > self._dropped:
                break
            del calls[call]
            if call.open and event >= stream.unseen:
                connection.lose(call)

    def report_lost(self, events: int) -> None:
        """A client has come back too late for so many events."""
        self._say(f"has lost {events} of the events that its client has come back for")

    def end(self) -> None:
        """The session is over."""
        for stream in list(self.followers):
            exchange = stream.exchange
            assert exchange is not None  # which follows
            stream.detach()
            exchange._end()

    def _report_failure(self, error: Exception) -> None:
        if not self.has_failed:
            self.has_failed = True
            self._say(f"has failed: {error!r}")

    def _say(self, what: str) -> None:
        text = f"the event log of {self._session!r} {what}"
        self._session._connection.core.events.append(LimitReached(rule="OWN-033", text=text))
