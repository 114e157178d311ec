"""Small calls one after the other, in memory: the cost of the protocol beside bare `json`.

Run as a program it measures in its own process and prints the rounds; `rows` collects several.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Final, Literal

from sansmcp import ClientConnection, Config, RequestReceived, ServerConnection

from . import _traffic
from ._measure import (
    Effort,
    Rounds,
    Row,
    clock,
    in_fresh_processes,
    interleaved,
    median_and_spread,
    ratios,
)

CALLS: Final = 500
FIRST_ID: Final = 10_000

Side = Literal["server", "client"]
MODERN: Final = "2026-07-28"
CASES: Final[tuple[tuple[Side, str, str, float | None], ...]] = (
    ("server", "", "json", 1.9),
    ("server", "", "msgspec", 1.0),
    ("client", "", "json", 2.0),
    ("client", "", "msgspec", None),
    ("client", "token, 2 timeouts", "json", 2.3),
    ("client", "token, 2 timeouts", "msgspec", None),
    ("server", MODERN, "json", 1.9),
    ("server", MODERN, "msgspec", None),
    ("client", MODERN, "json", None),
    ("client", MODERN, "msgspec", None),
)


def floor(text: bytes, answer: object) -> float:
    """Bare `json` over the two texts of one call; nanoseconds a call, as everywhere here."""
    texts = [text] * CALLS
    loads, dumps = json.loads, json.dumps
    start = clock()
    for data in texts:
        loads(data)
        dumps(answer)
    return (clock() - start) / CALLS


def serve(server: ServerConnection, modern: bool, ids: count[int]) -> float:
    """Requests arrive, are taken as events and answered, and their responses are taken as bytes."""
    lines = [_traffic.request_line(next(ids), modern=modern) for _ in range(CALLS)]
    result = _traffic.RESULT
    answered = 0
    start = clock()
    for line in lines:
        server.receive_data(line)
        while (event := server.next_event()) is not None:
            if isinstance(event, RequestReceived):
                server.send_result(event.request, result)
        answered += len(server.data_to_send()) > 100
    spent = clock() - start
    assert answered == CALLS
    return spent / CALLS


def call(client: ClientConnection, modern: bool, ids: count[int]) -> float:
    """Requests are sent, taken as bytes, answered, and the answers taken as events."""
    lines = [_traffic.answer_line(next(ids), modern=modern) for _ in range(CALLS)]
    method, params = _traffic.METHOD, _traffic.PARAMS
    events = 0
    start = clock()
    for line in lines:
        client.send_request(method, params)
        client.data_to_send()
        client.receive_data(line)
        while client.next_event() is not None:
            events += 1
    spent = clock() - start
    assert events == CALLS
    assert not client.pending_requests
    return spent / CALLS


def call_timed(client: ClientConnection, ids: count[int]) -> float:
    """The same with a progress token, both timeouts, and a time at each step."""
    numbers = [next(ids) for _ in range(CALLS)]
    lines = [(_traffic.answer_line(number), number * 0.001) for number in numbers]
    method, params = _traffic.METHOD, _traffic.PARAMS
    events = 0
    start = clock()
    for line, now in lines:
        client.send_request(method, params, progress=True, timeout=30.0, max_timeout=120.0, now=now)
        client.data_to_send()
        client.receive_data(line, now=now)
        while client.next_event() is not None:
            events += 1
    spent = clock() - start
    assert events == CALLS
    assert not client.pending_requests
    return spent / CALLS


def _key(side: Side, codec: str, variant: str) -> str:
    return f"{side} {codec} {variant}".rstrip()


def measure(rounds: int) -> Rounds:
    """All cases and both floors in this process."""
    cases: dict[str, Callable[[], float]] = {
        "server floor": partial(floor, _traffic.REQUEST_TEXT, _traffic.ANSWER),
        "client floor": partial(floor, _traffic.ANSWER_TEXT, _traffic.REQUEST),
        f"server floor {MODERN}": partial(
            floor, _traffic.MODERN_REQUEST_TEXT, _traffic.MODERN_ANSWER
        ),
        f"client floor {MODERN}": partial(
            floor, _traffic.MODERN_ANSWER_TEXT, _traffic.MODERN_REQUEST
        ),
    }
    for side, variant, codec, _ in CASES:
        config = Config(codec=_traffic.CODECS[codec])
        modern = variant == MODERN
        if side == "server":
            server = _traffic.open_server(config, modern=modern)
            cases[_key(side, codec, variant)] = partial(serve, server, modern, count(FIRST_ID))
        else:
            client = _traffic.open_client(config, modern=modern)
            # One call by hand, so that ids have as many digits as those of the floor.
            client.send_request(_traffic.METHOD, _traffic.PARAMS, id=FIRST_ID - 1)
            client.receive_data(_traffic.answer_line(FIRST_ID - 1, modern=modern))
            client.data_to_send()
            client.next_event()
            one_round = partial(call, client, modern)
            if variant and not modern:
                one_round = partial(call_timed, client)
            cases[_key(side, codec, variant)] = partial(one_round, count(FIRST_ID))
    return interleaved(cases, rounds)


def rows(effort: Effort, kept: Rounds) -> list[Row]:
    """Both sides, each with both codecs; the client without and with timeouts."""
    rounds = in_fresh_processes("round_trips", effort.pick(8, 1), str(effort.pick(40, 8)))
    found: list[Row] = []
    for side, variant, codec, bound in CASES:
        floors = rounds[f"{side} floor {variant}" if variant == MODERN else f"{side} floor"]
        times = rounds[_key(side, codec, variant)]
        ratio, spread = median_and_spread(ratios(times, floors))
        spent, bare = statistics.median(times) / 1000, statistics.median(floors) / 1000
        found.append(
            Row(
                name=f"small call, round trip{', ' * bool(variant)}{variant}",
                codec=codec,
                direction=side,
                value=ratio,
                unit="x",
                bound=bound,
                spread=f"{spread}; {spent:.1f} us, floor {bare:.1f} us",
            )
        )
    kept.update({name: [ns / 1e9 for ns in values] for name, values in rounds.items()})
    return found


if __name__ == "__main__":
    json.dump(measure(int(sys.argv[1])), sys.stdout)
