"""The interface between a server and the cluster of workers that share its sessions.

`sansmcp_io.redis.Cluster` is one. This module imports no store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import attrs

from sansmcp import (
    Change,
    Config,
    JSONObject,
    JSONValue,
    Task,
    TaskQuestion,
)

if TYPE_CHECKING:
    from sansmcp.http import (
        EventToStore,
        RelayEnded,
        ReplayWanted,
        ServerEndpoint,
        ServerExchange,
        SessionEnded,
        SessionRequested,
        Sessions,
        SessionWanted,
    )

SessionEvent: TypeAlias = (
    "SessionRequested | SessionWanted | RelayEnded | EventToStore | ReplayWanted | SessionEnded"
)
ClusterEvent: TypeAlias = "SessionEvent | TaskQuestion"
"""The events of an endpoint that a member of a cluster handles."""


@attrs.frozen
class CarriedPrincipals:
    """How the principal of a request gets to another worker.

    Attributes:
        dump: Turns it into a JSON value.
        load: Turns that value into the principal again.
    """

    dump: Callable[[Any], JSONValue]
    load: Callable[[Any], Any]


class ClusterHost(Protocol):
    """A worker: it runs the endpoint."""

    @property
    def endpoint(self) -> ServerEndpoint:
        """The endpoint."""
        ...

    @property
    def now(self) -> Callable[[], float]:
        """Return the time for calls into the endpoint."""
        ...

    @property
    def wires(self) -> dict[ServerExchange, Any]:
        """The objects that carry the output of exchanges."""
        ...

    @property
    def shares_tasks(self) -> bool:
        """Whether the tasks of the endpoint are kept by the cluster."""
        ...

    @property
    def most_tasks(self) -> int:
        """The number of tasks that the endpoint may work on."""
        ...

    def resume_task(self, task: Task) -> bool:
        """Go on with a task of a worker that has died, if its handler may be called again.

        Returns:
            Whether the work goes on here. If not, the task fails.
        """
        ...

    def turn(self) -> None:
        """Handle all events."""
        ...

    def carried_context(self, method: str, target: str, headers: Any) -> Any:
        """The context of a request that another worker has carried here."""
        ...


class ClusterMember(Protocol):
    """A worker's part of a cluster, in the thread of its loop."""

    @property
    def is_busy(self) -> bool:
        """Whether requests are carried, of whose responses the ends are near."""
        ...

    @property
    def is_storing(self) -> bool:
        """Whether tasks wait to be stored."""
        ...

    def dump_principal(self, principal: Any) -> JSONValue:
        """Turn the principal of a request into a JSON value.

        Raises:
            Exception: What the function of the application raises.
        """
        ...

    def load_principal(self, value: JSONValue) -> Any:
        """Turn that value into the principal again.

        Raises:
            Exception: What the function of the application raises.
        """
        ...

    def release_task(self, task: Task) -> None:
        """Leave a task to the other workers, one of which calls its handler again."""
        ...

    def begin(self, loop: Any) -> None:
        """Begin, in this loop, or go on in it.

        Args:
            loop: The primitives of the loop, as in `_async.loop`.
        """
        ...

    async def join(self, loop: Any) -> None:
        """Begin, and wait until this worker is known to the others.

        Raises:
            ClusterError: That is not possible.
        """
        ...

    def handle(self, event: ClusterEvent) -> None:
        """Handle an event of the endpoint."""
        ...

    def publish(self, change: Change, meta: JSONObject | None) -> None:
        """Tell the other workers of a change."""
        ...

    def turned(self) -> None:
        """Called after each turn: output was taken."""
        ...

    def drain(self) -> None:
        """The end of this worker begins: serve no new requests of others."""
        ...

    def end(self) -> bool:
        """Tell the others that this worker ends, without waiting for it."""
        ...

    async def leave(self, loop: Any) -> None:
        """Tell the others that this worker ends. Its endpoint was closed before."""
        ...


class Cluster(Protocol):
    """Makes the members of a cluster."""

    def new_member(
        self,
        host: ClusterHost,
        *,
        new_id: Callable[[], str],
        config: Config | None,
        principals: CarriedPrincipals | None,
    ) -> ClusterMember:
        """Make the part of one worker.

        Args:
            host: The worker.
            new_id: Gives session ids.
            config: The limits of the endpoint.
            principals: How principals are carried; None: as the settings of the cluster say.

        Raises:
            ValueError: The settings of the cluster and of the server contradict each other.
        """
        ...


def cluster_sessions(sessions: Sessions | None) -> Sessions | None:
    """The settings for sessions of a worker in a cluster, which is asked for what others have.

    Raises:
        ValueError: The settings have an event log of their own.
    """
    from sansmcp.http import MemoryEventLog

    if sessions is None:
        return None
    event_log = sessions.event_log
    if event_log is not None and event_log is not MemoryEventLog:
        raise ValueError("a cluster keeps the events of sessions: leave out Sessions.event_log")
    return attrs.evolve(
        sessions,
        event_log=None if event_log is None else "ask",
        opening="ask",
        unknown="ask",
    )


def check_cluster(authenticate: object, principal_key: object, event_log: object) -> None:
    """Refuse a cluster without a key that tells users apart, or with a second store of events.

    Raises:
        ValueError: Requests are authenticated, and there is no `principal_key`; or there is an
            `event_log`.
    """
    if event_log is not None:
        raise ValueError("a cluster keeps the events of sessions: leave out event_log")
    if authenticate is not None and principal_key is None:
        raise ValueError(
            "the workers of a cluster tell each other who sends a request: give principal_key=,"
            " which names each principal that authenticate returns, such as"
            " principal_key=lambda user: user.id"
        )
