"""MCP over a Unix socket: any stream of bytes will do."""

import socket
import sys
from functools import partial
from pathlib import Path

import trio
from shop import CAPABILITIES, INFO
from shop_calls import handle

from sansmcp_io.trio import connect, serve


# -- serve
async def serve_unix(path: str) -> None:
    """Run one server for each client. The mode of the file decides which users may connect."""
    Path(path).unlink(missing_ok=True)
    listening = trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    await listening.bind(path)
    listening.listen()

    async def serve_one(stream: trio.SocketStream) -> None:
        await serve(stream, handle, info=INFO, capabilities=CAPABILITIES)

    await trio.serve_listeners(serve_one, [trio.SocketListener(listening)])


# -- ask
async def ask(path: str) -> None:
    stream = await trio.open_unix_socket(path)
    async with stream, connect(stream, info={"name": "by hand", "version": "1.0"}) as client:
        arguments = {"article": "lamp"}
        result = await client.request("tools/call", {"name": "stock", "arguments": arguments})
        print(result["content"])


# -- run
if __name__ == "__main__":
    what, path = sys.argv[1:]
    trio.run(partial(serve_unix if what == "serve" else ask, path))
