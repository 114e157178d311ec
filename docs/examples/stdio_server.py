"""A server on standard input and output."""

import trio

from sansmcp import InvalidCursor, JSONObject, paginate
from sansmcp_io.trio import McpError, RequireInput, ServerCall, serve_stdio

NAMES = ("count", "sleep", "whoami")
TOOLS: list[JSONObject] = [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]


async def handle(call: ServerCall) -> JSONObject | RequireInput:
    match call.method:
        case "tools/list":
            return list_tools(call)
        case "tools/call" if call.params["name"] == "count":
            return await count(call)
        case "tools/call" if call.params["name"] == "whoami":
            return whoami(call)
        case "tools/call" if call.params["name"] == "sleep":
            await trio.sleep_forever()
        case "tools/call":
            raise McpError(-32602, f"unknown tool: {call.params['name']}")
        case _:
            raise McpError(-32601, f"no {call.method} here")


def list_tools(call: ServerCall) -> JSONObject:
    try:
        page, cursor = paginate(
            TOOLS, call.params.get("cursor"), key=lambda tool: tool["name"], size=100
        )
    except InvalidCursor as error:
        raise McpError(-32602, str(error)) from None
    return {"tools": page} if cursor is None else {"tools": page, "nextCursor": cursor}


def text(value: str) -> JSONObject:
    """The result of a tool that has only text to give."""
    return {"content": [{"type": "text", "text": value}]}


# -- tools
async def count(call: ServerCall) -> JSONObject:
    for number in range(1, 4):
        await trio.lowlevel.checkpoint()  # work; where it waits, a cancellation gets through
        call.progress(number, total=3)
    return text("3")


def whoami(call: ServerCall) -> JSONObject | RequireInput:
    if "roots" not in call.capabilities:
        raise McpError(-32602, "this tool needs a client with roots")
    if "roots" not in call.input_responses:
        return RequireInput({"roots": {"method": "roots/list"}})  # this is called again then
    call.log("info", "asked the client for its roots")
    return text(", ".join(root["uri"] for root in call.input_responses["roots"]["roots"]))


# -- run
async def main() -> None:
    await serve_stdio(
        handle,
        info={"name": "demo", "version": "1.0"},
        capabilities={"tools": {}, "logging": {}},
    )


if __name__ == "__main__":
    trio.run(main)
