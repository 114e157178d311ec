"""A cluster of workers, and the part of one worker in it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, final
from urllib.parse import urlsplit

from sansmcp import Change, Config, JSONObject, Task

from .._async.loop import Event, Loop
from .._common.cluster import CarriedPrincipals, ClusterEvent, ClusterHost
from .._common.errors import check_extra
from .._options.checks import check_count, check_times
from ._commands import Keys
from ._principals import DumpPrincipal, LoadPrincipal, Principals

_NAME: Final = re.compile(r"[-_.A-Za-z0-9]{1,64}")
_HEADER: Final = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_LEAVE_SECONDS: Final = 5.0


@final
class Cluster:
    """Several workers that serve as one, by a Redis that all of them reach.

    Each worker serves every request of every session: one that belongs to a session of another
    worker is carried to that worker, and its response back. `publish` on one worker reaches the
    clients of all. Needs the extra `redis`, and Redis 7.0 or newer, or Valkey.

    Give the same URL and name to all workers, and to no others: whoever may write to this Redis may
    act as any client. It holds requests and responses of clients while they are carried, with the
    principals of the requests and a few of the headers, and events of sessions.

    Args:
        url: Where Redis is, such as `redis://user:password@host:6379/0`, or `rediss://` for TLS.
        name: The name of the cluster, for several of them in one Redis.
        lease: Seconds after which a worker that is silent counts as dead. Its sessions end then.
        max_events: Events kept for each session, so that clients can resume their streams.
        max_bytes: Bytes of messages in these events: at most `Config.max_unsent_bytes`.
        max_tasks: Tasks kept for each principal, or for all clients without one.
        max_task_bytes: Bytes kept for each task.
        keep_events: Seconds for which the events of a session are kept after the last one.
        dump_principal: Turns what `authenticate` returned into a JSON value, for the worker that
            serves the request. Needed where a principal is no JSON value itself.
        load_principal: Turns that value into the principal again, in another worker.
        headers: Names of headers of requests that handlers read in `call.scope`, beside those that
            MCP and tracing use: only these are carried.
        options: More arguments for connections of redis-py, such as `ssl_ca_certs`.

    Raises:
        ValueError: The URL is none of Redis, or an argument is out of range, or one of the two
            functions for principals is missing.
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
        max_tasks: int = 10_000,
        max_task_bytes: int = 4 * 1024 * 1024,
        dump_principal: DumpPrincipal | None = None,
        load_principal: LoadPrincipal | None = None,
        headers: Sequence[str] = (),
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
        check_count("max_tasks", max_tasks, least=1)
        check_count("max_task_bytes", max_task_bytes, least=1)
        if (dump_principal is None) != (load_principal is None):
            raise ValueError("dump_principal and load_principal belong together: give both")
        for name_of in headers:
            if not _HEADER.fullmatch(name_of):
                raise ValueError(f"headers are names of headers, not {name_of!r:.80}")
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
        self._max_tasks: Final = max_tasks
        self._max_task_bytes: Final = max_task_bytes
        self._carries_principals: Final = dump_principal is not None
        self._principals: Final = Principals(dump_principal, load_principal)
        self._headers: Final = frozenset(one.lower().encode() for one in headers)

    def __repr__(self) -> str:
        return f"Cluster({self._where!r})"

    def new_member(
        self,
        host: ClusterHost,
        *,
        new_id: Callable[[], str],
        config: Config | None,
        principals: CarriedPrincipals | None = None,
    ) -> ClusterWorker:
        """Make the part of one worker: for `App` and `serve_http`, which run the endpoint.

        Raises:
            ValueError: The events of a session may be more than a response may have; or both the
                cluster and the server say how principals are carried.
        """
        from ._engine import RedisEngine
        from ._member import Member

        if principals is not None:
            if self._carries_principals:
                raise ValueError(
                    "access says how its tokens are carried between workers: leave out"
                    " dump_principal and load_principal of the cluster"
                )
            carried = Principals(principals.dump, principals.load)
        else:
            carried = self._principals
        most = (config or Config()).max_unsent_bytes
        if self._max_bytes > most:
            raise ValueError(
                f"max_bytes of the cluster is {self._max_bytes}, and Config.max_unsent_bytes is"
                f" {most}: a client that resumes a stream is sent as much, so make the first one"
                " smaller"
            )

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
                principals=carried,
                headers=self._headers,
                new_id=new_id,
                lease=self._lease,
                max_events=self._max_events,
                max_bytes=self._max_bytes,
                seconds=self._keep_events,
                max_tasks=self._max_tasks,
                max_task_bytes=self._max_task_bytes,
            )
            return member, engine

        return ClusterWorker(make, carried)


