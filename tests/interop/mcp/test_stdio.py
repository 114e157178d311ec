"""Client and server of this project with those of the official `mcp` package, over stdio."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from sansmcp import LEGACY_REVISIONS, JSONObject
from sansmcp_io.trio import Call, Client, PeerError, connect_stdio
from tests.support.adapters.on_trio import on_trio

PEERS = Path(__file__).parents[2] / "peers"
INFO = {"name": "sansmcp-test", "version": "1.0"}
TOOLS = 32


async def on_request(call: Call) -> JSONObject:
    """Answer the questions of the package's server."""
    await trio.lowlevel.checkpoint()
    if call.method == "sampling/createMessage":
        content = {"type": "text", "text": "a sample"}
        return {"role": "assistant", "content": content, "model": "none"}
    assert call.method == "roots/list"
    return {"roots": [{"uri": "file:///sansmcp/root", "name": "root"}]}


async def call_tool(client: Client, name: str, /, **arguments: object) -> str:
    result = await client.request("tools/call", {"name": name, "arguments": arguments})
    assert result.get("isError") in (None, False)
    block = result["content"][0]
    assert block["type"] == "text"
    return block["text"]


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
@on_trio()
async def test_our_client_talks_to_the_server_of_the_package(revision: str) -> None:
    """Two independent implementations must agree on the protocol."""
    stderr: list[str] = []
    progress: list[float] = []
    notified: list[str] = []

    def on_progress(value: float, total: float | None, message: str | None) -> None:
        progress.append(value)

    def on_notification(method: str, params: JSONObject) -> None:
        notified.append(method)

    async with connect_stdio(
        [sys.executable, PEERS / "mcp_server.py"],
        info=INFO,
        capabilities={"sampling": {}, "roots": {}},
        revisions=[revision],
        requires=["tools", "resources.subscribe"],
        on_request=on_request,
        on_notification=on_notification,
        on_stderr=stderr.append,
    ) as client:
        assert client.peer.revision == revision
        assert client.peer.info is not None
        assert client.peer.info["name"] == "mcp-peer"

        tools: list[Any] = [tool async for tool in client.items("tools/list")]
        assert len({tool["name"] for tool in tools}) == len(tools) == TOOLS

        assert await call_tool(client, "echo", text="hi") == "hi"
        await client.request(
            "tools/call",
            {"name": "progress", "arguments": {"steps": 3}},
            on_progress=on_progress,
        )
        assert progress == [1, 2, 3]

        assert await call_tool(client, "ask_sampling") == "a sample"
        assert await call_tool(client, "ask_roots") == "file:///sansmcp/root"

        uri = "test://notes/first"
        await client.request("resources/subscribe", {"uri": uri})
        assert await call_tool(client, "touch", uri=uri) == "notified"
        await client.request("logging/setLevel", {"level": "warning"})
        assert await call_tool(client, "log", level="error") == "sent"
        assert notified == ["notifications/resources/updated", "notifications/message"]

        with pytest.raises(PeerError) as caught:
            await client.request("tools/call", {"name": "unknown"})
        assert caught.value.code == -32602

        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(call_tool, client, "slow", seconds=60))
            await wait_all_tasks_blocked()
            await call_tool(client, "echo", text="the slow one was read before")
            nursery.cancel_scope.cancel()
        assert await call_tool(client, "echo", text="still here") == "still here"

    assert stderr == ["slow: cancelled"]


@pytest.mark.parametrize("revision", [LEGACY_REVISIONS[0], LEGACY_REVISIONS[-1]])
def test_client_of_the_package_talks_to_our_server(revision: str) -> None:
    """The demo server must work with a client of another project."""
    done = subprocess.run(
        [
            *(sys.executable, PEERS / "mcp_client.py", "--revision", revision, "--"),
            *(sys.executable, "-m", "sansmcp_io", "serve-demo"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    steps = {step["step"]: step for step in map(json.loads, done.stdout.splitlines())}

    assert done.returncode == 0, done.stdout + done.stderr
    assert {name: step["outcome"] for name, step in steps.items()} == dict.fromkeys(
        ("initialize", "tools/list", "echo", "progress", "ping", "sampling", "roots", "shutdown"),
        "ok",
    )
    assert steps["initialize"]["revision"] == revision
    assert steps["tools/list"]["pages"] > 1
