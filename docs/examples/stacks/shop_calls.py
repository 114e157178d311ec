"""The same shop for the adapters, whose handlers take a call and return its result."""

import trio
from shop import STEPS, STOCK, TOOLS, text

from sansmcp import ErrorCode, JSONObject
from sansmcp_io.trio import McpError, ServerCall


async def handle(call: ServerCall) -> JSONObject:
    match call.method, call.params.get("name"):
        case "tools/list", _:
            return {"tools": TOOLS}
        case "tools/call", "stock":
            arguments: JSONObject = call.params.get("arguments") or {}
            article = str(arguments.get("article"))
            return text(f"{STOCK.get(article, 0)} of {article}")
        case "tools/call", "count":
            for step in range(1, STEPS + 1):
                call.progress(step, total=STEPS)
                await trio.sleep(0.01)  # the work
            return text("17")
        case "tools/call", name:
            raise McpError(ErrorCode.INVALID_PARAMS, f"there is no tool {name!r}")
        case method, _:
            raise McpError(ErrorCode.METHOD_NOT_FOUND, f"{method} is not served here")
