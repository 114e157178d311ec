"""A server on standard input and output, on asyncio."""

import asyncio

from sansmcp import JSONObject, ToolsListChanged
from sansmcp_io.asyncio import McpError, RequireInput, ServerCall, serve_stdio

NAMES = ["count", "learn", "sleep", "whoami"]


async def handle(call: ServerCall) -> JSONObject | RequireInput:
    match call.method:
        case "tools/list":
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]}
        case "tools/call":
            return await call_tool(call, call.params["name"])
        case _:
            raise McpError(-32601, f"no {call.method} here")


def text(value: str) -> JSONObject:
    """The result of a tool that has only text to give."""
    return {"content": [{"type": "text", "text": value}]}


# -- tools
async def call_tool(call: ServerCall, name: str) -> JSONObject | RequireInput:
    match name:
        case "count":
            for number in range(1, 4):
                await asyncio.sleep(0)  # work; where it waits, a cancellation gets through
                call.progress(number, total=3)
            return text("3")
        case "whoami":
            if "roots" not in call.input_responses:
                return RequireInput({"roots": {"method": "roots/list"}})  # this is called again
            call.log("info", "asked the client for its roots")
            return text(call.input_responses["roots"]["roots"][0]["uri"])
        case "sleep":
            await asyncio.sleep(3600)  # raises CancelledError when the client gives up
            return text("slept")
        case "learn":
            call.server.publish(ToolsListChanged())
            return text("learnt")
        case _:
            raise McpError(-32602, f"unknown tool: {name}")


# -- run
async def main() -> None:
    await serve_stdio(
        handle,
        info={"name": "demo", "version": "1.0"},
        capabilities={"tools": {"listChanged": True}, "logging": {}},
    )


if __name__ == "__main__":
    asyncio.run(main())
