"""The servers that HTTP is measured by: they must do what they are measured at."""

import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from tests.support.http.h11_client import posted, posted_modern, responses
from tests.support.http.on_loops import last
from tests.support.http.server_endpoint import LEGACY, modern_tool_call, tool_call
from tests.support.processes import ROOT


@contextmanager
def running(module: str) -> Generator[int, None, None]:
    """Such a server, and its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = [sys.executable, "-m", f"benchmarks.servers.{module}", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            yield port
        finally:
            process.terminate()


def connected(port: int) -> socket.socket:
    """A connection, as soon as the server is there."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=10)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)  # nothing says when it is ready


@pytest.mark.parametrize("module", ["echo_http", "bare_http"])
def test_servers_of_the_benchmark_echo(module: str) -> None:
    """Both do the same work; a bare one that did less would be no floor."""
    modern = posted_modern(modern_tool_call(1, "echo", text="hello"))
    legacy = posted(tool_call(1, "echo", text="hello"), {"mcp-protocol-version": LEGACY})
    with running(module) as port, connected(port) as connection:
        for wire in (modern, legacy):
            connection.sendall(wire)
            (response,) = responses(connection.recv(65536), ["POST"])
            assert response.headers["content-type"] == "application/json"
            assert last(response)["result"]["content"][0]["text"] == "hello"
