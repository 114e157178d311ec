"""MCP beside another route of an ASGI application, on uvicorn, and a client that calls both.

To run it: pip install 'sansmcp[trio,h11]' uvicorn
"""

import socket
import threading
import time
import urllib.request
from typing import Any

import trio
import uvicorn

from sansmcp import JSONObject
from sansmcp_io.asgi import App, Receive, Scope, Send, ServerCall, Unauthorized
from sansmcp_io.trio import connect_http

USERS = {"Bearer 6f1e": "ann"}  # in a program of yours, whatever checks tokens


# -- handle
async def handle(call: ServerCall) -> JSONObject:
    if call.method == "tools/list":
        return {"tools": [{"name": "greet", "inputSchema": {"type": "object"}}]}
    call.progress(1, total=1)
    return {"content": [{"type": "text", "text": f"hello, {call.principal}"}]}


def authenticate(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"authorization" and value.decode() in USERS:
            return USERS[value.decode()]
    raise Unauthorized("Bearer")


# -- mount
mcp = App(
    handle,
    info={"name": "shop", "version": "1.0"},
    capabilities={"tools": {}},
    authenticate=authenticate,
)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan" or scope["path"] == "/mcp":
        await mcp(scope, receive, send)
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"the shop itself"})


# -- run
async def call(url: str) -> None:
    with urllib.request.urlopen(url) as response:
        print(response.read().decode())
    info: JSONObject = {"name": "demo", "version": "1.0"}
    headers = [("Authorization", "Bearer 6f1e")]

    def on_progress(*told: Any) -> None:
        print("progress", told[0], "of", told[1])

    async with connect_http(f"{url}/mcp", info=info, headers=headers) as client:
        result = await client.request("tools/call", {"name": "greet"}, on_progress=on_progress)
        print(*(block["text"] for block in result["content"] if block["type"] == "text"))


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(application, log_level="warning", timeout_graceful_shutdown=2)
    )
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)  # it tells nobody that it has
    trio.run(call, f"http://127.0.0.1:{listener.getsockname()[1]}")
    server.should_exit = True
    thread.join()
