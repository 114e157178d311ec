"""Bytes that a request in flight and an idle connection keep, as `tracemalloc` counts them.

`tracemalloc` counts every block that Python allocates, without the rounding of the allocator.
"""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from sansmcp import Config

from . import _traffic
from ._measure import Effort, Rounds, Row

REQUESTS: Final = 10_000
_CONFIG: Final = Config(max_requests=REQUESTS)


def kept_bytes(make: Callable[[], object]) -> int:
    """The memory that the result of `make` keeps alive, with all that `make` left elsewhere."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        made = make()
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
        del made
    finally:
        tracemalloc.stop()
    return after - before


def _params_alone() -> list[Any]:
    text = json.dumps(_traffic.PARAMS)
    return [json.loads(text) for _ in range(REQUESTS)]


def _incoming() -> object:
    server = _traffic.open_server(_CONFIG)
    for number in range(10_000, 10_000 + REQUESTS):
        server.receive_data(_traffic.request_line(number))
        server.next_event()
    assert len(server.open_requests) == REQUESTS
    assert server.next_event() is None
    return server


def _outgoing(**options: Any) -> object:
    client = _traffic.open_client(_CONFIG)
    for _ in range(REQUESTS):
        client.send_request(_traffic.METHOD, _traffic.PARAMS, **options)
        client.data_to_send()
    assert len(client.pending_requests) == REQUESTS
    return client


def _idle(open_one: Callable[[Config], object], connections: int) -> object:
    return [open_one(_CONFIG) for _ in range(connections)]


def rows(effort: Effort, kept: Rounds) -> list[Row]:
    """Requests in flight both ways, then connections after the handshake with nothing to do."""
    timed = partial(_outgoing, progress=True, timeout=30.0, max_timeout=120.0, now=1.0)
    cases: list[tuple[str, str, int, int, Callable[[], object], int]] = [
        # What is compared is in flight: the caller's params are not ours, a connection is.
        ("request in flight", "to server", 1024, REQUESTS, _incoming, kept_bytes(_params_alone)),
        ("request in flight", "from client", 1024, REQUESTS, _outgoing, 0),
        ("request in flight, token, 2 timeouts", "from client", 1024, REQUESTS, timed, 0),
    ]
    connections = effort.pick(1000, 100)
    for side, open_one in (("server", _traffic.open_server), ("client", _traffic.open_client)):
        open_one(_CONFIG)  # what all connections share is there before the first that counts
        make = partial(_idle, open_one, connections)
        cases.append(("idle connection", side, 6 * 1024, connections, make, 0))
    return [
        Row(
            name=f"memory: {name}",
            codec="json",
            direction=direction,
            value=(kept_bytes(make) - foreign) / number,
            unit="B",
            bound=bound,
            spread=f"mean of {number}; the same in every run",
        )
        for name, direction, bound, number, make, foreign in cases
    ]
