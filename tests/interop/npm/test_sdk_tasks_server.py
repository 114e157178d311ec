"""Tasks of a server on version 1 of the TypeScript SDK, in 2025-11-25, from our client."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    ClientConnection,
    JSONObject,
    LocalProtocolError,
    Ready,
    RequestReceived,
    ResponseReceived,
    Task,
    Tasks,
)
from sansmcp.testing import drain
from sansmcp_io.trio import Call, PeerError, TaskCancelledError, TaskLost
from tests.interop.peers import sdk_tasks_server
from tests.interop.talk import INFO, Anomaly, Talk, talking_to
from tests.support.adapters.on_trio import on_trio

ELICITS: JSONObject = {"elicitation": {"form": {}}}
KEEPS_TASKS: JSONObject = {
    "sampling": {},
    **ELICITS,
    "tasks": {
        "list": {},
        "cancel": {},
        "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}},
    },
}


def on_request(call: Call) -> JSONObject:
    assert call.method == "elicitation/create"
    return {"action": "accept", "content": {"name": "Ada"}}


async def text(talk: Talk, name: str, **options: Any) -> str:
    """The text of a tool that is called as a task."""
    result: Any = await talk.client.request("tools/call", {"name": name}, task=True, **options)
    said: str = result["content"][0]["text"]
    return said


@on_trio()
async def test_a_tool_is_called_as_a_task() -> None:
    """The result of the task is that of the call, and a tool may be called without."""
    async with talking_to(sdk_tasks_server()) as talk:
        assert await text(talk, "add") == "3"
        assert await talk.text("add") == "3"


@on_trio()
async def test_a_tool_that_is_a_task_only_is_not_called_plain() -> None:
    """The list of tools says so: our client must not ask what the server will refuse."""
    async with talking_to(sdk_tasks_server()) as talk:
        assert await talk.names("tools/list")
        with pytest.raises(LocalProtocolError, match="TASK-009"):
            await talk.call("wait")
        with pytest.raises(LocalProtocolError, match="TASK-006"):
            await text(talk, "sample")


@on_trio()
async def test_questions_of_a_task_are_answered() -> None:
    """They come on the stream of `tasks/result` only, which our client has to open in time."""
    async with talking_to(sdk_tasks_server(), capabilities=ELICITS, on_request=on_request) as talk:
        assert await text(talk, "ask") == "Ada"


@on_trio()
async def test_a_task_whose_tool_fails_has_a_result() -> None:
    """`failed` means an error of the tool here, which `tasks/result` has."""
    async with talking_to(sdk_tasks_server()) as talk:
        result: Any = await talk.client.request("tools/call", {"name": "break"}, task=True)
        assert result["isError"] is True
        assert result["content"][0]["text"] == "broken"


@on_trio()
async def test_tasks_are_listed_cancelled_and_taken_up_again() -> None:
    """Another connection would do the same with the id alone."""
    async with talking_to(sdk_tasks_server()) as talk:
        tasks = [await talk.client.start_task("tools/call", {"name": "wait"}) for _ in range(12)]
        listed: list[Any] = [task async for task in talk.client.items("tasks/list")]
        assert [one["taskId"] for one in listed] == [task.id for task in tasks]  # on two pages
        assert await tasks[0].cancel()
        with pytest.raises(TaskCancelledError):
            await tasks[0].result()

        started = await talk.request("tools/call", name="turn", task={"ttl": 60_000})
        id: str = started["task"]["taskId"]
        again = await talk.client.resume_task(id)
        assert (await talk.request("tasks/cancel", taskId=id))["status"] == "cancelled"
        with pytest.raises(TaskCancelledError):
            await again.result()
        with pytest.raises(PeerError) as caught:
            await talk.request("tasks/cancel", taskId=id)
        assert caught.value.code == -32602
        with pytest.raises(TaskLost):
            await talk.client.resume_task("no such task")


SAMPLED: JSONObject = {
    "role": "assistant",
    "content": {"type": "text", "text": "sampled"},
    "model": "none",
}
FILLED: JSONObject = {"action": "accept", "content": {"name": "Ada"}}


def said_by_hand(tool: str, end: Callable[[ClientConnection, Task], object]) -> list[str]:
    """The text of a tool that asks our client with a task, in lines.

    Args:
        tool: The tool.
        end: Ends the task of the question.
    """
    client = ClientConnection(
        info=INFO,
        capabilities=KEEPS_TASKS,
        revisions=[LEGACY_REVISIONS[-1]],
        tasks=Tasks(entropy=os.urandom, poll_ms=20),
    )
    client.start(now=time.monotonic())
    pipe = subprocess.PIPE
    with subprocess.Popen(sdk_tasks_server().command, stdin=pipe, stdout=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            while True:
                process.stdin.write(client.data_to_send())
                process.stdin.flush()
                line = process.stdout.readline()
                assert line, "the server has ended"
                client.receive_data(line, now=time.monotonic(), at=time.time())
                for event in drain(client):
                    match event:
                        case Ready():
                            client.send_request("tools/call", {"name": tool})
                        case RequestReceived(request=request):
                            assert request.params["task"] == (
                                {"ttl": 60_000} if tool == "sample" else {}
                            )
                            task = client.create_task(request)
                            assert task is not None
                            end(client, task)
                        case ResponseReceived(result=result):
                            said: str = result["content"][0]["text"]
                            return said.splitlines()
                        case _:
                            assert not isinstance(event, Anomaly), event
        finally:
            process.kill()


def test_the_server_asks_with_a_task() -> None:
    """Our client keeps the task, and the server polls it and fetches its result."""
    steps = said_by_hand("sample", lambda client, task: client.complete_task(task, SAMPLED))
    assert steps == [
        "created working",
        "completed",
        json.dumps(SAMPLED["content"], separators=(",", ":")),
    ]
    steps = said_by_hand("elicit", lambda client, task: client.complete_task(task, FILLED))
    assert steps == ["created working", "completed", '{"name":"Ada"}']


def test_the_server_learns_that_its_task_has_failed() -> None:
    """Each status that ends a task must be one that it knows."""
    steps = said_by_hand("elicit", lambda client, task: client.fail_task(task, -32603, "no user"))
    assert steps[:2] == ["created working", "failed"]
    steps = said_by_hand("elicit", lambda client, task: client.cancel_task(task))
    assert steps[:2] == ["created working", "cancelled"]
