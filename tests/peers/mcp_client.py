"""A scripted MCP client on the official `mcp` package, as an independent peer to test against.

It starts the server given as COMMAND, opens the session with the `initialize` handshake (never
with a `server/discover` probe) and then walks through a fixed list of steps, so that a server
under test is judged by a client it did not come with.

Usage: python tests/peers/mcp_client.py [--revision R] -- COMMAND...

Each step prints one JSON object with at least the keys "step" and "outcome"; the outcome is
"ok", "skipped" (the server does not offer it) or "failed" (then "error" says why).  The exit
status is 0 if no step failed, else 1.
"""

import argparse
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import mcp_types as types
from mcp.client.session import ClientRequestContext, ClientSession, IncomingMessage
from mcp.client.stdio import PROCESS_TERMINATION_TIMEOUT, StdioServerParameters, stdio_client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION
from pydantic import FileUrl

# Closing a server that will not end takes the package up to 6.5 s more, so all ends within 20 s.
SESSION_TIMEOUT = 10.0
REQUEST_TIMEOUT = 5.0
STEPS = 3
CLIENT_INFO = types.Implementation(name="mcp-peer-client", version="1.0")
SAMPLED = "a fixed sample"
ROOT = types.Root(uri=FileUrl("file:///peer/root"), name="root")


@dataclass
class Walk:
    """The steps taken so far, and the unexpected messages of the server meanwhile."""

    failed: bool = False
    samplings: int = 0
    roots: int = 0
    faults: list[str] = field(default_factory=list[str])

    def report(self, step: str, outcome: str, **details: Any) -> None:
        self.failed = self.failed or outcome == "failed"
        print(json.dumps({"step": step, "outcome": outcome, **details}), flush=True)

    def check(self, step: str, passed: bool, **details: Any) -> None:
        if passed:
            self.report(step, "ok", **details)
        else:
            self.report(step, "failed", error="unexpected answer", **details)

    @asynccontextmanager
    async def step(self, name: str) -> AsyncGenerator[None, None]:
        """Turn an exception into a failed step, so that later steps still run."""
        try:
            yield
        except Exception as error:
            self.report(name, "failed", error=f"{type(error).__name__}: {error}")

    async def on_sampling(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        self.samplings += 1
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(text=SAMPLED),
            model="fixed",
            stop_reason="endTurn",
        )

    async def on_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        self.roots += 1
        return types.ListRootsResult(roots=[ROOT])

    async def on_message(self, message: IncomingMessage) -> None:
        """Keep what was not a message at all, such as stray text on the server's stdout."""
        if isinstance(message, Exception):
            self.faults.append(f"{type(message).__name__}: {message}")


async def initialize(session: ClientSession, revision: str | None) -> types.InitializeResult:
    """Shake hands, by the package's own method if its own choice of revision is good enough.

    That method always offers the newest handshake revision; to offer another one, the same
    exchange is put together here from the public parts.
    """
    if revision is None or revision == LATEST_HANDSHAKE_VERSION:
        return await session.initialize()
    params = types.InitializeRequestParams(
        protocol_version=revision,
        capabilities=types.ClientCapabilities(
            sampling=types.SamplingCapability(), roots=types.RootsCapability(list_changed=True)
        ),
        client_info=CLIENT_INFO,
    )
    result = await session.send_request(
        types.InitializeRequest(params=params), types.InitializeResult
    )
    if result.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        raise RuntimeError(f"the server answered with revision {result.protocol_version}")
    session.adopt(result)
    await session.send_notification(types.InitializedNotification())
    return result


async def list_tools(session: ClientSession) -> tuple[list[str], int]:
    """The names on all pages, and the number of pages."""
    names: list[str] = []
    params: types.PaginatedRequestParams | None = None
    pages = 0
    while True:
        page = await session.list_tools(params=params)
        pages += 1
        names += [tool.name for tool in page.tools]
        if page.next_cursor is None:
            return names, pages
        params = types.PaginatedRequestParams(cursor=page.next_cursor)


def text_of(result: types.CallToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, types.TextContent))


