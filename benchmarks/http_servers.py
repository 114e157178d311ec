"""HTTP servers as processes: processor time per request beside others', over real sockets.

The driver knows nothing of the library. It writes requests on several connections, one at a time on
each, reads until the whole response is there, and reads the processor time of the server's process
from the process's own clock.

The comparisons are a bare loop, and the server of the `mcp` package under uvicorn. The latter gets
the same requests in the same order, and does the same work: its low-level server has one tool and
an async handler, its defaults check `Host`, and it answers with one JSON object; with sessions,
each connection has one. Both read HTTP by h11 on asyncio's own loop.
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
BOUNDS: Final = {"trio": 2.2, "asyncio": 1.7}
BOUND_BESIDE_MCP: Final = 1 / 3
MODERN: Final = MODERN_REVISIONS[-1]
LEGACY: Final = LEGACY_REVISIONS[-1]
_SECONDS: Final = 60.0
_LENGTH: Final = re.compile(rb"\r\ncontent-length: ([0-9]+)\r\n", re.IGNORECASE)
_SESSION: Final = re.compile(rb"\r\nmcp-session-id: ([^\r]+)\r\n", re.IGNORECASE)
_BARE: Final = "bare loop"
_MCP: Final = "mcp"
_SERVERS: Final = {
    _BARE: ("bare_http",),
    "trio": ("echo_http", "--adapter=trio"),
    "asyncio": ("echo_http", "--adapter=asyncio"),
    _MCP: ("mcp_http",),
}
_WITH_SESSIONS: Final = {
    "asyncio": (*_SERVERS["asyncio"], "--sessions"),
    _MCP: (*_SERVERS[_MCP], "--sessions"),
}


class Connection:
    """One connection of one client, with at most one request on it."""

    def __init__(self, port: int) -> None:
        self.socket = _connected(port)
        self._fields = {
            "Host": f"127.0.0.1:{port}",
            "User-Agent": "benchmark/1.0",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        self._received = b""

    def send(self, revision: str, body: bytes, **more: str) -> None:
        """Put a message on the wire, as a client does."""
        fields = {**self._fields, "Content-Length": str(len(body)), **more}
        fields["MCP-Protocol-Version"] = revision
        lines = ["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    def call(self, revision: str, number: int) -> None:
        """Send a small call."""
        modern = revision == MODERN
        more = {"Mcp-Method": _traffic.METHOD, "Mcp-Name": "echo"} if modern else {}
        self.send(revision, _traffic.request_line(number, modern=modern)[:-1], **more)

    def open_session(self, revision: str) -> None:
        """Do the handshake; later requests belong to the session."""
        initialize, initialized = _traffic.HANDSHAKE
        self.send(revision, initialize)
        while (head := self.receive()) is None:
            pass
        found = _SESSION.search(head)
        assert found is not None
        self._fields["Mcp-Session-Id"] = found[1].decode()
        self.send(revision, initialized)
        while self.receive() is None:
            pass

    def join(self, other: Connection) -> None:
        """Use the session of another connection."""
        self._fields["Mcp-Session-Id"] = other._fields["Mcp-Session-Id"]

    def receive(self) -> bytes | None:
        """Receive the available bytes; returns the head of the response when it is whole."""
        data = self.socket.recv(65536)
        if not data:
            raise EOFError("the server has ended")
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        head += b"\r\n"
        length = _LENGTH.search(head)
        if not end or length is None or len(body) < int(length[1]):
            return None
        assert head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 202"))
        self._received = b""
        return head


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
    """Make this many requests, on all connections at once."""
    waiting = {connection.socket: connection for connection in connections}
    numbers = iter(range(first, first + requests))
    left = requests
    for connection in connections:
        connection.call(revision, next(numbers))
    while left:
        for ready in select.select(list(waiting), [], [], _SECONDS)[0]:
            connection = waiting[ready]
            if connection.receive() is not None:
                left -= 1
                if (number := next(numbers, None)) is not None:
                    connection.call(revision, number)


def cost(
    command: tuple[str, ...], revision: str, requests: int, *, sessions: bool = False
) -> float:
    """Seconds a request, of a fresh process after a warm-up."""
    with running(*command) as (pid, port):
        connections = [Connection(port) for _ in range(CONNECTIONS)]
        if sessions:
            for connection in connections:
                connection.open_session(revision)
        drive(connections, revision, max(CONNECTIONS, requests // 10), 10_000)
        clock = (~pid << 3) | 2  # what clock_getcpuclockid(3) makes of a process id on Linux
        before = time.clock_gettime(clock)
        drive(connections, revision, requests, 20_000)
        spent = time.clock_gettime(clock) - before
        for connection in connections:
            connection.socket.close()
    return spent / requests


def rows(effort: Effort, kept: Rounds) -> list[Row]:
    """Every adapter in both eras, and the `mcp` package beside asyncio."""
    found: list[Row] = []
    requests = effort.pick(5_000, 160)
    for revision, servers in ((MODERN, _SERVERS), (LEGACY, _SERVERS), (LEGACY, _WITH_SESSIONS)):
        sessions = servers is _WITH_SESSIONS
        cases = {
            name: partial(cost, command, revision, requests, sessions=sessions)
            for name, command in servers.items()
        }
        rounds = interleaved(cases, effort.pick(5, 1))
        what = f"{revision}, sessions" if sessions else revision
        for adapter in BOUNDS:
            if adapter in servers:
                found += _rows_of(adapter, what, rounds)
        for name, costs in rounds.items():
            kept[f"HTTP server, {what}, {name}"] = costs
    return found


def _rows_of(adapter: str, what: str, rounds: Rounds) -> list[Row]:
    """The measurements of an adapter: beside the bare loop, and on asyncio beside `mcp`."""
    bounds = {_BARE: BOUNDS[adapter]} if _BARE in rounds else {}
    if adapter == "asyncio":
        bounds[_MCP] = BOUND_BESIDE_MCP
    found: list[Row] = []
    for other, bound in bounds.items():
        value, spread = median_and_spread(ratios(rounds[adapter], rounds[other]))
        own, others = (
            sorted(costs)[len(costs) // 2] * 1e6 for costs in (rounds[adapter], rounds[other])
        )
        beside = ", beside mcp" if other == _MCP else ""
        found.append(
            Row(
                name=f"HTTP on {adapter}, small call, {CONNECTIONS} connections, {what}{beside}",
                codec="json",
                direction="to server",
                value=value,
                unit="x",
                bound=bound,
                spread=f"{spread}; {own:.3g} us, {other} {others:.3g} us",
            )
        )
    return found
