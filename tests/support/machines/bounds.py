"""Checks that each table and each buffer that a connection holds is within its limits.

The tables are found by a walk over all objects that a connection holds, and not by their names. So
a new table is checked without being entered here.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Collection, Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

from sansmcp import (
    ClientConnection,
    Config,
    IncomingRequest,
    OutgoingRequest,
    Peer,
    ServerConnection,
)
from tests.support.machines.promises import demand

_TABLES: Final = (dict, set, list, deque)
_NOT_ENTERED: Final = (type, ModuleType, FunctionType, BuiltinFunctionType, str, bytes, Config)
_MESSAGES: Final = (Peer, IncomingRequest, OutgoingRequest)
"""What holds JSON of messages, whose size `max_message_bytes` bounds."""
_STALE_DEADLINES: Final = 66
"""Deadlines that were dropped stay until they are the greater part, and some more."""


def held_by(root: object, *, left_out: Collection[type] = ()) -> Iterator[Any]:
    """All objects that this one holds, itself included.

    Args:
        root: Where to begin.
        left_out: Of objects of these types, nothing is looked at that they hold.
    """
    seen = {id(root)}
    left = [root]
    while left:
        value: Any = left.pop()
        kind = value.__class__
        if isinstance(value, _NOT_ENTERED) or kind.__module__.startswith("sansmcp._spec"):
            continue
        yield value
        if kind in left_out or kind.__base__ is list:
            continue  # the queue of events is bounded by advice
        for held in gc.get_referents(value):
            if id(held) not in seen:
                seen.add(id(held))
                left.append(held)


def config_of(connection: ClientConnection | ServerConnection) -> Config:
    """The settings of a connection."""
    return next(held for held in gc.get_referents(*held_by(connection)) if type(held) is Config)


def check_tables(root: object, config: Config, *, n_queued: int = 0) -> None:
    """Demand that each table and buffer is within what these settings allow the largest of them.

    Args:
        root: What holds them.
        config: The settings.
        n_queued: How many entries a queue may have besides.
    """
    # Tokens outlive their request where it became a task: so there may be twice as many. On top
    # comes one request that the library sends of its own accord.
    most = 1 + 2 * max(
        config.max_requests,
        config.max_used_ids,
        config.max_late_answers,
        config.max_subscriptions,
        config.max_held_changes,
    )
    for held in held_by(root, left_out=_MESSAGES):
        kind = held.__class__
        if kind is bytearray:
            demand(len(held) <= config.max_message_bytes, f"a buffer holds {len(held)} bytes")
        elif kind in _TABLES:
            is_queue = kind is not dict and any(type(entry) is tuple for entry in held)
            bound = most * 2 + _STALE_DEADLINES + n_queued if is_queue else most
            demand(len(held) <= bound, f"a table holds {len(held)}, above {bound}: {held!r:.200}")


def check_bounds(
    connection: ClientConnection | ServerConnection, config: Config | None = None
) -> None:
    """Demand that everything that a connection holds is within its limits.

    Args:
        connection: The connection.
        config: Other limits than those of the connection.
    """
    config = config or config_of(connection)
    for name, found, bound in (
        ("pending requests", len(connection.pending_requests), config.max_requests + 1),
        ("open requests", len(connection.open_requests), config.max_requests),
        ("unsent bytes", connection.unsent_bytes, config.max_unsent_bytes),
    ):
        demand(found <= bound, f"{found} {name}, above {bound}")
    if isinstance(connection, ServerConnection):
        n_listeners = len(connection.listeners)
        demand(n_listeners <= config.max_subscriptions, f"{n_listeners} subscriptions")
    check_tables(connection, config, n_queued=connection.unsent_bytes)
