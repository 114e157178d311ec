"""One long conversation that uses nearly every feature, always in the same order."""

from collections.abc import Iterator
from typing import Any

from sansmcp import (
    ClientConnection,
    Config,
    LocalProtocolError,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerConnection,
    Side,
    Tasks,
    ToolsListChanged,
)
from sansmcp.testing import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    SERVER_CAPABILITIES,
    SERVER_INFO,
    Pair,
    plain,
)

TOOL = {"name": "echo", "inputSchema": {"type": "object"}}
RESULTS: dict[str, dict[str, Any]] = {
    "tools/list": {"tools": [TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "h\u00e9 \U0001f600"}]},
    "resources/list": {"resources": []},
    "resources/read": {"contents": []},
    "resources/subscribe": {},
    "resources/unsubscribe": {},
    "prompts/list": {"prompts": []},
    "prompts/get": {"messages": []},
    "completion/complete": {"completion": {"values": ["a"]}},
    "roots/list": {"roots": []},
    "sampling/createMessage": {
        "role": "assistant",
        "model": "m",
        "content": {"type": "text", "text": "hi"},
    },
    "elicitation/create": {"action": "decline"},
}
ASKED: list[tuple[Side, str, dict[str, Any] | None]] = [
    (Side.CLIENT, "tools/call", {"name": "echo", "arguments": {"b": 1, "a": [None, 1.5, 2**70]}}),
    (Side.CLIENT, "resources/list", None),
    (Side.CLIENT, "resources/read", {"uri": "file:///a"}),
    (Side.CLIENT, "resources/subscribe", {"uri": "file:///a"}),
    (Side.CLIENT, "prompts/list", {}),
    (Side.CLIENT, "prompts/get", {"name": "p", "arguments": {"x": "y"}}),
    (
        Side.CLIENT,
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": ""}},
    ),
    (Side.CLIENT, "logging/setLevel", {"level": "notice"}),
    (Side.CLIENT, "ping", None),
    (Side.CLIENT, "x/unknown", {"a": 1}),
    (Side.SERVER, "ping", None),
    (Side.SERVER, "roots/list", None),
    (Side.SERVER, "sampling/createMessage", {"messages": [], "maxTokens": 5}),
    (
        Side.SERVER,
        "elicitation/create",
        {"message": "Name?", "requestedSchema": {"type": "object", "properties": {}}},
    ),
]
NOISE = [
    b"Listening on port 8080\n",
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":"odd","method":"tools/call","params":[]}\r\n',
    b'{"jsonrpc":"2.0","id":77,"result":{}}\n\n',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"none"}}\n',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":9}}\n',
    b"[" * 300 + b"\n",
    b"[]\n",
    b'[{"jsonrpc":"2.0","id":"b1","method":"ping"},5]\n',
]


def _answer(pair: Pair) -> None:
    """Answer all requests of both sides: some with progress, some with errors."""
    pair.deliver()
    for side in Side:
        conn = pair.side(side)
        for request in conn.open_requests:
            conn.send_progress(request, 1, total=2, message="half")
            if request.method == "resources/read":
                conn.send_error(request, -32002, "no such resource", {"uri": "file:///a"})
            else:
                conn.send_result(request, RESULTS[request.method], meta={"n": 1})
    pair.deliver()


def _use_task(pair: Pair) -> None:
    """A call that becomes a task, which asks a question and then has a result."""
    call = pair.client.send_request("tools/call", {"name": "slow"}, task=True, progress=True)
    pair.deliver()
    (request,) = pair.server.open_requests
    task = pair.server.create_task(request, message="begun", keep={"z": 1, "a": 2}, at=1.8e9)
    assert task is not None
    pair.deliver()
    pair.server.update_task(task, message="half")
    pair.server.require_task_input(task, {"roots": {"method": "roots/list"}})
    for _ in range(3):
        pair.advance(3)
        pair.deliver()
    _answer(pair)
    pair.server.complete_task(task, RESULTS["tools/call"])
    for _ in range(3):
        pair.advance(3)
        pair.deliver()
    assert not call.open


def conversation(revision: str) -> Pair:
    """Hold the conversation, and return the pair, whose events and transcript show it."""
    pair = Pair(
        ClientConnection(
            info=CLIENT_INFO,
            capabilities=CLIENT_CAPABILITIES,
            revisions=(revision,),
            config=Config(ping_interval=50, max_late_answers=2),
            tasks=Tasks(entropy=bytes),
        ),
        ServerConnection(
            info=SERVER_INFO,
            capabilities=SERVER_CAPABILITIES,
            revisions=(revision,),
            config=Config(max_used_ids=2, max_subscriptions=1, soft_unsent_bytes=2_000),
            tasks=Tasks(entropy=bytes, poll_ms=2_000),
        ),
        connected=False,
    )
    pair.to_server.put(b"noise before\n")
    pair.connect()
    for sender, method, params in ASKED:
        for progress in (False, True):
            try:
                pair.side(sender).send_request(method, params, progress=progress, timeout=9)
            except LocalProtocolError:
                assert method == "elicitation/create"  # legacy revisions have none
            _answer(pair)
    pair.client.send_paginated("tools/list", meta={"n": 1})
    _answer(pair)
    pair.server.send_notification("notifications/x", {"pad": "x" * 2_000})  # changes have to wait
    for change in (ToolsListChanged(), PromptsListChanged(), ResourcesListChanged()):
        pair.server.publish(change)
    pair.server.publish(ResourceUpdated("file:///a"))
    pair.deliver()
    for level in ("debug", "error"):
        pair.server.send_log(level, {"z": 1, "a": 2}, logger="l")
    pair.client.send_notification("notifications/roots/list_changed")
    for side in Side:
        for line in NOISE:
            pair.wire_to(side).put(line)
    pair.deliver(chunk_bytes=7)
    if revision == "2025-11-25":
        _use_task(pair)
    calls = [pair.client.send_request("tools/call", {"name": f"t{n}"}) for n in range(5)]
    pair.deliver()
    for handle in calls[::2]:
        pair.client.cancel(handle, reason="changed my mind")
    pair.client.send_request("tools/list", timeout=5)
    pair.advance(60)
    _answer(pair)
    pair.client.send_request("tools/list")
    pair.to_client.end()
    pair.deliver()
    pair.server.close()
    return pair


def failed_start(revision: str) -> Pair:
    """A pair whose client requires three capabilities that the server lacks."""
    needs = ("tools", "resources.subscribe", "logging", "prompts")
    pair = Pair(
        ClientConnection(info=CLIENT_INFO, revisions=(revision,), requires=needs),
        ServerConnection(info=SERVER_INFO, capabilities={"prompts": {}}),
        connected=False,
    )
    pair.client.start()
    pair.deliver()
    return pair


def converse(revision: str) -> Iterator[str]:
    """The messages and the events of the conversation, line by line."""
    for pair in (conversation(revision), failed_start(revision)):
        for side, message in pair.transcript:
            yield f"{side.name} {message!r}"
        for events in pair.events:
            yield from plain(events)
