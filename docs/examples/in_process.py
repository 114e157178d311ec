"""A test of an application of your own, in this process: no socket, no port, no second process."""

import asyncio
from typing import Any

import httpx2

from sansmcp import JSONObject
from sansmcp_io.asgi import App, ServerCall
from sansmcp_io.asyncio import connect_http


def handle(call: ServerCall) -> JSONObject:
    if call.method == "tools/list":
        return {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}
    numbers = call.params["arguments"]
    return {"content": [{"type": "text", "text": str(numbers["a"] + numbers["b"])}]}


app = App(handle, info={"name": "sums", "version": "1.0"}, capabilities={"tools": {}})


# -- test
async def test_add() -> None:
    async with (
        app.lifespan(),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http,
        connect_http(
            "http://localhost/mcp", info={"name": "test", "version": "1"}, http=http
        ) as mcp,
    ):
        call: JSONObject = {"name": "add", "arguments": {"a": 2, "b": 3}}
        result: Any = await mcp.request("tools/call", call)
        assert result["content"][0]["text"] == "5"


# -- end
if __name__ == "__main__":
    asyncio.run(test_add())
    print("passed")
