"""A client and a server whose params and results are known to type checkers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import trio
from trio.testing import memory_stream_pair

from sansmcp import ErrorCode, JSONObject
from sansmcp_io.trio import Client, McpError, ServerCall, connect, serve

if TYPE_CHECKING:
    from sansmcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, Tool

INFO: JSONObject = {"name": "demo", "version": "1.0"}


# -- serve
ADD: Tool = {
    "name": "add",
    "title": "Add numbers",
    "inputSchema": {"type": "object", "properties": {"numbers": {"type": "array"}}},
}


def add(params: CallToolRequestParams) -> CallToolResult:
    total = sum(params.get("arguments", {})["numbers"])
    return {
        "content": [{"type": "text", "text": f"It is {total}."}],
        "structuredContent": {"total": total},
    }


def handler(call: ServerCall) -> JSONObject:
    if call.method == "tools/list":
        listing: ListToolsResult = {"tools": [ADD]}
        return {**listing}
    if call.method == "tools/call":
        return {**add(cast("CallToolRequestParams", call.params))}
    raise McpError(ErrorCode.METHOD_NOT_FOUND, f"no {call.method} here")


# -- ask
async def ask(client: Client) -> None:
    listing = await client.request("tools/list")  # a ListToolsResult
    for tool in listing["tools"]:
        print(tool["name"], "-", tool.get("title", "without a title"))

    result = await client.request("tools/call", {"name": "add", "arguments": {"numbers": [1, 2]}})
    for block in result["content"]:
        if block["type"] == "text":  # and so a TextContent
            print(block["text"])


# -- run
async def main() -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        server = partial(serve, theirs, handler, info=INFO, capabilities={"tools": {}})
        nursery.start_soon(server)
        async with connect(ours, info=INFO) as client:
            await ask(client)


if __name__ == "__main__":
    trio.run(main)
