"""`curl` with a server over HTTP, which is the first client that people try."""

import json
import re
import shutil
import subprocess
from typing import Any

import pytest

from sansmcp import JSONObject
from sansmcp_io.trio import HTTPServer, ServerCall
from tests.support.adapters import loops
from tests.support.adapters.loops import STANDARD_LOOPS, on_each_loop
from tests.support.http.on_loops import serving
from tests.support.http.server_endpoint import LEGACY, POST, modern_headers, modern_tool_call
from tests.support.processes import ROOT
from tests.support.wire import CLIENT_CAPABILITIES, INITIALIZED, initialize

CURL = shutil.which("curl")
pytestmark = pytest.mark.skipif(CURL is None, reason="curl is not installed")


def handle(call: ServerCall) -> JSONObject:
    """Send the requested amount of progress, and return the size of the arguments."""
    arguments = call.params["arguments"]
    for step in range(arguments.get("steps", 0)):
        call.progress(step + 1)
    return {"content": [{"type": "text", "text": str(len(arguments.get("text", "")))}]}


async def curl(server: HTTPServer, *arguments: str, body: object = None) -> tuple[list[int], bytes]:
    """The output of curl: the statuses of all responses, and the last body."""
    command = ["curl", "-sS", "--max-time", "5", "-o", "-", "-D", "/dev/stderr", *arguments]
    data = b""
    if body is not None:
        data = json.dumps(body).encode()
        command += ["--data-binary", "@-"]
    url = f"http://localhost:{server.port}/mcp"

    def run() -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([*command, url], input=data, capture_output=True, check=False)

    done = await loops.in_thread(run)
    heads = [line.split()[1] for line in done.stderr.splitlines() if line.startswith(b"HTTP/")]
    return [int(status) for status in heads], done.stdout


def fields(given: Any) -> list[str]:
    return [part for name, value in given.items() for part in ("-H", f"{name}: {value}")]


@on_each_loop(loops=STANDARD_LOOPS)
async def test_health_check_of_the_documentation_succeeds() -> None:
    """The command is copied into process managers, where a mistake restarts the server."""
    page = (ROOT / "docs" / "howto" / "http-deployment.md").read_text("utf-8")
    [command] = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    assert command.count("127.0.0.1:8000") == 1
    async with serving(handle) as server:
        line = command.replace("127.0.0.1:8000", f"127.0.0.1:{server.port}")
        done = await loops.in_thread(lambda: subprocess.run(["sh", "-c", line], check=False))

    assert done.returncode == 0


@on_each_loop(loops=STANDARD_LOOPS)
async def test_curl_gets_an_answer() -> None:
    """One POST must get one JSON object."""
    message = modern_tool_call(1, "size", text="abc")
    async with serving(handle) as server:
        given = fields({**POST, **modern_headers(message)})
        statuses, body = await curl(server, *given, body=message)

    assert statuses == [200]
    assert json.loads(body)["result"]["content"][0]["text"] == "3"


@on_each_loop(loops=STANDARD_LOOPS)
async def test_curl_sends_a_large_body_without_waiting() -> None:
    """With more than a megabyte curl waits a second for `100 Continue`."""
    message = modern_tool_call(1, "size", text="x" * 2_000_000)
    async with serving(handle) as server:
        given = fields({**POST, **modern_headers(message), "expect": "100-continue"})
        statuses, body = await curl(server, *given, body=message)
        chunked = fields({**POST, **modern_headers(message), "transfer-encoding": "chunked"})
        statuses_of_chunked, body_of_chunked = await curl(server, *chunked, body=message)

    assert statuses == [100, 200]
    assert statuses_of_chunked[-1] == 200
    for one in (body, body_of_chunked):
        assert json.loads(one)["result"]["content"][0]["text"] == "2000000"


@on_each_loop(loops=STANDARD_LOOPS)
async def test_curl_shows_a_stream() -> None:
    """With `-N` curl must show each event when it comes, in readable form."""
    message = modern_tool_call(1, "size", steps=2)
    message["params"]["_meta"]["progressToken"] = 1
    async with serving(handle) as server:
        given = fields({**POST, **modern_headers(message)})
        statuses, body = await curl(server, "-N", *given, body=message)

    assert statuses == [200]
    assert body.count(b"data: ") == 3


@on_each_loop(loops=STANDARD_LOOPS)
async def test_curl_walks_through_a_session() -> None:
    """A whole session must work by hand: initialize, initialized, a call, and DELETE."""
    async with serving(handle) as server:
        opening = initialize(0, LEGACY, CLIENT_CAPABILITIES)
        assert (await curl(server, *fields(POST), body=opening))[0] == [200]
        (session,) = server.sessions
        known = {**POST, "mcp-session-id": session.id, "mcp-protocol-version": LEGACY}
        assert (await curl(server, *fields(known), body=INITIALIZED)) == ([202], b"")
        call: JSONObject = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        call["params"] = {"name": "size", "arguments": {}}
        statuses, body = await curl(server, *fields(known), body=call)
        assert (statuses, json.loads(body)["id"]) == ([200], 1)
        statuses, _ = await curl(server, "-X", "DELETE", *fields(known))
        assert statuses[0] // 100 == 2
        assert (await curl(server, *fields(known), body=call))[0] == [404]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["-X", "GET"], 400),
        (["-d", "{"], 415),
        (["-X", "PUT"], 405),
        (["-I"], 405),
        (["-H", "Host: evil.example", "-X", "POST"], 403),
        (["-H", "content-type: application/json", "-d", "{"], 400),
    ],
    ids=str,
)
@on_each_loop(loops=STANDARD_LOOPS)
async def test_curl_is_told_what_is_wrong(arguments: list[str], status: int) -> None:
    """A wrong request must be refused with a status and a text that says why."""
    async with serving(handle) as server:
        statuses, body = await curl(server, *arguments)

    assert statuses == [status]
    assert arguments == ["-I"] or b"message" in body
