"""The example clients on other stacks, with servers from npm."""

import json
import subprocess
from pathlib import Path

import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.interop.peers import everything, everything_on, pypi, unavailable
from tests.support.adapters.on_trio import on_trio
from tests.support.stacks import ROOT, program, serving


def test_agent_of_twisted_talks_to_everything() -> None:
    """The client object needs only HTTP requests, for which Twisted's agent must do."""
    with everything_on("streamableHttp") as port:
        run = subprocess.run(
            program("twisted_client", f"http://127.0.0.1:{port}/mcp"),
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )
    revision, tools, echo = run.stdout.splitlines()

    assert revision == "revision 2025-11-25"
    assert "echo" in tools.split()
    assert echo == "Echo: Twisted"
    assert run.stderr == ""
    assert run.returncode == 0


def test_websocket_carries_a_client_of_the_package() -> None:
    """Whole messages need no lines; version 1 of the package has such a transport too."""
    python = pypi("mcp").command[0]
    with serving("over_websocket") as url:
        address = url.replace("http://", "ws://").removesuffix("/mcp")
        command = [python, ROOT / "tests" / "peers" / "mcp_websocket.py", address]
        run = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60)
    if "No module named 'websockets'" in run.stderr:
        unavailable("the PyPI package websockets")

    assert run.stderr == ""
    assert json.loads(run.stdout) == {
        "revision": "2025-11-25",
        "tools": ["stock", "count"],
        "text": "17 of lamp",
        "progress": [1, 2, 3],
    }


@on_trio()
async def test_recorder_changes_nothing_between_the_package_and_everything(tmp_path: Path) -> None:
    """A recorder between two foreign processes must change nothing, and record all messages."""
    recorded = tmp_path / "recorded"
    python, *arguments = program("recorder", recorded, *everything().command)
    async with Client(StdioServerParameters(command=python, args=arguments)) as client:
        result = await client.call_tool("echo", {"message": "hi"})
        said = [one.text for one in result.content if isinstance(one, types.TextContent)]
    entries = [json.loads(line) for line in recorded.read_text("utf-8").splitlines()]
    messages = [entry["message"] for entry in entries if "message" in entry]
    answered = [entry["answered"] for entry in entries if "answered" in entry]

    assert said == ["Echo: hi"]
    assert [one["params"]["name"] for one in messages if one.get("method") == "tools/call"] == [
        "echo"
    ]
    assert answered[-3:] == ["initialize", "tools/call", "tools/list"]
    assert [entry for entry in entries if "broke" in entry] == []
