"""The benchmarks run, and print every row that a claim of the project rests on."""

import json
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.http.h11_client import posted, posted_modern, responses
from tests.support.http.on_loops import last
from tests.support.http.server_endpoint import LEGACY, modern_tool_call, tool_call
from tests.support.processes import ROOT

# How often each row is to be found: the same thing is measured both ways, or with two codecs.
ROWS = {
    "small call, round trip": 4,
    "small call, round trip, token, 2 timeouts": 2,
    "import, installed wheel, no extras": 1,
    "memory: request in flight": 2,
    "memory: request in flight, token, 2 timeouts": 1,
    "memory: idle connection": 2,
    "growth with the line, chunks of 1 B, one text": 1,
    "growth with the line, chunks of 64 B, one text": 1,
    "growth with the line, chunks of 64 KiB, one text": 1,
    "growth with the line, chunks of 64 KiB, records": 1,
    "line of 64 KiB beside bare json.loads, one text": 1,
    "line of 1 MiB beside bare json.loads, one text": 1,
    "line of 64 KiB beside bare json.loads, records": 1,
    "line of 1 MiB beside bare json.loads, records": 1,
    "growth with requests in flight": 2,
    "growth with requests in flight, ids of one hash": 1,
    "growth with requests in flight, token, 2 timeouts": 1,
    "check in full, params and result of the small call, 2025-11-25": 1,
    "check in full, params and result of the small call, 2026-07-28": 1,
    "check in full, growth with the blocks of a result": 1,
    "small call, HTTP exchange, 2026-07-28": 2,
    "small call, HTTP exchange, stateless": 1,
    "small call, HTTP exchange, session": 2,
    "memory: idle session": 1,
    "publish to 1 of 10,000 sessions, beside 1 of 100": 1,
    "HTTP on trio, small call, 16 connections, 2026-07-28": 1,
    "HTTP on trio, small call, 16 connections, 2025-11-25": 1,
    "HTTP on asyncio, small call, 16 connections, 2026-07-28": 1,
    "HTTP on asyncio, small call, 16 connections, 2025-11-25": 1,
    "HTTP on asyncio, small call, 16 connections, 2026-07-28, beside mcp": 1,
    "HTTP on asyncio, small call, 16 connections, 2025-11-25, beside mcp": 1,
    "HTTP on asyncio, small call, 16 connections, 2025-11-25, sessions, beside mcp": 1,
    "HTTP client on trio, small call, sequential, 2026-07-28": 1,
    "HTTP client on trio, small call, sequential, 2025-11-25": 1,
    "HTTP client on asyncio, small call, sequential, 2026-07-28": 1,
    "HTTP client on asyncio, small call, sequential, 2025-11-25": 1,
    "HTTP client on trio, httpx2, small call, sequential, 2026-07-28": 1,
    "HTTP client on trio, httpx2, small call, sequential, 2025-11-25": 1,
    "HTTP client on asyncio, httpx2, small call, sequential, 2026-07-28": 1,
    "HTTP client on asyncio, httpx2, small call, sequential, 2025-11-25": 1,
    "HTTP client on threads, httpx2, small call, sequential, 2026-07-28": 1,
    "HTTP client on threads, httpx2, small call, sequential, 2025-11-25": 1,
    "stdio on trio, small call, 64 in flight, plain handler": 1,
    "stdio on trio, small call, 64 in flight, async handler": 1,
    "stdio on trio, small call, sequential, plain handler": 1,
    "stdio on asyncio, small call, 64 in flight, plain handler": 1,
    "stdio on asyncio, small call, 64 in flight, async handler": 1,
    "stdio on asyncio, small call, 64 in flight, plain handler, beside npm": 1,
    "stdio on asyncio, small call, sequential, plain handler": 1,
    "stdio on asyncio, echo of 1 MiB, sequential, plain handler": 1,
    "stdio on trio, echo of 1 MiB, sequential, plain handler": 2,
    "tap, small call, summary only, latency added per message": 1,
    "tap, small call, trace and capture, latency added per message": 1,
    "tap, echo of 64 KiB, trace and capture, latency added per message": 1,
    "growth of a poll with tasks in flight, 2025-11-25": 2,
    "growth of a poll with tasks in flight, 2026-07-28": 2,
    "memory: idle task, 2025-11-25": 2,
    "memory: idle task, 2026-07-28": 2,
    "plain call with tasks turned on, beside without, 2025-11-25": 2,
    "plain call with tasks turned on, beside without, 2026-07-28": 2,
    "cluster, carried call, 1 connection, processor time added": 1,
    "cluster, carried call, 1 connection, latency added": 1,
    "cluster, call at its worker, 1 connection, processor time elsewhere": 1,
    "cluster, carried call, 16 connections, processor time added": 1,
    "cluster, carried call, 16 connections, latency added": 1,
    "cluster, call at its worker, 16 connections, processor time elsewhere": 1,
    "attack: slow heads": 1,
    "attack: bodies of 100 MB, announced": 1,
    "attack: bodies of 100 MB, chunked": 1,
    "attack: bodies of 16 MB that stop at 15": 1,
    "attack: idle sessions": 1,
    "attack: open GET streams": 1,
    "attack: answers of 300 kB that nobody reads": 1,
    "attack: progress that nobody reads": 1,
    "attack: a reconnect storm": 1,
}


def run_benchmarks(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.proof
def test_quick_run_prints_every_row(tmp_path: Path) -> None:
    """A benchmark that an API change has broken would be noticed at the next release only."""
    output = tmp_path / "rounds.json"
    run = run_benchmarks("--quick", "--output", str(output))

    assert run.returncode == 0, run.stderr
    names = Counter(line.split("  ")[0] for line in run.stdout.splitlines())
    assert {name: names[name] for name in ROWS} == ROWS
    assert "FAILED" not in run.stdout
    for fact in ("processor", "python", "packages: sansmcp", "floor:", "Not shown:"):
        assert fact in run.stdout
    kept = json.loads(output.read_bytes())
    assert len(kept["benchmarks"]) > 10


@pytest.mark.proof
def test_missed_bounds_fail_only_a_strict_run() -> None:
    """On a busy machine times prove nothing, so the gate must be optional."""
    run = run_benchmarks("--quick", "--strict", "round_trips")
    missed = int(run.stdout.splitlines()[-1].split(" of ")[0])

    assert run.returncode == (1 if missed else 0), run.stderr


@pytest.mark.parametrize("name", ["nonsense"])
def test_unknown_benchmark_is_refused(name: str) -> None:
    """A typing mistake must not look like a run that meets all bounds."""
    run = run_benchmarks(name)

    assert run.returncode == 2
    assert name in run.stderr


@contextmanager
def running(module: str) -> Generator[int, None, None]:
    """A server of the benchmark, and its port."""
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
    """A connection, made as soon as the server listens."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=10)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)  # nothing says when it is ready


@pytest.mark.parametrize("module", ["echo_http", "bare_http"])
def test_servers_of_the_benchmark_echo(module: str) -> None:
    """Both servers must do the same work, or the comparison would be wrong."""
    modern = posted_modern(modern_tool_call(1, "echo", text="hello"))
    legacy = posted(tool_call(1, "echo", text="hello"), {"mcp-protocol-version": LEGACY})
    with running(module) as port, connected(port) as connection:
        for wire in (modern, legacy):
            connection.sendall(wire)
            (response,) = responses(connection.recv(65536), ["POST"])
            assert response.headers["content-type"] == "application/json"
            assert last(response)["result"]["content"][0]["text"] == "hello"
