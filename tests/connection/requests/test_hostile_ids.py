"""Ids and tokens whose hashes all collide cost no more than others.

The hash of an integer is its value modulo a prime. In a table of `k * prime` every lookup costs as
much as there are keys. These tests count the keys of one hash in any table, and measure no time.
"""

import gc
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    MessageSeen,
    Observer,
    RequestCancelled,
    RequestReceived,
    RequestUnanswered,
    ServerConnection,
    Side,
    ViolationSeen,
)
from tests.support.http.server_endpoint import connect, modern_headers, new_endpoint, post
from tests.support.http.server_endpoint import drain as drained
from tests.support.modern import MODERN, modern, modern_server
from tests.support.watching import C, S, observe, opening, taken
from tests.support.wire import (
    broken,
    call,
    note,
    of,
    ready_client,
    ready_server,
    receive,
    result,
    sent,
    wire,
)

REVISION = LEGACY_REVISIONS[-1]
PRIME: Final = sys.hash_info.modulus
MANY: Final = 300
TABLES: Final[Any] = (dict, set, frozenset)
HOSTILE: Final[dict[str, Callable[[int], int]]] = {
    "positive": lambda k: (k + 1) * PRIME,
    "negative": lambda k: -(k + 1) * PRIME,
    "shifted": lambda k: 5 + (k + 1) * PRIME,
    "huge": lambda k: (k + 1) * PRIME * 10**50,
}
"""Ids of which all have one hash."""


def tables_in(*roots: object) -> Iterator[tuple[Any, ...]]:
    """The keys of every dict and set that can be reached from objects of the library."""
    seen: set[int] = set()
    waiting: list[Any] = list(roots)
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type) or callable(one):
            continue
        seen.add(id(one))
        if isinstance(one, TABLES):
            yield tuple(one)
        waiting += gc.get_referents(one)


def worst(*roots: object) -> int:
    """The largest number of keys with one hash in a table; -1 and -2 always have the same."""
    return max(max(Counter(map(hash, keys)).values(), default=0) for keys in tables_in(*roots))


def asking(id: object, token: object) -> dict[str, Any]:
    return call(id, "tools/call", {"name": "t", "_meta": {"progressToken": token}})


@pytest.fixture(params=HOSTILE)
def hostile(request: pytest.FixtureRequest) -> list[int]:
    """Ids with one hash."""
    ids = [HOSTILE[request.param](k) for k in range(MANY)]
    assert len(set(map(hash, ids))) == 1
    return ids


def test_what_is_counted_is_found() -> None:
    """The count must find a table in which all keys collide."""
    server = ready_server(REVISION)
    assert worst({k * PRIME for k in range(MANY)}, server) == MANY


def test_requests_tokens_and_cancellations_of_a_connection(hostile: list[int]) -> None:
    """With 10,000 requests in flight each message cost ten times as much as usual."""
    server = ready_server(REVISION)
    requests = [
        event.request
        for id in hostile
        for event in of(RequestReceived, receive(server, asking(id, id)))
    ]
    assert len(requests) == MANY
    assert [request.id for request in requests] == hostile
    assert worst(server) <= 2
    assert [one.progress_token for one in requests] == hostile
    assert server.send_progress(requests[7], 1)
    assert server.send_result(requests[7], {"content": []})
    progress, response = sent(server)
    assert progress["params"]["progressToken"] == hostile[7] == response["id"]
    [cancelled] = receive(server, note("notifications/cancelled", {"requestId": hostile[8]}))
    assert isinstance(cancelled, RequestCancelled)
    assert cancelled.request is requests[8]
    assert sent(receive_twice(server, hostile[9])) == []
    assert worst(server) <= 2


def receive_twice(server: ServerConnection, id: int) -> ServerConnection:
    """Receive two messages with one id in flight; the second one must get no response."""
    receive(server, asking(id, "other"))
    receive(server, {"jsonrpc": "2.0", "id": id, "method": 5})
    receive(server, asking("other", id))  # a token in use: its own request is refused
    sent(server)
    return server


def test_ids_that_come_as_floats() -> None:
    """A float with an integer value is the same id, also where large ids are stored under
    another hash."""
    server = ready_server(REVISION)
    ids = sorted({float(k * PRIME) for k in range(2**9, 2**9 + MANY)})
    for id in ids:
        receive(server, call(id, "tools/call", {"name": "t"}))
    assert len(server.open_requests) == len(ids)
    assert worst(server) <= 2
    [event] = receive(server, note("notifications/cancelled", {"requestId": int(ids[3])}))
    assert isinstance(event, RequestCancelled)
    assert event.request.id == ids[3]


