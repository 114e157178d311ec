"""The blocking client over HTTP, with servers of other projects."""

import os
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, JSONObject
from sansmcp.http import AuthorizationRequired
from sansmcp_io.blocking import PeerError, RequestTimeout, connect_http
from tests.interop.peers import ROOT, everything
from tests.interop.test_blocking import CAPABILITIES, INFO, names, on_request, text

LEGACY = LEGACY_REVISIONS[-1]
MODERN = MODERN_REVISIONS[-1]
PACKAGE: Final = (sys.executable, "-m", "tests.peers.mcp_http")
TOKEN: Final = "6f1e"
HANG: Final[JSONObject] = {"name": "hang", "arguments": {"name": "a"}}
FORMS: Final = [[], ["--json"], ["--stateless"], ["--stateless", "--json"]]
SAY_PORT: Final = """
import http from "node:http";
const listen = http.Server.prototype.listen;
const write = process.stdout.write.bind(process.stdout);
console.log = console.error = () => {};
http.Server.prototype.listen = function (...args) {
  this.on("listening", () => write(`${this.address().port}\\n`));
  return listen.apply(this, args);
};
"""
"""npm's server can be told a port, but does not say which one it was given."""


@contextmanager
def running(command: Sequence[str | Path]) -> Generator[str, None, None]:
    """A server whose first line of output is its port; returns the start of its URLs."""
    environment = {**os.environ, "PORT": "0"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def call(name: str, **arguments: object) -> JSONObject:
    return {"name": name, "arguments": arguments}


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize("options", FORMS, ids=" ".join)
def test_server_on_the_mcp_package_is_used(revision: str, options: list[str]) -> None:
    """Listings, responses, errors and cancellation must work in both eras and every form."""
    told: list[float] = []

    def note(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    with (
        running([*PACKAGE, *options]) as url,
        connect_http(
            f"{url}/mcp",
            info=INFO,
            revisions=[revision],
            capabilities=CAPABILITIES,
            on_request=on_request,
        ) as client,
    ):
        assert text(client, "revision") == revision
        assert "filler_19" in names(client, "tools/list")
        assert text(client, "echo", text="x" * 1_000_000) == "x" * 1_000_000
        with pytest.raises(PeerError):
            client.request("resources/read", {"uri": "test://not/there"})
        client.request("tools/call", call("progress", steps=3), on_progress=note)
        if "--json" not in options:  # a JSON answer has no room for them
            assert told == [1, 2, 3]
        if revision == MODERN or options == []:  # else the server has no way to ask
            assert text(client, "ask_roots") == "file:///a/root"
            assert text(client, "ask_sampling") == "a sample"
            assert text(client, "ask_elicit") == "accept: Ada"
        if revision == MODERN or "--stateless" not in options:  # else it cannot be told
            with pytest.raises(RequestTimeout):
                client.request("tools/call", HANG, timeout=0.3)
            if revision == LEGACY or "--json" not in options:
                # Else the package does not look for the end of a connection while it works.
                ended: Any = client.request("tools/call", {**HANG, "name": "await_ending"})
                assert ended["content"][0]["text"] == "it has ended"
        if revision == MODERN:
            with client.listen({"toolsListChanged": True}) as changes:
                text(client, "change")
                change = changes.take(30)
                assert change is not None
                assert change[0] == "notifications/tools/list_changed"


def test_an_answer_is_fetched_after_its_stream_was_closed() -> None:
    """The package stores events, and closes a stream before its response."""
    told: list[float] = []

    def note(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    with (
        running([*PACKAGE, "--store"]) as url,
        connect_http(f"{url}/mcp", info=INFO, revisions=[LEGACY]) as client,
    ):
        assert text(client, "leave") == "left"
        result: Any = client.request("tools/call", call("leave_until_back"), on_progress=note)
        assert result["content"][0]["text"] == "back"
    assert told == [1, 2]


def test_a_token_is_shown_when_the_server_wants_one() -> None:
    """The server answers 401 with the address of its metadata."""
    seen: list[Any] = []

    def show(refused: AuthorizationRequired) -> list[tuple[str, str]]:
        seen.append((refused.status, refused.challenges[0].scheme.lower()))
        return [("Authorization", f"Bearer {TOKEN}")]

    with (
        running([*PACKAGE, "--token", TOKEN]) as url,
        connect_http(f"{url}/mcp", info=INFO, on_unauthorized=show) as client,
    ):
        assert text(client, "echo", text="a") == "a"
    assert seen == [(401, "bearer")]


@pytest.mark.parametrize(
    ("transport", "path"), [("streamableHttp", "/mcp"), ("sse", "/sse")], ids=["http", "sse"]
)
def test_server_everything_is_used(transport: str, path: str) -> None:
    """The TypeScript SDK must work in a session, and on the old transport with one stream."""
    node, script = everything().command
    told: list[tuple[float, float | None]] = []
    command = [node, "--import", f"data:text/javascript,{SAY_PORT}", script, transport]
    with (
        running(command) as url,
        connect_http(
            f"{url}{path}", info=INFO, capabilities=CAPABILITIES, on_request=on_request
        ) as client,
    ):
        assert client.peer.revision == LEGACY
        assert "echo" in names(client, "tools/list")
        assert text(client, "echo", message="été ☃") == "Echo: été ☃"
        assert "a sample" in text(client, "trigger-sampling-request", prompt="p")
        client.request(
            "tools/call",
            call("trigger-long-running-operation", duration=0.3, steps=3),
            on_progress=lambda progress, total, _: told.append((progress, total)),
        )
        with pytest.raises(PeerError):
            client.request("resources/read", {"uri": "demo://not/there"})

        said: dict[int, str] = {}

        def ask(number: int) -> None:
            said[number] = text(client, "echo", message=str(number))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert said == {number: f"Echo: {number}" for number in range(8)}
    assert told == [(1, 3), (2, 3), (3, 3)]
