"""A client that logs in to a server with OAuth; the server and its login are at the end."""

import asyncio
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, build_opener

from sansmcp import JSONObject
from sansmcp.auth import ClientMetadata, StepTaken
from sansmcp_io.asyncio import connect_http
from sansmcp_io.oauth import FunctionUserAgent, MemoryTokenStorage, OAuth

INFO: JSONObject = {"name": "example", "version": "1.0"}
STORAGE = MemoryTokenStorage()  # a program that users start again takes FileTokenStorage(path)


# -- client
def show(step: StepTaken) -> None:
    print(f"{step.step.value}: {step.outcome.value}")


async def call(url: str) -> None:
    auth = OAuth(
        client=ClientMetadata(name="Example"),
        storage=STORAGE,
        user_agent=FunctionUserAgent(agree),  # a user has the default, LoopbackUserAgent()
        on_step=show,
    )
    async with connect_http(url, info=INFO, auth=auth) as client:
        result: Any = await client.request("tools/call", {"name": "whoami", "arguments": {}})
        print(result["content"][0]["text"])


# -- end
def agree(url: str) -> str:
    """Stands for a user who logs in: the URL to which the browser is sent back."""

    class Unfollowed(HTTPRedirectHandler):
        def redirect_request(
            self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
        ) -> None:
            return None

    try:
        build_opener(Unfollowed).open(url).close()
    except HTTPError as answer:
        with answer:
            return str(answer.headers["location"])
    raise AssertionError("there is no login")


class Servers(BaseHTTPRequestHandler):
    """An MCP server with one tool, and an authorization server for one user."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def give(self, value: Any, status: int = 200, **headers: str) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"content-type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        here = f"http://{self.headers['host']}"
        parts = urlsplit(self.path)
        if parts.path == "/.well-known/oauth-protected-resource/mcp":
            self.give({"resource": f"{here}/mcp", "authorization_servers": [here]})
        elif parts.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            answer = urlencode({"code": "c1", "state": asked["state"], "iss": here})
            self.give({}, 302, location=f"{asked['redirect_uri']}?{answer}")
        else:
            metadata: JSONObject = {
                "issuer": here,
                "authorization_endpoint": f"{here}/authorize",
                "token_endpoint": f"{here}/token",
                "registration_endpoint": f"{here}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            }
            self.give(metadata)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/register":
            self.give({**json.loads(body), "client_id": "example-1"}, 201)
        elif self.path == "/token":
            self.give({"access_token": "t1", "token_type": "Bearer", "expires_in": 3600})
        elif self.headers.get("authorization") != "Bearer t1":
            self.give({}, 401, www_authenticate="Bearer")
        else:
            asked = json.loads(body)
            result: JSONObject = {"content": [{"type": "text", "text": "you are Ann"}]}
            if asked["method"] == "server/discover":
                result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
                result |= {"ttlMs": 0, "cacheScope": "private"}
            result |= {"resultType": "complete"}
            self.give({"jsonrpc": "2.0", "id": asked["id"], "result": result})


@contextmanager
def serving() -> Generator[str, None, None]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Servers) as server:
        server.daemon_threads = True
        server.block_on_close = False
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()


async def main() -> None:
    with serving() as url:
        await call(url)
        await call(url)  # the token is there


if __name__ == "__main__":
    asyncio.run(main())
