"""Serves an MCP server that requires tokens, and its authorization server, on one port."""

import base64
import hashlib
import json
import ssl
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar, Final
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import attrs

from sansmcp import JSONObject
from tests.support.http.scripted import Quiet
from tests.support.modern import CACHE, complete, discovered

LISTED: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
ECHO: JSONObject = {"name": "echo", "arguments": {"text": "a"}}


@attrs.define(kw_only=True)
class Realm:
    """The behaviour of the servers, and a record of the requests that they got.

    Attributes:
        url: The URL of the MCP server.
        seconds: The lifetime of a token.
        scope: The scope that a call of a tool requires, in addition to `read`.
        refreshes: Whether the server issues refresh tokens.
        used: The refresh tokens that were replaced.
        reused: The refresh tokens that were received twice, which ends their login.
        denies: Whether the user refuses consent.
        bound: Whether tokens are bound to a key, and each request needs a proof with a nonce.
        proofs: The claims of each proof in a request to the MCP server.
        metadata: Additional members of the metadata of the authorization server.
        resource: Additional members of the metadata of the resource.
        replaced: By path, the handler that answers instead of the usual one.
        grants: The grant type of each token request.
        asked: The method and the path of each request, without the query.
        tokens: The valid access tokens, with their scopes.
        gate: The event for which the token endpoint waits.
        at_gate: Set when a token request has arrived.
    """

    url: str = ""
    seconds: int = 3600
    scope: str | None = None
    refreshes: bool = True
    denies: bool = False
    bound: bool = False
    proofs: list[dict[str, Any]] = attrs.field(factory=list[dict[str, Any]])
    asked: list[str] = attrs.field(factory=list[str])
    grants: list[str] = attrs.field(factory=list[str])
    tokens: dict[str, str] = attrs.field(factory=dict[str, str])
    refresh_tokens: dict[str, str] = attrs.field(factory=dict[str, str])
    reused: list[str] = attrs.field(factory=list[str])
    codes: dict[str, tuple[str, str]] = attrs.field(factory=dict[str, tuple[str, str]])
    metadata: dict[str, Any] = attrs.field(factory=dict[str, Any])
    resource: dict[str, Any] = attrs.field(factory=dict[str, Any])
    replaced: dict[str, Callable[["AuthorizedHandler"], object]] = attrs.field(
        factory=dict[str, Callable[["AuthorizedHandler"], object]]
    )
    gate: threading.Event = attrs.field(factory=threading.Event)
    at_gate: threading.Event = attrs.field(factory=threading.Event)
    used: set[str] = attrs.field(factory=set[str])
    _count: int = 0

    @property
    def origin(self) -> str:
        return self.url.removesuffix("/mcp")

    def next_name(self, kind: str) -> str:
        """A value that was not used before."""
        self._count += 1
        return f"{kind}-{self._count}"

    def count(self, path: str) -> int:
        """The number of requests for a path."""
        return sum(one.endswith(f" {path}") for one in self.asked)


