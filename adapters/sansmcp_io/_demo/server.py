"""The server of the demo: one tool for each case that the demo shows.

It is written once for both eras: nothing here asks at which revision a call came.
"""

from __future__ import annotations

import secrets
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import redirect_stdout, suppress
from functools import partial
from typing import Any, Final

import trio

from sansmcp import (
    ALL_REVISIONS,
    LOG_LEVELS,
    Config,
    ErrorCode,
    InvalidCursor,
    JSONObject,
    ResourceUpdated,
    paginate,
)

from .._common.errors import McpError
from ..trio import HTTPServer, RequireInput, ServerCall, serve, serve_http
from ..trio._streams import open_standard_streams
from .transcript import SideTrace, write_to_stderr

PAGE_SIZE: Final = 10
FILLERS: Final = 21
INFO: Final[JSONObject] = {"name": "sansmcp-demo-server", "version": "1.0"}
CAPABILITIES: Final[JSONObject] = {"tools": {}, "resources": {"subscribe": True}, "logging": {}}
COUNTER: Final = "demo:counter"
"""The one resource: how often `touch` was called."""
BANNER: Final = "the demo server is starting"
"""A line that careless servers print on standard output before the first message."""

RESOURCE_NOT_FOUND: Final = -32002
"""Of the revisions with a handshake; where there is none, the library sends what took its place."""

_touched = 0


async def _echo(call: ServerCall, arguments: JSONObject) -> str:
    return str(arguments.get("text", ""))


async def _progress(call: ServerCall, arguments: JSONObject) -> str:
    steps = int(arguments.get("steps", 3))
    for step in range(1, steps + 1):
        call.progress(step, total=steps, message=f"step {step}")
        await trio.lowlevel.checkpoint()
    return f"{steps} steps"


async def _slow(call: ServerCall, arguments: JSONObject) -> str:
    """Work for a while, and print the progress on standard output, which is standard error here."""
    try:
        await trio.sleep(float(arguments.get("seconds", 60)))
    except trio.Cancelled:
        print("slow: cancelled")
        raise
    return "slept"


async def _log(call: ServerCall, arguments: JSONObject) -> str:
    """Log once at each level, and say which of the messages the client gets."""
    told = [level for level in LOG_LEVELS if call.log(level, f"this is {level}", logger="demo")]
    return f"told: {', '.join(told) or 'nothing'}"


async def _touch(call: ServerCall, arguments: JSONObject) -> str:
    """Change the counter."""
    global _touched
    _touched += 1
    told = call.server.publish(ResourceUpdated(COUNTER))
    return f"touch {_touched}: the client {'was' if told else 'has not asked to be'} told"


# --------------------------------------------------------------------------------- questions

