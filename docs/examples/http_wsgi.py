"""MCP beside the other routes of a WSGI application, with nothing but the standard library."""

import json
import threading
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from sansmcp import Config, ErrorCode, IncomingRequest, JSONObject, RequestReceived
from sansmcp.http import ServerEndpoint

# -- endpoint
endpoint = ServerEndpoint(
    info={"name": "shop", "version": "1.0"},
    capabilities={"tools": {}},
    sessions=None,  # each request stands for itself, so any worker can serve it
    config=Config(
        manual={"subscriptions/listen"}
    ),  # whose streams no WSGI worker should be tied to
)
lock = threading.Lock()


def handle(request: IncomingRequest) -> JSONObject | None:
    if request.method == "tools/list":
        return {"tools": [{"name": "stock", "inputSchema": {"type": "object"}}]}
    if request.method == "tools/call":
        return {"content": [{"type": "text", "text": f"17 pieces, {request.principal}"}]}
    return None


# -- application
def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    if environ["PATH_INFO"] != "/mcp":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"the shop itself\n"]
    status, fields, body = respond(environ)
    # WSGI wants text, and a reason with the status; nobody reads the reason.
    start_response(f"{status} -", [(name.decode(), value.decode()) for name, value in fields])
    return [body]


def respond(environ: dict[str, Any]) -> tuple[int, Iterable[tuple[bytes, bytes]], bytes]:
    fields = [
        (key.removeprefix("HTTP_").replace("_", "-"), value)
        for key, value in environ.items()
        if key.startswith("HTTP_") or (key == "CONTENT_TYPE" and value)
    ]
    user = environ.get("REMOTE_USER") or "guest"  # from the application's own authentication
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    with lock:
        exchange = endpoint.exchange(environ["REQUEST_METHOD"], "/mcp", fields, principal=user)
        exchange.receive_data(body)
        exchange.receive_end()
        while (event := endpoint.next_event()) is not None:
            if isinstance(event, RequestReceived):
                result = handle(event.request)
                if result is None:
                    code = ErrorCode.METHOD_NOT_FOUND
                    endpoint.send_error(event.request, code, "not served here")
                else:
                    endpoint.send_result(event.request, result)
        response = exchange.response()
    assert response is not None  # everything was answered on the spot
    return response


# -- run
class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...


def call(port: int, method: str, **params: object) -> Any:
    about: JSONObject = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body: JSONObject = {**params, "_meta": about}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": body}
    headers = {"Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28"}
    headers |= {"Mcp-Method": method} | ({"Mcp-Name": str(params["name"])} if params else {})
    url = f"http://127.0.0.1:{port}/mcp"
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response)["result"]


if __name__ == "__main__":
    with make_server("127.0.0.1", 0, application, handler_class=Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print([tool["name"] for tool in call(server.server_port, "tools/list")["tools"]])
        print(call(server.server_port, "tools/call", name="stock")["content"][0]["text"])
        server.shutdown()
