"""A client without a loop, a call of which becomes a task of the server."""

import sys
from pathlib import Path

from sansmcp import JSONObject
from sansmcp_io.blocking import Call, connect_stdio

SERVER = Path(__file__).with_name("task_server.py")
# Here the hour passes at once.
INDEX: JSONObject = {"name": "index", "arguments": {"folder": "photos", "seconds": 0}}


# -- client
def on_request(call: Call) -> JSONObject:
    print("asked:", call.params["message"])
    return {"action": "accept", "content": {}}


def main() -> None:
    with connect_stdio(
        [sys.executable, SERVER],
        info={"name": "demo client", "version": "1.0"},
        capabilities={"elicitation": {"form": {}}},
        on_request=on_request,
    ) as client:
        task = client.start_task("tools/call", INDEX)
        for update in task.updates():
            print(update.status, "-", update.message)
        print(task.result()["content"])


# -- end
if __name__ == "__main__":
    main()