def _nothing() -> None:
    """Do nothing: there is no waiting caller."""


class ClusterWorker:
    """The part of one worker, in the thread of its loop.

    Args:
        make: Makes the member and the engine, with an id that no other worker has.
        principals: Turns principals into JSON values and back.
    """

    def __init__(self, make: Callable[[], tuple[Any, Any]], principals: Principals) -> None:
        self._make: Final = make
        self.dump_principal: Final = principals.dump
        self.load_principal: Final = principals.load
        self._member: Any = None
        self._engine: Any = None
        self._loop: Loop | None = None
        self._gates: list[Event] = []
        self._has_tried = False
        self._has_ended = False

    @property
    def is_busy(self) -> bool:
        """Whether requests are carried, of whose responses the ends are near."""
        return self._member is not None and self._member.is_busy

    @property
    def is_storing(self) -> bool:
        """Whether tasks wait to be stored."""
        return self._member is not None and self._member.tasks.is_storing

    def release_task(self, task: Task) -> None:
        """Leave a task to the other workers, one of which calls its handler again."""
        self._member.tasks.release(task.id)

    def begin(self, loop: Loop) -> None:
        """Begin, in this loop, or go on in it; a worker that could not join begins again."""
        if self._member is not None and self._loop is loop:
            return
        self._loop = loop
        post = loop.new_messenger()
        if self._member is None:
            self._member, self._engine = self._make()
            self._has_tried = False
            self._engine.start(self._member, post, partial(self._tried, self._engine))
        else:
            self._engine.go_on_with(post)

    def _tried(self, engine: object) -> None:
        if engine is not self._engine:
            return  # the attempt has ended
        self._has_tried = True
        gates, self._gates = self._gates, []
        for gate in gates:
            gate.set()

    async def join(self, loop: Loop) -> None:
        """Begin, and wait until this worker is known to the others.

        An attempt that began earlier, with a request, may have failed while Redis was away: that
        says nothing about now, so there is another one.

        Raises:
            ClusterError: That is not possible.
        """
        is_running = self._member is not None
        self.begin(loop)
        failure = await self._outcome(loop)
        if failure is not None and is_running:
            self._end_attempt()
            self.begin(loop)
            failure = await self._outcome(loop)
        if failure is not None:
            self._end_attempt()
            raise failure

    async def _outcome(self, loop: Loop) -> Exception | None:
        """Wait for the end of the first try; return why it failed."""
        if not self._has_tried:
            gate = loop.new_event()
            self._gates.append(gate)
            await gate.wait()
        failure: Exception | None = self._engine.failure
        return failure

    def _end_attempt(self) -> None:
        """End an attempt to join, so that there can be another one."""
        self._engine.stop(_nothing)
        self._member = self._engine = None

    def handle(self, event: ClusterEvent) -> None:
        """Handle an event of the endpoint."""
        self._member.handle(event)

    def publish(self, change: Change, meta: JSONObject | None) -> None:
        """Tell the other workers of a change, if this one has begun."""
        if self._member is not None:
            self._member.changes.publish(change, meta)

    def turned(self) -> None:
        """Called after each turn: output was taken."""
        if self._member is not None:
            self._member.turned()

    def drain(self) -> None:
        """The end of this worker begins: serve no new requests of others."""
        if self._member is not None:
            self._member.drain()

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
