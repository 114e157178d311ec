"""A server over HTTP that authenticates its callers, and a client with a token."""

import json
import urllib.request
from collections.abc import Mapping
from functools import partial

import trio

from sansmcp import MODERN_REVISIONS, JSONObject
from sansmcp_io.trio import HTTPServer, ServerCall, Unauthorized, serve_http

TOKENS = {"Bearer 6f1e": "ann"}  # in a program of yours, whatever checks tokens


# -- handle
def handle(call: ServerCall) -> JSONObject:
    if call.method == "tools/list":
        return {"tools": [{"name": "greet", "inputSchema": {"type": "object"}}]}
    return {"content": [{"type": "text", "text": f"hello, {call.principal}"}]}


def authenticate(headers: Mapping[str, str]) -> str:
    try:
        return TOKENS[headers["authorization"]]
    except KeyError:
        raise Unauthorized('Bearer resource_metadata="https://api.example/metadata"') from None


# -- run
async def main() -> None:
    async with trio.open_nursery() as nursery:
        server: HTTPServer = await nursery.start(
            partial(
                serve_http,
                handle,
                port=0,  # any that is free
                info={"name": "demo", "version": "1.0"},
                capabilities={"tools": {}},
                revisions=MODERN_REVISIONS,
                authenticate=authenticate,
            )
        )
        print(await trio.to_thread.run_sync(greet, server.port))
        server.close()


# -- ask
def greet(port: int) -> str:
    """A call as curl would make it."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "curl", "version": "1.0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "greet", "arguments": {}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Authorization": "Bearer 6f1e",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "greet",
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/mcp", json.dumps(message).encode(), headers
    )
    with urllib.request.urlopen(request) as response:
        text: str = json.load(response)["result"]["content"][0]["text"]
    return text


# -- end
if __name__ == "__main__":
    trio.run(main)
