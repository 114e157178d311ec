"""MCP beside another route of a WSGI application, on a server with threads, and a client."""

import socketserver
import threading
import time
import urllib.request
from collections.abc import Iterable
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import trio

from sansmcp import JSONObject
from sansmcp_io.trio import connect_http
from sansmcp_io.wsgi import App, Environ, ServerCall, StartResponse


# -- handle
def handle(call: ServerCall) -> JSONObject:
    if call.method == "tools/list":
        return {"tools": [{"name": "count", "inputSchema": {"type": "object"}}]}
    for step in range(1, 4):
        call.progress(step, total=3)  # the client reads it while the rest is being done
        time.sleep(0.01)  # the work
    return {"content": [{"type": "text", "text": f"counted for {call.principal}"}]}


# -- mount
mcp = App(
    handle,
    info={"name": "shop", "version": "1.0"},
    capabilities={"tools": {}},
    authenticate=lambda environ: environ.get("REMOTE_USER") or "a guest",
)


def application(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    if environ["PATH_INFO"] == "/mcp":
        return mcp(environ, start_response)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"the shop itself"]


# -- run
class Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...


async def call(url: str) -> None:
    with urllib.request.urlopen(url) as response:
        print(response.read().decode())

    def on_progress(progress: float, total: float | None, message: str | None) -> None:
        print("progress", progress, "of", total)

    info: JSONObject = {"name": "demo", "version": "1.0"}
    async with connect_http(f"{url}/mcp", info=info) as client:
        result = await client.request("tools/call", {"name": "count"}, on_progress=on_progress)
        print(*(block["text"] for block in result["content"] if block["type"] == "text"))


if __name__ == "__main__":
    with make_server("127.0.0.1", 0, application, Server, Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        trio.run(call, f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
