"""Clients without a user: of an enterprise, and of a workload; their servers are at the end."""

import asyncio
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from sansmcp import JSONObject
from sansmcp.auth import AssertionWanted, EnterpriseManaged, RegisteredClient, WorkloadIdentity
from sansmcp_io.asyncio import connect_http
from sansmcp_io.oauth import OAuth

INFO: JSONObject = {"name": "example", "version": "1.0"}


# -- enterprise
def of_enterprise(provider: str, issuer: str, id_token: str) -> OAuth:
    """For an employee, whose ID token the program has from its login at the enterprise."""
    return OAuth(
        grant=EnterpriseManaged(
            token_endpoint=f"{provider}/exchange",
            client=RegisteredClient(client_id="app", client_secret="secret-of-app"),
            subject_token=id_token,
        ),
        # The client id of the same program at the authorization server of the MCP server.
        registered={issuer: RegisteredClient(client_id="app-at-files", client_secret="other")},
    )


# -- workload
def of_workload() -> OAuth:
    """For a job, to which its platform gives a short-lived JWT."""

    def on_assertion(wanted: AssertionWanted) -> str:
        # In Kubernetes: Path("/var/run/secrets/tokens/mcp").read_text(), a projected token whose
        # audience is the authorization server.
        return "jwt-of-the-job"

    return OAuth(grant=WorkloadIdentity(), on_assertion=on_assertion)


# -- call
async def call(url: str, auth: OAuth) -> None:
    async with connect_http(url, info=INFO, auth=auth) as client:
        result: Any = await client.request("tools/call", {"name": "whoami", "arguments": {}})
        print(result["content"][0]["text"])


# -- end
USERS = {"jwt-for-ann": "ann", "jwt-of-the-job": "the nightly job"}


class Servers(BaseHTTPRequestHandler):
    """An identity provider, an authorization server that trusts it, and an MCP server."""

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
        if self.path == "/.well-known/oauth-protected-resource/mcp":
            self.give({"resource": f"{here}/mcp", "authorization_servers": [here]})
        else:
            metadata: JSONObject = {
                "issuer": here,
                "token_endpoint": f"{here}/token",
                "response_types_supported": [],
                "grant_types_supported": ["urn:ietf:params:oauth:grant-type:jwt-bearer"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic", "none"],
            }
            self.give(metadata)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        asked = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        if self.path == "/exchange":  # the identity provider decides about the employee
            print("the identity provider exchanges", asked["subject_token"])
            issued = "urn:ietf:params:oauth:token-type:id-jag"
            answer = {"access_token": "jwt-for-ann", "issued_token_type": issued}
            self.give({**answer, "token_type": "N_A", "expires_in": 300})
        elif self.path == "/token":
            print("the authorization server takes", asked["assertion"])
            token = f"token-for-{asked['assertion']}"
            self.give({"access_token": token, "token_type": "Bearer", "expires_in": 3600})
        else:
            self.answer(json.loads(body))

    def answer(self, message: Any) -> None:
        _, _, assertion = self.headers.get("authorization", "").partition("Bearer token-for-")
        if not assertion:
            self.give({}, 401, www_authenticate="Bearer")
            return
        text = f"you are {USERS[assertion]}"
        result: JSONObject = {"content": [{"type": "text", "text": text}]}
        if message["method"] == "server/discover":
            result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            result |= {"ttlMs": 0, "cacheScope": "private"}
        result |= {"resultType": "complete"}
        self.give({"jsonrpc": "2.0", "id": message["id"], "result": result})


@contextmanager
def serving() -> Generator[str, None, None]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Servers) as server:
        server.daemon_threads = True
        server.block_on_close = False
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


async def main() -> None:
    with serving() as here:
        await call(f"{here}/mcp", of_enterprise(here, here, "id-token-of-ann"))
        await call(f"{here}/mcp", of_workload())


if __name__ == "__main__":
    asyncio.run(main())
