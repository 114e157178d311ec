"""A client that is refused with 429, waits as long as the server asks, and retries."""

import socketserver
import threading
from collections.abc import Iterable
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import trio

from sansmcp import JSONObject
from sansmcp_io.trio import Client, PeerError, RequestRefused, connect_http
from sansmcp_io.wsgi import App, Environ, ServerCall, StartResponse

INFO: JSONObject = {"name": "example", "version": "1.0"}
ECHO: JSONObject = {"name": "echo", "arguments": {"text": "hello"}}


# -- client
async def ask_patiently(
    client: Client, method: str, params: JSONObject, *, most: float = 30.0
) -> JSONObject:
    """Send a request; if the server names a time to wait, send it once more after that."""
    try:
        return await client.request(method, params)
    except (RequestRefused, PeerError) as error:
        wait = error.retry_after
        if wait is None or wait > most:
            raise
        print(f"status {error.status}: again in {wait:g} s")
    await trio.sleep(wait)
    return await client.request(method, params)


async def main(url: str) -> None:
    async with connect_http(url, info=INFO) as client:
        print((await ask_patiently(client, "tools/call", ECHO))["content"])


# -- end
def handle(call: ServerCall) -> JSONObject:
    return {"content": [{"type": "text", "text": call.params["arguments"]["text"]}]}


mcp = App(handle, info=INFO, capabilities={"tools": {}})
refused: list[str] = []


def application(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """A gateway in front of a server, which refuses the first call as one too many."""
    if environ.get("HTTP_MCP_METHOD") == "tools/call" and not refused:
        refused.append("tools/call")
        environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        start_response("429 Too Many Requests", [("Retry-After", "1"), ("Content-Length", "0")])
        return [b""]
    return mcp(environ, start_response)


class Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...


if __name__ == "__main__":
    with make_server("127.0.0.1", 0, application, Server, Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        trio.run(main, f"http://127.0.0.1:{server.server_port}/mcp")
        server.shutdown()
