"""Explorations that also check bounds, promises, and whether both sides agree."""

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
    """`sansmcp.testing.explore`, whose sides also keep their promises, bounds and books."""

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
    """When nothing is in flight, each side handles exactly what the other waits for."""
    client, server = world.client.connection, world.server.connection
    assert isinstance(server, ServerConnection)
    if not client.state is server.state is State.OPEN:
        return
    for asker, other in ((client, server), (server, client)):
        asked = open_ids(asker, OutgoingRequest)
        handled = open_ids(other, IncomingRequest)
        demand(asked == handled, f"{asked} are waited for, but {handled} are handled")
    told = [one for one in held_by(client) if isinstance(one, Subscription) and one.open]
    n_told = sum(one.acknowledged is not None for one in told)
    n_served = len(server.listeners)
    demand(n_told == n_served, f"{n_told} subscriptions are trusted in, but {n_served} are served")


def open_ids(
    connection: ClientConnection | ServerConnection,
    kind: type[IncomingRequest] | type[OutgoingRequest],
) -> set[RequestId]:
    """The ids of all open requests that a connection holds, those of the library included."""
    return {call.id for call in held_by(connection) if isinstance(call, kind) and call.open}
