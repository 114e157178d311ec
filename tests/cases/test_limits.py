"""Failure class 9, back-pressure and limits: nothing blocks, and every call ends."""

from typing import Any

import pytest

from sansmcp import (
    CloseCause,
    ConnectionClosed,
    FailureReason,
    NotificationReceived,
    ProgressReceived,
    RequestFailed,
    ResponseReceived,
    State,
)
from tests.support.wire import (
    asked,
    assert_usable,
    call,
    drain,
    error,
    lines,
    note,
    of,
    only,
    ready_client,
    ready_server,
    receive,
    result,
    sent,
    wire,
)


def test_a_request_may_be_sent_between_two_events_of_one_read(revision: str) -> None:
    """Case c215: the handler of the first message waited for an answer, and the reader, which
    had called it, could not read the second."""
    client = ready_client(revision)
    first = client.send_request("tools/list")
    sent(client)
    changed = note("notifications/tools/list_changed")
    client.receive_data(wire(changed, result(first.id, {"tools": []})))
    assert isinstance(client.next_event(), NotificationReceived)
    second = client.send_request("tools/list")
    assert [message["id"] for message in sent(client)] == [second.id]
    event = client.next_event()
    assert isinstance(event, ResponseReceived)
    assert event.request is first
    assert client.next_event() is None
    assert client.pending_requests == (second,)
    assert (
        only(ResponseReceived, receive(client, result(second.id, {"tools": []}))).request is second
    )


@pytest.mark.parametrize("count", [1, 1000])
def test_output_that_is_not_taken_waits_in_order(revision: str, count: int) -> None:
    """Case c216: sending blocked until somebody flushed, and the flush waited for the sender."""
    server = ready_server(revision)
    meta = {"progressToken": 1}
    request = asked(server, call(1, "tools/call", {"name": "t", "_meta": meta}))
    sizes = [server.unsent_bytes]
    for step in range(count):
        assert server.send_progress(request, step, total=count)
        sizes.append(server.unsent_bytes)
    assert server.send_result(request, {"content": []})
    sizes.append(server.unsent_bytes)
    assert sizes[0] == 0
    assert sizes == sorted(set(sizes))
    output = server.data_to_send()
    assert len(output) == sizes[-1]
    assert server.unsent_bytes == 0
    *progress, answer = lines(output)
    assert [message["params"]["progress"] for message in progress] == list(range(count))
    assert answer == result(1, {"content": []})
    assert_usable(server)


@pytest.mark.parametrize("ending", ["receive_eof", "close"])
def test_every_call_ends_once_with_its_connection(revision: str, ending: str) -> None:
    """Case c218: calls hung for ever, or got an error that looked like one of the server's."""
    client = ready_client(revision)
    calls = [client.send_request("tools/list") for _ in range(5)]
    done = client.send_request("tools/list")
    receive(client, error(done.id, -32000))
    sent(client)
    getattr(client, ending)()
    *failed, closed = drain(client)
    assert [event.request for event in of(RequestFailed, failed)] == calls
    assert {event.reason for event in of(RequestFailed, failed)} == {FailureReason.LOST}
    assert len(failed) == 5
    assert isinstance(closed, ConnectionClosed)
    assert closed.cause is (CloseCause.EOF if ending == "receive_eof" else CloseCause.CLOSED)
    assert client.pending_requests == ()
    assert not any(request.open for request in calls)
    assert client.next_timeout() is None
    # Nothing more happens, however often the end is told.
    client.receive_eof()
    client.close()
    client.send_failed()
    assert not receive(client, *(result(request.id, {"tools": []}) for request in calls))
    assert client.state is State.CLOSED
    assert client.data_to_send() == b""


def test_listings_pings_and_timeouts_end_with_their_connection(revision: str) -> None:
    """Neighbour of case c218: listings and pings must have their own endings too."""
    client = ready_client(revision)
    client.send_paginated("tools/list", now=0)
    client.ping(timeout=5)
    client.send_request("tools/list", timeout=5)
    client.receive_eof()
    names = [type(event).__name__ for event in drain(client)]
    assert names == ["ListingEnded", "PingEnded", "RequestFailed", "ConnectionClosed"]
    client.handle_timeout(99)
    assert not drain(client)


def progress_until(
    client: Any, token: object, *, every: float, until: float, start: float = 0
) -> tuple[float | None, list[Any]]:
    """Send progress at this rate; returns the time at which the call failed, and all events."""
    happened: list[Any] = []
    now, value = start, 0
    while now < until:
        now += every
        value += 1
        while (deadline := client.next_timeout()) is not None and deadline <= now:
            client.handle_timeout(deadline)
            happened += drain(client)
            if of(RequestFailed, happened):
                return deadline, happened
        params = {"progressToken": token, "progress": value}
        happened += receive(client, note("notifications/progress", params), now=now)
    return None, happened


def test_the_longest_time_holds_in_spite_of_progress(revision: str) -> None:
    """Case c219: a server that reports progress for ever kept its call alive for ever."""
    client = ready_client(revision)
    request = client.send_request(
        "tools/call", {"name": "t"}, progress=True, timeout=60, max_timeout=300, now=0
    )
    sent(client)
    failed_at, events = progress_until(client, request.progress_token, every=29, until=400)
    assert failed_at == 300
    assert len(of(ProgressReceived, events)) == 10
    (failed,) = of(RequestFailed, events)
    assert (failed.request, failed.reason) == (request, FailureReason.TIMED_OUT)
    (notice,) = sent(client)
    assert notice["method"] == "notifications/cancelled"
    assert notice["params"]["requestId"] == request.id
    assert_usable(client)


def test_progress_restarts_the_silence_allowed(revision: str) -> None:
    """Neighbour of case c219: without `max_timeout`, a call stays open as long as progress
    comes."""
    client = ready_client(revision)
    request = client.send_request("tools/call", {"name": "t"}, progress=True, timeout=60, now=0)
    sent(client)
    failed_at, _ = progress_until(client, request.progress_token, every=30, until=3000)
    assert failed_at is None
    assert client.next_timeout() == 3060
    client.handle_timeout(3059)
    assert not drain(client)
    client.handle_timeout(3060)
    assert only(RequestFailed, drain(client)).reason is FailureReason.TIMED_OUT


@pytest.mark.parametrize("token", ["foreign", 0])
def test_progress_that_is_not_valid_restarts_nothing(revision: str, token: object) -> None:
    """Neighbour of case c219: invalid progress, or that of another request, counts as silence."""
    client = ready_client(revision)
    request = client.send_request("tools/call", {"name": "t"}, progress=True, timeout=60, now=0)
    sent(client)
    failed_at, _ = progress_until(client, token, every=30, until=400)
    assert failed_at == 60

    request = client.send_request("tools/call", {"name": "t"}, progress=True, timeout=60)
    sent(client)
    same = {"progressToken": request.progress_token, "progress": 1}
    receive(client, note("notifications/progress", same), now=70)
    receive(client, note("notifications/progress", same), now=110)
    assert client.next_timeout() == 130
