"""Servers of this project that want tokens of the authorization server."""

import socket
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import uvicorn

from sansmcp import JSONObject
from sansmcp.auth import (
    AccessToken,
    DPoP,
    IntrospectionVerifier,
    ProtectedResource,
    ResourceServer,
    TokenVerifier,
)
from sansmcp.auth.jose import JWTProofReader, JWTVerifier
from sansmcp_io.asgi import App
from sansmcp_io.trio import InsufficientScope, ServerCall
from tests.interop.authorization.provider import RESOURCE_SERVER, Provider
from tests.support.adapters import loops
from tests.support.http.on_loops import CAPABILITIES, serve_http

INFO: Final[JSONObject] = {"name": "protected", "version": "1.0"}
WHO: Final[JSONObject] = {"name": "who", "arguments": {}}
WRITE: Final[JSONObject] = {"name": "write", "arguments": {}}


class Handler:
    """Has a tool that anyone may call, and `write`, for which a token needs a scope of its own.

    Attributes:
        principals: Who has called a tool.
    """

    def __init__(self) -> None:
        self.principals: list[AccessToken] = []

    def __call__(self, call: ServerCall) -> JSONObject:
        token: Any = call.principal
        assert isinstance(token, AccessToken)
        if call.method != "tools/call":
            return {"tools": []}
        if call.params["name"] == "write" and not token.covers(["write"]):
            raise InsufficientScope(["write"])
        self.principals.append(token)
        return {"content": [{"type": "text", "text": str(token.subject)}]}


def access(provider: Provider, url: str, form: str, **settings: Any) -> ResourceServer:
    """The check of tokens, by their signature or by introspection.

    Args:
        provider: The authorization server.
        url: The URL of the server.
        form: `jwt` or `opaque`.
        settings: The rest of those of `ProtectedResource`.
    """
    resource = ProtectedResource(
        url,
        authorization_servers=[provider.issuer],
        scopes_supported=["use"],
        required_scopes=["use"],
        **settings,
    )
    verifier: TokenVerifier
    if form == "jwt":
        verifier = JWTVerifier([provider.issuer])
    else:
        client_id, secret = RESOURCE_SERVER
        verifier = IntrospectionVerifier(
            provider.introspection_endpoint,
            issuer=provider.issuer,
            client_id=client_id,
            client_secret=secret,
        )
    return ResourceServer(resource, verifier)


def bound() -> DPoP:
    """Only tokens that are bound to a key, with proofs that have a nonce of the server."""
    return DPoP(reader=JWTProofReader(), required=True, nonce_keys=[b"0123456789abcdef" * 2])


@contextmanager
def free_port() -> Generator[int]:
    """A port that nobody else gets while the block runs. A server can listen on it.

    The URL of a protected resource has to be known before its server listens.
    """
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


@asynccontextmanager
async def serving_here(
    provider: Provider, handler: Handler, form: str, **settings: Any
) -> AsyncGenerator[str]:
    """Serve on the loop that runs; yields the URL."""
    with free_port() as port:
        url = f"http://127.0.0.1:{port}/mcp"
        checks = access(provider, url, form, **settings)
        async with loops.open_nursery() as nursery:

            async def serve(started: Any) -> None:
                await serve_http(
                    handler,
                    "127.0.0.1",
                    port,
                    info=INFO,
                    capabilities=CAPABILITIES,
                    access=checks,
                    drain=0.0001,
                    started=started,
                )

            server: Any = await nursery.start(serve)
            yield url
            server.close()


@contextmanager
def serving_app(provider: Provider, handler: Handler, form: str, **settings: Any) -> Generator[str]:
    """Serve as an ASGI application, on uvicorn in a thread; yields the URL."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        app = App(
            handler,
            info=INFO,
            capabilities=CAPABILITIES,
            access=access(provider, url, form, **settings),
            path="/mcp",
        )
        config = uvicorn.Config(app, log_level="critical", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield url
        finally:
            server.should_exit = True
            thread.join()
