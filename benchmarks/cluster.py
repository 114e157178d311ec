"""Workers of a cluster: the cost of carrying a request to the worker of its session, and back.

Two workers and a Redis. The same calls of the same sessions go to the worker that has the sessions,
and to the other one. The difference is the cost of carrying: processor time of all three processes,
and elapsed time. For a call that reaches its own worker, the other processes must be idle.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from ._measure import Effort, Rounds, Row, median_and_spread
from .http_servers import LEGACY, Connection, drive, running

CPU_BOUND: Final = 1000.0
_DIRECT_BOUND: Final = 5.0  # heartbeats, and what the clock cannot tell apart
_CONNECTIONS: Final = (1, 16)


@contextmanager
def redis_server() -> Generator[tuple[int, int], None, None]:
    """Process id and port of a Redis without persistence."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = ["redis-server", "--port", str(port), "--save", "", "--bind", "127.0.0.1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        try:
            yield child.pid, port
        finally:
            child.kill()


def _spent(pid: int) -> float:
    return time.clock_gettime((~pid << 3) | 2)  # what clock_getcpuclockid(3) makes of it on Linux


class _Workers:
    """Two workers, and clients whose sessions are at the first one."""

    def __init__(self, programs: ExitStack, adapter: str) -> None:
        store, port = programs.enter_context(redis_server())
        command = ("echo_http", f"--adapter={adapter}", "--sessions")
        redis = f"--redis=redis://127.0.0.1:{port}/0"
        found = [programs.enter_context(running(*command, redis)) for _ in range(2)]
        self._pids = [*(pid for pid, _ in found), store]
        self._ports = [port for _, port in found]

    def clients(self, number: int) -> dict[str, list[Connection]]:
        """Connections to each worker, for the same sessions."""
        direct = [Connection(self._ports[0]) for _ in range(number)]
        carried = [Connection(self._ports[1]) for _ in range(number)]
        for one, other in zip(direct, carried, strict=True):
            one.open_session(LEGACY)
            other.join(one)
        return {"direct": direct, "carried": carried}

    def measure(self, connections: list[Connection], requests: int) -> tuple[list[float], float]:
        """Microseconds a request: of each process, and elapsed."""
        before, begun = [*map(_spent, self._pids)], time.perf_counter()
        drive(connections, LEGACY, requests, 20_000)
        wall = (time.perf_counter() - begun) * len(connections)
        spent = [_spent(pid) - was for pid, was in zip(self._pids, before, strict=True)]
        return [seconds / requests * 1e6 for seconds in spent], wall / requests * 1e6


def _row(name: str, values: Sequence[float], bound: float | None, parts: str) -> Row:
    value, spread = median_and_spread(values, 0)
    return Row(
        name=name,
        codec="json",
        direction="to server",
        value=value,
        unit="us",
        bound=bound,
        spread=f"{spread}{parts}",
    )


def rows(effort: Effort, kept: Rounds) -> list[Row]:
    """Added processor time and latency, with one client and with several."""
    found: list[Row] = []
    requests = effort.pick(2_000, 96)
    with ExitStack() as programs:
        workers = _Workers(programs, "asyncio")
        for number in _CONNECTIONS:
            clients = workers.clients(number)
            spent: dict[str, list[list[float]]] = {name: [] for name in clients}
            walls: dict[str, list[float]] = {name: [] for name in clients}
            for connections in clients.values():
                drive(connections, LEGACY, max(number, requests // 10), 10_000)
            for _ in range(effort.pick(5, 1)):
                for name, connections in clients.items():
                    cpu, wall = workers.measure(connections, requests)
                    spent[name].append(cpu)
                    walls[name].append(wall)
            found += _rows_of(number, spent, walls)
            for name, costs in spent.items():
                kept[f"cluster, {number} connections, {name}"] = [sum(cost) for cost in costs]
    return found


def _rows_of(
    number: int, spent: dict[str, list[list[float]]], walls: dict[str, list[float]]
) -> list[Row]:
    """The added cost of carrying, and the cost of a direct call at the other processes."""
    clients = f"{number} connection{'s' if number > 1 else ''}"
    pairs = [*zip(spent["carried"], spent["direct"], strict=True)]
    added = [sum(carried) - sum(direct) for carried, direct in pairs]
    parts = [_middle([carried[at] for carried, _ in pairs]) for at in range(3)]
    owner, asker, store = (f"{part:.0f} us" for part in parts)
    waits = [one - other for one, other in zip(walls["carried"], walls["direct"], strict=True)]
    beside = [sum(direct[1:]) for direct in spent["direct"]]
    return [
        _row(
            f"cluster, carried call, {clients}, processor time added",
            added,
            CPU_BOUND,
            f"; owner {owner}, other worker {asker}, Redis {store}",
        ),
        _row(f"cluster, carried call, {clients}, latency added", waits, None, ""),
        _row(
            f"cluster, call at its worker, {clients}, processor time elsewhere",
            beside,
            _DIRECT_BOUND,
            "",
        ),
    ]


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]
