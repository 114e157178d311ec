"""A client on the `mcp` package that exchanges many messages with a server that has `echo`.

Usage: python tests/peers/mcp_many.py CALLS COMMAND...

Several calls are in flight at a time; their texts are short and long, ASCII and not. It prints one
JSON object with the number of correct responses.
"""

import json
import sys

import anyio
import mcp_types as types
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

IN_FLIGHT = 8
TEXTS = ("hi", 'quotes " and \\ and \n newlines', "\u00e9\u2603\U0001f600\u2028\u0000", "x" * 300)
LONG = "long \u00e9 " * 40_000


async def run(calls: int, command: list[str]) -> None:
    right = 0
    numbers = iter(range(calls))

    async def work(session: ClientSession) -> None:
        nonlocal right
        for number in numbers:
            text = LONG if number % 500 == 0 else f"{number} {TEXTS[number % len(TEXTS)]}"
            result = await session.call_tool("echo", {"message": text})
            (block,) = result.content
            right += isinstance(block, types.TextContent) and block.text == f"Echo: {text}"

    parameters = StdioServerParameters(command=command[0], args=command[1:])
    async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
        await session.initialize()
        async with anyio.create_task_group() as group:
            for _ in range(IN_FLIGHT):
                group.start_soon(work, session)
    print(json.dumps({"right": right}))


if __name__ == "__main__":
    anyio.run(run, int(sys.argv[1]), sys.argv[2:])
