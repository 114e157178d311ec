"""A server on standard input and output, without a loop."""

from sansmcp import JSONObject, ToolsListChanged
from sansmcp_io.blocking import McpError, RequireInput, ServerCall, serve_stdio

NAMES = ["count", "learn", "sleep", "whoami"]


def handle(call: ServerCall) -> JSONObject | RequireInput:
    match call.method:
        case "tools/list":
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]}
        case "tools/call":
            return call_tool(call, call.params["name"])
        case _:
            raise McpError(-32601, f"no {call.method} here")


def text(value: str) -> JSONObject:
    """The result of a tool that has only text to give."""
    return {"content": [{"type": "text", "text": value}]}


# -- tools
def call_tool(call: ServerCall, name: str) -> JSONObject | RequireInput:
    match name:
        case "count":
            for number in range(1, 4):
                call.progress(number, total=3)  # looks for a cancellation, too
                if call.is_cancelled:
                    break
            return text("3")
        case "whoami":
            if "roots" not in call.input_responses:
                return RequireInput({"roots": {"method": "roots/list"}})  # this is called again
            call.log("info", "asked the client for its roots")
            return text(call.input_responses["roots"]["roots"][0]["uri"])
        case "sleep":
            call.sleep(3600)  # raises CallCancelled when the client gives up
            return text("slept")
        case "learn":
            call.server.publish(ToolsListChanged())
            return text("learnt")
        case _:
            raise McpError(-32602, f"unknown tool: {name}")


# -- run
def main() -> None:
    serve_stdio(
        handle,
        info={"name": "demo", "version": "1.0"},
        capabilities={"tools": {"listChanged": True}, "logging": {}},
    )


if __name__ == "__main__":
    main()
