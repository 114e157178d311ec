"""Servers of MCP that check tokens, in processes of their own, and an authorization server."""

import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from urllib.parse import parse_qs

import attrs
import httpx2
from joserfc import jwt
from joserfc.jwk import ECKey

from sansmcp import JSONObject
from sansmcp.http import ServerSentEvent, SSEDecoder
from tests.support.http.authorized import AuthorizedHandler, Realm, realm
from tests.support.http.server_endpoint import POST, modern_headers, modern_tool_call
from tests.support.processes import ROOT

SECONDS: Final = 120
PROGRAM: Final = ROOT / "tests/support/programs/protected_server.py"
CLIENT_OF_INTROSPECTION: Final = "Basic " + b64encode(b"rs:s").decode()


@attrs.define
class Issuer:
    """An authorization server on loopback, and beside it a third party that servers ask.

    Attributes:
        realm: Its other endpoints. Those who use them get tokens that it knows.
        claims: The claims of each opaque token that it knows.
        told: What the third party was sent: lines of the head, and the body.
        issued: All tokens that were signed.
    """

    realm: Realm
    key: ECKey = attrs.field(factory=lambda: ECKey.generate_key("P-256", {"kid": "1"}))
    claims: dict[str, JSONObject] = attrs.field(factory=dict[str, JSONObject])
    told: list[str] = attrs.field(factory=list[str])
    issued: list[str] = attrs.field(factory=list[str])

    def __attrs_post_init__(self) -> None:
        self.realm.metadata["jwks_uri"] = f"{self.url}/keys"
        keys = {"keys": [self.key.as_dict(private=False)]}
        self.realm.replaced["/keys"] = lambda handler: handler.give(keys)
        self.realm.replaced["/introspect"] = self._introspect
        self.realm.replaced["/third"] = self._note

    @property
    def url(self) -> str:
        return self.realm.origin

    def claims_for(self, audience: str, **more: Any) -> JSONObject:
        """The claims of a token that is valid, where `more` does not say something else."""
        claims: dict[str, Any] = {
            **{"iss": self.url, "aud": audience, "sub": "ann", "client_id": "c"},
            **{"exp": int(time.time()) + 600, "scope": "read"},
        }
        return {**claims, **more}

    def signed(self, audience: str, key: ECKey | None = None, **more: Any) -> str:
        """A token that is a JWT."""
        header = {"alg": "ES256", "typ": "at+jwt", "kid": "1"}
        token = jwt.encode(header, self.claims_for(audience, **more), key or self.key)
        self.issued.append(token)
        return token

    def _introspect(self, handler: AuthorizedHandler) -> None:
        if handler.headers["authorization"] != CLIENT_OF_INTROSPECTION:
            handler.give({}, 401)
            return
        (token,) = parse_qs(handler.body.decode())["token"]
        claims = self.claims.get(token)
        handler.give({"active": False} if claims is None else {"active": True, **claims})

    def _note(self, handler: AuthorizedHandler) -> None:
        self.told.append(f"{handler.requestline}\n{handler.headers}\n{handler.body.decode()}")
        handler.give({})


@contextmanager
def issuer() -> Generator[Issuer, None, None]:
    """Serve until the block is left."""
    with realm() as served:
        yield Issuer(served)


@attrs.frozen
class Answer:
    """A response.

    Attributes:
        status: The status.
        headers: The headers.
        body: The body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def challenge(self) -> str:
        """The challenge of a refusal."""
        return self.headers["www-authenticate"]

    @property
    def last(self) -> Any:
        """The message, or the last one of a stream."""
        if not self.headers["content-type"].startswith("text/event-stream"):
            return json.loads(self.body)
        events = SSEDecoder().feed(self.body)
        data = [one.data for one in events if isinstance(one, ServerSentEvent) and one.data]
        return json.loads(data[-1])

    @property
    def text(self) -> str:
        """The text of the result of a tool."""
        text: str = self.last["result"]["content"][0]["text"]
        return text


@attrs.frozen
class Protected:
    """A server that runs.

    Attributes:
        url: The URL of the endpoint.
        issuer: The authorization server whose tokens it takes.
        http: Sends requests.
    """

    url: str
    issuer: Issuer
    http: httpx2.Client

    @property
    def origin(self) -> str:
        return self.url.removesuffix("/mcp")

    def ask(self, method: str, url: str, body: bytes = b"", /, **fields: str) -> Answer:
        """Send one request; `_` stands for `-` in the names of headers."""
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        response = self.http.request(method, url, content=body, headers=headers)
        return Answer(response.status_code, response.headers, response.content)

    def post(self, message: JSONObject, token: str | None = None, **fields: str) -> Answer:
        """Send one message, with a bearer token if there is one."""
        if token is not None:
            fields = {"authorization": f"Bearer {token}", **fields}
        return self.ask("POST", self.url, json.dumps(message).encode(), **{**POST, **fields})

    def call(
        self,
        token: str | None,
        name: str = "who",
        fields: Mapping[str, str] | None = None,
        **arguments: Any,
    ) -> Answer:
        """Call a tool, as a modern client does."""
        message = modern_tool_call(1, name, **arguments)
        message["params"]["_meta"]["progressToken"] = "t"
        return self.post(message, token, **modern_headers(message), **(fields or {}))


@contextmanager
def protected(
    kind: str, verifier: str, issuer: Issuer, **options: str
) -> Generator[Protected, None, None]:
    """Run a server until the block is left. No token is in its log then.

    Args:
        kind: `asyncio`, `trio`, `asgi` or `wsgi`.
        verifier: `jwt`, `introspection`, `plain` or `async`.
        issuer: The authorization server.
        options: More options of the program.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    arguments = [kind, str(port), issuer.url, f"{issuer.url}/third", verifier]
    more = [f"{name}={value}" for name, value in options.items()]
    command = [sys.executable, str(PROGRAM), *arguments, *more]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log) as process,
        httpx2.Client(timeout=SECONDS, trust_env=False) as http,
    ):
        try:
            _wait_for(port, process)
            yield Protected(f"http://127.0.0.1:{port}/mcp", issuer, http)
        finally:
            http.close()
            process.send_signal(signal.SIGINT)  # killed, it would tell nothing of its coverage
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        log.seek(0)
        logged = log.read().decode()
    assert ":sansmcp:" in logged  # so it has what there is
    for token in (*issuer.issued, *issuer.claims, *issuer.realm.tokens):
        assert token not in logged


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), SECONDS).close()
        except ConnectionRefusedError:
            assert process.poll() is None, "the server has ended"
            assert time.monotonic() < until, "the server does not listen"
            time.sleep(0.02)  # no message tells when it listens
        else:
            return


class Servers:
    """Servers that are started when a test needs them, and serve the following tests, too."""

    def __init__(self, stack: ExitStack, issuer: Issuer) -> None:
        self._stack: Final = stack
        self._issuer: Final = issuer
        self._running: Final[dict[object, Protected]] = {}

    def get(self, kind: str, verifier: str, **options: str) -> Protected:
        """The server of a kind with a verifier."""
        key = (kind, verifier, *options.items())
        if key not in self._running:
            server = protected(kind, verifier, self._issuer, **options)
            self._running[key] = self._stack.enter_context(server)
        return self._running[key]


def servers() -> Iterator[Servers]:
    """For a fixture: they run until it ends."""
    with issuer() as served, ExitStack() as stack:
        yield Servers(stack, served)
