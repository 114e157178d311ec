"""Explorations that also check the limits, the promises, and that both sides agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sansmcp import (
    ClientConnection,
    IncomingRequest,
    OutgoingRequest,
    RequestId,
    ServerConnection,
    Side,
    State,
    Subscription,
)
from sansmcp.testing import Exploration, Pair, Script, World
from sansmcp.testing import explore as explore_from_outside
from tests.support.machines.bounds import check_bounds, held_by
from tests.support.machines.checked_actor import CheckedActor
from tests.support.machines.promises import check_message, demand


def explore(
    pair: Pair,
    *,
    client: Sequence[Script] = (),
    server: Sequence[Script] = (),
    check: Callable[[World], None] | None = None,
    loses: Callable[[Side, bytes], bool] | None = None,
    **how: Any,
) -> Exploration:
    """`sansmcp.testing.explore` with checks of the promises and limits of both sides."""

    def look_inside(world: World) -> None:
        for actor in (world.client, world.server):
            check_bounds(actor.connection)
        if loses is None and (world.to_client, world.to_server) == ((), ()):
            check_agreement(world)
        if check is not None:
            check(world)

    found = explore_from_outside(
        pair,
        client=client,
        server=server,
        check=look_inside,
        loses=loses,
        actor=CheckedActor,
        **how,
    )
    for _, message in found.messages:
        check_message(message)
    return found


def check_agreement(world: World) -> None:
    """Demand that each side handles exactly the requests of the other one, with none in flight."""
    client, server = world.client.connection, world.server.connection
    assert isinstance(server, ServerConnection)
    if not client.state is server.state is State.OPEN or world.server.lookups:
        return  # a request that waits for the store is handled by nobody
    for asker, other in ((client, server), (server, client)):
        asked = open_ids(asker, OutgoingRequest)
        handled = open_ids(other, IncomingRequest)
        # A request for a task of 2025-11-25 cannot be cancelled: its task is, once it is made.
        for call in other.open_requests:
            if "task" in call.params:
                asked.discard(call.id)
                handled.discard(call.id)
        demand(asked == handled, f"{asked} are waited for, but {handled} are handled")
    told = [one for one in held_by(client) if isinstance(one, Subscription) and one.open]
    n_told = sum(one.acknowledged is not None for one in told)
    n_served = len(server.listeners)
    demand(
        n_told == n_served, f"{n_told} subscriptions are acknowledged, but {n_served} are served"
    )


def open_ids(
    connection: ClientConnection | ServerConnection,
    kind: type[IncomingRequest] | type[OutgoingRequest],
) -> set[RequestId]:
    """The ids of all open requests of a connection, with those that the library has sent.

    A request that became a task has had its response.
    """
    return {
        call.id
        for call in held_by(connection)
        if isinstance(call, kind)
        and call.open
        and not (isinstance(call, OutgoingRequest) and call.task_id is not None)
    }
