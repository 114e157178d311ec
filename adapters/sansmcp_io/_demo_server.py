"""The server of the demo: one tool for each thing that a client may want to see happen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import trio

from sansmcp import ErrorCode, InvalidCursor, JSONObject, paginate

from ._demo_transcript import SideTrace, write_to_stderr
from ._errors import McpError, PeerError
from ._trio_stdio import open_standard_streams
from .trio import ServerCall, serve

PAGE_SIZE: Final = 10
FILLERS: Final = 23
INFO: Final[JSONObject] = {"name": "sansmcp-demo-server", "version": "1.0"}
BANNER: Final = "the demo server is starting"
"""What careless servers print on standard output before they speak the protocol."""


async def _echo(call: ServerCall, arguments: JSONObject) -> str:
    return str(arguments.get("text", ""))


async def _progress(call: ServerCall, arguments: JSONObject) -> str:
    steps = int(arguments.get("steps", 3))
    for step in range(1, steps + 1):
        call.progress(step, total=steps, message=f"step {step}")
        await trio.lowlevel.checkpoint()
    return f"{steps} steps"


async def _slow(call: ServerCall, arguments: JSONObject) -> str:
    """Work for a while, and say on standard output (which is standard error here) how it went."""
    try:
        await trio.sleep(float(arguments.get("seconds", 60)))
    except trio.Cancelled:
        print("slow: cancelled")
        raise
    return "slept"


async def _ask(call: ServerCall, arguments: JSONObject) -> str:
    """Ask the client for all that it has declared."""
    answers: list[str] = []
    if "sampling" in call.capabilities:
        content = {"type": "text", "text": "Say something."}
        params: JSONObject = {
            "messages": [{"role": "user", "content": content}],
            "maxTokens": 50,
        }
        sample = await call.request("sampling/createMessage", params)
        said = sample["content"]
        text = said["text"] if not isinstance(said, list) and said["type"] == "text" else None
        answers.append(f"sampled: {text}")
    if "roots" in call.capabilities:
        roots = await call.request("roots/list")
        answers.append(f"roots: {', '.join(root['uri'] for root in roots['roots'])}")
    return "; ".join(answers) or "this client answers nothing"


async def _filler(call: ServerCall, arguments: JSONObject) -> str:
    return "a filler does nothing"


Tool = Callable[[ServerCall, JSONObject], Awaitable[str]]

_TOOLS: Final[Mapping[str, tuple[Tool, JSONObject]]] = {
    "ask": (_ask, {}),
    "echo": (_echo, {"text": {"type": "string"}}),
    **{f"filler_{number:02}": (_filler, {}) for number in range(FILLERS)},
    "progress": (_progress, {"steps": {"type": "integer", "minimum": 1}}),
    "slow": (_slow, {"seconds": {"type": "number"}}),
}
TOOL_NAMES: Final = sorted(_TOOLS)


def _list_tools(cursor: object) -> JSONObject:
    try:
        names, following = paginate(TOOL_NAMES, cursor, key=str, size=PAGE_SIZE)
    except InvalidCursor as error:
        raise McpError(ErrorCode.INVALID_PARAMS, str(error)) from None
    tools: list[Any] = [
        {
            "name": name,
            "description": f"The tool {name} of the demo.",
            "inputSchema": {"type": "object", "properties": _TOOLS[name][1]},
        }
        for name in names
    ]
    return {"tools": tools} if following is None else {"tools": tools, "nextCursor": following}


async def _call_tool(call: ServerCall) -> JSONObject:
    name: str = call.params["name"]
    arguments: JSONObject = call.params.get("arguments") or {}
    if name not in _TOOLS:
        raise McpError(ErrorCode.INVALID_PARAMS, f"unknown tool: {name}")
    try:
        text, failed = await _TOOLS[name][0](call, arguments), False
    except (PeerError, ValueError, TypeError) as error:  # for the model to read
        text, failed = str(error), True
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def handle(call: ServerCall) -> JSONObject | Awaitable[JSONObject]:
    """Serve one request: listings at once, calls in a task of their own."""
    if call.method == "tools/list":
        return _list_tools(call.params.get("cursor"))
    return _call_tool(call)  # the only other one that was declared


async def serve_demo(*, trace: bool = False, banner: bool = False) -> None:
    """Serve on standard input and output.

    Args:
        trace: Report every wire line and event on standard error.
        banner: Begin with a line that is no message.
    """
    async with open_standard_streams() as stream:
        if banner:
            await stream.send_all(BANNER.encode() + b"\n")
        await serve(
            stream,
            handle,
            info=INFO,
            capabilities={"tools": {}},
            instructions="Call echo, progress, slow or ask.",
            trace=SideTrace("server", write_to_stderr) if trace else None,
        )
