"""Invariant 5, bounded: every limit of `Config` holds, and going over it is reported."""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from sansmcp import (
    MODERN_REVISIONS,
    ClientConnection,
    CloseCause,
    Config,
    ConnectionClosed,
    Event,
    LimitReached,
    ListingEnd,
    ListingEnded,
    LocalProtocolError,
    ProtocolViolation,
    RequestFailed,
    ResourceUpdated,
    ServerConnection,
)
from sansmcp.testing import canonical, drain
from tests.support.wire import (
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

NEWEST = "2025-11-25"
INFO = {"name": "test", "version": "1"}

LIMITS = {field.name for field in attrs.fields(Config) if field.name.startswith(("max_", "soft_"))}


OF_HTTP = {"max_held_bytes", "max_reconnects", "max_tool_schemas"}
"""Limits over HTTP: tests/http has `server/test_memory_limits.py`, `client/test_sessions.py` and
`client/test_fields.py`."""


def server_with(config: Config) -> ServerConnection:
    return ready_server("2025-03-26", config=config)


def rules_of(events: list[Event]) -> list[str]:
    return [event.rule for event in events if isinstance(event, ProtocolViolation | LimitReached)]


def _fed(config: Config, *messages: object) -> list[str]:
    return rules_of(receive(server_with(config), *messages))


def _outgoing() -> list[str]:
    server = server_with(Config(max_requests=2))
    for _ in range(2):
        server.ping()
    with pytest.raises(LocalProtocolError) as caught:
        server.send_request("roots/list")
    return [caught.value.rule]


def _late_answers() -> list[str]:
    client = ready_client(NEWEST, config=Config(max_late_answers=2))
    for _ in range(3):
        client.cancel(client.send_request("tools/list"))
    return rules_of(drain(client))


def _held_changes() -> list[str]:
    server = server_with(Config(max_held_changes=2, soft_unsent_bytes=2))
    for number in range(4):
        uri = f"file:///{number}"
        receive(server, call(number, "resources/subscribe", {"uri": uri}))
        server.send_result(server.open_requests[0], {})
    for number in range(4):
        server.publish(ResourceUpdated(f"file:///{number}"))
    return sorted(set(rules_of(drain(server))))


def _choked() -> list[str]:
    server = server_with(Config(soft_unsent_bytes=2))
    server.send_notification("notifications/x")
    return [] if server.send_log("info", "text") else ["dropped"]


def _overflowing() -> list[str]:
    server = server_with(Config(max_unsent_bytes=400))
    for _ in range(20):
        if rules := rules_of(events := drain(server)):
            assert events[-1] == ConnectionClosed(cause=CloseCause.OVERFLOW)
            return rules
        server.send_notification("notifications/x")
    return []


def _listing(expected: ListingEnd, items: int, config: Config) -> list[str]:
    client = ready_client(NEWEST, config=config)
    client.send_paginated("tools/list")
    tool = {"name": "x", "inputSchema": {"type": "object"}}
    for number in range(9):
        for message in sent(client):
            page = {"tools": [tool] * items, "nextCursor": str(number)}
            client.receive_data(wire(result(message["id"], page)))
    ended = of(ListingEnded, drain(client))
    return [end.reason.name for end in ended if end.reason is expected]


def _rounds() -> list[str]:
    client = ClientConnection(
        info=INFO, revisions=MODERN_REVISIONS, config=Config(max_input_rounds=2)
    )
    client.start()
    found: dict[str, Any] = {
        "supportedVersions": list(MODERN_REVISIONS),
        "capabilities": {"tools": {}},
    }
    client.receive_data(wire(result(sent(client)[0]["id"], found)))
    client.send_request("tools/call", {"name": "x"})
    again = {"resultType": "input_required", "requestState": "more"}
    for _ in range(9):
        for message in sent(client):
            client.receive_data(wire(result(message["id"], again)))
    return [failed.reason.name for failed in of(RequestFailed, drain(client))]


def _paused() -> list[str]:
    server = server_with(Config(max_events=2))
    server.receive_data(wire(note("notifications/x")) * 3)
    return ["paused"] if server.paused else []


def _paused_by_size() -> list[str]:
    server = server_with(Config(max_event_bytes=100))
    server.receive_data(wire(note("notifications/x")) * 3)
    return ["paused"] if server.paused else []


def _unanswered_pings() -> list[str]:
    server = ready_server(NEWEST, config=Config(ping_interval=1, max_failed_pings=2))
    for now in range(9):
        server.handle_timeout(now)
    return rules_of(drain(server))


DEEP: dict[str, Any] = {"a": {"a": {"a": {"a": {"a": {}}}}}}
CALLS = [call(id, "tools/list") for id in (2, 4, 6)]
PINGS = [call(id, "ping") for id in (2, 4, 6)]
SUBSCRIPTIONS = [call(id, "resources/subscribe", {"uri": f"file:///{id}"}) for id in range(3)]

CASES: dict[str, tuple[Callable[[], list[str]], list[str]]] = {
    "max_message_bytes": (
        lambda: _fed(Config(max_message_bytes=500), b"x" * 501 + b"\n"),
        ["OWN-001"],
    ),
    "max_json_depth": (lambda: _fed(Config(max_json_depth=6), note("x", DEEP)), ["OWN-002"]),
    "max_integer_digits": (
        lambda: _fed(Config(max_integer_digits=30), b"9" * 31 + b"\n"),
        ["OWN-003"],
    ),
    "max_requests": (
        lambda: _fed(Config(max_requests=2), *CALLS) + _outgoing(),
        ["OWN-004", "OWN-005"],
    ),
    "max_batch": (lambda: _fed(Config(max_batch=2), PINGS), ["OWN-006"]),
    "max_used_ids": (lambda: _fed(Config(max_used_ids=2), *PINGS), ["OWN-007"]),
    "max_late_answers": (_late_answers, ["OWN-008"]),
    "max_subscriptions": (lambda: _fed(Config(max_subscriptions=2), *SUBSCRIPTIONS), ["OWN-009"]),
    "max_held_changes": (_held_changes, ["OWN-010"]),
    "soft_unsent_bytes": (_choked, ["dropped"]),
    "max_unsent_bytes": (_overflowing, ["OWN-012"]),
    "max_pages": (lambda: _listing(ListingEnd.PAGES, 1, Config(max_pages=2)), ["PAGES"]),
    "max_items": (lambda: _listing(ListingEnd.ITEMS, 1, Config(max_items=2)), ["ITEMS"]),
    "max_empty_pages": (
        lambda: _listing(ListingEnd.EMPTY_PAGES, 0, Config(max_empty_pages=2)),
        ["EMPTY_PAGES"],
    ),
    "max_input_rounds": (_rounds, ["TOO_MANY_ROUNDS"]),
    "max_events": (_paused, ["paused"]),
    "max_event_bytes": (_paused_by_size, ["paused"]),
    "max_failed_pings": (_unanswered_pings, ["OWN-016"]),
}


def test_5_every_limit_of_the_config_is_tried_here() -> None:
    """A new limit needs a case in this module."""
    assert set(CASES) | OF_HTTP == LIMITS


@pytest.mark.parametrize("limit", CASES)
def test_5_going_over_a_limit_is_told(limit: str) -> None:
    """Exceeding a limit must lead to one event, exception or refusal, and never to a crash or
    silence."""
    happens, expected = CASES[limit]

    assert happens() == expected


def test_5_what_a_peer_can_fill_does_not_grow() -> None:
    """After a thousand of each kind of message a connection must hold no more than after a
    hundred."""

    def size(n: int) -> int:
        config = Config(max_requests=5, max_used_ids=5, max_subscriptions=5)
        server = ready_server(NEWEST, config=config)
        for number in range(n):
            meta = {"progressToken": number}
            receive(
                server,
                call(2 * number, "tools/call", {"name": "x", "_meta": meta}),
                call(f"s{number}", "resources/subscribe", {"uri": f"file:///{number}"}),
                note("notifications/cancelled", {"requestId": number}),
                result(number, {}),
                b"x" * 50 + b"\n",
            )
            server.data_to_send()
            drain(server)
        server.receive_data(b"x" * 10)
        return str(canonical(server)).count(",")

    assert size(1_000) == size(100)
