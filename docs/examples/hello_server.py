"""The smallest server with a tool, on standard input and output: asyncio, no extra."""

import asyncio

from sansmcp import JSONObject
from sansmcp_io.asyncio import ServerCall, serve_stdio


def handle(call: ServerCall) -> JSONObject:
    if call.method == "tools/list":
        return {"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]}
    name = call.params.get("arguments", {}).get("name", "world")
    return {"content": [{"type": "text", "text": f"hello, {name}"}]}


info: JSONObject = {"name": "hello", "version": "1.0"}
asyncio.run(serve_stdio(handle, info=info, capabilities={"tools": {}}))
