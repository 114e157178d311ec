"""A client and a server in one process, with nothing between them but memory."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import trio
from shop import CAPABILITIES, INFO
from shop_calls import handle
from trio.testing import memory_stream_pair

from sansmcp_io.trio import Client, HalfCloseableByteStream, connect, serve


# -- pair
@asynccontextmanager
async def server_in_memory() -> AsyncGenerator[HalfCloseableByteStream]:
    """A server that runs beside the block; the stream is the client's end."""
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve, theirs, handle, info=INFO, capabilities=CAPABILITIES))
        yield ours
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def connect_in_memory() -> AsyncGenerator[Client]:
    """A client of a server that only this program can reach."""
    async with (
        server_in_memory() as stream,
        connect(stream, info={"name": "by hand", "version": "1.0"}) as client,
    ):
        yield client


# -- use
async def main() -> None:
    async with connect_in_memory() as client:
        print(client.peer.info, client.peer.revision)
        print(len([tool async for tool in client.items("tools/list")]), "tools")
        result = await client.request("tools/call", {"name": "count"}, on_progress=print)
        print(result["content"])


if __name__ == "__main__":
    trio.run(main)
