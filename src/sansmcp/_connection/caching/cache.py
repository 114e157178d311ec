"""The cache of a client: results that servers allow to keep, bounded in entries and in bytes.

`Cache` is what applications make, `ResultStore` the tables in it. A connection uses the store by
its part `CachedResponses`.

Source: MCP 2026-07-28, server/utilities/caching.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias, final

import attrs

from ..._wire.setting_checks import check_kind, check_text, check_wait, check_whole

MIB = 1024 * 1024
ENTRY_BYTES: Final = 1_024
"""The memory of an entry without its data and its key, estimated: the objects and their places."""

Target: TypeAlias = tuple[Hashable, str, bytes | None]
"""What a notification tells the change of: server, method, and the URI for `resources/read`."""
SubjectKey: TypeAlias = tuple[Hashable, str, bytes]
"""What is requested: server, method, and the encoded params that count, without the cursor."""


@attrs.frozen
class Fetch:
    """One request for a result that may be cached.

    Attributes:
        subject: What is requested.
        target: What a notification names if the result has changed.
        cursor: The encoded cursor of a further page; None for a first page, and for other results.
        context: The authorization context of the request; never None.
        version: How often the authorization of the connection has changed before the request.
        mark: The number of changes that the store has seen before the request was sent.
    """

    subject: SubjectKey
    target: Target
    cursor: bytes | None
    context: Hashable
    version: int
    mark: int = 0


class _Subject:
    """A list with its pages, or a single result, for all authorization contexts."""

    __slots__ = ("entries", "key", "scope", "target")

    def __init__(self, key: SubjectKey, target: Target, scope: str) -> None:
        self.key = key
        self.target = target
        self.scope = scope  # that of all entries
        # By cursor and context; the context is None if the result is public.
        self.entries: dict[tuple[bytes | None, Hashable], _Entry] = {}


class _Entry:
    """An encoded result, which is fresh until a time on the caller's clock."""

    __slots__ = ("data", "fresh_until", "key", "received_at", "size", "subject")

    def __init__(
        self,
        subject: _Subject,
        key: tuple[bytes | None, Hashable],
        data: bytes,
        received_at: float,
        fresh_until: float,
        size: int,
    ) -> None:
        self.subject = subject
        self.key = key
        self.data = data
        self.received_at = received_at
        self.fresh_until = fresh_until
        self.size = size


