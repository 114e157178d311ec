"""The same shop for the adapters, whose handlers get a call and return its result."""

from collections.abc import Awaitable, Callable
from typing import Protocol

import trio
from shop import STEPS, STOCK, TOOLS, text

from sansmcp import ErrorCode, JSONObject
from sansmcp_io import McpError


class Call(Protocol):
    """The members of a call that a handler uses, on any adapter."""

    @property
    def method(self) -> str: ...
    @property
    def params(self) -> JSONObject: ...
    @property
    def principal(self) -> object: ...
    def progress(self, progress: float, *, total: float | None = None) -> bool: ...


def answer(call: Call) -> JSONObject:
    """A plain handler."""
    match call.method, call.params.get("name"):
        case "tools/list", _:
            return {"tools": TOOLS}
        case "tools/call", "stock":
            arguments: JSONObject = call.params.get("arguments") or {}
            article = str(arguments.get("article"))
            who = "" if call.principal is None else f" for {call.principal}"
            return text(f"{STOCK.get(article, 0)} of {article}{who}")
        case "tools/call", "count":
            for step in range(1, STEPS + 1):
                call.progress(step, total=STEPS)
            return text("17")
        case "tools/call", name:
            raise McpError(ErrorCode.INVALID_PARAMS, f"there is no tool {name!r}")
        case method, _:
            raise McpError(ErrorCode.METHOD_NOT_FOUND, f"{method} is not served here")


async def handle(
    call: Call, sleep: Callable[[float], Awaitable[object]] = trio.sleep
) -> JSONObject:
    """A handler on an event loop, where counting takes time."""
    if call.params.get("name") == "count":
        for step in range(1, STEPS + 1):
            call.progress(step, total=STEPS)
            await sleep(0.01)  # the work
        return text("17")
    return answer(call)
