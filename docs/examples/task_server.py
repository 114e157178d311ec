"""A server on standard input and output, on asyncio, with a tool that takes an hour."""

import asyncio
from typing import Any

from sansmcp import JSONObject
from sansmcp_io.asyncio import CreateTask, McpError, RunningTask, ServerCall, serve_stdio

DAY = 24 * 3600 * 1000  # milliseconds
TOOLS: list[Any] = [
    {
        "name": "index",
        "description": "Index a folder, which takes an hour.",
        "inputSchema": {
            "type": "object",
            "properties": {"folder": {"type": "string"}, "seconds": {"type": "number"}},
            "required": ["folder"],
        },
        "execution": {"taskSupport": "optional"},  # for clients of 2025-11-25
    }
]
GO_ON: JSONObject = {
    "method": "elicitation/create",
    "params": {
        "message": "One file is unreadable. Go on without it?",
        "requestedSchema": {"type": "object", "properties": {}},
    },
}


# -- handle
def handle(call: ServerCall) -> JSONObject | CreateTask:
    match call.method:
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call" if call.params["name"] == "index":
            return CreateTask(index, ttl_ms=DAY, message="waiting for the disk")
        case _:
            raise McpError(-32602, f"no such tool: {call.params.get('name')}")


# -- work
async def index(task: RunningTask) -> JSONObject:
    arguments = task.params["arguments"]
    parts = 3
    for part in range(1, parts + 1):
        task.progress(part, total=parts, message=f"reading part {part} of {parts}")
        await asyncio.sleep(arguments.get("seconds", 3600) / parts)
    if "elicitation" in task.capabilities:  # else the client cannot be asked
        answers: Any = await task.ask({"unreadable": GO_ON})
        if answers["unreadable"]["action"] != "accept":
            return {"content": [{"type": "text", "text": "nothing was indexed"}], "isError": True}
    text = f"indexed {arguments['folder']}, all but one file"
    return {"content": [{"type": "text", "text": text}]}


# -- run
async def main() -> None:
    await serve_stdio(
        handle,
        info={"name": "library", "version": "1.0"},
        capabilities={"tools": {}},
        tasks=True,
    )


if __name__ == "__main__":
    asyncio.run(main())
