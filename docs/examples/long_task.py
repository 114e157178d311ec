"""A tool that takes an hour, and a client that fetches the result. The hour passes at once."""

import json
from typing import Any

import trio
from trio.testing import MockClock, memory_stream_pair

from sansmcp import JSONObject
from sansmcp_io.trio import CreateTask, RunningTask, ServerCall, serve

GO_ON: JSONObject = {
    "method": "elicitation/create",
    "params": {
        "message": "One file is unreadable. Go on without it?",
        "requestedSchema": {"type": "object", "properties": {}},
    },
}


# -- work
async def index(task: RunningTask) -> JSONObject:
    for number in range(1, 4):
        task.progress(number, total=3, message=f"reading part {number}")
        await trio.sleep(1200)
    answers: Any = await task.ask({"unreadable": GO_ON})
    if answers["unreadable"]["action"] != "accept":
        return {"content": [{"type": "text", "text": "nothing was indexed"}], "isError": True}
    return {"content": [{"type": "text", "text": "indexed all but one file"}]}


def handle(call: ServerCall) -> CreateTask:
    day = 24 * 3600 * 1000  # milliseconds
    return CreateTask(index, ttl_ms=day, poll_ms=540_000, message="waiting for the disk")


async def serve_on(stream: Any) -> None:
    info: JSONObject = {"name": "library", "version": "1.0"}
    await serve(stream, handle, info=info, capabilities={"tools": {}}, tasks=True)


# -- poll
META: JSONObject = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "by hand", "version": "1.0"},
    "io.modelcontextprotocol/clientCapabilities": {
        "elicitation": {"form": {}},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    },
}


async def ask(stream: Any, method: str, **params: Any) -> Any:
    """Send a request, as it is on the wire, and return the result of the next line."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    await stream.send_all(json.dumps(request).encode() + b"\n")
    return json.loads(await stream.receive_some())["result"]


async def follow(stream: Any) -> None:
    begun = trio.current_time()
    task = await ask(stream, "tools/call", name="index", arguments={})
    print(task["resultType"], task["status"], task["statusMessage"])
    about: JSONObject = {"taskId": task["taskId"]}
    while task["status"] in ("working", "input_required"):
        await trio.sleep(task["pollIntervalMs"] / 1000)
        task = await ask(stream, "tasks/get", **about)
        minutes = round((trio.current_time() - begun) / 60)
        print(f"after {minutes} minutes: {task['status']}, {task.get('statusMessage', 'done')}")
        if task["status"] == "input_required":
            answers = {key: {"action": "accept"} for key in task["inputRequests"]}
            await ask(stream, "tasks/update", **about, inputResponses=answers)
    print(task["result"]["content"][0]["text"])


# -- run
async def main() -> None:
    near, far = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_on, far)
        await follow(near)
        await near.aclose()


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
