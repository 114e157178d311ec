"""A client on the official `mcp` package, version 1 or 2, that cancels a call.

Usage: python mcp_abandon.py cancel|timeout NAMES HEARD COMMAND...

NAMES are objects of the package, separated by commas, which must exist. HEARD is a file in which
the server writes the methods that it receives. Prints the version of the package.
"""

import pkgutil
import sys
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client

how, names, heard, *command = sys.argv[1:]
package = version("mcp")
seconds: Any = timedelta(seconds=0.1) if package.startswith("1.") else 0.1


async def call(session: ClientSession) -> None:
    if how == "cancel":
        await session.call_tool("t", {})
        return
    try:
        await session.call_tool("t", {}, read_timeout_seconds=seconds)
    except Exception as error:  # it has another name in each version
        if "timed out" not in str(error).lower():
            raise


async def main() -> None:
    server = StdioServerParameters(command=command[0], args=command[1:])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, session)
            while "tools/call" not in Path(heard).read_text(encoding="utf-8"):
                await anyio.sleep(0.01)
            if how == "cancel":
                tasks.cancel_scope.cancel()


for name in names.split(","):
    pkgutil.resolve_name(name)
anyio.run(main)
print(package)