async def take_steps(walk: Walk, session: ClientSession, revision: str | None) -> None:
    """All steps of a session, in order; without a handshake no further step is possible."""
    try:
        init = await initialize(session, revision)
    except Exception as error:
        walk.report("initialize", "failed", error=f"{type(error).__name__}: {error}")
        return
    walk.check(
        "initialize",
        revision in (None, init.protocol_version),
        revision=init.protocol_version,
        server=init.server_info.model_dump(mode="json", by_alias=True, exclude_none=True),
        capabilities=init.capabilities.model_dump(mode="json", by_alias=True, exclude_none=True),
    )

    names: list[str] = []
    if init.capabilities.tools is None:
        walk.report("tools/list", "skipped")
    else:
        async with walk.step("tools/list"):
            names, pages = await list_tools(session)
            walk.check("tools/list", len(set(names)) == len(names), pages=pages, names=names)

    if "echo" not in names:
        walk.report("echo", "skipped")
    else:
        async with walk.step("echo"):
            result = await session.call_tool("echo", {"text": "hi"})
            walk.check(
                "echo", not result.is_error and "hi" in text_of(result), text=text_of(result)
            )

    if "progress" not in names:
        walk.report("progress", "skipped")
    else:
        values: list[float] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            values.append(progress)

        async with walk.step("progress"):
            result = await session.call_tool(
                "progress", {"steps": STEPS}, progress_callback=on_progress
            )
            good = not result.is_error and len(values) == STEPS and sorted(set(values)) == values
            walk.check("progress", good, values=values, text=text_of(result))

    async with walk.step("ping"):
        await session.send_ping()
        walk.report("ping", "ok")

    asker = next((name for name in ("ask", "ask_sampling") if name in names), None)
    if asker is None:
        walk.report("sampling", "skipped")
    else:
        async with walk.step("sampling"):
            result = await session.call_tool(asker, {})
            good = not result.is_error and walk.samplings > 0
            walk.check("sampling", good, tool=asker, text=text_of(result), requests=walk.samplings)

    if "ask_roots" in names:
        async with walk.step("roots"):
            result = await session.call_tool("ask_roots", {})
            good = not result.is_error and walk.roots > 0
            walk.check("roots", good, tool="ask_roots", text=text_of(result), requests=walk.roots)
    else:
        walk.report("roots", "ok" if walk.roots else "skipped", requests=walk.roots)


async def run(command: list[str], revision: str | None) -> int:
    """Walk through one session; a server that has to be killed in the end fails the last step."""
    walk = Walk()
    # The package passes on only a few variables by default, which would lose PYTHONPATH.
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    closing = anyio.current_time()
    try:
        async with stdio_client(parameters) as (read_stream, write_stream):
            with anyio.move_on_after(SESSION_TIMEOUT) as scope:
                async with ClientSession(
                    read_stream,
                    write_stream,
                    read_timeout_seconds=REQUEST_TIMEOUT,
                    sampling_callback=walk.on_sampling,
                    list_roots_callback=walk.on_roots,
                    message_handler=walk.on_message,
                    client_info=CLIENT_INFO,
                ) as session:
                    await take_steps(walk, session, revision)
            if scope.cancelled_caught:
                walk.report("session", "failed", error=f"not done after {SESSION_TIMEOUT:g} s")
            closing = anyio.current_time()
    except OSError as error:
        walk.report("start", "failed", error=str(error))
        return 1
    seconds = anyio.current_time() - closing
    # The package hides the exit status, but only a server that ignores end of input is this slow.
    if seconds < PROCESS_TERMINATION_TIMEOUT:
        walk.report("shutdown", "ok", seconds=round(seconds, 3))
    else:
        walk.report("shutdown", "failed", error="had to be killed", seconds=round(seconds, 3))
    if walk.faults:
        walk.report("wire", "failed", error="lines that are no messages", faults=walk.faults)
    return 1 if walk.failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Walk through a session with an MCP server on stdio."
    )
    parser.add_argument(
        "--revision", choices=HANDSHAKE_PROTOCOL_VERSIONS, help="the protocol revision to offer"
    )
    parser.add_argument(
        "command", nargs="+", metavar="COMMAND", help="the server's command line, after --"
    )
    options = parser.parse_args()
    return anyio.run(run, options.command, options.revision)


if __name__ == "__main__":
    sys.exit(main())