class AuthorizedHandler(BaseHTTPRequestHandler):
    """Handles one connection to the servers."""

    protocol_version = "HTTP/1.1"
    realm: ClassVar[Realm]
    body: bytes
    query: dict[str, str]

    def _serve(self) -> None:
        realm, parts = self.realm, urlsplit(self.path)
        self.body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        realm.asked.append(f"{self.command} {parts.path}")
        if (replaced := realm.replaced.get(parts.path)) is not None:
            replaced(self)
            return
        match parts.path:
            case "/mcp":
                self._serve_mcp()
            case "/.well-known/oauth-protected-resource/mcp":
                known = {"resource": realm.url, "authorization_servers": [realm.origin]}
                self.give({**known, "scopes_supported": ["read"], **realm.resource})
            case "/.well-known/oauth-authorization-server":
                self.give({**self._metadata(), **realm.metadata})
            case "/register":
                self.give({**json.loads(self.body), "client_id": realm.next_name("client")}, 201)
            case "/authorize":
                self._authorize()
            case "/revoke":
                form = {name: values[0] for name, values in parse_qs(self.body.decode()).items()}
                realm.tokens.pop(form["token"], None)
                realm.refresh_tokens.pop(form["token"], None)
                self.send(b"")
            case "/token":
                realm.at_gate.set()
                realm.gate.wait(60)
                self._give_token()
            case _:
                self.give({}, 404)

    do_GET = do_POST = do_DELETE = do_OPTIONS = _serve

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def give(self, value: object, status: int = 200, **headers: str) -> None:
        """Send a JSON response."""
        self.send(json.dumps(value).encode(), status, content_type="application/json", **headers)

    def send(self, body: bytes, status: int = 200, **headers: str) -> None:
        """Send a response with this body."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _metadata(self) -> dict[str, Any]:
        origin = self.realm.origin
        return {
            "issuer": origin,
            "authorization_endpoint": f"{origin}/authorize",
            "token_endpoint": f"{origin}/token",
            "registration_endpoint": f"{origin}/register",
            "revocation_endpoint": f"{origin}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
            **({"dpop_signing_alg_values_supported": ["ES256"]} if self.realm.bound else {}),
        }

    def _authorize(self) -> None:
        realm, query = self.realm, self.query
        answer = {"state": query["state"], "iss": realm.origin}
        if realm.denies:
            answer["error"] = "access_denied"
        else:
            answer["code"] = code = realm.next_name("code")
            realm.codes[code] = query["code_challenge"], query.get("scope", "")
        self.send(b"", 302, location=f"{query['redirect_uri']}?{urlencode(answer)}")

    def _give_token(self) -> None:
        realm = self.realm
        form = {name: values[0] for name, values in parse_qs(self.body.decode()).items()}
        realm.grants.append(form["grant_type"])
        if form["grant_type"] == "authorization_code":
            challenge, scope = realm.codes.pop(form["code"])
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == challenge
        elif form.get("refresh_token") in realm.refresh_tokens:
            scope = realm.refresh_tokens.pop(form["refresh_token"])
            realm.used.add(form["refresh_token"])
        elif (refused := form.get("refresh_token")) in realm.used:
            realm.reused.append(refused)
            realm.refresh_tokens.clear()  # of the one user that there is
            realm.tokens.clear()
            self.give({"error": "invalid_grant"}, 400)
            return
        elif form["grant_type"] == "client_credentials" or form.get("assertion") == "jwt":
            scope = form.get("scope", "")
        else:
            self.give({"error": "invalid_grant"}, 400)
            return
        token = realm.next_name("token")
        realm.tokens[token] = scope
        given = {
            "access_token": token,
            "token_type": "DPoP" if realm.bound else "Bearer",
            "expires_in": realm.seconds,
        }
        if realm.refreshes:
            given["refresh_token"] = refresh = realm.next_name("refresh")
            realm.refresh_tokens[refresh] = scope
        self.give({**given, "scope": scope})

    def _has_proof(self) -> bool:
        """Whether the request has a proof with the nonce of the response before. Notes its claims.

        The signature is not verified here: other tests do that. These tests compare which proof
        comes with which request.
        """
        wanted = f"n{len(self.realm.proofs)}"
        (proof,) = self.headers.get_all("dpop", [])
        claims = proof.split(".")[1]
        read: dict[str, Any] = json.loads(base64.urlsafe_b64decode(claims + "=="))
        self.realm.proofs.append(read)
        return read.get("nonce") == wanted

    def _serve_mcp(self) -> None:
        realm = self.realm
        scheme = "DPoP" if realm.bound else "Bearer"
        token = self.headers.get("authorization", "").removeprefix(f"{scheme} ")
        if token not in realm.tokens:
            self.give({}, 401, www_authenticate=scheme)
            return
        if realm.bound and not self._has_proof():
            wants = 'DPoP error="use_dpop_nonce"'
            self.give({}, 401, dpop_nonce=f"n{len(realm.proofs)}", www_authenticate=wants)
            return
        nonce: dict[str, Any] = {"dpop_nonce": f"n{len(realm.proofs)}"} if realm.bound else {}
        message = json.loads(self.body)
        method = message["method"]
        if method == "tools/call" and realm.scope not in (None, *realm.tokens[token].split()):
            said = f'Bearer error="insufficient_scope", scope="{realm.scope}"'
            self.give({}, 403, www_authenticate=said)
        elif "id" not in message:
            self.send(b"", 202)
        elif method == "server/discover":
            result = {"jsonrpc": "2.0", "id": message["id"], "result": discovered()}
            self.give(result, **nonce)
        elif method in LISTED:
            self.give(complete(message["id"], {LISTED[method]: [], **CACHE}))
        else:
            content = [{"type": "text", "text": token}]
            self.give(complete(message["id"], {"content": content}), **nonce)


@contextmanager
def realm(tls: ssl.SSLContext | None = None, **settings: Any) -> Generator[Realm, None, None]:
    """Serve until the block is left."""
    served = Realm(**settings)
    served.gate.set()
    handler = type("Handler", (AuthorizedHandler,), {"realm": served})
    with Quiet(("127.0.0.1", 0), handler) as server:
        host, scheme = "127.0.0.1", "http"
        if tls is not None:
            host, scheme = "localhost", "https"
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        served.url = f"{scheme}://{host}:{server.server_port}/mcp"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield served
        finally:
            served.gate.set()
            server.shutdown()
            thread.join(30)


class _Unfollowed(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        return None


def consent(url: str) -> str:
    """Play a user who agrees: return the URL to which the authorization server redirects."""
    try:
        build_opener(_Unfollowed).open(Request(url), timeout=30)
    except HTTPError as answer:
        with answer:
            location: str = answer.headers["location"]
            return location
    raise AssertionError("it is no redirect")
