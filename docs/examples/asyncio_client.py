"""A client on asyncio, which starts a server process and talks to it."""

import asyncio
import sys
from pathlib import Path

from sansmcp import JSONObject
from sansmcp_io.asyncio import Call, Client, McpError, PeerError, connect_stdio

SERVER = Path(__file__).with_name("asyncio_server.py")


# -- serve
async def on_request(call: Call) -> JSONObject:
    if call.method == "roots/list":
        return {"roots": [{"uri": "file:///home/me/project"}]}
    raise McpError(-32601, f"no {call.method} here")


def on_notification(method: str, params: JSONObject) -> None:
    print("told:", method, params)


# -- run
async def call_tool(client: Client, name: str) -> object:
    result = await client.request("tools/call", {"name": name}, log_level="info", timeout=10)
    return result["content"]


async def main() -> None:
    async with connect_stdio(
        [sys.executable, SERVER],
        info={"name": "demo client", "version": "1.0"},
        capabilities={"roots": {}},
        requires=["tools"],
        on_request=on_request,
        on_notification=on_notification,
    ) as client:
        print(client.peer.info, client.peer.revision)

        async for tool in client.items("tools/list"):
            print("tool:", tool)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call_tool(client, name)) for name in ("count", "whoami")]
        for task in tasks:
            print(task.result())

        try:
            await call_tool(client, "no such tool")
        except PeerError as error:
            print("refused:", error)

        # Cancelling the caller cancels the request.
        try:
            async with asyncio.timeout(0.05):
                await call_tool(client, "sleep")
        except TimeoutError:
            print("gave up")

        async with client.listen({"toolsListChanged": True}) as changes:
            await call_tool(client, "learn")
            print("changed:", await anext(changes))


# -- end
if __name__ == "__main__":
    asyncio.run(main())
