"""Subscriptions of 2026-07-28: the memory of an idle one, and the cost of notifying all."""

from __future__ import annotations

import json
from functools import partial
from typing import Final

from sansmcp import Config, ServerConnection, ToolsListChanged

from . import _traffic
from ._measure import Effort, Rounds, Row, clock, interleaved, median_and_spread, ratios
from .memory import kept_bytes

MANY: Final = 10_000
FEW: Final = 1_000
_CONFIG: Final = Config(max_requests=MANY, max_subscriptions=2 * MANY)


def listened(listeners: int) -> ServerConnection:
    """A server with this many subscriptions to the same change, without events or output."""
    server = _traffic.open_server(_CONFIG, modern=True)
    for number in range(10_000, 10_000 + listeners):
        server.receive_data(_traffic.listen_line(number))
        server.next_event()
        server.data_to_send()
    assert server.next_event() is None
    return server


def publish(server: ServerConnection, listeners: int) -> float:
    """One change is published and all output taken; nanoseconds a listener."""
    start = clock()
    server.publish(ToolsListChanged())
    messages = server.messages_to_send()
    spent = clock() - start
    assert len(messages) == listeners
    return spent / listeners


def encode(listeners: int) -> float:
    """The same notifications, each encoded by `json`."""
    method = "notifications/tools/list_changed"
    key = "io.modelcontextprotocol/subscriptionId"
    notes = [
        {"jsonrpc": "2.0", "method": method, "params": {"_meta": {key: number}}}
        for number in range(10_000, 10_000 + listeners)
    ]
    dumps = json.dumps
    start = clock()
    for note in notes:
        dumps(note)
    return (clock() - start) / listeners


def rows(effort: Effort, kept: Rounds) -> list[Row]:
    """Memory, cost beside encoding, and cost beside that of fewer."""
    many, few = listened(MANY), listened(FEW)
    cases = {
        "publish to many": partial(publish, many, MANY),
        "publish to few": partial(publish, few, FEW),
        "encode": partial(encode, MANY),
    }
    rounds = interleaved(cases, effort.pick(60, 5))
    times = rounds["publish to many"]
    cost, cost_spread = median_and_spread(ratios(times, rounds["encode"]))
    growth, growth_spread = median_and_spread(ratios(times, rounds["publish to few"]))
    kept.update({name: [ns / 1e9 for ns in values] for name, values in rounds.items()})
    idle = (kept_bytes(partial(listened, MANY)) - kept_bytes(partial(listened, 0))) / MANY
    return [
        Row(
            name="memory: idle subscription",
            codec="json",
            direction="server",
            value=idle,
            unit="B",
            bound=1024,
            spread=f"mean of {MANY}; the same in every run",
        ),
        Row(
            name=f"publish to {MANY:,} subscriptions, beside json.dumps of each",
            codec="json",
            direction="server",
            value=cost,
            unit="x",
            bound=3.0,
            spread=cost_spread,
        ),
        Row(
            name=f"publish to {MANY:,}, per subscription, beside {FEW:,}",
            codec="json",
            direction="server",
            value=growth,
            unit="x",
            bound=1.2,
            spread=growth_spread,
        ),
    ]
