"""Checks that each table and each buffer of a connection is within its limits.

The tables are found by a walk over all objects that a connection holds, and not by their names. So
a new table is checked without any change here.
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
"""The types that hold JSON of messages, whose size `max_message_bytes` limits."""
_STALE_DEADLINES: Final = 66
"""Dropped deadlines up to this number stay in the heap, even if they are more than half of it."""


def held_by(root: object, *, left_out: Collection[type] = ()) -> Iterator[Any]:
    """All objects that an object holds, directly or indirectly, with the object itself.

    Args:
        root: The object.
        left_out: Types of objects whose contents are not visited.
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
            continue  # the limit of the event queue is advice only
        for held in gc.get_referents(value):
            if id(held) not in seen:
                seen.add(id(held))
                left.append(held)


def config_of(connection: ClientConnection | ServerConnection) -> Config:
    """The settings of a connection."""
    return next(held for held in gc.get_referents(*held_by(connection)) if type(held) is Config)


def check_tables(root: object, config: Config, *, n_queued: int = 0) -> None:
    """Demand that no table or buffer is larger than the largest one that the settings allow.

    Args:
        root: The object that holds them.
        config: The settings.
        n_queued: The number of entries that a queue may have in addition.
    """
    # The token of a request that became a task stays after the request has ended, so there may be
    # twice as many. The library itself may send one request more.
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
        config: Settings to use in place of those of the connection.
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
