"""With a peer that does not read, a request waits until there is room or until its timeout."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from sansmcp import MODERN_REVISIONS, JSONObject
from sansmcp_io.trio import Client, ConnectionLost, RequestTimeout, connect
from tests.support.adapters.trio_talk import INFO, Peer, by_hand, call_tool, instantly
from tests.support.modern import acknowledged, discovered

FULL: JSONObject = {"tools": {"listChanged": True}}
TOOL: JSONObject = {"name": "t", "inputSchema": {"type": "object"}}


class Clogged:
    """A stream that blocks while the test holds it up, as a full pipe does."""

    def __init__(self, stream: trio.StapledStream[Any, Any]) -> None:
        self._stream = stream
        self.receive_some = stream.receive_some
        self.send_eof = stream.send_eof
        self.aclose = stream.aclose
        self.flows = trio.Event()
        self.flows.set()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self.flows.wait()
        await self._stream.send_all(data)


@asynccontextmanager
async def clogged() -> AsyncGenerator[tuple[Client, Peer, Clogged], None]:
    """A client, the server's end of its stream, and the object that holds up the stream."""
    near, peer = by_hand()
    stream = Clogged(near)
    async with trio.open_nursery() as nursery:

        async def be_discovered() -> None:
            await peer.answer(await peer.read(), discovered(FULL))

        nursery.start_soon(be_discovered)
        async with connect(stream, info=INFO, revisions=MODERN_REVISIONS) as client:
            yield client, peer, stream
            stream.flows.set()


async def clog(client: Client, stream: Clogged) -> None:
    """Fill the client's unsent output up to its limit."""
    stream.flows = trio.Event()
    for seconds in (1, 0, 0):  # the first is on its way then, and counts no more
        client.notify("notifications/test", {"text": "x" * 1_000_000})
        await trio.sleep(seconds)


async def unclog(peer: Peer, stream: Clogged) -> None:
    stream.flows.set()
    for _ in range(3):
        assert (await peer.read())["method"] == "notifications/test"


async def ask(client: Client) -> None:
    await client.request(*call_tool(), timeout=10)


async def listen(client: Client) -> None:
    async with client.listen({"toolsListChanged": True}, timeout=10):
        pass


async def list_all(client: Client) -> None:
    assert [tool async for tool in client.items("tools/list", timeout=10)] == [TOOL]


ANSWERS: dict[str, JSONObject] = {
    "tools/call": {"content": []},
    "tools/list": {"tools": [TOOL], "ttlMs": 0, "cacheScope": "private"},
}
each_verb = pytest.mark.parametrize("verb", [ask, listen, list_all])
Verb = Callable[[Client], Awaitable[None]]


async def serve_one(peer: Peer) -> None:
    request = await peer.read()
    method: str = request["method"]
    if method == "subscriptions/listen":
        await peer.write(acknowledged(request["id"], {"toolsListChanged": True}))
    else:
        await peer.answer(request, {"resultType": "complete", **ANSWERS[method]})


def later(client: Client) -> None:
    """Send a message that does not wait for room, behind those that do."""
    client.notify("notifications/later")


@each_verb
@instantly()
async def test_what_is_asked_waits_for_room(verb: Verb) -> None:
    """Requests without a wait would fill the output until the connection is ended for it."""
    async with clogged() as (client, peer, stream), trio.open_nursery() as nursery:
        await clog(client, stream)
        nursery.start_soon(verb, client)
        await trio.sleep(5)
        later(client)
        await unclog(peer, stream)
        assert (await peer.read())["method"] == "notifications/later"
        await serve_one(peer)


@each_verb
@instantly()
async def test_time_without_room_counts(verb: Verb) -> None:
    """The timeout must include the wait for room, and the request must not be sent afterwards."""
    async with clogged() as (client, peer, stream):
        await clog(client, stream)
        start = trio.current_time()
        with pytest.raises(RequestTimeout, match="was not sent"):
            await verb(client)
        assert trio.current_time() - start == pytest.approx(10)
        later(client)
        await unclog(peer, stream)
        assert (await peer.read())["method"] == "notifications/later"


@pytest.mark.parametrize("verb", [ask, listen])
@instantly()
async def test_time_without_room_is_taken_off_that_for_the_answer(verb: Verb) -> None:
    """The response must get the rest of the timeout only, and not a whole one after the wait for
    room.
    """
    async with clogged() as (client, peer, stream), trio.open_nursery() as nursery:
        await clog(client, stream)

        async def read_late() -> None:
            await trio.sleep(6)
            await unclog(peer, stream)

        nursery.start_soon(read_late)
        start = trio.current_time()
        with pytest.raises(RequestTimeout):
            await verb(client)
        assert trio.current_time() - start == pytest.approx(10)


@each_verb
@instantly()
async def test_end_of_the_connection_ends_the_wait_for_room(verb: Verb) -> None:
    """A request that waits for room must fail at once with the cause."""
    async with clogged() as (client, peer, stream), trio.open_nursery() as nursery:
        await clog(client, stream)
        start = trio.current_time()

        async def go() -> None:
            await trio.sleep(3)
            await peer.stream.aclose()

        nursery.start_soon(go)
        with pytest.raises(ConnectionLost):
            await verb(client)
        assert trio.current_time() - start == pytest.approx(3)


@instantly()
async def test_each_page_of_a_listing_waits_for_room() -> None:
    """The params of a listing are sent with each page, so each page must wait for room."""
    async with clogged() as (client, peer, stream), trio.open_nursery() as nursery:
        items: Any = client.items("tools/list", timeout=10)

        async def first_page() -> None:
            request = await peer.read()
            page = {"resultType": "complete", **ANSWERS["tools/list"], "nextCursor": "more"}
            await peer.answer(request, page)

        nursery.start_soon(first_page)
        assert await anext(items) == TOOL
        await clog(client, stream)

        async def second_page() -> None:
            await trio.sleep(5)
            later(client)
            await unclog(peer, stream)
            assert (await peer.read())["method"] == "notifications/later"
            await serve_one(peer)

        nursery.start_soon(second_page)
        assert [tool async for tool in items] == [TOOL]
