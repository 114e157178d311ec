"""A client over HTTP that is refused at first, supplies a token, and repeats its request."""

from collections.abc import Mapping
from functools import partial

import trio

from sansmcp import ErrorCode, JSONObject
from sansmcp.http import AuthorizationRequired
from sansmcp_io.trio import (
    HTTPServer,
    McpError,
    PeerError,
    RequestRefused,
    ServerCall,
    Unauthorized,
    connect_http,
    serve_http,
)

INFO: JSONObject = {"name": "example", "version": "1.0"}


# -- client
async def show_token(refused: AuthorizationRequired) -> list[tuple[str, str]]:
    """Called on 401, and on 403 with a challenge: get a token, or return None to give up."""
    (challenge,) = refused.challenges
    print(refused.status, challenge.scheme, challenge.parameters)
    return [("Authorization", "Bearer 6f1e")]


async def ask(url: str) -> None:
    async with connect_http(url, info=INFO, on_unauthorized=show_token) as client:
        print(client.peer.revision)
        async for tool in client.items("tools/list"):
            print(tool)
        try:
            await client.request("tools/call", {"name": "nope", "arguments": {}})
        except PeerError as error:
            print(error)


async def ask_without_token(url: str) -> None:
    try:
        async with connect_http(url, info=INFO):
            pass
    except RequestRefused as error:
        print("refused with", error.status)


# -- end
def handle(call: ServerCall) -> JSONObject:
    if call.method == "tools/list":
        return {"tools": [{"name": "greet", "inputSchema": {"type": "object"}}]}
    raise McpError(ErrorCode.INVALID_PARAMS, "there is no such tool")


def authenticate(headers: Mapping[str, str]) -> str:
    if headers.get("authorization") != "Bearer 6f1e":
        raise Unauthorized('Bearer realm="example"')
    return "ann"


async def main() -> None:
    async with trio.open_nursery() as nursery:
        capabilities: JSONObject = {"tools": {}}
        serve = partial(serve_http, handle, port=0, info=INFO, capabilities=capabilities)
        server: HTTPServer = await nursery.start(partial(serve, authenticate=authenticate))
        url = f"http://127.0.0.1:{server.port}/mcp"
        await ask_without_token(url)
        await ask(url)
        server.close()


if __name__ == "__main__":
    trio.run(main)
