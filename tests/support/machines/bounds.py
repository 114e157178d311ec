"""What bounds each table and each buffer of a connection."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from sansmcp import ClientConnection, Config, ServerConnection
from sansmcp._connection.machine import ServerMachine
from sansmcp.testing._plain import state_of
from tests.support.machines.promises import demand

# Each table of each part of a connection, with what bounds it: settings of `Config` that add up.
# Requests that the library sends of its own accord come on top of `max_requests`: at most one ping,
# or one `initialize`, at a time. Tokens outlive their request where it became a task.
_BOUNDS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "outgoing": {
        "calls": ("max_requests",),
        "late": ("max_late_answers",),
        "tokens": ("max_requests", "max_requests"),
        "task_calls": ("max_requests",),
        "_own_string_ids": ("max_used_ids",),
    },
    "incoming": {
        "requests": ("max_requests",),
        "tokens": ("max_requests", "max_requests"),
        "tasks": ("max_requests",),
    },
    "core": {"unsent_calls": ("max_requests",), "requests": ("max_requests",)},
    "listings": {"on_demand": ("max_requests",)},
    "resource_subscriptions": {"uris": ("max_subscriptions",)},
    "listeners": {"listeners": ("max_subscriptions",), "of_uri": ("max_subscriptions",)},
    "publisher": {"held": ("max_held_changes",)},
}
# By advice; by their bytes; by what the caller has declared; by the methods that there are.
_BOUNDED_OTHERWISE: Final = frozenset({"events", "output", "capabilities", "fresh", "of_kind"})


@cache
def _bounds(config: Config, part: str) -> dict[str, int]:
    bounds = {
        name: sum(getattr(config, limit) for limit in limits)
        for name, limits in _BOUNDS.get(part, {}).items()
    }
    if part == "outgoing":
        bounds["calls"] += 1
    return bounds


def _parts(connection: ClientConnection | ServerConnection) -> dict[str, Any]:
    """The parts of a connection, by their name in its machine."""
    return {
        name: part
        for name, part in state_of(connection._machine).items()
        if hasattr(part, "__slots__") and not name.startswith("_")
    }


def check_tables(connection: ClientConnection | ServerConnection) -> None:
    """Demand that it is known of every table what bounds it; a new one has to be entered here."""
    for part, holder in _parts(connection).items():
        for name, table in state_of(holder).items():
            if isinstance(table, dict | list | set):
                is_known = name in _BOUNDS.get(part, {}) or name in _BOUNDED_OTHERWISE
                demand(is_known, f"what bounds {part}.{name}?")


def check_bounds(connection: ClientConnection | ServerConnection) -> None:
    """Demand that every table and buffer is within its limit of `Config`."""
    machine = connection._machine
    core = machine.core
    config = core.config
    for part, holder in _parts(connection).items():
        for name, bound in _bounds(config, part).items():
            n_entries = len(getattr(holder, name) or ())
            demand(n_entries <= bound, f"{part}.{name} holds {n_entries}, above {bound}")
    pauses = machine.outgoing.timeout_pauses
    n_parked = 0 if pauses is None else len(pauses.parked)
    demand(n_parked <= config.max_requests, f"{n_parked} calls are parked")
    n_listings = sum(map(len, machine.listings.fresh.values()))
    demand(n_listings <= config.max_requests, f"{n_listings} listings are kept")
    if isinstance(machine, ServerMachine):
        listeners = machine.listeners.listeners
        n_subscriptions = len(machine.resource_subscriptions.uris) + len(listeners)
        n_subscriptions += len(machine.listeners.of_uri or ())
        demand(n_subscriptions <= config.max_subscriptions, f"{n_subscriptions} subscriptions")
        for listener in listeners.values():
            n_held = len(listener._held or ())
            demand(n_held <= config.max_held_changes, f"{n_held} changes wait for {listener!r}")
    unsent = sum(len(message) for message, _ in core.output)
    demand(unsent == connection.unsent_bytes, f"unsent_bytes is not {unsent}")
    demand(unsent <= config.max_unsent_bytes, f"{unsent} unsent bytes")
    demand(len(connection._lines._partial) <= config.max_message_bytes, "a long line is kept")
    ids = machine.incoming.used_ids
    for table in (ids._starts, ids._names, machine.incoming.cancelled_ids._keys):
        demand(len(table) <= config.max_used_ids, f"{len(table)} used ids are kept")
    timers = core.timers._heap
    if len(timers) <= 66:
        return
    live = sum(entry[3]._deadline is not None for entry in timers)
    # Deadlines that were dropped stay until they are the greater part, and some more.
    demand(len(timers) <= 2 * live + 66, f"{len(timers)} timers for {live} deadlines")
