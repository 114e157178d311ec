"""The events of the streams of sessions, kept in Redis: one Redis Stream for each session."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import attrs

from sansmcp.http import EventToStore, ReplayWanted, ServerEndpoint, Session

from .._common.anomalies import LOGGER
from ._commands import Command, Engine, Keys, Word

RETRY_SECONDS: Final = 5
"""How long a client is told to wait whose request needs Redis."""
AWAY: Final = "the store that the workers of this server share cannot be reached: try again later"
_MOST_WAITING: Final = 16 * 1024 * 1024
"""Bytes of events of all sessions that may wait to be stored."""
_ENTRY_BYTES: Final = 64
_BEGINNING: Final = "-"
_PAGE: Final = 64
"""Events that are read at a time, so that the renewal of the lease never waits for many."""
_PAGE_BYTES: Final = 256 * 1024
"""The bytes that so many events may have, as an estimate."""

StoredEvent: TypeAlias = tuple[int, bytes]
"""Number and message."""

Found: TypeAlias = Sequence[StoredEvent] | Exception
"""Stored events; or why they cannot be read."""


class EventStreams:
    """Stores the events of the sessions of this worker, in the background and in their order.

    Args:
        endpoint: The endpoint.
        engine: Sends commands to Redis.
        keys: The names of keys.
        now: The time that the endpoint is told.
        max_events: Events kept for each session.
        max_bytes: Bytes of messages kept for each session.
        seconds: How long events are kept after the last one.
    """

    def __init__(
        self,
        endpoint: ServerEndpoint,
        engine: Engine,
        keys: Keys,
        now: Callable[[], float],
        *,
        max_events: int,
        max_bytes: int,
        seconds: float,
    ) -> None:
        self._endpoint = endpoint
        self._engine = engine
        self._keys = keys
        self._now = now
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._streams: dict[Session, _Kept] = {}
        self._waiting_bytes = 0

    def store(self, event: EventToStore) -> None:
        """Store an event."""
        size = len(event.message) + _ENTRY_BYTES
        if self._waiting_bytes + size > _MOST_WAITING:
            text = "too many events wait to be stored"
            self._endpoint.store_failed(event, text, now=self._now())
            return
        kept = self._kept(event.session)
        kept.count += 1
        kept.sizes.append(len(event.message))
        kept.size += len(event.message)
        dropped = 0
        while len(kept.sizes) > self._max_events or kept.size > self._max_bytes:
            kept.size -= kept.sizes.popleft()
            dropped += 1
        words: list[Word] = ["XADD", kept.key]
        if dropped:
            words += ["MAXLEN", len(kept.sizes)]
        # With an id of our own, an event that was perhaps stored can be sent again.
        words += [f"{kept.count}-1", "s", event.stream, "e", event.event, "m", event.message]
        self._waiting_bytes += size
        done = partial(self._stored, event, size)
        self._engine.put(Command(tuple(words), done, is_lasting=True))
        now = self._now()
        if now >= kept.renew_at:
            self._renew(kept)
        if dropped:
            self._endpoint.store_dropped(event.session, dropped, now=now)

    def _renew(self, kept: _Kept) -> None:
        kept.renew_at = self._now() + self._seconds / 4
        milliseconds = int(self._seconds * 1000)
        self._engine.put(Command(("PEXPIRE", kept.key, milliseconds), is_lasting=True))

    def _kept(self, session: Session) -> _Kept:
        kept = self._streams.get(session)
        if kept is None:
            key = self._keys.events(session.id, session.principal_key)
            kept = self._streams[session] = _Kept(key)
        return kept

    def _stored(self, event: EventToStore, size: int, outcome: Any) -> None:
        self._waiting_bytes -= size
        if isinstance(outcome, Exception) and "equal or smaller" not in str(outcome):
            self._endpoint.store_failed(event, str(outcome), now=self._now())

    def ended(self, session: Session, *, keep: bool) -> None:
        """A session has ended: remove its events, unless clients may still come for them."""
        kept = self._streams.pop(session, None)
        if kept is not None and not keep:
            self._engine.put(Command(("UNLINK", kept.key), is_lasting=True))

    def renew_all(self) -> None:
        """Redis was away, and may have lost the times after which events are to be removed.

        It may have lost the events, too: then the next one begins a new key, without such a time.
        """
        for kept in self._streams.values():
            self._renew(kept)
            kept.renew_at = -math.inf

    # -------------------------------------------------------------------------------- reading

    def replay(self, wanted: ReplayWanted) -> None:
        """Give a client of a session of this worker the events that it has missed."""
        kept = self._streams.get(wanted.session)
        if kept is None:  # nothing was ever stored
            self._endpoint.replay(wanted, None, now=self._now())
            return
        after, start = kept.places.pop(wanted.stream, (0, _BEGINNING))
        if after != wanted.after:
            start = _BEGINNING
        search = _Search(kept.key, wanted.stream, wanted.after)
        self._read(search, start, partial(self._replay, kept, wanted))

    def _replay(self, kept: _Kept, wanted: ReplayWanted, page: _Page | Exception) -> None:
        now = self._now()
        if isinstance(page, Exception):
            self._endpoint.fail_lookup(wanted, AWAY, status=503, retry_after=RETRY_SECONDS, now=now)
        elif not page.is_known:
            self._endpoint.replay(wanted, None, now=now)
        else:
            if page.next_start is not None:
                kept.places[wanted.stream] = (page.events[-1][0], page.next_start)
            more = page.next_start is not None
            self._endpoint.replay(wanted, page.events, more=more, now=now)

    def find(self, key: str, stream: int, after: int, take: Callable[[Found], object]) -> None:
        """Read the events of a stream after that one, whose session is over.

        They are the first ones, up to `max_bytes`: a client resumes the stream for the rest.
        """
        search = _Search(key, stream, after)
        found: list[StoredEvent] = []

        def take_page(page: _Page | Exception) -> None:
            if isinstance(page, Exception):
                take(page)
                return
            size = sum(len(message) for _, message in found)
            for event, message in page.events:
                size += len(message)
                if size > self._max_bytes:
                    take(found)
                    return
                found.append((event, message))
            if page.next_start is None:
                take(found)
            else:
                self._read(search, page.next_start, take_page)

        self._read(search, _BEGINNING, take_page)

    def _read(
        self, search: _Search, start: str, take: Callable[[_Page | Exception], object]
    ) -> None:
        """Read the next page with events of a stream, or the last page."""

        def found(outcome: Any) -> None:
            page = outcome if isinstance(outcome, Exception) else search.page_of(outcome)
            if isinstance(page, Exception) or page.events or page.next_start is None:
                take(page)
            else:
                self._read(search, page.next_start, take)

        words = ("XRANGE", search.key, start, "+", "COUNT", _PAGE)
        self._engine.put(Command(words, found, answer_bytes=_PAGE_BYTES))


class _Kept:
    """The known facts about the events of a session in Redis.

    Attributes:
        places: Where the next page of a stream begins, after which event, by its number.
    """

    def __init__(self, key: str) -> None:
        self.key: Final = key
        self.count = 0
        self.size = 0
        self.sizes: deque[int] = deque()
        self.renew_at = -math.inf
        self.places: dict[int, tuple[int, str]] = {}


@attrs.frozen
class _Page:
    """Events of one stream in a part of the events of its session.

    Attributes:
        events: Number and message of each, oldest first.
        next_start: Where the next part begins; None: this was the last one.
        is_known: Whether there was an event of the stream, in this part or before.
    """

    events: Sequence[StoredEvent]
    next_start: str | None
    is_known: bool


class _Search:
    """Looks for the events of one stream among all of its session.

    Args:
        key: The events of the session.
        stream: The stream.
        after: The last event that is not looked for.
    """

    def __init__(self, key: str, stream: int, after: int) -> None:
        self.key: Final = key
        self._stream: Final = stream
        self._last = after
        self._is_known = False

    def page_of(self, entries: Any) -> _Page:
        """The events of the stream in a part."""
        found: list[StoredEvent] = []
        for _id, fields in entries:
            kept = dict(zip(fields[::2], fields[1::2], strict=True))
            try:
                stream, event, message = int(kept[b"s"]), int(kept[b"e"]), kept[b"m"]
            except (KeyError, ValueError):
                LOGGER.warning("an entry in Redis is no event of this version")
                continue
            if stream == self._stream:
                self._is_known = True
                if event > self._last:
                    self._last = event
                    found.append((event, message))
        is_last = len(entries) < _PAGE
        next_start = None if is_last else f"({entries[-1][0].decode()}"
        return _Page(found, next_start, self._is_known)
