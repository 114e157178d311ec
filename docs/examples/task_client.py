"""A client on asyncio, two of whose calls become tasks of the server."""

import asyncio
import sys
from pathlib import Path

from sansmcp import JSONObject
from sansmcp_io.asyncio import Call, connect_stdio

SERVER = Path(__file__).with_name("task_server.py")
# Here the hour passes at once.
INDEX: JSONObject = {"name": "index", "arguments": {"folder": "photos", "seconds": 0}}


# -- client
async def on_request(call: Call) -> JSONObject:
    print("asked:", call.params["message"])
    return {"action": "accept", "content": {}}


async def main() -> None:
    async with connect_stdio(
        [sys.executable, SERVER],
        info={"name": "demo client", "version": "1.0"},
        capabilities={"elicitation": {"form": {}}},
        on_request=on_request,
    ) as client:
        # As any request, but it may take an hour.
        result = await client.request("tools/call", INDEX, task=True)
        print(result["content"])

        # With a look at it in between.
        task = await client.start_task("tools/call", INDEX)
        async for update in task.updates():
            print(update.status, "-", update.message)
        print((await task.result())["content"])


# -- end
if __name__ == "__main__":
    asyncio.run(main())
