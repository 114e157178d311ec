"""A client that starts a server process and talks to it."""

import sys
from pathlib import Path

import trio

from sansmcp import JSONObject
from sansmcp_io.trio import Call, McpError, PeerError, RequestTimeout, connect_stdio

SERVER = Path(__file__).with_name("stdio_server.py")


# -- serve
def on_request(call: Call) -> JSONObject:
    if call.method == "roots/list":
        return {"roots": [{"uri": "file:///home/me/project"}]}
    raise McpError(-32601, f"no {call.method} here")


def on_notification(method: str, params: JSONObject) -> None:
    print("told:", method, params)


def on_progress(progress: float, total: float | None, message: str | None) -> None:
    print(f"{progress} of {total}")


# -- run
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

        result = await client.request(
            "tools/call", {"name": "count"}, on_progress=on_progress, timeout=10
        )
        print(result["content"])

        result = await client.request("tools/call", {"name": "whoami"}, log_level="info")
        print(result["content"])

        try:
            await client.request("tools/call", {"name": "no such tool"})
        except PeerError as error:
            print("refused:", error)

        # Cancelling the caller cancels the request.
        with trio.move_on_after(0.05):
            await client.request("tools/call", {"name": "sleep"})

        try:
            await client.request("tools/call", {"name": "sleep"}, timeout=0.05)
        except RequestTimeout as error:
            print("gave up:", error)


# -- end
if __name__ == "__main__":
    trio.run(main)
