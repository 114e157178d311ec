"""A client on version 1 of the official `mcp` package over WebSockets, which version 2 lacks.

Usage: python tests/peers/mcp_websocket.py URL

It prints one JSON object: the result of each step, for the caller to judge.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# pyright: reportArgumentType=false
# mypy: ignore-errors
# It runs with version 1 of the package, and checkers see version 2.

import json
import sys
import warnings

import anyio
from mcp import ClientSession
from mcp.client.websocket import websocket_client

warnings.simplefilter("ignore", DeprecationWarning)  # that version 2 has it not


async def main(url: str) -> None:
    progress: list[float] = []

    async def on_progress(value: float, total: float | None, message: str | None) -> None:
        progress.append(value)

    async with websocket_client(url) as (read, write), ClientSession(read, write) as session:
        opened = await session.initialize()
        tools = await session.list_tools()
        stock = await session.call_tool("stock", {"article": "lamp"})
        await session.call_tool("count", {}, progress_callback=on_progress)
    said = {
        "revision": opened.protocolVersion,
        "tools": [tool.name for tool in tools.tools],
        "text": stock.content[0].text,
        "progress": progress,
    }
    print(json.dumps(said))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