class ResultStore:
    """The entries of a cache, and the order in which they were used.

    Each method holds the lock of the application, and costs the same however many entries there
    are; `forget` costs as much as the entries that it removes.
    """

    __slots__ = (
        "_changes",
        "_forgotten_change",
        "_now",
        "_numbers",
        "_order",
        "_seen_changes",
        "_subjects",
        "_targets",
        "hits",
        "lock",
        "max_bytes",
        "max_entries",
        "misses",
        "n_bytes",
        "stale_if_error",
    )

    def __init__(
        self,
        max_entries: int,
        max_bytes: int,
        stale_if_error: float,
        lock: AbstractContextManager[Any],
    ) -> None:
        self.max_entries: Final = max_entries
        self.max_bytes: Final = max_bytes
        self.stale_if_error: Final = stale_if_error
        self.lock: Final = lock
        self.hits: int = 0
        self.misses: int = 0
        self.n_bytes: int = 0
        self._now: float = 0.0
        self._numbers = 0
        self._subjects: dict[SubjectKey, _Subject] = {}
        self._targets: dict[Target, dict[SubjectKey, None]] = {}
        # An OrderedDict finds its oldest key at once; a dict passes the places of removed keys.
        self._order: OrderedDict[_Entry, None] = OrderedDict()
        # The last change of each target, by its hash: a target may be long, and the peer names it.
        # Two targets with one hash only mean that a result is not kept that might have been.
        self._changes: OrderedDict[int, int] = OrderedDict()
        self._seen_changes = 0
        self._forgotten_change = 0  # the newest that `_changes` has no room for

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Copy all slots but the lock, which belongs to the threads of the original."""
        state = {name: getattr(self, name) for name in self.__slots__}
        state["lock"] = nullcontext()
        return None, state

    def __len__(self) -> int:
        return len(self._order)

    @property
    def mark(self) -> int:
        """The number of changes so far, for `Fetch.mark`."""
        return self._seen_changes

    def new_number(self) -> int:
        """A number that no other connection has, as its name."""
        with self.lock:
            self._numbers += 1
            return self._numbers

    # ------------------------------------------------------------------------------------- reading

    def find(self, fetch: Fetch, now: float) -> tuple[bytes, float] | None:
        """Return the encoded result that is fresh, and the seconds since it was received.

        Keeps CACHE-005, CACHE-007, CACHE-008, CACHE-011, CACHE-016, CACHE-017.
        """
        with self.lock:
            now = self._tell(now)
            entry = self._entry_of(fetch)
            if entry is not None and now < entry.fresh_until:
                self.hits += 1
                self._order.move_to_end(entry)
                return entry.data, now - entry.received_at
            self.misses += 1
            if entry is not None and not self._may_serve_stale(entry, now):
                self._remove(entry)
            return None

    def find_stale(self, fetch: Fetch, now: float) -> tuple[bytes, float] | None:
        """Return the encoded result to use where the peer cannot be asked, and its age.

        Keeps CACHE-015: a result that the peer has called changed is never used.
        """
        with self.lock:
            now = self._tell(now)
            entry = self._entry_of(fetch)
            if entry is None or not self._may_serve_stale(entry, now):
                return None
            return entry.data, now - entry.received_at

    def _entry_of(self, fetch: Fetch) -> _Entry | None:
        """The entry that answers a request: the public one, or that of its own context."""
        subject = self._subjects.get(fetch.subject)
        if subject is None:
            return None
        context = None if subject.scope == "public" else fetch.context
        return subject.entries.get((fetch.cursor, context))

    def _may_serve_stale(self, entry: _Entry, now: float) -> bool:
        return now < entry.fresh_until + self.stale_if_error

    def _tell(self, now: float) -> float:
        """The largest time that any connection has told: one that is idle must not turn it back."""
        if now > self._now:
            self._now = now
        return self._now

    # ------------------------------------------------------------------------------------- writing

    def keep(
        self,
        fetch: Fetch,
        scope: Literal["public", "private"],
        data: bytes,
        seconds: float,
        now: float,
    ) -> bool:
        """Keep a result for so many seconds, and remove the oldest ones that have no room.

        A first page with another scope than the pages that are kept begins a new list: these pages
        are removed. A further page with another scope breaks a rule: nothing of the list is kept.

        Keeps CACHE-020, CACHE-022.

        Returns:
            Whether the scope fits that of the other pages.
        """
        with self.lock:
            now = self._tell(now)
            subject = self._subjects.get(fetch.subject)
            if subject is not None and subject.scope != scope:
                self._remove_all(subject)
                if fetch.cursor is not None:
                    return False
                subject = None
            key = fetch.cursor, None if scope == "public" else fetch.context
            if subject is not None and (former := subject.entries.get(key)) is not None:
                self._remove(former)
            size = _size_of(fetch, data)
            if size > self.max_bytes or not (seconds > 0 or self.stale_if_error > 0):
                return True
            if self._changed_since(fetch):
                return True
            while len(self._order) >= self.max_entries or self.n_bytes + size > self.max_bytes:
                self._remove(next(iter(self._order)))
            self._add(fetch, scope, key, data, now, now + seconds, size)
            return True

    def forget(self, target: Target) -> None:
        """Remove all results that a change makes stale; those under way will not be kept.

        Keeps CACHE-018, CACHE-024.
        """
        with self.lock:
            self._seen_changes += 1
            name = hash(target)
            self._changes[name] = self._seen_changes
            self._changes.move_to_end(name)
            if len(self._changes) > self.max_entries:
                _, self._forgotten_change = self._changes.popitem(last=False)
            for key in tuple(self._targets.get(target, ())):
                self._remove_all(self._subjects[key])

    def clear(self) -> None:
        """Remove all results; those under way will not be kept."""
        with self.lock:
            self._seen_changes += 1
            self._forgotten_change = self._seen_changes
            self._changes.clear()
            self._subjects.clear()
            self._targets.clear()
            self._order.clear()
            self.n_bytes = 0

    def _changed_since(self, fetch: Fetch) -> bool:
        """Whether the peer may have made the result before it told of a change of it."""
        changed = self._changes.get(hash(fetch.target), 0)
        return max(changed, self._forgotten_change) > fetch.mark

    def _add(
        self,
        fetch: Fetch,
        scope: str,
        key: tuple[bytes | None, Hashable],
        data: bytes,
        received_at: float,
        fresh_until: float,
        size: int,
    ) -> None:
        subject = self._subjects.get(fetch.subject)
        if subject is None:
            subject = _Subject(fetch.subject, fetch.target, scope)
            self._subjects[fetch.subject] = subject
            self._targets.setdefault(fetch.target, {})[fetch.subject] = None
        entry = _Entry(subject, key, data, received_at, fresh_until, size)
        subject.entries[key] = entry
        self._order[entry] = None
        self.n_bytes += size

    def _remove(self, entry: _Entry) -> None:
        subject = entry.subject
        del self._order[entry]
        self.n_bytes -= entry.size
        del subject.entries[entry.key]
        if not subject.entries:
            del self._subjects[subject.key]
            keys = self._targets[subject.target]
            del keys[subject.key]
            if not keys:
                del self._targets[subject.target]

    def _remove_all(self, subject: _Subject) -> None:
        for entry in tuple(subject.entries.values()):
            self._remove(entry)


def _size_of(fetch: Fetch, data: bytes) -> int:
    """The memory of an entry, in bytes: data and keys as they are, the rest estimated."""
    keys = len(fetch.subject[2]) + len(fetch.target[2] or b"") + len(fetch.cursor or b"")
    return ENTRY_BYTES + keys + len(data)


@final
class Cache:
    """Results that clients use again, for as long as their servers allow (revision 2026-07-28).

    Give it to a client as `cache=`. One object may serve any number of clients, whose clocks must
    be the same: a private result is used again by its own connection (or `partition`) only, a
    public one by all connections to the same server. Without room, the result goes that was not
    used for the longest time.

    Args:
        max_entries: Results that are kept at most.
        max_bytes: Estimated memory of these, in bytes. A result that is larger alone is not kept.
        stale_if_error: Seconds after the end of its time in which a result may still be used if
            the server cannot be asked: the request is lost or times out, or the server answers
            with the error -32603 or a status from 500 on. 0: never; `math.inf`: for as long as it
            is kept.
        lock: Is held while the cache works, if threads share it, such as `threading.Lock()`.

    Raises:
        ValueError: A limit is no integer above zero, or `stale_if_error` is negative.

    Source: MCP 2026-07-28, server/utilities/caching.
    """

    __slots__ = ("_store",)

    def __init__(
        self,
        *,
        max_entries: int = 1_000,
        max_bytes: int = 16 * MIB,
        stale_if_error: float = 0.0,
        lock: AbstractContextManager[Any] | None = None,
    ) -> None:
        check_whole("max_entries", max_entries)
        check_whole("max_bytes", max_bytes)
        check_wait("stale_if_error", stale_if_error)
        check_kind("lock", lock, AbstractContextManager, optional=True)
        self._store = ResultStore(max_entries, max_bytes, stale_if_error, lock or nullcontext())

    @property
    def entries(self) -> int:
        """The number of results that are kept, fresh or not."""
        return len(self._store)

    @property
    def bytes(self) -> int:
        """The estimated memory of these results, in bytes."""
        return self._store.n_bytes

    @property
    def hits(self) -> int:
        """How often a fresh result was found."""
        return self._store.hits

    @property
    def misses(self) -> int:
        """How often no fresh result was found, so that the server was asked."""
        return self._store.misses

    def partition(self, *, server: str | None = None, context: str | None = None) -> CachePartition:
        """Say which connections talk to the same server, and for whom; give the result as `cache=`.

        Args:
            server: A name of the server. Connections with the same name share its public results.
                None: the URL over HTTP; on other transports each connection has its own server.
            context: A name of the authorization context (a user, a tenant). Connections to the same
                server with the same name share private results, over HTTP only while their headers
                are equal. None: each connection has its own context.

        Raises:
            ValueError: A name is no string.
        """
        check_text("server", server, optional=True)
        check_text("context", context, optional=True)
        return CachePartition(self, server, context)

    def clear(self) -> None:
        """Remove all results, for example if an unexpected error shows that they are out of date.

        Keeps CACHE-014.
        """
        self._store.clear()

    def __repr__(self) -> str:
        return f"<Cache entries={self.entries} bytes={self.bytes}>"


@final
@attrs.frozen(eq=False)
class CachePartition:
    """A cache, for connections to one server and in one authorization context.

    `Cache.partition` makes it. The attributes are its arguments.
    """

    cache: Cache
    server: str | None
    context: str | None


store_of: Final[Callable[[Cache], ResultStore]] = attrgetter("_store")
"""The tables of a cache, for the connections that use it."""


class CacheIdentity:
    """For which server, and in which authorization context, a client uses a cache.

    It outlives a session over HTTP.

    Attributes:
        store: The tables of the cache.
        server: The server, in keys.
        context: The authorization context, in keys.
        version: How often the credentials were replaced.
    """

    __slots__ = ("_name", "context", "server", "store", "version")

    def __init__(self, cache: Cache | CachePartition, url: str | None = None) -> None:
        part = cache if isinstance(cache, CachePartition) else CachePartition(cache, None, None)
        self.store: ResultStore = store_of(part.cache)
        number = self.store.new_number()
        unnamed = number if url is None else url
        self.server: Hashable = unnamed if part.server is None else ("named", part.server)
        self._name: Hashable = number if part.context is None else part.context
        self.context: Hashable = self._name, b""
        self.version: int = 0

    def authorized_by(self, digest: bytes) -> None:
        """Use another authorization context from now on.

        Results of requests under way are not kept for it, nor for the former one: they may have
        been sent again with the new credentials.

        Keeps CACHE-017.

        Args:
            digest: A digest of the credentials, which contexts with the same name compare.
        """
        self.context = self._name, digest
        self.version += 1


def identity_of(cache: Cache | CachePartition, url: str | None = None) -> CacheIdentity:
    """How a client with this setting uses its cache.

    Raises:
        ValueError: The setting is something else.
    """
    if not isinstance(cache, Cache | CachePartition):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise ValueError(f"cache must be a Cache, a partition of one or None, not {cache!r:.80}")
    return CacheIdentity(cache, url)
