"""The trails of one request on the page "where does it live" equal the calls that are made."""

import json
import subprocess
import sys
from typing import Any

from docs._ext.where import TRAILS, source_of, trail_under
from sansmcp import JSONObject, RequestReceived, ServerConnection
from sansmcp.http import ServerEndpoint
from tests.support.called import calls_in
from tests.support.modern import envelope
from tests.support.processes import ROOT
from tests.support.wire import INITIALIZED, call, initialize

SERVER: dict[str, Any] = {
    "info": {"name": "demo", "version": "1"},
    "capabilities": {"tools": {}},
}


def missing_in(calls: list[str], trail: list[str]) -> list[str]:
    """The functions of a trail that are not called after those before them."""
    rest = iter(calls)
    return [name for name in trail if name not in rest]


def line(message: JSONObject) -> bytes:
    return json.dumps(message).encode() + b"\n"


def test_trail_on_a_byte_stream_is_what_happens() -> None:
    """A reader follows the trail, and could not find a renamed function."""
    server = ServerConnection(**SERVER)
    server.receive_data(line(initialize(1, "2025-11-25")) + line(INITIALIZED))
    while server.next_event() is not None:
        pass
    server.data_to_send()

    def serve() -> None:
        server.receive_data(line(call(2, "tools/call", {"name": "echo", "arguments": {}})))
        event = server.next_event()
        assert isinstance(event, RequestReceived)
        server.send_result(event.request, {"content": []})
        assert server.data_to_send()

    trail = trail_under(TRAILS[0])

    assert len(trail) == 16
    assert [name for name in trail if source_of(name) is None] == []
    assert missing_in(calls_in(serve), trail) == []


def test_trail_over_http_is_what_happens() -> None:
    """The same for the way through an endpoint."""
    endpoint = ServerEndpoint(**SERVER, hosts=["*"], origins=[])
    params = {"name": "echo", "arguments": {}, "_meta": envelope()}
    headers = {
        "host": "localhost",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "echo",
    }

    def serve() -> None:
        exchange = endpoint.exchange("POST", "/mcp", list(headers.items()))
        exchange.receive_data(line(call(2, "tools/call", params)))
        exchange.receive_end()
        event = endpoint.next_event()
        assert isinstance(event, RequestReceived)
        endpoint.send_result(event.request, {"content": []})
        response = exchange.response()
        assert response is not None
        assert response[0] == 200

    trail = trail_under(TRAILS[1])

    assert len(trail) == 16
    assert [name for name in trail if source_of(name) is None] == []
    assert missing_in(calls_in(serve), trail) == []


def test_trail_through_an_adapter_is_what_happens() -> None:
    """A reader who fixes an adapter has to know which half of a step is in the shared room."""
    params = {"name": "echo", "arguments": {}, "_meta": envelope()}
    command = [sys.executable, "-m", "tests.support.programs.traced_server"]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        input=line(call(2, "tools/call", params)),
        capture_output=True,
        check=True,
    )
    calls: list[str] = json.loads(ended.stderr)

    trail = trail_under(TRAILS[2])

    assert json.loads(ended.stdout)["result"]["content"] == []
    assert len(trail) == 15
    assert [name for name in trail if source_of(name) is None] == []
    assert missing_in(calls, trail) == []
