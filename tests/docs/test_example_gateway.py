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


async def said(client: Client, tool: str) -> str:
    result = await client.request("tools/call", {"name": f"odd.{tool}", "arguments": {}})
    block = result["content"][0]
    assert block["type"] == "text"
    return block["text"]


@on_trio(seconds=60)
async def test_servers_are_not_promised_to_hear_of_changed_roots(tmp_path: Path) -> None:
    """Nothing tells them, so who relies on it would go on with roots that are over."""
    roots: JSONObject = {"roots": {"listChanged": True}}
    settings: JSONObject = {"revisions": ["2025-11-25"], "on_request": refuse}
    async with asking(before(tmp_path, "old"), capabilities=roots, **settings) as client:
        assert await said(client, "capabilities") == "{'roots': {}}"


@on_trio(seconds=60)
async def test_server_without_subscriptions_ends_nothing(tmp_path: Path) -> None:
    """One of several servers knows less than the others, which must go on being served."""
    async with asking(before(tmp_path, "deaf")) as client:
        assert await said(client, "capabilities") == "{}"
        assert await said(client, "capabilities") == "{}"


@on_trio(seconds=60)
async def test_changes_of_a_server_that_was_started_again_come_through(tmp_path: Path) -> None:
    """Nothing tells the client that the server is another one, so it still waits for news."""
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


def test_question_that_is_left_without_an_answer_is_asked_again(tmp_path: Path) -> None:
    """Clients may answer one of several, and come back for the rest; others would wait for ever."""
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