_QUESTIONS: Final[Mapping[str, JSONObject]] = {
    "sampling": {
        "method": "sampling/createMessage",
        "params": {
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "Say something."}},
            ],
            "maxTokens": 50,
        },
    },
    "roots": {"method": "roots/list"},
    "elicitation": {
        "method": "elicitation/create",
        "params": {
            "message": "Which city?",
            "requestedSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    },
}


async def _ask(call: ServerCall, arguments: JSONObject) -> str | RequireInput:
    """Ask the client all questions that it supports. Called again with the answers."""
    if not call.input_responses:
        questions = {name: _QUESTIONS[name] for name in _askable(call.capabilities)}
        if not questions:
            return "this client answers nothing"
        return RequireInput(questions, state=f"asked for {', '.join(questions)}")
    told = "; ".join(_said(name, answer) for name, answer in call.input_responses.items())
    return f"{call.state}: {told}"


def _askable(capabilities: JSONObject) -> list[str]:
    """The questions that a client can answer. One that elicits only URLs gets no forms."""
    modes: Any = capabilities.get("elicitation")
    takes_forms = not modes or "form" in modes
    return [
        name
        for name in _QUESTIONS
        if name in capabilities and (name != "elicitation" or takes_forms)
    ]


def _said(name: str, answer: JSONObject) -> str:
    said: Any
    match name:
        case "sampling":
            content: Any = answer["content"]
            blocks: list[Any] = [*content] if isinstance(content, list) else [content]
            said = ", ".join(block.get("text", "not a text") for block in blocks)
        case "roots":
            said = ", ".join(root["uri"] for root in answer["roots"])
        case _:
            said = answer.get("content") or answer["action"]
    return f"{name}: {said}"


async def _filler(call: ServerCall, arguments: JSONObject) -> str:
    return "a filler does nothing"


# ------------------------------------------------------------------------------------ serving

Tool = Callable[[ServerCall, JSONObject], Awaitable[str | RequireInput]]

_TOOLS: Final[Mapping[str, tuple[Tool, JSONObject]]] = {
    "ask": (_ask, {}),
    "echo": (_echo, {"text": {"type": "string"}}),
    **{f"filler_{number:02}": (_filler, {}) for number in range(FILLERS)},
    "log": (_log, {}),
    "progress": (_progress, {"steps": {"type": "integer", "minimum": 1}}),
    "slow": (_slow, {"seconds": {"type": "number"}}),
    "touch": (_touch, {}),
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


async def _call_tool(call: ServerCall) -> JSONObject | RequireInput:
    name: str = call.params["name"]
    arguments: JSONObject = call.params.get("arguments") or {}
    if name not in _TOOLS:
        raise McpError(ErrorCode.INVALID_PARAMS, f"unknown tool: {name}")
    try:
        result, failed = await _TOOLS[name][0](call, arguments), False
    except (ValueError, TypeError) as error:  # for the model to read
        result, failed = str(error), True
    if isinstance(result, RequireInput):
        return result
    return {"content": [{"type": "text", "text": result}], "isError": failed}


def _of_counter(call: ServerCall) -> JSONObject:
    """Read the counter, or accept a subscription to it: `publish` does the rest."""
    uri: str = call.params["uri"]
    if uri != COUNTER:
        raise McpError(RESOURCE_NOT_FOUND, f"unknown resource: {uri}", {"uri": uri})
    if call.method != "resources/read":
        return {}
    return {"contents": [{"uri": COUNTER, "mimeType": "text/plain", "text": str(_touched)}]}


def handle(call: ServerCall) -> JSONObject | Awaitable[JSONObject | RequireInput]:
    """Serve one request: tool calls in a task of their own, all others at once."""
    match call.method:
        case "tools/call":
            return _call_tool(call)
        case "tools/list":
            return _list_tools(call.params.get("cursor"))
        case "resources/list":
            return {"resources": [{"uri": COUNTER, "name": "counter", "mimeType": "text/plain"}]}
        case "resources/templates/list":
            return {"resourceTemplates": []}
        case _:  # read, subscribe and unsubscribe: no others belong to what was declared
            return _of_counter(call)


async def serve_demo(*, trace: bool = False, banner: bool = False) -> None:
    """Serve on standard input and output.

    Args:
        trace: Report every wire line and event on standard error.
        banner: Begin with a line that is no message.
    """
    async with open_standard_streams() as stream:
        if banner:
            with suppress(OSError):  # a client that is gone is no news to a server
                await stream.send_all(BANNER.encode() + b"\n")
        await serve(
            stream,
            handle,
            info=INFO,
            capabilities=CAPABILITIES,
            instructions="Call ask, echo, log, progress, slow or touch.",
            # The state of `ask` goes through the client's hands: it must come back as it was.
            config=Config(state_keys=(secrets.token_bytes(32),)),
            trace=SideTrace("server", write_to_stderr) if trace else None,
        )


async def serve_demo_http(port: int) -> None:
    """Serve over HTTP on this machine, until SIGINT or SIGTERM. Standard error says where."""
    async with trio.open_nursery() as nursery:
        server: HTTPServer = await nursery.start(
            partial(
                serve_http,
                handle,
                port=port,
                info=INFO,
                capabilities=CAPABILITIES,
                revisions=ALL_REVISIONS,
                config=Config(state_keys=(secrets.token_bytes(32),)),
            )
        )
        with (
            trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals,
            redirect_stdout(sys.stderr),  # what tools print is shown where it is on stdio, too
        ):
            print(f"serving http://127.0.0.1:{server.port}/mcp", file=sys.stderr, flush=True)
            async for _ in signals:
                server.close()
                break
