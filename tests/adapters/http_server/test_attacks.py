"""Hostile and broken clients: other clients are served meanwhile, and memory stays bounded."""

import gc
import math
import socket
import struct
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest

from sansmcp import Config, JSONObject, ToolsListChanged
from sansmcp_io.trio import HTTPLimits, HTTPServer, ServerCall
from tests.support.adapters import loops
from tests.support.adapters.loops import STANDARD_LOOPS, on_each_loop
from tests.support.http.h11_client import head, posted, posted_modern
from tests.support.http.on_loops import Talk, serving, talking
from tests.support.http.server_endpoint import LEGACY, POST, modern_tool_call
from tests.support.modern import modern
from tests.support.processes import descriptors
from tests.support.wire import CLIENT_CAPABILITIES, INITIALIZED, initialize

MIB = 1024 * 1024
MANY = 100
LISTEN = modern(9, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})


def handle(call: ServerCall) -> JSONObject:
    size = call.params.get("arguments", {}).get("size", 1)
    return {"content": [{"type": "text", "text": "x" * size}]}


async def flood(call: ServerCall) -> JSONObject:
    """Send progress for as long as the client is said to read, enough to fill the sockets."""
    step, text = 0, "x" * 10_000
    while call.progress(step, message=text):
        step += 1
        await loops.checkpoint()
    return {"content": []}


async def is_served(server: HTTPServer) -> bool:
    """Whether another client is served, and soon."""
    async with loops.move_on_after(20), talking(server) as talk:
        answer = await talk.call(modern_tool_call(1, "x"))
        return "result" in answer
    return False


@on_each_loop(loops=STANDARD_LOOPS)
async def test_slow_heads_are_given_up() -> None:
    """A slow head holds a connection, and costs its sender nothing."""
    limits = HTTPLimits(head=2.0, linger=0.1)  # a busy machine sends a good head in this time
    async with serving(handle, limits=limits) as server, loops.open_nursery() as nursery:
        given_up: list[Talk] = []

        async def crawl() -> None:
            async with talking(server) as talk:
                with suppress(*loops.BROKEN):
                    await talk.send(b"POST /mcp HTTP/1.1\r\n")
                    for number in range(1000):
                        await talk.send(b"a%d: b\r\n" % number)
                        await loops.sleep(0.2)  # that is the attack
                    raise AssertionError("it was not given up")
                given_up.append(talk)

        for _ in range(MANY):
            nursery.start_soon(crawl)
        await loops.sleep(0.1)  # while all of them crawl
        assert await is_served(server)
    assert len(given_up) == MANY


