"""The questions of npm's server-everything: roots, sampling, elicitation, and tasks."""

from typing import Any

import pytest

from sansmcp import JSONObject
from sansmcp_io.trio import Call, PeerError
from tests.interop.peers import everything
from tests.interop.talk import talking_to
from tests.support.adapters.on_trio import on_trio

CAPABILITIES: JSONObject = {
    "sampling": {},
    "elicitation": {"form": {}, "url": {}},
}
SAMPLE: JSONObject = {
    "role": "assistant",
    "content": {"type": "text", "text": "a sample"},
    "model": "none",
    "stopReason": "endTurn",
}
FORM: JSONObject = {"action": "accept", "content": {"name": "Ada", "check": True, "integer": 7}}


def on_request(call: Call) -> JSONObject:
    match call.method:
        case "sampling/createMessage":
            assert call.params["maxTokens"] == 5
            return SAMPLE
        case _:
            assert call.method == "elicitation/create"
            return {"action": "accept"} if call.params.get("mode") == "url" else FORM


@on_trio()
async def test_its_questions_are_answered() -> None:
    """A server that waits for an answer during a call must get the right one."""
    async with talking_to(everything(), capabilities=CAPABILITIES, on_request=on_request) as talk:
        assert "a sample" in await talk.text("trigger-sampling-request", prompt="p", maxTokens=5)
        filled = await talk.call("trigger-elicitation-request")
        assert "- Name: Ada" in filled["content"][1]["text"]
        assert "- Favorite Integer: 7" in filled["content"][1]["text"]

        link = {"url": "https://example.com/login", "elicitationId": "e1"}
        assert "completed" in await talk.text("trigger-url-elicitation", **link)
        with pytest.raises(PeerError) as caught:
            await talk.call("trigger-url-elicitation", **link, errorPath=True)
        assert caught.value.code == -32042
        data: Any = caught.value.data
        assert data["elicitations"][0]["mode"] == "url"


@on_trio()
async def test_it_asks_for_roots_again_when_they_have_changed() -> None:
    """A server may ask for roots at any time, also long after a call."""
    roots = [{"uri": "file:///interop/one"}]

    def list_roots(call: Call) -> JSONObject:
        assert call.method == "roots/list"
        return {"roots": roots}

    async with talking_to(
        everything(), capabilities={"roots": {"listChanged": True}}, on_request=list_roots
    ) as talk:
        assert "file:///interop/one" in await talk.text("get-roots-list")
        roots.append({"uri": "file:///interop/two"})
        talk.client.notify("notifications/roots/list_changed")
        count = 1
        while True:
            told = await talk.notifications.wait("notifications/message", count)
            if told[count - 1]["data"].startswith("Roots updated: 2 "):
                break
            count += 1
        assert "file:///interop/two" in await talk.text("get-roots-list")


@on_trio()
async def test_nothing_is_asked_of_a_client_that_declared_nothing() -> None:
    """Without a handler no capability is declared, so the server hides its tools that ask."""
    async with talking_to(everything(), capabilities=CAPABILITIES) as talk:
        names = await talk.names("tools/list")
        assert {"trigger-sampling-request", "get-roots-list"}.isdisjoint(names)


@on_trio()
async def test_its_tasks_are_started_polled_and_cancelled() -> None:
    """A call that becomes a task is answered at once and goes on by itself."""
    async with talking_to(everything()) as talk:
        arguments = {"topic": "interoperation"}
        started = await talk.request(
            "tools/call", name="simulate-research-query", arguments=arguments, task={"ttl": 60_000}
        )
        task: str = started["task"]["taskId"]
        assert (await talk.request("tasks/get", taskId=task))["status"] == "working"
        tasks: list[Any] = [task async for task in talk.client.items("tasks/list")]
        assert [listed["taskId"] for listed in tasks] == [task]
        assert (await talk.request("tasks/cancel", taskId=task))["status"] == "cancelled"
        with pytest.raises(PeerError) as caught:
            await talk.request("tasks/cancel", taskId=task)
        assert caught.value.code == -32602


@pytest.mark.parametrize("is_ambiguous", [False, True])
@on_trio()
async def test_its_research_is_a_task_to_its_end(is_ambiguous: bool) -> None:
    """A tool that takes seconds returns its report as if there had been no task."""
    asked: list[str] = []

    def clarify(call: Call) -> JSONObject:
        schema: Any = call.params["requestedSchema"]
        asked.extend(one["const"] for one in schema["properties"]["interpretation"]["oneOf"])
        return {"action": "accept", "content": {"interpretation": "snake"}}

    arguments: JSONObject = {"topic": "python", "ambiguous": is_ambiguous}
    params: JSONObject = {"name": "simulate-research-query", "arguments": arguments}
    async with talking_to(everything(), capabilities=CAPABILITIES, on_request=clarify) as talk:
        assert "simulate-research-query" in await talk.names("tools/list")
        task = await talk.client.start_task("tools/call", params, task=60.0)
        seen = [update.message async for update in task.updates()]
        report = (await task.result())["content"][0]["text"]
    assert "Gathering sources..." in seen
    wanted = "python (snake)" if is_ambiguous else "python"
    assert report.startswith(f"# Research Report: {wanted}\n")
    assert asked == (["programming", "snake", "comedy"] if is_ambiguous else [])


@on_trio()
async def test_its_questions_are_taken_up_as_tasks() -> None:
    """A server may ask for a task too, which an application without our tasks keeps by itself."""
    stamps = {"createdAt": "2025-11-25T00:00:00Z", "lastUpdatedAt": "2025-11-25T00:00:00Z"}

    def as_task(call: Call) -> JSONObject:
        status: JSONObject = {"taskId": "t1", "status": "working", "ttl": None, **stamps}
        match call.method:
            case "sampling/createMessage":
                assert "task" in call.params
                return {"task": status}
            case "tasks/get":
                return {**status, "status": "completed"}
            case _:
                assert call.method == "tasks/result"
                return {
                    **SAMPLE,
                    "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t1"}},
                }

    async with talking_to(
        everything(),
        capabilities={
            "sampling": {},
            "tasks": {"requests": {"sampling": {"createMessage": {}}}},
        },
        on_request=as_task,
        tasks=False,
    ) as talk:
        told = await talk.call("trigger-sampling-request-async", prompt="p")
        assert "a sample" in str(told["content"])
