"""Connects a client and a server on trio by a stream in memory, on a clock that does not wait."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio
from trio.testing import MockClock, memory_stream_pair

from sansmcp import LEGACY_REVISIONS, JSONObject
from sansmcp_io.trio import (
    Client,
    Handler,
    connect,
    serve,
)
from tests.support.adapters.on_trio import on_trio

INFO = {"name": "test", "version": "1.0"}
CAPABILITIES: JSONObject = {"tools": {}, "logging": {}}
HANDSHAKE: tuple[JSONObject, JSONObject] = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO},
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
)
instantly = partial(on_trio, seconds=1000, clock=lambda: MockClock(autojump_threshold=0))
"""A clock that jumps to the next deadline as soon as no task can run, so waits take no time."""


@asynccontextmanager
async def talking(
    handler: Handler,
    *,
    serving: JSONObject | None = None,
    revisions: Sequence[str] = LEGACY_REVISIONS,
    **options: Any,
) -> AsyncGenerator[Client, None]:
    """A client and a server on the two ends of a stream, after the handshake by default."""
    near, far = memory_stream_pair()
    served: JSONObject = {"info": INFO, "capabilities": CAPABILITIES, **(serving or {})}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve, far, handler, **served))
        async with connect(near, info=INFO, revisions=revisions, **options) as client:
            yield client


class Peer:
    """The other end of a stream, whose messages a test writes by hand."""

    def __init__(self, stream: trio.StapledStream[Any, Any]) -> None:
        self.stream = stream
        self.is_ready = trio.Event()
        self._data = b""

    async def read(self) -> JSONObject:
        while b"\n" not in self._data:
            chunk = await self.stream.receive_some()
            assert chunk, "the stream has ended"
            self._data += chunk
        line, self._data = self._data.split(b"\n", 1)
        message: JSONObject = json.loads(line)
        return message

    async def write(self, *messages: JSONObject | bytes) -> None:
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            await self.stream.send_all(line + b"\n")

    async def answer(self, request: JSONObject, result: object) -> None:
        await self.write({"jsonrpc": "2.0", "id": request["id"], "result": result})

    async def agree(self, **changes: object) -> None:
        """Play the server's part of the handshake."""
        result = {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": INFO}
        await self.answer(await self.read(), {**result, **changes})

    async def agreed(self, **changes: object) -> None:
        await self.agree(**changes)
        assert (await self.read())["method"] == "notifications/initialized"
        self.is_ready.set()


def by_hand() -> tuple[trio.StapledStream[Any, Any], Peer]:
    near, far = memory_stream_pair()
    return near, Peer(far)


@asynccontextmanager
async def talking_by_hand(**options: Any) -> AsyncGenerator[tuple[Client, Peer], None]:
    """A client, and the server's end of its stream for a test to write on."""
    near, peer = by_hand()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.agreed)
        async with connect(near, info=INFO, revisions=LEGACY_REVISIONS, **options) as client:
            await peer.is_ready.wait()
            yield client, peer


def text(value: str) -> JSONObject:
    return {"content": [{"type": "text", "text": value}]}


def ignore_progress(progress: float, total: float | None, message: str | None) -> None:
    pass


def call_tool(name: str = "any", **arguments: object) -> tuple[str, JSONObject]:
    return "tools/call", {"name": name, "arguments": arguments}
