"""A server on stdio with features that are difficult for a gateway in front of it.

Usage: python tests/support/programs/gateway_upstream.py [deaf|old]

With `deaf` it refuses subscriptions, with `old` it knows legacy revisions only.
"""

import os
import sys

from sansmcp import ALL_REVISIONS, LEGACY_REVISIONS, Config, ErrorCode, JSONObject, ToolsListChanged
from sansmcp_io.blocking import McpError, RequireInput, ServerCall, serve_stdio

COLOURS = ("blue", "red")
waiting: list[ServerCall] = []  # calls whose question has no answer yet


def question(colour: str) -> JSONObject:
    schema = {"type": "object", "properties": {"shade": {"type": "string"}}}
    params = {"message": colour, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def report(call: ServerCall, progress: int, data: str) -> None:
    call.progress(progress, total=4)
    call.log("info", data)


def handle(call: ServerCall) -> JSONObject | RequireInput:
    if call.method == "tools/list":  # which a client can use while it holds a question
        for waiting_call in waiting:
            report(waiting_call, 2, "second")
            report(waiting_call, 3, "third")
        return {"tools": []}
    match call.params.get("name"):
        case None:
            raise McpError(ErrorCode.METHOD_NOT_FOUND, f"{call.method} is not known here")
        case "capabilities":
            text = repr(call.capabilities)
        case "change":
            text = repr(call.server.publish(ToolsListChanged()))
        case "long":
            report(call, 1, "first")
            waiting.append(call)
            params: JSONObject = question("grey")["params"]
            answer = call.server.request("elicitation/create", params)
            waiting.remove(call)
            report(call, 4, "fourth")
            text = repr(answer.get("content"))
        case "two" if not call.input_responses:
            return RequireInput({colour: question(colour) for colour in COLOURS})
        case "two":
            text = " ".join(call.input_responses[one]["content"]["shade"] for one in COLOURS)
        case _:
            os._exit(1)
    return {"content": [{"type": "text", "text": text}]}


if __name__ == "__main__":
    manual = frozenset({"subscriptions/listen"} if "deaf" in sys.argv else set[str]())
    serve_stdio(
        handle,
        info={"name": "odd", "version": "1.0"},
        capabilities={"logging": {}, "tools": {"listChanged": True}},
        revisions=LEGACY_REVISIONS if "old" in sys.argv else ALL_REVISIONS,
        config=Config(manual=manual),
    )
