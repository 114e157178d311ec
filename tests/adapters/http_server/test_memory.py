"""The memory that a server holds for clients that stop reading or leave is bounded and freed."""

import gc
import tracemalloc
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

import pytest

from sansmcp import Config, JSONObject
from sansmcp_io.trio import HTTPLimits, HTTPServer, ServerCall
from tests.support.adapters import loops
from tests.support.adapters.loops import STANDARD_LOOPS, on_each_loop
from tests.support.http.h11_client import head, posted_modern
from tests.support.http.on_loops import serving, talking
from tests.support.http.server_endpoint import POST, modern_tool_call
from tests.support.modern import modern

MIB = 1024 * 1024
PIECE = b" " * 65_536
LISTEN = modern(9, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})

pytestmark = pytest.mark.unjudged("there is too much of it")


def handle(call: ServerCall) -> JSONObject:
    size: int = call.params.get("arguments", {}).get("size", 1)
    return {"content": [{"type": "text", "text": "x" * size}]}


async def is_served(server: HTTPServer) -> bool:
    """Whether another client is served, and soon."""
    async with loops.move_on_after(20), talking(server) as talk:
        return "result" in await talk.call(modern_tool_call(1, "x"))
    return False


@contextmanager
def growing_at_most(size: int) -> Generator[None, None, None]:
    """Assert that memory grows by at most this much within the block."""
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        yield
        _, peak = tracemalloc.get_traced_memory()
        assert peak - before <= size
    finally:
        tracemalloc.stop()


@on_each_loop(loops=STANDARD_LOOPS)
async def test_clients_that_go_in_the_middle_are_forgotten() -> None:
    """Memory that is kept for each client that has left would grow for ever."""
    async with serving(handle) as server:

        async def come_and_go(number: int) -> None:
            for _ in range(number):
                async with talking(server) as talk:
                    await talk.send(posted_modern(LISTEN))
                    await talk.receive_head()
            assert await is_served(server)

        await come_and_go(20)
        gc.collect()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        await come_and_go(200)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert after - before < 200 * 1024


@on_each_loop(loops=STANDARD_LOOPS)
async def test_bodies_that_stop_take_so_much_and_no_more() -> None:
    """Each unfinished body is within the limit for a message, but together they would fill the
    memory.
    """
    limits = HTTPLimits(held_bytes=4 * MIB, linger=0.1)
    async with serving(handle, limits=limits) as server, loops.open_nursery() as nursery:
        refused: list[int] = []

        async def stop(started: Callable[[], object]) -> None:
            async with talking(server) as talk:
                await talk.send(head("POST", "/mcp", {**POST, "content-length": str(9 * MIB)}))
                with suppress(*loops.BROKEN):
                    for _ in range(MIB // len(PIECE)):
                        await talk.send(PIECE)
                started()
                refused.append((await talk.receive()).status)

        with growing_at_most(8 * MIB):
            for _ in range(20):
                await nursery.start(stop)
            assert await is_served(server)
        while len(refused) < 16:
            await loops.sleep(0.01)  # until the last of those over the limit has read why
        assert set(refused) == {503}
        nursery.cancel()


@on_each_loop(loops=STANDARD_LOOPS)
async def test_answers_that_nobody_reads_take_so_much_and_no_more() -> None:
    """A client that sends requests and reads no response costs itself nothing, so its responses
    need a bound.
    """
    limits = HTTPLimits(held_bytes=12 * MIB)
    request = posted_modern(modern_tool_call(1, "x", size=8 * MIB))
    async with serving(handle, limits=limits) as server, loops.open_nursery() as nursery:
        ended = [0]

        async def ignore(started: Callable[[], object]) -> None:
            async with talking(server) as talk:
                await talk.send(request)
                assert await talk.stream.receive_some(1)
                started()
                with suppress(*loops.BROKEN):
                    while True:  # what was given up cannot be written to
                        await loops.sleep(0.05)  # the reset comes some time
                        await talk.send(b"\r\n")
                ended[0] += 1

        # While one is made there are up to five copies of it, besides what waits; without a limit
        # that would be 40 MiB and more, since sockets take 6 MiB of each answer.
        with growing_at_most(60 * MIB):
            for _ in range(20):
                await nursery.start(ignore)
            assert await is_served(server)
        while ended[0] < 6:
            await loops.sleep(0.01)  # until clients have seen that they were given up
        nursery.cancel()


@on_each_loop()
async def test_an_answer_counts_until_all_of_it_was_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A response must count until it was written: slow readers made the server hold twice its
    limit.

    Of each response the sockets of this machine take up to 6 MiB, so that two of 24 MiB are 36 MiB
    at least, also when 14 MiB of the first one were read.
    """
    limits = HTTPLimits(held_bytes=32 * MIB)
    request = posted_modern(modern_tool_call(1, "x", size=24 * MIB))
    warning = "connections that hold most get 503"
    async with (
        serving(handle, limits=limits) as server,
        talking(server) as slow,
        talking(server) as other,
    ):
        await slow.send(request)
        read = 0
        while read < 14 * MIB:
            read += len(await slow.stream.receive_some())
        await slow.send(b"\r\n")  # before its next request: what waits for it is counted again
        assert await is_served(server)
        assert warning not in caplog.text
        await other.send(request)
        assert await other.stream.receive_some(1)
        assert warning in caplog.text


@on_each_loop(loops=STANDARD_LOOPS)
async def test_what_was_held_is_given_back() -> None:
    """A server that did not subtract finished requests would refuse all clients in the end."""
    limits = HTTPLimits(held_bytes=3 * MIB, stall=0.2)
    async with serving(handle, limits=limits) as server:
        for _ in range(6):
            async with talking(server) as talk:  # goes
                await talk.send(head("POST", "/mcp", {**POST, "content-length": str(2 * MIB)}))
                await talk.send(PIECE * 24)
            async with talking(server) as talk:  # comes to its end
                answer = await talk.call(modern_tool_call(1, "x", text="y" * (2 * MIB)))
                assert "result" in answer
            async with talking(server) as talk:  # is answered, at the pace of the client
                answer = await talk.call(modern_tool_call(1, "x", size=2 * MIB))
                assert "result" in answer


@on_each_loop(loops=STANDARD_LOOPS)
async def test_calls_under_way_hold_no_more_than_their_limit() -> None:
    """Decoded arguments take many times the memory of their bytes, and slow tools keep them."""
    go = loops.new_event()
    statuses: list[int] = []

    async def slow(call: ServerCall) -> JSONObject:
        await go.wait()
        return {"content": []}

    nested = posted_modern(modern_tool_call(1, "x", x=[[] for _ in range(10_000)]))
    config = Config(max_held_bytes=2 * MIB)
    async with serving(slow, config=config) as server, loops.open_nursery() as nursery:

        async def call() -> None:
            async with talking(server) as talk:
                await talk.send(nested)
                response = await talk.receive()
                statuses.append(response.status)
                assert (response.headers.get("retry-after") == "5") == (response.status == 503)

        with growing_at_most(12 * MIB):
            for _ in range(20):
                nursery.start_soon(call)
            while len(statuses) + len(server.open_requests) < 20:
                await loops.checkpoint()
        assert set(statuses) == {503}
        assert 1 <= len(server.open_requests) <= 4
        go.set()
        while len(statuses) < 20:
            await loops.checkpoint()
        assert 200 in statuses
        await call()
    assert statuses[-1] == 200
