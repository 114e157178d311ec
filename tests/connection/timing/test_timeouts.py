"""Timeouts: the caller gives the time, and only `handle_timeout` acts on it."""

from typing import Any

import pytest

from sansmcp import (
    FailureReason,
    LocalProtocolError,
    MessageIgnored,
    ProgressReceived,
    RequestCancelled,
    RequestFailed,
    ResponseReceived,
)
from sansmcp.testing import Pair, canonical, drain
from tests.support.wire import (
    asked,
    call,
    note,
    of,
    only,
    ready_client,
    ready_server,
    receive,
    result,
    sent,
)

REVISION = "2025-11-25"
ECHO: dict[str, Any] = {"name": "echo"}


def progress(token: Any, value: float) -> dict[str, Any]:
    return note("notifications/progress", {"progressToken": token, "progress": value})


def test_silence_ends_a_request_and_the_peer_is_told() -> None:
    """There must be one cancellation, and then one ending."""
    pair = Pair()
    ours = pair.client.send_request("tools/call", ECHO, timeout=5)
    assert pair.client.next_timeout() == 5
    pair.advance(4.5)
    assert pair.client_events == []
    pair.advance(0.5)
    failed = pair.deliver_one(RequestFailed)

    assert (failed.request, failed.reason) == (ours, FailureReason.TIMED_OUT)
    assert "came for 5 s" in failed.text
    assert pair.deliver_one(RequestCancelled).reason == "timed out"
    assert pair.client.next_timeout() is None


def test_an_answer_that_is_read_first_wins_even_past_the_deadline() -> None:
    """Timers fire in `handle_timeout` only, so that a slow reader loses no response."""
    client = ready_client(REVISION)
    ours = client.send_request("tools/list", timeout=5, now=0)
    sent(client)

    only(ResponseReceived, receive(client, result(ours.id, {"tools": []}), now=99))
    client.handle_timeout(99)
    assert drain(client) == []


def test_an_answer_after_the_end_is_ignored() -> None:
    """A late response must not be reported as a breach."""
    client = ready_client(REVISION)
    ours = client.send_request("tools/list", timeout=5, now=0)
    sent(client)
    client.handle_timeout(5)
    drain(client)

    assert only(MessageIgnored, receive(client, result(ours.id, {"tools": []}))).rule == "CANC-011"


def test_progress_restarts_the_silence_allowed() -> None:
    """Only valid progress must restart the timeout, from its arrival."""
    client = ready_client(REVISION)
    ours = client.send_request("tools/call", ECHO, progress=True, timeout=5, now=0)
    token = ours.progress_token
    receive(client, progress(token, 1), now=4)
    assert client.next_timeout() == 9
    receive(client, progress(token, 1), progress("other", 2), progress(token, 0), now=8)
    assert client.next_timeout() == 9
    receive(client, progress(token, 2), now=8.5)
    client.handle_timeout(13.4)
    assert ours.open
    client.handle_timeout(13.5)
    assert not ours.open


def test_the_longest_time_holds_in_spite_of_progress() -> None:
    """A peer that reports for ever must not keep a caller for ever."""
    client = ready_client(REVISION)
    ours = client.send_request("tools/call", ECHO, progress=True, timeout=5, max_timeout=8, now=0)
    assert client.next_timeout() == 5
    receive(client, progress(ours.progress_token, 1), now=4)
    assert client.next_timeout() == 8
    client.handle_timeout(8)

    (failed,) = of(RequestFailed, drain(client))
    assert "in the time allowed for it" in failed.text


def test_the_longest_time_may_be_the_only_or_the_shorter_one() -> None:
    """The earlier deadline must count, and progress must not move `max_timeout`."""
    client = ready_client(REVISION)
    for timeout in (None, 5):
        ours = client.send_request(
            "tools/call", ECHO, progress=True, timeout=timeout, max_timeout=3, now=0
        )
        assert client.next_timeout() == 3
        only(ProgressReceived, receive(client, progress(ours.progress_token, 1)))
        assert client.next_timeout() == 3
        client.cancel(ours)
        drain(client)


