"""A cluster of workers, and the part of one worker in it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final, final
from urllib.parse import urlsplit

from sansmcp import Change, JSONObject

from .._async.loop import Event, Loop
from .._common.cluster import ClusterEvent, ClusterHost
from .._common.errors import check_extra
from .._common.http_server import PrincipalKey
from .._options.checks import check_count, check_times
from ._commands import Keys

_NAME: Final = re.compile(r"[-_.A-Za-z0-9]{1,64}")
_LEAVE_SECONDS: Final = 5.0


@final
class Cluster:
    """Several workers that serve as one, by a Redis that all of them reach.

    Each worker serves every request of every session: one that belongs to a session of another
    worker is carried to that worker, and its response back. `publish` on one worker reaches the
    clients of all. Needs the extra `redis`, and Redis 7.0 or newer, or Valkey.

    Give the same URL and name to all workers, and to no others: whoever may write to this Redis may
    act as any client. It holds requests and responses of clients while they are carried, without
    the headers `Authorization`, `Cookie` and `Proxy-Authorization`, and events of sessions.

    Args:
        url: Where Redis is, such as `redis://user:password@host:6379/0`, or `rediss://` for TLS.
        name: The name of the cluster, for several of them in one Redis.
        lease: Seconds after which a worker that is silent counts as dead. Its sessions end then.
        max_events: Events kept for each session, so that clients can resume their streams.
        max_bytes: Bytes of messages in these events.
        keep_events: Seconds for which the events of a session are kept after the last one.
        options: More arguments for connections of redis-py, such as `ssl_ca_certs`.

    Raises:
        ValueError: The URL is none of Redis, or an argument is out of range.
        ModuleNotFoundError: The extra `redis` is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str = "mcp",
        lease: float = 10.0,
        max_events: int = 1_000,
        max_bytes: int = 4 * 1024 * 1024,
        keep_events: float = 3600.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        check_extra("redis")
        from ._engine import connections_to

        if not _NAME.fullmatch(name):
            raise ValueError(f"name is up to 64 letters, digits and -_., not {name!r:.80}")
        check_times(lease=lease, keep_events=keep_events)
        if not 0.5 <= lease <= 3600:
            raise ValueError(f"lease must be from 0.5 to 3600 seconds, not {lease!r}")
        check_count("max_events", max_events, least=1)
        check_count("max_bytes", max_bytes, least=1)
        try:
            self._new_connection = connections_to(url, options or {})
            parts = urlsplit(url)
            # Without user and password, which are not for a log.
            self._where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        except (TypeError, ValueError) as error:
            raise ValueError(
                "the URL of a cluster is one like redis://host:6379/0, or rediss:// for TLS,"
                f" or unix:///path: {error}"
            ) from None
        self._keys: Final = Keys(name)
        self._lease: Final = lease
        self._max_events: Final = max_events
        self._max_bytes: Final = max_bytes
        self._keep_events: Final = keep_events

    def __repr__(self) -> str:
        return f"Cluster({self._where!r})"

    def new_member(
        self,
        host: ClusterHost,
        *,
        principal_key: PrincipalKey | None,
        new_id: Callable[[], str],
    ) -> ClusterWorker:
        """Make the part of one worker: for `App` and `serve_http`, which run the endpoint."""
        from ._engine import RedisEngine
        from ._member import Member

        # Later: a worker may be forked after this.
        def make() -> tuple[Member, RedisEngine]:
            worker = secrets.token_urlsafe(9)
            engine = RedisEngine(
                self._new_connection, self._keys, worker, lease=self._lease, where=self._where
            )
            member = Member(
                host,
                engine,
                self._keys,
                worker,
                principal_key=principal_key,
                new_id=new_id,
                lease=self._lease,
                max_events=self._max_events,
                max_bytes=self._max_bytes,
                seconds=self._keep_events,
            )
            return member, engine

        return ClusterWorker(make)


def _nothing() -> None:
    """Do nothing: there is no waiting caller."""


class ClusterWorker:
    """The part of one worker, in the thread of its loop.

    Args:
        make: Makes the member and the engine, with an id that no other worker has.
    """

    def __init__(self, make: Callable[[], tuple[Any, Any]]) -> None:
        self._make: Final = make
        self._member: Any = None
        self._engine: Any = None
        self._gates: list[Event] = []
        self._has_tried = False
        self._has_ended = False

    @property
    def is_busy(self) -> bool:
        """Whether requests are carried, of whose responses the ends are near."""
        return self._member is not None and self._member.is_busy

    def begin(self, loop: Loop) -> None:
        """Begin, in this loop, or go on in it."""
        post = loop.new_messenger()
        if self._member is None:
            self._member, self._engine = self._make()
            self._engine.start(self._member, post, self._tried)
        else:
            self._engine.go_on_with(post)

    def _tried(self) -> None:
        self._has_tried = True
        for gate in self._gates:
            gate.set()

    async def joined(self, loop: Loop) -> None:
        """Wait until this worker is known to the others.

        Raises:
            ClusterError: That is not possible.
        """
        if not self._has_tried:
            gate = loop.new_event()
            self._gates.append(gate)
            await gate.wait()
        failure = self._engine.failure
        if failure is not None:
            self._engine.stop(_nothing)
            raise failure

    def handle(self, event: ClusterEvent) -> None:
        """Handle an event of the endpoint."""
        self._member.handle(event)

    def publish(self, change: Change, meta: JSONObject | None) -> None:
        """Tell the other workers of a change."""
        self._member.changes.publish(change, meta)

    def turned(self) -> None:
        """Called after each turn: output was taken."""
        if self._member is not None:
            self._member.turned()

    def end(self, on_ended: Callable[[], object] = _nothing) -> bool:
        """Tell the others that this worker ends, without waiting for it.

        Args:
            on_ended: Called in the thread of the loop when that is done, or cannot be.

        Returns:
            Whether there is something to wait for.
        """
        if self._member is None or self._has_ended:
            return False
        self._has_ended = True
        self._member.leave()
        self._engine.stop(on_ended)
        return True

    async def leave(self, loop: Loop) -> None:
        """Tell the others that this worker ends. Its endpoint was closed before."""
        gate = loop.new_event()
        if self.end(gate.set):
            await loop.wait_until(loop.now() + _LEAVE_SECONDS, gate.wait)
