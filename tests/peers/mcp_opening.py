"""A client on the official `mcp` package, version 1 or 2, that opens and makes two calls.

Usage: python tests/peers/mcp_opening.py MODE COMMAND...

MODE is what version 2 calls so: `legacy`, `auto`, or the revision without a handshake, which it
then takes for granted. Version 1 knows the handshake only. The server is
`tests/support/programs/era_server.py`. Prints one JSON object: `revision`, `calls` (the texts), or
`error` (the exception) and `text`.
"""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client, types

TIMEOUT = 20.0
ROOT = {"uri": "file:///peer/root"}


async def on_roots(context: object) -> types.ListRootsResult:
    return types.ListRootsResult.model_validate({"roots": [ROOT]})


@asynccontextmanager
async def opened(mode: str, server: StdioServerParameters) -> AsyncGenerator[tuple[Any, str], None]:
    """The client that makes the calls, and the revision."""
    if version("mcp").startswith("1."):
        async with (
            stdio_client(server) as (read, write),
            ClientSession(read, write, list_roots_callback=on_roots) as session,
        ):
            agreed: Any = await session.initialize()
            yield session, agreed.protocolVersion
    else:
        from mcp import Client  # version 1 has none

        async with Client(server, mode=mode, list_roots_callback=on_roots) as client:
            yield client, client.protocol_version


async def talk(mode: str, server: StdioServerParameters) -> dict[str, Any]:
    try:
        with anyio.fail_after(TIMEOUT):
            async with opened(mode, server) as (client, revision):
                results = [await client.call_tool(name, {}) for name in ("revision", "ask")]
    except Exception as caught:
        error: Any = caught
        while nested := getattr(error, "exceptions", ()):
            error = nested[0]
        return {"error": type(error).__name__, "text": str(error)}
    return {"revision": revision, "calls": [result.content[0].text for result in results]}


mode, command, *arguments = sys.argv[1:]
parameters = StdioServerParameters(command=command, args=arguments)
print(json.dumps(anyio.run(talk, mode, parameters)))
