"""MCP over a Unix socket, on asyncio: any stream of bytes will do."""

import asyncio
import sys
from asyncio import StreamReader, StreamWriter

from shop import CAPABILITIES, INFO
from shop_calls import answer

from sansmcp_io.asyncio import connect, serve


# -- serve
async def serve_one(reader: StreamReader, writer: StreamWriter) -> None:
    """Run one server for each client. The mode of the file decides which users may connect."""
    try:
        await serve(reader, writer, answer, info=INFO, capabilities=CAPABILITIES)
    finally:
        writer.close()


async def serve_unix(path: str) -> None:
    async with await asyncio.start_unix_server(serve_one, path) as server:
        await server.serve_forever()


# -- ask
async def ask(path: str) -> None:
    reader, writer = await asyncio.open_unix_connection(path)
    async with connect(reader, writer, info={"name": "by hand", "version": "1.0"}) as client:
        arguments = {"article": "lamp"}
        result = await client.request("tools/call", {"name": "stock", "arguments": arguments})
        print(result["content"])
    writer.close()
    await writer.wait_closed()


# -- run
if __name__ == "__main__":
    what, path = sys.argv[1:]
    asyncio.run((serve_unix if what == "serve" else ask)(path))