def test_timers_fire_in_the_order_of_their_time() -> None:
    """The order of deadlines must count, and not that of the calls."""
    client = ready_client(REVISION)
    calls = [client.send_request("tools/list", timeout=t, now=0) for t in (3, 1, 2, 1)]
    client.handle_timeout(3)

    ended = [event.request for event in of(RequestFailed, drain(client))]
    assert ended == [calls[1], calls[3], calls[2], calls[0]]


def test_spare_calls_do_nothing() -> None:
    """A spare call of `handle_timeout`, or an earlier time, must do nothing."""
    client = ready_client(REVISION)
    client.send_request("tools/list", timeout=5, now=10)
    for now in (0, 10, 14.9, 3):
        client.handle_timeout(now)

    assert drain(client) == []
    assert client.next_timeout() == 15


def test_nan_is_no_time() -> None:
    """Comparisons with NaN are false, so a clock set to it would never move again."""
    nan = float("nan")
    client = ready_client(REVISION)
    client.handle_timeout(nan)
    client.ping(now=nan)
    with pytest.raises(LocalProtocolError, match="pass now="):
        client.ping(timeout=1)
    client.ping(timeout=1, now=5)
    client.handle_timeout(nan)

    assert client.next_timeout() == 6


def test_the_clock_is_the_largest_time_told_by_anything() -> None:
    """The clock must be the same for every method that takes a time."""
    pair = Pair(now=None)
    server, client = pair.server, pair.client
    client.send_request("tools/call", ECHO, progress=True, now=1)
    pair.deliver()
    request = server.open_requests[0]
    server.send_progress(request, 1, now=2)
    server.send_log("info", "text", now=3)
    server.send_notification("notifications/tools/list_changed", now=4)
    server.ping(now=5)
    server.send_result(request, {"content": []}, now=6)
    server.send_request("roots/list", timeout=1)

    assert server.next_timeout() == 7


def test_every_verb_may_bring_the_time() -> None:
    """Each verb may take the time, or use the last one."""
    for tell in ("receive_message", "send_failed", "close", "receive_eof"):
        server = ready_server(REVISION)
        asked(server, call(1, "tools/list"))
        arguments = [b"{}"] if tell == "receive_message" else []
        getattr(server, tell)(*arguments, now=7)
        if tell == "receive_message":
            server.receive_eof(drain=1)
            assert server.next_timeout() == 8
        else:
            assert server.next_timeout() is None


@pytest.mark.parametrize(
    "arguments",
    [{"timeout": 0}, {"timeout": -1}, {"max_timeout": 0}, {"timeout": 5, "max_timeout": -0.0}],
)
@pytest.mark.parametrize("verb", ["send_request", "send_paginated", "ping"])
def test_a_timeout_is_greater_than_zero(verb: str, arguments: dict[str, float]) -> None:
    """A request with a timeout of zero would end before it is sent."""
    client = ready_client(REVISION)
    before = canonical(client)
    if verb == "ping":
        arguments = {"timeout": min(arguments.values())}
    method = () if verb == "ping" else ("tools/list",)

    with pytest.raises(LocalProtocolError) as caught:
        getattr(client, verb)(*method, **arguments, now=1)
    assert caught.value.rule == "OWN-023"
    assert canonical(client) == before


@pytest.mark.parametrize("verb", ["send_request", "send_paginated", "ping"])
def test_a_timeout_needs_a_clock(verb: str) -> None:
    """Without a time the deadline is unknown."""
    client = ready_client(REVISION)
    method = () if verb == "ping" else ("tools/list",)

    with pytest.raises(LocalProtocolError, match="pass now="):
        getattr(client, verb)(*method, timeout=1)
    getattr(client, verb)(*method, timeout=1, now=0)
    getattr(client, verb)(*method, timeout=2)
    assert client.next_timeout() == 1


def test_nothing_is_left_of_timers_whose_requests_are_over() -> None:
    """Ten thousand answered requests must not leave ten thousand timers to search."""
    client = ready_client(REVISION)
    client.send_request("tools/list", timeout=1_000_000, now=0)
    calls = [client.send_request("tools/list", timeout=10 + n % 7, now=0) for n in range(300)]
    sent(client)
    receive(client, *[result(call.id, {"tools": []}) for call in calls])

    assert client.next_timeout() == 1_000_000
    client.send_request("tools/list", timeout=1)
    assert client.next_timeout() == 1
