"""What bounds each table and each buffer of a connection."""

from __future__ import annotations

from functools import cache
from typing import Final

from sansmcp import ClientConnection, Config, ServerConnection

from ._plain import state_of
from ._promises import demand

# Each table of a connection with what bounds it: settings of `Config` that add up. Requests that
# the library sends of its own accord come on top of `max_requests`: at most one ping, or one
# `initialize`, at a time. Tokens outlive their request where it became a task.
_BOUNDS: Final[dict[str, tuple[str, ...]]] = {
    "_outgoing": ("max_requests",),
    "_late": ("max_late_answers",),
    "_tokens": ("max_requests", "max_requests"),
    "_task_calls": ("max_requests",),
    "_own_names": ("max_used_ids",),
    "_parked": ("max_requests",),
    "_unfit": ("max_requests",),
    "_incoming": ("max_requests",),
    "_peer_tokens": ("max_requests", "max_requests"),
    "_peer_tasks": ("max_requests",),
    "_subscriptions": ("max_subscriptions",),
    "_on_demand": ("max_requests",),
    "_held": ("max_held_changes",),
    "_listeners": ("max_subscriptions",),
    "_of_uri": ("max_subscriptions",),
}
# By advice; by their bytes; by what the caller has declared; by the methods that there are.
_BOUNDED_OTHERWISE: Final = frozenset(
    {"_events", "_output", "_capabilities", "_server_info", "_fresh", "_of_kind"}
)


@cache
def _bounds(config: Config) -> dict[str, int]:
    bounds = {name: sum(getattr(config, limit) for limit in _BOUNDS[name]) for name in _BOUNDS}
    bounds["_outgoing"] += 1
    return bounds


def check_tables(connection: ClientConnection | ServerConnection) -> None:
    """Demand that it is known of every table what bounds it; a new one has to be entered here."""
    for name, table in state_of(connection).items():
        if isinstance(table, dict | list | set):
            demand(name in _BOUNDS or name in _BOUNDED_OTHERWISE, f"what bounds {name}?")


def check_bounds(connection: ClientConnection | ServerConnection) -> None:
    """Demand that every table and buffer is within its limit of `Config`."""
    config = connection._config
    for name, bound in _bounds(config).items():
        n_entries = len(getattr(connection, name))
        demand(n_entries <= bound, f"{name} holds {n_entries}, above {bound}")
    n_listings = sum(map(len, connection._fresh.values()))
    demand(n_listings <= config.max_requests, f"{n_listings} listings are kept")
    if isinstance(connection, ServerConnection):
        n_subscriptions = len(connection._subscriptions) + len(connection._listeners)
        n_subscriptions += len(connection._of_uri)
        demand(n_subscriptions <= config.max_subscriptions, f"{n_subscriptions} subscriptions")
        for listener in connection._listeners.values():
            n_held = len(listener._held or ())
            demand(n_held <= config.max_held_changes, f"{n_held} changes wait for {listener!r}")
    unsent = sum(len(message) for message, _ in connection._output)
    demand(unsent == connection.unsent_bytes, f"unsent_bytes is not {unsent}")
    demand(unsent <= config.max_unsent_bytes, f"{unsent} unsent bytes")
    demand(len(connection._lines._partial) <= config.max_message_bytes, "a long line is kept")
    ids = connection._used
    for table in (ids._starts, ids._names, connection._unanswered._keys):
        demand(len(table) <= config.max_used_ids, f"{len(table)} used ids are kept")
    timers = connection._timers._heap
    if len(timers) <= 66:
        return
    live = sum(entry[3]._deadline is not None for entry in timers)
    # Deadlines that were dropped stay until they are the greater part, and some more.
    demand(len(timers) <= 2 * live + 66, f"{len(timers)} timers for {live} deadlines")
