"""A client without a loop, which starts a server process and talks to it."""

import sys
from pathlib import Path

from sansmcp import JSONObject
from sansmcp_io.blocking import Call, McpError, PeerError, RequestTimeout, connect_stdio

SERVER = Path(__file__).with_name("blocking_server.py")


# -- serve
def on_request(call: Call) -> JSONObject:
    if call.method == "roots/list":
        return {"roots": [{"uri": "file:///home/me/project"}]}
    raise McpError(-32601, f"no {call.method} here")


def on_notification(method: str, params: JSONObject) -> None:
    print("told:", method, params)


def on_progress(progress: float, total: float | None, message: str | None) -> None:
    print(f"{progress} of {total}")


# -- run
def main() -> None:
    with connect_stdio(
        [sys.executable, SERVER],
        info={"name": "demo client", "version": "1.0"},
        capabilities={"roots": {}},
        requires=["tools"],
        on_request=on_request,
        on_notification=on_notification,
    ) as client:
        print(client.peer.info, client.peer.revision)

        for tool in client.items("tools/list"):
            print("tool:", tool)

        result = client.request(
            "tools/call", {"name": "count"}, on_progress=on_progress, timeout=10
        )
        print(result["content"])

        result = client.request("tools/call", {"name": "whoami"}, log_level="info")
        print(result["content"])

        try:
            client.request("tools/call", {"name": "no such tool"})
        except PeerError as error:
            print("refused:", error)

        try:
            client.request("tools/call", {"name": "sleep"}, timeout=0.05)
        except RequestTimeout as error:
            print("gave up:", error)

        with client.listen({"toolsListChanged": True}) as changes:
            client.request("tools/call", {"name": "learn"})
            print("changed:", changes.take(timeout=10))


# -- end
if __name__ == "__main__":
    main()
