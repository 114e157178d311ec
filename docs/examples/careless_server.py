"""A weather server that works with most clients, and breaks several rules."""

import json
import sys


def write(**message: object) -> None:
    """Send a message."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def forecast(city: str, token: object) -> dict[str, object]:
    """The one tool."""
    print("looking up", city)
    write(method="notifications/message", params={"level": "debug", "data": "cache miss"})
    for _ in range(2):
        write(method="notifications/progress", params={"progressToken": token, "progress": 1})
    return {"content": [{"type": "text", "text": "rain"}]}


for line in sys.stdin:
    message = json.loads(line)
    params = message.get("params", {})
    match message["method"]:
        case "initialize":
            result: dict[str, object] = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "weather", "version": "0.1"},
            }
            write(id=message["id"], result=result)
        case "tools/list":
            write(id=message["id"], result={"tools": [{"name": "forecast"}]})
        case "tools/call":
            token = params.get("_meta", {}).get("progressToken")
            write(id=str(message["id"]), result=forecast(params["arguments"]["city"], token))
        case method if "id" in message:
            write(id=message["id"], error={"code": -32601, "message": f"no {method} here"})
        case _:
            pass
