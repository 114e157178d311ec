"""Small calls over HTTP, one after the other, without any HTTP library: the cost of the rules.

Run as a program it measures in its own process and prints the rounds; `rows` collects several.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Final

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, Config, RequestReceived, ResourceUpdated
from sansmcp.http import ServerEndpoint, Sessions

from . import _traffic
from ._measure import Effort, Rounds, Row, clock, in_fresh_processes, interleaved, ratios
from ._measure import median_and_spread as median
from .memory import kept_bytes
from .round_trips import CALLS, FIRST_ID, floor

MODERN: Final = MODERN_REVISIONS[-1]
LEGACY: Final = LEGACY_REVISIONS[-1]
Field = tuple[bytes, bytes]

CASES: Final[tuple[tuple[str, str, float | None], ...]] = (
    (MODERN, "json", 3.5),
    ("stateless", "json", 3.5),
    ("session", "json", 3.5),
    (MODERN, "msgspec", None),
    ("session", "msgspec", None),
)
_AT_ONCE: Final = 25
"""Requests are made just before they are served, as a transport does it."""
_SESSIONS: Final = 2_000
MANY: Final = 10_000
FEW: Final = 100
_PUBLISHED: Final = 20
_URI: Final = "file:///a"

_ALWAYS: Final = (
    (b"host", b"127.0.0.1:8000"),
    (b"user-agent", b"benchmark/1.0"),
    (b"accept-encoding", b"gzip, deflate"),
    (b"connection", b"keep-alive"),
    (b"accept", b"application/json, text/event-stream"),
    (b"content-type", b"application/json"),
)


def _fields(variant: str) -> list[Field]:
    """The fields of every request of a client, but for the length."""
    if variant == MODERN:
        own = [(b"mcp-method", _traffic.METHOD.encode()), (b"mcp-name", b"echo")]
    else:
        own = [(b"mcp-session-id", b"s1")] if variant == "session" else []
    version = MODERN if variant == MODERN else LEGACY
    return [*_ALWAYS, (b"mcp-protocol-version", version.encode()), *own]


def _exchange(endpoint: ServerEndpoint, fields: list[Field], body: bytes) -> None:
    exchange = endpoint.exchange("POST", "/mcp", fields, now=0.0)
    exchange.receive_data(body)
    exchange.receive_end()
    while (event := endpoint.next_event()) is not None:
        if isinstance(event, RequestReceived):
            endpoint.send_result(event.request, {})
    assert exchange.response() is not None
    endpoint.ready()


def open_endpoint(variant: str, config: Config, sessions: int = 1) -> ServerEndpoint:
    """An endpoint of both eras, perhaps with these open sessions, without events or output."""
    numbers = count(1)
    endpoint = ServerEndpoint(
        info={"name": "benchmark", "version": "1.0"},
        capabilities={"tools": {"listChanged": True}, "resources": {"subscribe": True}},
        sessions=Sessions(new_id=lambda: f"s{next(numbers)}") if variant == "session" else None,
        config=config,
    )
    for number in range(1, sessions + 1) if variant == "session" else ():
        _exchange(endpoint, [*_ALWAYS], _INITIALIZE)
        _exchange(endpoint, [*_ALWAYS, (b"mcp-session-id", b"s%d" % number)], _INITIALIZED)
    return endpoint


def _text(method: str, **members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, **members}).encode()


_INITIALIZE: Final = _text(
    "initialize",
    id=0,
    params={
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1.0"},
    },
)
_INITIALIZED: Final = _text("notifications/initialized")
_SUBSCRIBE: Final = _text("resources/subscribe", id=1, params={"uri": _URI})


def serve(endpoint: ServerEndpoint, variant: str, ids: count[int]) -> float:
    """Requests arrive, are taken as events and answered, and their responses are taken."""
    result = _traffic.RESULT
    answered = spent = 0
    for _ in range(CALLS // _AT_ONCE):
        requests = _requests(variant, ids)
        start = clock()
        for headers, body in requests:
            exchange = endpoint.exchange(b"POST", b"/mcp", headers, now=1.0)
            exchange.receive_data(body)
            exchange.receive_end()
            while (event := endpoint.next_event()) is not None:
                if isinstance(event, RequestReceived):
                    endpoint.send_result(event.request, result)
            for ready in endpoint.ready():
                response = ready.response()
                answered += response is not None and response[0] == 200 and len(response[2]) > 100
        spent += clock() - start
    assert answered == CALLS
    return spent / CALLS


def _requests(variant: str, ids: count[int]) -> list[tuple[list[Field], bytes]]:
    """The next requests: fields and body."""
    modern, fields = variant == MODERN, _fields(variant)
    bodies = [_traffic.request_line(next(ids), modern=modern)[:-1] for _ in range(_AT_ONCE)]
    return [([*fields, (b"content-length", b"%d" % len(body))], body) for body in bodies]


def measure(rounds: int) -> Rounds:
    """All cases and both floors in this process."""
    cases: dict[str, Callable[[], float]] = {
        "legacy": partial(floor, _traffic.REQUEST_TEXT, _traffic.ANSWER),
        MODERN: partial(floor, _traffic.MODERN_REQUEST_TEXT, _traffic.MODERN_ANSWER),
    }
    for variant, codec, _ in CASES:
        endpoint = open_endpoint(variant, Config(codec=_traffic.CODECS[codec]))
        cases[f"{variant} {codec}"] = partial(serve, endpoint, variant, count(FIRST_ID))
    return interleaved(cases, rounds)


def idle_session_bytes(sessions: int) -> float:
    """The memory of one more idle session."""
    config = Config()
    few = kept_bytes(partial(open_endpoint, "session", config, 1))
    many = kept_bytes(partial(open_endpoint, "session", config, 1 + sessions))
    return (many - few) / sessions


def _subscribed_endpoint(sessions: int) -> ServerEndpoint:
    """An endpoint with this many sessions, one of which is subscribed to a resource."""
    endpoint = open_endpoint("session", Config(), sessions)
    _exchange(endpoint, [*_ALWAYS, (b"mcp-session-id", b"s1")], _SUBSCRIBE)
    return endpoint


def publish(endpoint: ServerEndpoint) -> float:
    """One change of that resource; nanoseconds."""
    start = clock()
    for _ in range(_PUBLISHED):
        endpoint.publish(ResourceUpdated(_URI))
    return (clock() - start) / _PUBLISHED


def rows(effort: Effort, kept: Rounds) -> list[Row]:
    """Requests in both eras, with and without a session; then memory and cost of sessions."""
    return [*_exchanges(effort, kept), *_sessions(effort, kept)]


def _exchanges(effort: Effort, kept: Rounds) -> list[Row]:
    rounds = in_fresh_processes("http_exchanges", effort.pick(5, 1), str(effort.pick(25, 8)))
    found: list[Row] = []
    for variant, codec, bound in CASES:
        floors = rounds[MODERN if variant == MODERN else "legacy"]
        times = rounds[f"{variant} {codec}"]
        ratio, spread = median(ratios(times, floors))
        spent, bare = statistics.median(times) / 1000, statistics.median(floors) / 1000
        found.append(
            Row(
                name=f"small call, HTTP exchange, {variant}",
                codec=codec,
                direction="server",
                value=ratio,
                unit="x",
                bound=bound,
                spread=f"{spread}; {spent:.1f} us, floor {bare:.1f} us",
            )
        )
    kept.update({f"HTTP, {name}": [ns / 1e9 for ns in values] for name, values in rounds.items()})
    return found


def _sessions(effort: Effort, kept: Rounds) -> list[Row]:
    sessions = effort.pick(_SESSIONS, 200)
    idle = Row(
        name="memory: idle session",
        codec="json",
        direction="server",
        value=idle_session_bytes(sessions),
        unit="B",
        bound=6 * 1024,
        spread=f"mean of {sessions}; the same in every run",
    )
    many = effort.pick(MANY, 500)
    cases = {
        f"publish, 1 of {number} subscribed": partial(publish, _subscribed_endpoint(number))
        for number in (many, FEW)
    }
    rounds = interleaved(cases, effort.pick(60, 5))
    growth, spread = median(ratios(*rounds.values()))
    kept.update({f"HTTP, {name}": [ns / 1e9 for ns in values] for name, values in rounds.items()})
    told = Row(
        name=f"publish to 1 of {MANY:,} sessions, beside 1 of {FEW}",
        codec="json",
        direction="server",
        value=growth,
        unit="x",
        bound=1.2,
        spread=f"{spread}; {statistics.median(rounds[next(iter(rounds))]) / 1000:.1f} us",
    )
    return [idle, told]


if __name__ == "__main__":
    json.dump(measure(int(sys.argv[1])), sys.stdout)