def test_requests_of_a_server(hostile: list[int]) -> None:
    """A hostile server must not slow down its client either."""
    client = ready_client(REVISION)
    for id in hostile:
        receive(client, call(id, "roots/list", {"_meta": {"progressToken": id}}))
    assert len(client.open_requests) == MANY
    assert worst(client) <= 2


def test_requests_of_the_modern_revision(hostile: list[int]) -> None:
    """The ids of subscriptions are kept for long."""
    server = modern_server()
    for id in hostile:
        receive(server, modern(id, "subscriptions/listen", {"notifications": {}}))
    assert len(server.listeners) == MANY
    assert worst(server) <= 2


def test_requests_over_http(hostile: list[int]) -> None:
    """The same must hold in a session, without one, and in one batch."""
    endpoint = new_endpoint(revisions=(*LEGACY_REVISIONS, MODERN))
    one = connect(endpoint)
    batched = connect(endpoint, "2025-03-26")
    for id in hostile:
        one.post(asking(id, id))
        message = modern(id, "tools/call", {"name": "t", "arguments": {}})
        post(endpoint, message, modern_headers(message))
    batched.post([asking(id, id) for id in hostile])
    received = [event for event in drained(endpoint) if isinstance(event, RequestReceived)]
    assert len(received) == 3 * MANY
    assert worst(endpoint) <= 2


def test_an_observer(hostile: list[int]) -> None:
    """An observer stores the ids of both sides, and also those in invalid messages."""
    observer = Observer()
    for side, message in opening():
        observer.receive_data(side, wire(message))
    for id in hostile:
        observer.receive_data(Side.CLIENT, wire(asking(id, id)))
        observer.receive_data(Side.SERVER, wire(call(id, "ping")))
        observer.receive_data(Side.CLIENT, wire({"jsonrpc": "2.0", "id": -id, "method": 5}))
    assert worst(observer) <= 2
    for id in hostile[: MANY // 2]:
        progress = {"progressToken": id, "progress": 1}
        observer.receive_data(Side.SERVER, wire(note("notifications/progress", progress)))
        observer.receive_data(Side.SERVER, wire(result(id, {"content": []})))
    for id in hostile[MANY // 2 :]:
        cancel = note("notifications/cancelled", {"requestId": id})
        observer.receive_data(Side.CLIENT, wire(cancel))
    assert worst(observer) <= 2
    ids = [event.id for event in taken(observer) if isinstance(event, MessageSeen)]
    assert json.loads(json.dumps(ids)) == ids  # what is told is an integer like any other


@pytest.mark.parametrize("large", [2**62, -(2**62), 2.0**62])
def test_a_large_token_can_be_used_as_it_was_given(large: float) -> None:
    """A gateway passes the token on, and applications look it up in tables of their own."""
    server = ready_server(REVISION)
    (event,) = of(RequestReceived, receive(server, asking(1, large)))
    token = event.request.progress_token
    assert type(token) is int
    assert token in {int(large)}
    client = ready_client(REVISION)
    client.send_request("tools/call", {"name": "t"}, meta={"progressToken": token})
    (message,) = sent(client)
    assert message["params"]["_meta"] == {"progressToken": large}
    assert server.send_result(event.request, {"content": []})
    assert broken(receive(server, asking(2, large))) == []


def test_the_observer_names_a_large_id_as_it_was_given() -> None:
    """Applications use the ids in events as keys, so they must be plain integers."""
    cancelled = note("notifications/cancelled", {"requestId": 2**62})
    events = observe(*opening(REVISION), (C, cancelled), (S, result(2**63, {})))
    violations = [event for event in events if isinstance(event, ViolationSeen)]
    assert [type(violation.id) for violation in violations] == [int, int]
    assert [violation.id for violation in violations] == [2**62, 2**63]


@pytest.mark.parametrize("large", [2**62, 2**63])
def test_the_observer_finds_a_large_id_that_comes_back_as_a_string(large: int) -> None:
    """The table stores large integers under another hash, and the response matched no request."""
    asking = call(large, "tools/list")
    events = observe(*opening(REVISION), (C, asking), (S, result(str(large), {"tools": []})))
    (violation,) = [event for event in events if isinstance(event, ViolationSeen)]
    assert violation.rule == "JSON-004"
    assert violation.text == f"a response has the id {str(large)!r} instead of {large}"
    assert not [event for event in events if isinstance(event, RequestUnanswered)]
