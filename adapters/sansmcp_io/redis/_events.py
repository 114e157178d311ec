"""The events of the streams of sessions, kept in Redis: one Redis Stream for each session."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from sansmcp.http import EventToStore, ReplayWanted, ServerEndpoint, Session

from ._commands import Command, Engine, Keys, Word

RETRY_SECONDS: Final = 5
"""How long a client is told to wait whose request needs Redis."""
AWAY: Final = "the store that the workers of this server share cannot be reached: try again later"
_MOST_WAITING: Final = 16 * 1024 * 1024
"""Bytes of events of all sessions that may wait to be stored."""
_ENTRY_BYTES: Final = 64

StoredEvent: TypeAlias = tuple[int, bytes]
"""Number and message."""

Found: TypeAlias = Sequence[StoredEvent] | Exception | None
"""Stored events; or why they cannot be read; None: nothing is known of their stream."""


class EventStreams:
    """Stores the events of the sessions of this worker, in the background and in their order.

    Args:
        endpoint: The endpoint.
        engine: Sends commands to Redis.
        keys: The names of keys.
        now: The time that the endpoint is told.
        key_of: From a session to the key of its principal.
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
        key_of: Callable[[Session], str | None],
        *,
        max_events: int,
        max_bytes: int,
        seconds: float,
    ) -> None:
        self._endpoint = endpoint
        self._engine = engine
        self._keys = keys
        self._now = now
        self._key_of = key_of
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
            kept.renew_at = now + self._seconds / 4
            self._renew(kept)
        if dropped:
            self._endpoint.store_dropped(event.session, dropped, now=now)

    def _renew(self, kept: _Kept) -> None:
        seconds = int(self._seconds * 1000)
        self._engine.put(Command(("PEXPIRE", kept.key, seconds), is_lasting=True))

    def _kept(self, session: Session) -> _Kept:
        kept = self._streams.get(session)
        if kept is None:
            key = self._keys.events(session.id, self._key_of(session))
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
        """Redis was away, and may have lost the times after which events are to be removed."""
        for kept in self._streams.values():
            kept.renew_at = float("-inf")

    # -------------------------------------------------------------------------------- reading

    def replay(self, wanted: ReplayWanted) -> None:
        """Give a client of a session of this worker the events that it has missed."""
        kept = self._streams.get(wanted.session)
        if kept is None:  # nothing was ever stored
            self._endpoint.replay(wanted, None, now=self._now())
            return
        self.find(kept.key, wanted.stream, wanted.after, partial(self._replay, wanted))

    def _replay(self, wanted: ReplayWanted, found: Found) -> None:
        now = self._now()
        if isinstance(found, Exception):
            self._endpoint.fail_lookup(wanted, AWAY, status=503, retry_after=RETRY_SECONDS, now=now)
        else:
            self._endpoint.replay(wanted, found, now=now)

    def find(
        self,
        key: str,
        stream: int,
        after: int,
        take: Callable[[Found], object],
    ) -> None:
        """Read the events of a stream after that one."""

        def found(outcome: Any) -> None:
            take(outcome if isinstance(outcome, Exception) else _chosen(outcome, stream, after))

        self._engine.put(Command(("XRANGE", key, "-", "+"), found))


class _Kept:
    """The known facts about the events of a session in Redis."""

    def __init__(self, key: str) -> None:
        self.key: Final = key
        self.count = 0
        self.size = 0
        self.sizes: deque[int] = deque()
        self.renew_at = float("-inf")


def _chosen(entries: Any, stream: int, after: int) -> Sequence[StoredEvent] | None:
    """The events of one stream after one event, among all of a session."""
    is_known = False
    found: dict[int, bytes] = {}
    for _id, fields in entries:
        kept = dict(zip(fields[::2], fields[1::2], strict=True))
        if int(kept[b"s"]) == stream:
            is_known = True
            event = int(kept[b"e"])
            if event > after:
                found[event] = kept[b"m"]
    return sorted(found.items()) if is_known else None
