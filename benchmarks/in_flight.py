"""Many requests in flight: the cost per request must not depend on their number.

Requests are sent one by one; as soon as the wanted number is open, the oldest is answered after
each, and at the end all that are left. So each size does the same steps, only with other numbers
open.
"""

from __future__ import annotations

import statistics
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from sansmcp import Config, IncomingRequest, RequestReceived

from . import _traffic
from ._measure import Effort, Rounds, Row, clock, flatness, interleaved

SIZES: Final = (10, 100, 1_000, 10_000, 100_000)
_FLAT: Final = 1.2
_CONFIG: Final = Config(max_requests=200_000, max_used_ids=200_000)
_ONE_HASH: Final = sys.hash_info.modulus
"""Multiples of it have one hash: ids that a hostile client chooses."""


def serve(step: int, in_flight: int, requests: int) -> float:
    """Nanoseconds a request, at the server; the ids have this distance."""
    server = _traffic.open_server(_CONFIG)
    lines = [_traffic.request_line((10_000 + number) * step) for number in range(requests)]
    result = _traffic.RESULT
    waiting: deque[IncomingRequest] = deque()
    start = clock()
    for line in lines:
        server.receive_data(line)
        while (event := server.next_event()) is not None:
            assert isinstance(event, RequestReceived)
            waiting.append(event.request)
        if len(waiting) > in_flight:
            server.send_result(waiting.popleft(), result)
            server.data_to_send()
    while waiting:
        server.send_result(waiting.popleft(), result)
        server.data_to_send()
    return (clock() - start) / requests


def call(timed: bool, in_flight: int, requests: int) -> float:
    """Nanoseconds a request, at the client; `timed`: with a progress token and two timeouts."""
    client = _traffic.open_client(_CONFIG)
    answers = [_traffic.answer_line(2 + number) for number in range(requests)]
    method, params = _traffic.METHOD, _traffic.PARAMS
    timeout, longest = (30.0, 120.0) if timed else (None, None)
    now = 0.0
    sent = answered = 0
    start = clock()
    while answered < requests:
        if sent < requests:
            now += 0.001
            client.send_request(
                method, params, progress=timed, timeout=timeout, max_timeout=longest, now=now
            )
            client.data_to_send()
            sent += 1
        if sent - answered > in_flight or sent == requests:
            client.receive_data(answers[answered], now=now)
            while client.next_event() is not None:
                answered += 1
            if timed:
                client.next_timeout()
    return (clock() - start) / requests


def rows(effort: Effort, kept: Rounds) -> list[Row]:
    """Both directions, and the client's once more with timeouts."""
    found: list[Row] = []
    # Quick: some of the sizes only, so that it is quick.
    sizes = SIZES[: effort.pick(5, 4) : effort.pick(1, 3)]
    cases: dict[tuple[str, str], Callable[[int, int], float]] = {
        ("", "to server"): partial(serve, 1),
        (", ids of one hash", "to server"): partial(serve, _ONE_HASH),
        ("", "from client"): partial(call, False),
        (", token, 2 timeouts", "from client"): partial(call, True),
    }
    for (variant, direction), case in cases.items():
        requests = effort.pick(25_000, 10_000)
        sized = {f"{size:,}": partial(case, size, max(size, requests)) for size in sizes}
        rounds = interleaved(sized, effort.pick(5, 1))
        parts = ", ".join(f"{statistics.median(ns) / 1000:.3g}" for ns in rounds.values())
        found.append(
            Row(
                name=f"growth with requests in flight{variant}",
                codec="json",
                direction=direction,
                value=flatness(list(rounds.values())),
                unit="x",
                bound=_FLAT,
                spread=f"highest over lowest; {' / '.join(rounds)} in flight: {parts} us",
            )
        )
        for size, values in rounds.items():
            kept[f"{size} in flight {direction}{variant}"] = [ns / 1e9 for ns in values]
    return found
