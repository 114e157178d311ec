"""Handlers that know nothing of tasks, for clients that ask for tasks: on each kind of server."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from sansmcp import JSONObject
from sansmcp_io.blocking import Client, PeerError, connect_http, connect_stdio
from tests.support.modern import LEGACY
from tests.support.processes import ROOT

MODULE: Final = "tests.support.programs.taskless_server"
INFO: Final[JSONObject] = {"name": "client", "version": "1"}
MODERN: Final = "2026-07-28"


def answer(call: Any) -> JSONObject:
    """Answer the one question that servers ask."""
    assert call.method == "elicitation/create"
    return {"action": "accept", "content": {"name": "Ann"}}


@contextmanager
def client_of(how: str, revision: str) -> Generator[Client, None, None]:
    """A client of a server of this kind."""
    options: dict[str, Any] = {
        "info": INFO,
        "revisions": [revision],
        "capabilities": {"elicitation": {"form": {}}},
        "on_request": answer,
    }
    command = [sys.executable, "-m", MODULE, how]
    if how == "stdio":
        with connect_stdio(command, cwd=ROOT, **options) as client:
            yield client
        return
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with connect_http(f"http://127.0.0.1:{port}/mcp", **options) as client:
                yield client
        finally:
            process.kill()


def said(client: Client, name: str, **more: Any) -> str:
    """The text of the result of a tool, which the client wants as a task."""
    result: Any = client.request("tools/call", {"name": name}, task=True, **more)
    text: str = result["content"][0]["text"]
    return text


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize("how", ["asgi", "wsgi", "asyncio", "trio", "stdio"])
def test_handlers_without_tasks_serve_clients_that_ask_for_tasks(how: str, revision: str) -> None:
    """A server of 2025-11-25 makes the task around the handler; later ones answer at once."""
    with client_of(how, revision) as client:
        told: list[str | None] = []

        def progress(done: float, total: float | None, message: str | None) -> None:
            told.append(message)

        assert said(client, "plain", on_progress=progress) == revision
        assert said(client, "rounds") == "asked Ann"
        if revision == LEGACY:
            assert said(client, "ask") == "Ann"
        with pytest.raises(PeerError, match="no room") as caught:
            said(client, "fail")
        assert caught.value.code == -32001
        if how == "stdio" or revision == MODERN:  # else it follows by the stream of the session
            assert told == ["half"]
