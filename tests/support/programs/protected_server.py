"""A server that checks tokens.

Usage: protected_server.py KIND PORT ISSUER THIRD_PARTY VERIFIER [NAME=VALUE ...]

Names are `timeout` (of lookups, in seconds), `verifier_timeout` (of its requests), `max_age` (of
keys), `resource` (its URL, if it is not that of the server), `redis` (the URL of what the workers
of a cluster share).
"""

import asyncio
import importlib
import logging
import sys
from contextlib import suppress
from typing import Any, cast
from urllib.request import Request, urlopen

from sansmcp import JSONObject, ToolsListChanged
from sansmcp.auth import DPoP, IntrospectionVerifier, ProtectedResource, ResourceServer
from sansmcp.auth.jose import JWTProofReader, JWTVerifier
from sansmcp_io import InsufficientScope

_, KIND, PORT, ISSUER, THIRD_PARTY, VERIFIER, *REST = sys.argv
OPTIONS = dict(one.split("=", 1) for one in REST)
URL = OPTIONS.get("resource", f"http://127.0.0.1:{PORT}/mcp")


def handle(call: Any) -> JSONObject:
    """Serve tools: who the client is, a forbidden one, a call of a third party, and a change."""
    token = call.principal
    name: str = call.params.get("name", "")
    if name == "write":
        if call.params["arguments"].get("late"):
            call.progress(1)
        if not token.covers({"write"}):
            raise InsufficientScope({"write"})
    if name == "publish":
        call.server.publish(ToolsListChanged())
    if name == "forward":
        names = ("method", "params", "meta", "revision", "capabilities", "principal", "context")
        seen = repr((call, token.claims, [getattr(call, name) for name in names]))
        headers = {"x-principal": token.key}
        with urlopen(Request(THIRD_PARTY, seen.encode(), headers)):
            pass
    text = f"{token.subject} {' '.join(sorted(token.scopes))}"
    return {"content": [{"type": "text", "text": text}]}


def verify(token: str) -> JSONObject | None:
    """Stand for a database of tokens."""
    if token == "broken":
        raise OSError("the database is away")
    if token == "odd":
        odd: Any = token
        return cast(JSONObject, odd)  # as an application may get it wrong
    if token != "good":
        return None
    return {"iss": ISSUER, "aud": URL, "sub": "ann", "exp": 4e9, "scope": "read"}


async def verify_later(token: str) -> JSONObject | None:
    """The same, async, and for ever for a token of this name."""
    seconds = 1000 if token == "endless" else 0
    if KIND == "trio":
        import trio

        await trio.sleep(seconds)
    else:
        await asyncio.sleep(seconds)
    return verify(token)


def options() -> dict[str, Any]:
    """The options of the server."""
    resource = ProtectedResource(
        URL,
        authorization_servers=[ISSUER],
        required_scopes=["read"],
        dpop=DPoP(reader=JWTProofReader(), nonce_keys=[b"0123456789abcdef"]),
    )
    more: dict[str, Any] = {}
    if VERIFIER == "jwt":
        max_age = float(OPTIONS.get("max_age", 3600))
        verifier = JWTVerifier([ISSUER], max_age=max_age, min_interval=min(max_age, 30))
        server = ResourceServer(resource, verifier)
    elif VERIFIER == "introspection":
        endpoint = f"{ISSUER}/introspect"
        asking = IntrospectionVerifier(
            endpoint,
            issuer=ISSUER,
            client_id="rs",
            client_secret="s",
            timeout=float(OPTIONS.get("verifier_timeout", 10)),
        )
        server = ResourceServer(resource, asking)
    else:
        server = ResourceServer(resource)
        more["verify_token"] = verify if VERIFIER == "plain" else verify_later
    if "redis" in OPTIONS:
        from sansmcp_io.redis import Cluster

        more["cluster"] = Cluster(OPTIONS["redis"])
    return {
        "info": {"name": "protected", "version": "1"},
        "capabilities": {"tools": {"listChanged": True}},
        "access": server,
        "origins": ["https://page.example"],
        "sessions": True,
        "lookup_timeout": float(OPTIONS.get("timeout", 60)),
        **more,
    }


def main() -> None:
    """Serve until SIGINT, and log as much as there is."""
    logging.basicConfig(level=logging.DEBUG)
    port = int(PORT)
    if KIND == "asyncio":
        from sansmcp_io.asyncio import serve_http

        asyncio.run(serve_http(handle, port=port, **options()))
    elif KIND == "trio":
        import trio

        from sansmcp_io.trio import serve_http as serve

        trio.run(lambda: serve(handle, port=port, **options()))
    elif KIND == "asgi":
        import uvicorn

        from sansmcp_io.asgi import App

        uvicorn.run(App(handle, path="/mcp", **options()), port=port, log_level="error")
    else:
        from sansmcp_io.wsgi import App as WSGIApp

        waitress: Any = importlib.import_module("waitress")  # which has no types

        waitress.serve(WSGIApp(handle, path="/mcp", **options()), port=port, host="127.0.0.1")


with suppress(KeyboardInterrupt):
    main()
