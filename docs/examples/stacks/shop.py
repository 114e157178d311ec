"""The tools and resources of these examples. Nothing in it knows which adapter serves it."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from sansmcp import ErrorCode, IncomingRequest, JSONObject, ServerConnection
from sansmcp.http import ServerEndpoint

INFO: JSONObject = {"name": "shop", "version": "1.0"}
CAPABILITIES: JSONObject = {"tools": {}}
TOOLS: list[JSONObject] = [
    {
        "name": "stock",
        "description": "How many pieces of an article there are.",
        "inputSchema": {
            "type": "object",
            "properties": {"article": {"type": "string"}},
            "required": ["article"],
        },
    },
    {"name": "count", "description": "Counts them, slowly.", "inputSchema": {"type": "object"}},
]
STOCK = {"lamp": 17}
STEPS = 3


def text(value: str) -> JSONObject:
    """The result of a tool that has only text to give."""
    return {"content": [{"type": "text", "text": value}]}


def answer(side: ServerConnection | ServerEndpoint, request: IncomingRequest) -> None:
    """Answer at once."""
    match request.method, request.params.get("name"):
        case "tools/list", _:
            side.send_result(request, {"tools": TOOLS})
        case "tools/call", "stock":
            arguments: JSONObject = request.params.get("arguments") or {}
            article = str(arguments.get("article"))
            pieces = STOCK.get(article, 0)
            who = "" if request.principal is None else f" for {request.principal}"
            side.send_result(request, text(f"{pieces} of {article}{who}"))
        case "tools/call", "count":
            side.send_result(request, text("17"))
        case "tools/call", name:
            side.send_error(request, ErrorCode.INVALID_PARAMS, f"there is no tool {name!r}")
        case method, _:
            side.send_error(request, ErrorCode.METHOD_NOT_FOUND, f"{method} is not served here")


async def handle(
    side: ServerConnection | ServerEndpoint,
    request: IncomingRequest,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """The same on an event loop, where counting takes time and reports its progress."""
    if request.params.get("name") == "count":
        for step in range(1, STEPS + 1):
            side.send_progress(request, step, total=STEPS, now=time.monotonic())
            await sleep(0.01)  # the work
    answer(side, request)
