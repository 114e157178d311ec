"""Invariant 8, one ending: everything that a verb begins ends exactly once."""

from collections.abc import Callable
from typing import Any

import pytest

from sansmcp import (
    ConnectionFailed,
    ErrorReceived,
    Event,
    JSONObject,
    ListingEnded,
    PingEnded,
    Ready,
    RequestFailed,
    ResponseReceived,
)
from sansmcp.testing import Pair

ECHO: dict[str, Any] = {"name": "echo"}


def endings(events: list[Event]) -> list[object]:
    """The handle of every ending."""
    found: list[object] = []
    for event in events:
        match event:
            case ResponseReceived() | ErrorReceived() | RequestFailed():
                found.append(event.request)
            case ListingEnded():
                found.append(event.listing)
            case PingEnded():
                found.append(event.ping)
            case ConnectionFailed():
                found.append(event.start)
            case Ready(start=start) if start is not None:
                found.append(start)
            case _:
                pass
    return found


def answer_everything(pair: Pair, how: str) -> None:
    results: dict[str, JSONObject] = {"tools/list": {"tools": []}, "tools/call": {"content": []}}
    for request in pair.server.open_requests:
        if how == "results":
            pair.server.send_result(request, results[request.method])
        else:
            pair.server.send_error(request, -32603, "no")
    pair.deliver()


WAYS: dict[str, Callable[[Pair], object]] = {
    "results": lambda pair: answer_everything(pair, "results"),
    "errors": lambda pair: answer_everything(pair, "errors"),
    "time": lambda pair: pair.advance(99),
    "the peer is gone": lambda pair: pair.client.receive_eof(),
    "closed": lambda pair: pair.client.close(),
    "sending failed": lambda pair: pair.client.send_failed(),
    "invalid answers": lambda pair: pair.client.receive_data(
        b"".join(b'{"jsonrpc":"2.0","id":%d,"result":[]}\n' % id for id in range(9))
    ),
}


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", WAYS)
def test_8_every_handle_ends_exactly_once(first: str, second: str) -> None:
    """There must be one ending, whatever happens before and after it."""
    pair = Pair()
    client = pair.client
    handles: list[object] = [
        client.send_request("tools/call", ECHO, timeout=9),
        client.send_request("tools/call", ECHO, progress=True, max_timeout=8),
        client.send_paginated("tools/list", timeout=7),
        client.ping(timeout=5),
    ]
    pair.deliver_to_server()
    cancelled = client.send_request("tools/call", ECHO)
    client.cancel(cancelled)
    WAYS[first](pair)
    WAYS[second](pair)
    client.close()
    ended = endings(pair.client_events)

    assert len(ended) == len(set(map(id, ended)))
    assert set(map(id, ended)) == set(map(id, [*handles, cancelled]))
    assert not client.pending_requests


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("results", "errors")])
def test_8_a_start_ends_exactly_once(way: str) -> None:
    """A caller that waits for the start must get `Ready` or a failure."""
    pair = Pair(connected=False)
    start = pair.client.start(timeout=5, now=0)
    WAYS[way](pair)
    pair.client.close()

    assert endings(pair.client_events) == [start]