@on_each_loop(loops=STANDARD_LOOPS)
async def test_large_bodies_are_not_read() -> None:
    """100 MB must be refused at the head, or at the limit where the length is not given."""
    config = Config(max_message_bytes=MIB)
    async with serving(handle, config=config) as server:
        async with talking(server) as talk:
            await talk.send(head("POST", "/mcp", {**POST, "content-length": str(100 * MIB)}))
            response = await talk.receive()
            assert response.status == 413
            assert response.closes
        async with talking(server) as talk:
            await talk.send(head("POST", "/mcp", {**POST, "transfer-encoding": "chunked"}))
            chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
            for _ in range(4 * MIB // 0x10000):
                await talk.send(chunk)
            assert (await talk.receive()).status == 413
        assert await is_served(server)


@on_each_loop(loops=STANDARD_LOOPS)
async def test_a_client_that_is_refused_while_it_sends_can_read_why() -> None:
    """Closing at once would reset the connection and destroy the response."""
    config = Config(max_message_bytes=MIB)
    async with serving(handle, config=config) as server, talking(server) as talk:
        begin = head("POST", "/mcp", {**POST, "content-length": str(2 * MIB)})
        await talk.send(begin + b" " * (2 * MIB))
        assert (await talk.receive()).status == 413


@on_each_loop(loops=STANDARD_LOOPS)
async def test_clients_that_never_read_are_given_up() -> None:
    """Unsent output is bounded in size, and in the time for which it is kept."""
    limits = HTTPLimits(stall=0.3)
    config = Config(soft_unsent_bytes=MIB)
    async with serving(handle, limits=limits, config=config) as server:
        before = descriptors()
        async with talking(server) as talk:
            with suppress(*loops.BROKEN):  # on a busy machine it is given up before it has said all
                for _ in range(8):
                    # Pipelined, so that the first alone is answered.
                    await talk.send(posted_modern(modern_tool_call(1, "x", size=8 * MIB)))
            while len(descriptors() - before) > 1:
                await loops.sleep(0.01)  # until the server has closed its end
            assert await is_served(server)


@on_each_loop(loops=STANDARD_LOOPS)
async def test_a_flood_of_progress_is_bounded() -> None:
    """A handler that reports to a client which does not read must be told so."""
    limits = HTTPLimits(stall=0.5)
    config = Config(soft_unsent_bytes=100_000)
    async with serving(flood, limits=limits, config=config) as server, talking(server) as talk:
        message = modern_tool_call(1, "x")
        message["params"]["_meta"]["progressToken"] = 1
        await talk.send(posted_modern(message))
        await talk.receive_head()
        while server.open_requests:
            await loops.sleep(0.01)  # until the handler was told


@on_each_loop(loops=STANDARD_LOOPS)
async def test_there_are_only_so_many_connections() -> None:
    """A connection over the limit must get a response, and there must be room again when another
    one ends.
    """
    limits = HTTPLimits(connections=3)
    async with serving(handle, limits=limits) as server:
        async with talking(server), talking(server), talking(server):
            assert not await _is_let_in(server)
            async with talking(server) as talk:
                assert await talk.ended()
        while not await _is_let_in(server):
            await loops.sleep(0.001)  # until the server has seen that they are gone


async def _is_let_in(server: HTTPServer) -> bool:
    async with talking(server) as talk:
        try:
            await talk.send(posted(initialize(1, LEGACY)))
            return (await talk.receive()).status == 200
        except loops.BROKEN:
            return False


@pytest.mark.unjudged("there is too much of it")
@on_each_loop(loops=STANDARD_LOOPS)
async def test_idle_streams_cost_little() -> None:
    """Hundreds of open streams must cost little memory, and each must get its messages."""
    # All of them connect before the first one says anything, and memory that is traced is slow.
    limits = HTTPLimits(head=math.inf)
    async with serving(handle, limits=limits) as server, loops.open_nursery() as nursery:
        ready, heard, go = [0], [0], loops.new_event()

        async def listen() -> None:
            async with talking(server) as talk:
                await talk.send(posted_modern(LISTEN))
                await talk.receive_head()
                await talk.message()
                ready[0] += 1
                await go.wait()
                await talk.message()
                heard[0] += 1

        tracemalloc.start()
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(MANY):
            nursery.start_soon(listen)
        while ready[0] < MANY:
            await loops.sleep(0.01)  # all of them, however long it takes
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert (after - before) / MANY < 100_000  # client and server together
        async with talking(server) as talk:
            assert "result" in await talk.call(modern_tool_call(1, "x"))
        server.publish(ToolsListChanged())
        go.set()
        while heard[0] < MANY:
            await loops.sleep(0.01)  # the same


@pytest.mark.unjudged("there is too much of it")
@on_each_loop(loops=STANDARD_LOOPS)
async def test_clients_that_come_and_go_leave_nothing() -> None:
    """The memory of the server must not grow with clients that reconnect again and again."""
    async with serving(handle) as server:
        await _storm(server, 50)
        before = descriptors()
        await _storm(server, MANY)
        while descriptors() - before:
            await loops.sleep(0.01)  # until the server has closed its ends
        assert server.open_requests == ()
        assert await is_served(server)


async def _storm(server: HTTPServer, number: int) -> None:
    async def come_and_go() -> None:
        async with talking(server) as talk:
            fields: dict[str, Any] = {}
            response = await talk.post(initialize(0, LEGACY, CLIENT_CAPABILITIES), fields)
            fields["mcp-session-id"] = response.headers["mcp-session-id"]
            await talk.post(INITIALIZED, fields)
            await talk.send(head("GET", "/mcp", {**fields, "accept": "text/event-stream"}))
            await talk.receive_head("GET")

    async with loops.open_nursery() as nursery:
        for _ in range(number):
            nursery.start_soon(come_and_go)


@on_each_loop(loops=STANDARD_LOOPS)
async def test_what_breaks_in_one_connection_harms_no_other() -> None:
    """A reset of one connection, at any point, must not affect the others."""
    async with serving(handle) as server:
        for wire in (b"", b"POST", head("POST", "/mcp", {**POST, "content-length": "9"})):
            with socket.create_connection(("127.0.0.1", server.port)) as rude:
                rude.sendall(wire)
                rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            assert await is_served(server)
