"""A client over HTTP without a loop: one thread watches, and others ask."""

import subprocess
import sys
import threading
from typing import Any

from sansmcp import JSONObject
from sansmcp_io.blocking import Changes, Client, PeerError, connect_http

INFO: JSONObject = {"name": "demo client", "version": "1.0"}
SERVER = [sys.executable, "-m", "sansmcp_io", "serve-demo", "--http", "0"]
COUNTER = "demo:counter"


# -- client
def talk(url: str) -> None:
    with connect_http(url, info=INFO, requires=["tools"]) as client:
        print(client.peer.revision, len(list(client.items("tools/list"))), "tools")
        print(call(client, "echo", text="hello"))

        with client.listen({"resourceSubscriptions": [COUNTER]}) as changes:
            watching = threading.Thread(target=watch, args=(changes,))
            watching.start()
            call(client, "touch")
            watching.join()

        try:
            client.request("resources/read", {"uri": "demo:nothing"}, timeout=10)
        except PeerError as error:
            print("refused:", error)


def watch(changes: Changes) -> None:
    change = changes.take(timeout=10)
    assert change is not None  # the subscription was not ended
    print("changed:", change[1]["uri"])


def call(client: Client, tool: str, **arguments: object) -> str:
    result: Any = client.request("tools/call", {"name": tool, "arguments": arguments})
    text: str = result["content"][0]["text"]
    return text


# -- end
def main() -> None:
    with subprocess.Popen(SERVER, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = process.stderr.readline().removeprefix("serving ").strip()
        try:
            talk(url)
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
