"""A handler with one tool for each feature of handlers, and requests for these tools."""

import json
from collections.abc import Mapping
from typing import Any

from sansmcp import JSONObject, ResourceUpdated
from sansmcp_io.trio import McpError, RequireInput, ServerCall
from tests.support.adapters import loops
from tests.support.http.on_loops import Talk
from tests.support.http.server_endpoint import LEGACY, tool_call
from tests.support.wire import CLIENT_CAPABILITIES, INITIALIZED, initialize

URI = "test://thing"


def text(value: str) -> JSONObject:
    return {"content": [{"type": "text", "text": value}]}


def said(answer: Any) -> str:
    """The text in the result of a tool."""
    value: str = answer["result"]["content"][0]["text"]
    return value


async def handle(call: ServerCall) -> JSONObject | RequireInput:
    """Run the tool."""
    if call.method != "tools/call":
        return {"tools": []} if call.method == "tools/list" else {}
    arguments: JSONObject = call.params.get("arguments") or {}
    match call.params["name"]:
        case "echo":
            return text(str(arguments.get("text")))
        case "slow":
            await loops.sleep(arguments["seconds"])  # the tool has to take this long
            return text("slept")
        case "progress":
            told = [call.progress(step) for step in (1, 2)]
            return text(str(told))
        case "log":
            return text(str(call.log("error", "a message")))
        case "fail":
            raise McpError(-32001, "no luck", {"why": "none"})
        case "break":
            raise RuntimeError("secret")
        case "ask":
            if not call.input_responses:
                form: JSONObject = {
                    "message": "?",
                    "requestedSchema": {"type": "object", "properties": {}},
                }
                return RequireInput({"q": {"method": "elicitation/create", "params": form}})
            return text(json.dumps(call.input_responses))
        case "roots":
            got: list[float] = []
            result = await call.request(
                "roots/list", on_progress=lambda value, total, message: got.append(value)
            )
            return text(json.dumps([result["roots"], got]))
        case "publish":
            return text(str(call.server.publish(ResourceUpdated(URI))))
        case "who":
            return text(f"{call.principal} {call.context} {call.server.peer.info}")
        case name:
            raise McpError(-32602, f"no tool {name}")


async def opened(talk: Talk, fields: Mapping[str, str] | None = None) -> dict[str, str]:
    """Open a session, and return the headers for all later requests."""
    message = initialize(0, LEGACY, CLIENT_CAPABILITIES)
    response = await talk.post(message, dict(fields or {}))
    assert response.status == 200
    fields = {
        **(fields or {}),
        "mcp-session-id": response.headers["mcp-session-id"],
        "mcp-protocol-version": LEGACY,
    }
    assert (await talk.post(INITIALIZED, fields)).status == 202
    return fields


def legacy_call(name: str, id: int = 1, **arguments: Any) -> JSONObject:
    message = tool_call(id, name, **arguments)
    message["params"]["_meta"] = {"progressToken": "t"}
    return message
