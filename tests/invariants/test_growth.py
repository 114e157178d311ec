"""Invariant 4, linear: the cost grows no faster than the work.

Work is counted in calls of Python and C functions, which are the same on every machine and in every
run, unlike time. `benchmarks` measure the time.
"""

import gc
import sys
from collections.abc import Callable

import pytest

from sansmcp import (
    Config,
)
from tests.support.wire import (
    call,
    note,
    ready_client,
    ready_server,
    wire,
)

NEWEST = "2025-11-25"


def calls_in(work: Callable[[], object]) -> int:
    """The number of Python and C functions that this calls."""
    count = 0

    def profile(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()  # a collection may call what has nothing to do with us
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


WIDE = Config(
    max_requests=10**6,
    max_used_ids=10**6,
    max_late_answers=10**6,
    max_events=10**6,
    max_unsent_bytes=2**40,
)


def asked_and_answered(n: int) -> int:
    """The calls for n requests of ours in flight at once, with progress, and their responses."""
    client = ready_client(NEWEST, config=WIDE)

    def work() -> None:
        handles = [
            client.send_request("tools/call", {"name": "x"}, progress=True, timeout=5, now=0)
            for _ in range(n)
        ]
        client.buffers_to_send()
        for handle in reversed(handles):  # those behind must cost no more than those in front
            client.receive_message(
                b'{"jsonrpc":"2.0","method":"notifications/progress",'
                b'"params":{"progressToken":%d,"progress":1}}' % int(handle.id)
            )
            client.receive_message(
                b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}' % int(handle.id)
            )
        while client.next_event() is not None:
            pass

    return calls_in(work)


def served(n: int) -> int:
    """The calls for n requests of the peer in flight at once, some cancelled, and their
    responses."""
    server = ready_server(NEWEST, config=WIDE)
    lines = [wire(call(id, "tools/list")) for id in range(n)]
    cancels = [wire(note("notifications/cancelled", {"requestId": id})) for id in range(0, n, 3)]

    def work() -> None:
        for line in lines:
            server.receive_data(line)
        requests = server.open_requests
        for line in cancels:
            server.receive_data(line)
        for request in reversed(requests):
            server.send_result(request, {"tools": []})
        while server.next_event() is not None:
            pass
        server.data_to_send()

    return calls_in(work)


def expired(n: int) -> int:
    """The calls for n requests that time out in another order than they were sent."""
    client = ready_client(NEWEST, config=WIDE)

    def work() -> None:
        for number in range(n):
            client.send_request("tools/list", timeout=1 + number * 7919 % n, now=0)
        while (when := client.next_timeout()) is not None:
            client.handle_timeout(when)

    return calls_in(work)


@pytest.mark.unjudged("there is too much of it, and the judge would be counted")
@pytest.mark.parametrize("work", [asked_and_answered, served, expired])
def test_4_the_cost_of_a_request_is_the_same_however_many_are_in_flight(
    work: Callable[[int], int],
) -> None:
    """A list that is searched for each request would show as thousands of further calls."""
    work(10)  # what is done once, at first use, is no cost of a request
    few = work(100) / 100
    assert few < 300
    many = work(1_000) / 1_000  # fails soon where the next would take for ever
    assert many == pytest.approx(few, rel=0.05)
    assert work(20_000) / 20_000 == pytest.approx(many, rel=0.02)


@pytest.mark.unjudged("the judge would be counted")
@pytest.mark.parametrize("chunk", [1, 64])
def test_4_the_cost_of_a_byte_is_the_same_however_long_the_line(chunk: int) -> None:
    """A buffer that is searched or joined again for each chunk costs more the longer it is."""

    def cost(n_bytes: int) -> float:
        server = ready_server(NEWEST)
        line = wire(note("notifications/x", {"pad": "x" * n_bytes}))
        chunks = [line[at : at + chunk] for at in range(0, len(line), chunk)]

        def feed() -> None:
            for piece in chunks:
                server.receive_data(piece)

        return calls_in(feed) / len(chunks)

    cost(64)
    short = cost(8_000)
    assert short < 30
    long = cost(32_000)
    assert long == pytest.approx(short, rel=0.05)
    assert cost(256_000) == pytest.approx(long, rel=0.02)
