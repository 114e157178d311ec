"""The example gateway, in front of servers that are difficult for a gateway."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
import trio

from sansmcp import JSONObject
from sansmcp_io.trio import Call, Client, PeerError, connect_stdio
from tests.support.adapters.on_trio import on_trio
from tests.support.modern import envelope
from tests.support.stacks import ROOT, program


def before(folder: Path, *arguments: str) -> list[str]:
    """The command of a gateway with one server behind it."""
    file = folder / "servers.json"
    script = str(ROOT / "tests" / "support" / "programs" / "gateway_upstream.py")
    file.write_text(json.dumps({"odd": [sys.executable, script, *arguments]}))
    return program("gateway", file)


async def refuse(call: Call) -> JSONObject:
    raise AssertionError(call.method)


@asynccontextmanager
async def asking(command: list[str], **settings: Any) -> AsyncGenerator[Client]:
    info = {"name": "by hand", "version": "1.0"}
    async with connect_stdio(command, info=info, **settings) as client:
        yield client


async def said(client: Client, tool: str, **settings: Any) -> str:
    params: JSONObject = {"name": f"odd.{tool}", "arguments": {}}
    result: Any = await client.request("tools/call", params, **settings)
    block = result["content"][0]
    assert block["type"] == "text"
    return str(block["text"])


@on_trio(seconds=60)
async def test_servers_are_not_promised_to_hear_of_changed_roots(tmp_path: Path) -> None:
    """No server would be notified, and one that relies on it would use old roots."""
    roots: JSONObject = {"roots": {"listChanged": True}}
    settings: JSONObject = {"revisions": ["2025-11-25"], "on_request": refuse}
    async with asking(before(tmp_path, "old"), capabilities=roots, **settings) as client:
        assert await said(client, "capabilities") == "{'roots': {}}"


@on_trio(seconds=60)
async def test_server_without_subscriptions_ends_nothing(tmp_path: Path) -> None:
    """One server without subscriptions must not end those of the others."""
    async with asking(before(tmp_path, "deaf")) as client:
        assert await said(client, "capabilities") == "{}"
        assert await said(client, "capabilities") == "{}"


@on_trio(seconds=60)
async def test_changes_of_a_server_that_was_started_again_come_through(tmp_path: Path) -> None:
    """The client does not learn of the restart, and still waits for changes."""
    async with (
        asking(before(tmp_path)) as client,
        client.listen({"toolsListChanged": True}) as changes,
        trio.open_nursery() as nursery,
    ):
        with pytest.raises(PeerError, match=r"^odd: "):
            await said(client, "die")

        async def change() -> None:
            while True:  # the gateway listens some time after the restart
                await said(client, "change")

        nursery.start_soon(change)
        method, _ = await anext(changes)
        assert method == "notifications/tools/list_changed"
        nursery.cancel_scope.cancel()


@on_trio(seconds=60)
async def test_reports_between_two_rounds_reach_the_client(tmp_path: Path) -> None:
    """The server's call goes on while the client has no open request, and no report may be lost."""
    seen: list[float] = []
    logged: list[str] = []
    before_answer: list[float] = []

    async def answer(question: Call) -> JSONObject:
        await client.request("tools/list")  # the server reports again before it answers
        before_answer.extend(seen)
        return {"action": "accept", "content": {"shade": "dark grey"}}

    def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    def on_notification(method: str, params: JSONObject) -> None:
        assert method == "notifications/message"
        logged.append(params["data"])

    able: JSONObject = {"elicitation": {"form": {}}}
    settings: JSONObject = {"on_request": answer, "on_notification": on_notification}
    async with asking(before(tmp_path, "old"), capabilities=able, **settings) as client:
        text = await said(client, "long", on_progress=on_progress, log_level="info")

    assert text == "{'shade': 'dark grey'}"
    assert before_answer == [1]  # the others were sent between the rounds
    assert seen == [1, 2, 3, 4]
    assert logged == ["first", "second", "third", "fourth"]


def test_question_that_is_left_without_an_answer_is_asked_again(tmp_path: Path) -> None:
    """Clients may answer some of the questions and retry for the rest."""
    with Popen(before(tmp_path), stdin=PIPE, stdout=PIPE) as gateway:
        assert gateway.stdin is not None
        assert gateway.stdout is not None
        meta = envelope({"elicitation": {"form": {}}})
        answers: JSONObject = {}
        result: JSONObject = {}
        asked: list[str] = []
        for number in range(3):
            params = {"name": "odd.two", "arguments": {}, "_meta": meta} | answers
            request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            gateway.stdin.write(json.dumps(request).encode() + b"\n")
            gateway.stdin.flush()
            result = json.loads(gateway.stdout.readline())["result"]
            if "inputRequests" not in result:
                break
            key, question = next(iter(result["inputRequests"].items()))
            colour = question["params"]["message"]
            asked.append(colour)
            content = {"shade": f"dark {colour}"}
            answers = {
                "inputResponses": {
                    key: {"action": "accept", "content": content},
                    "unknown": {"action": "decline"},
                },
                "requestState": result["requestState"],
            }
        gateway.stdin.close()

    assert sorted(asked) == ["blue", "red"]
    assert result["content"][0]["text"] == "dark blue dark red"
