"""The blocking client with servers of other projects."""

from typing import Any

import pytest

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, JSONObject
from sansmcp_io.blocking import Call, Client, PeerError, RequestTimeout, connect_stdio
from tests.interop.peers import everything, mcp_server

INFO = {"name": "sansmcp-test", "version": "1.0"}
LEGACY = LEGACY_REVISIONS[-1]
MODERN = MODERN_REVISIONS[-1]
CAPABILITIES: JSONObject = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}


def on_request(call: Call) -> JSONObject:
    match call.method:
        case "elicitation/create":
            return {"action": "accept", "content": {"name": "Ada"}}
        case "sampling/createMessage":
            content = {"type": "text", "text": "a sample"}
            return {"role": "assistant", "content": content, "model": "none"}
        case _:
            return {"roots": [{"uri": "file:///a/root"}]}


def text(client: Client, name: str, **arguments: object) -> str:
    result: Any = client.request("tools/call", {"name": name, "arguments": arguments})
    return "".join(block["text"] for block in result["content"])


def names(client: Client, method: str) -> list[str]:
    items: list[Any] = list(client.items(method))
    return [item["name"] for item in items]


def test_server_everything_is_used() -> None:
    """Listings, tools, questions and progress must work with the TypeScript SDK."""
    told: list[tuple[float, float | None]] = []
    with connect_stdio(
        everything().command,
        info=INFO,
        stderr="capture",
        capabilities=CAPABILITIES,
        on_request=on_request,
    ) as client:
        assert client.peer.revision == LEGACY
        assert "echo" in names(client, "tools/list")
        assert text(client, "echo", message="été ☃") == "Echo: été ☃"
        assert "a sample" in text(client, "trigger-sampling-request", prompt="p")
        client.request(
            "tools/call",
            {
                "name": "trigger-long-running-operation",
                "arguments": {"duration": 0.3, "steps": 3},
            },
            on_progress=lambda progress, total, _: told.append((progress, total)),
        )
        with pytest.raises(PeerError):
            client.request("resources/read", {"uri": "demo://not/there"})
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_server_on_the_mcp_package_is_used(revision: str) -> None:
    """Questions, notifications and cancellation must work in both eras."""
    lines: list[str] = []
    with connect_stdio(
        mcp_server().command,
        info=INFO,
        revisions=[revision],
        capabilities=CAPABILITIES,
        on_request=on_request,
        on_stderr=lines.append,
    ) as client:
        assert text(client, "revision") == revision
        assert "filler_19" in names(client, "tools/list")
        assert text(client, "ask_roots") == "file:///a/root"
        assert text(client, "ask_sampling") == "a sample"
        assert text(client, "ask_elicit") == "accept: Ada"
        with pytest.raises(RequestTimeout):
            client.request(
                "tools/call", {"name": "slow", "arguments": {"seconds": 60}}, timeout=0.3
            )
        assert text(client, "echo", text="x" * 1_000_000) == "x" * 1_000_000
        if revision == MODERN:
            with client.listen({"toolsListChanged": True}) as changes:
                text(client, "change")
                change = changes.take(30)
                assert change is not None
                assert change[0] == "notifications/tools/list_changed"
    assert "slow: cancelled" in lines
