"""HTTP servers as processes: processor time per request beside a bare loop, over real sockets.

The driver knows nothing of the library. It writes requests on several connections, one at a time
on each, reads until the whole response is there, and reads the processor time of the server's
process from the process's own clock.
"""

from __future__ import annotations

import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Final

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS

from . import _traffic
from ._measure import ROOT, Effort, Rounds, Row, interleaved, median_and_spread, ratios

CONNECTIONS: Final = 16
BOUND: Final = 2.2
MODERN: Final = MODERN_REVISIONS[-1]
LEGACY: Final = LEGACY_REVISIONS[-1]
_SECONDS: Final = 60.0
_LENGTH: Final = re.compile(rb"\r\ncontent-length: ([0-9]+)\r\n", re.IGNORECASE)
_SERVERS: Final = {
    "bare loop": ("bare_http",),
    "trio": ("echo_http", "--adapter=trio"),
    "asyncio": ("echo_http", "--adapter=asyncio"),
}


def _request(revision: str, number: int) -> bytes:
    """A small call, as a client puts it on the wire."""
    modern = revision == MODERN
    body = _traffic.request_line(number, modern=modern)[:-1]
    fields = {
        "Host": "127.0.0.1",
        "User-Agent": "benchmark/1.0",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "MCP-Protocol-Version": revision,
    }
    if modern:
        fields |= {"Mcp-Method": _traffic.METHOD, "Mcp-Name": "echo"}
    lines = ["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Connection:
    """One connection, with at most one request on it."""

    def __init__(self, port: int) -> None:
        self.socket = _connected(port)
        self._received = b""

    def receive(self) -> bool:
        """Take what has come; whether the response is whole."""
        data = self.socket.recv(65536)
        if not data:
            raise EOFError("the server has ended")
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head + b"\r\n")
        if not end or length is None or len(body) < int(length[1]):
            return False
        assert head.startswith(b"HTTP/1.1 200")
        self._received = b""
        return True


def _connected(port: int) -> socket.socket:
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=_SECONDS)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)  # nothing says when it is ready


@contextmanager
def running(*command: str) -> Generator[tuple[int, int], None, None]:
    """Process id and port of a server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    module, *options = command
    argv = [sys.executable, "-m", f"benchmarks.servers.{module}", *options, f"--port={port}"]
    with subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.DEVNULL) as child:
        try:
            yield child.pid, port
        finally:
            child.kill()


def drive(connections: list[Connection], revision: str, requests: int, first: int) -> None:
    """So many requests, on all connections at once."""
    waiting = {connection.socket: connection for connection in connections}
    wires = iter([_request(revision, first + number) for number in range(requests)])
    left = requests
    for connection in connections:
        connection.socket.sendall(next(wires))
    while left:
        for ready in select.select(list(waiting), [], [], _SECONDS)[0]:
            if waiting[ready].receive():
                left -= 1
                if (wire := next(wires, None)) is not None:
                    ready.sendall(wire)


def cost(command: tuple[str, ...], revision: str, requests: int) -> float:
    """Seconds a request, of a fresh process that has warmed up."""
    with running(*command) as (pid, port):
        connections = [Connection(port) for _ in range(CONNECTIONS)]
        drive(connections, revision, max(CONNECTIONS, requests // 10), 10_000)
        clock = (~pid << 3) | 2  # what clock_getcpuclockid(3) makes of a process id on Linux
        before = time.clock_gettime(clock)
        drive(connections, revision, requests, 20_000)
        spent = time.clock_gettime(clock) - before
        for connection in connections:
            connection.socket.close()
    return spent / requests


def rows(effort: Effort, kept: Rounds) -> list[Row]:
    """Every adapter that there is, in both eras."""
    found: list[Row] = []
    requests = effort.pick(5_000, 160)
    for revision in (MODERN, LEGACY):
        cases = {
            name: partial(cost, command, revision, requests) for name, command in _SERVERS.items()
        }
        rounds = interleaved(cases, effort.pick(5, 1))
        floors = rounds.pop("bare loop")
        kept[f"HTTP server, {revision}, bare loop"] = floors
        for adapter, costs in rounds.items():
            value, spread = median_and_spread(ratios(costs, floors))
            own, bare = (sorted(part)[len(part) // 2] * 1e6 for part in (costs, floors))
            found.append(
                Row(
                    name=f"HTTP on {adapter}, small call, {CONNECTIONS} connections, {revision}",
                    codec="json",
                    direction="to server",
                    value=value,
                    unit="x",
                    bound=BOUND,
                    spread=f"{spread}; {own:.3g} us, bare loop {bare:.3g} us",
                )
            )
            kept[f"HTTP server, {revision}, {adapter}"] = costs
    return found
