"""A client on version 1 of the `mcp` package that cancels a call and leaves its session.

Usage: python mcp_leaving.py URL

It gives up the call when a line comes on standard input. Leaving the session sends DELETE while the
POST of the call is still open. Prints the exceptions that come out of it, or `none`.
"""

import sys
from typing import Any

import anyio
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


async def call(session: ClientSession) -> None:
    await session.call_tool("slow", {})


async def main() -> None:
    async with (
        streamable_http_client(sys.argv[1]) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, session)
            await anyio.to_thread.run_sync(sys.stdin.readline)
            tasks.cancel_scope.cancel()


def leaves_of(error: BaseException) -> list[BaseException]:
    inner: Any = getattr(error, "exceptions", None)
    return [error] if inner is None else [leaf for one in inner for leaf in leaves_of(one)]


try:
    anyio.run(main)
except BaseException as error:
    print(leaves_of(error))
else:
    print("none")
