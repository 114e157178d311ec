"""A server that wants access tokens, and what its clients get with and without them."""

import asyncio
import json
import socket
import time
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from joserfc import jwt
from joserfc.jwk import ECKey

from sansmcp import JSONObject
from sansmcp.auth import AccessToken, ProtectedResource, ResourceServer
from sansmcp.auth.jose import JWTVerifier
from sansmcp_io.asyncio import (
    HTTPServer,
    InsufficientScope,
    RequestRefused,
    ServerCall,
    connect_http,
    serve_http,
)

INFO: JSONObject = {"name": "example", "version": "1.0"}
ISSUER = "https://as.example"
KEY = ECKey.generate_key("P-256", {"kid": "1"})  # of the authorization server


# -- handle
def handle(call: ServerCall) -> JSONObject:
    token = call.principal
    assert isinstance(token, AccessToken)
    if call.method == "tools/list":
        schema = {"type": "object"}
        return {"tools": [{"name": name, "inputSchema": schema} for name in ("read", "write")]}
    name: str = call.params["name"]
    if not token.covers({name}):
        raise InsufficientScope({name})
    return {"content": [{"type": "text", "text": f"{token.subject} may {name}"}]}


# -- server
def protected(url: str) -> ResourceServer:
    resource = ProtectedResource(
        url, authorization_servers=[ISSUER], scopes_supported=["read"], required_scopes=["read"]
    )
    keys = {ISSUER: {"keys": [KEY.as_dict(private=False)]}}  # else they are read from the issuer
    return ResourceServer(resource, JWTVerifier([ISSUER], key_sets=keys))


async def serve(port: int, listening: "asyncio.Future[HTTPServer]") -> None:
    await serve_http(
        handle,
        port=port,
        info=INFO,
        capabilities={"tools": {}},
        access=protected(f"http://127.0.0.1:{port}/mcp"),
        on_listening=listening.set_result,
    )


# -- client
async def ask(url: str, **claims: Any) -> None:
    claims |= {"iss": ISSUER, "sub": "ann", "client_id": "example", "exp": time.time() + 60}
    token = jwt.encode({"alg": "ES256", "typ": "at+jwt", "kid": "1"}, claims, KEY)
    headers = {"authorization": f"Bearer {token}"}  # in practice: auth=OAuth(...)
    try:
        async with connect_http(url, info=INFO, headers=headers) as client:
            for name in ("read", "write"):
                result: Any = await client.request("tools/call", {"name": name, "arguments": {}})
                print(result["content"][0]["text"])
    except RequestRefused as error:
        parameters = error.challenges[0].parameters
        print(error.status, parameters["error"], parameters["error_description"])


# -- end
def look(url: str) -> Any:
    try:
        with urlopen(url) as response:
            return json.load(response)
    except HTTPError as error:
        with error:
            return error.headers["www-authenticate"].partition(" ")[0]


async def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/mcp"
    listening: asyncio.Future[HTTPServer] = asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(serve(port, listening))
        server = await listening
        document = f"http://127.0.0.1:{port}/.well-known/oauth-protected-resource/mcp"
        metadata = await asyncio.to_thread(look, document)
        print(metadata["authorization_servers"], await asyncio.to_thread(look, url))
        await ask(url, aud="https://other.example", scope="read")
        await ask(url, aud=url, scope="read")
        await ask(url, aud=url, scope="read write")
        server.close()


if __name__ == "__main__":
    asyncio.run(main())
