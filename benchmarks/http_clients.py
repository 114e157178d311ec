"""HTTP clients as processes: processor time per sequential call beside the `mcp` package's client.

Both talk to the same server, which is ours, over a real socket; its processor time does not count.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Final

from ._measure import ROOT, Effort, Rounds, Row, interleaved, median_and_spread, ratios
from .http_servers import LEGACY, MODERN, Connection, running

BOUND: Final = 1 / 3
_LOOPS: Final = ("trio", "asyncio")
_BY_HTTPX: Final = {
    "trio, httpx2": "trio",
    "asyncio, httpx2": "asyncio",
    "threads, httpx2": "asyncio",
}
"""Clients that httpx2 carries, and the one on h11 that each is measured by."""
_MCP: Final = "mcp"
_SECONDS: Final = 300.0


def cost(client: str, port: int, revision: str, requests: int) -> float:
    """Seconds a call, of a fresh process after a warm-up."""
    command = [
        *(sys.executable, "-m", "benchmarks.clients.http_calls"),
        *("--client", client, "--revision", revision, "--requests", str(requests)),
        f"http://127.0.0.1:{port}/mcp",
    ]
    run = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, timeout=_SECONDS)
    return float(run.stdout)


def rows(effort: Effort, kept: Rounds) -> list[Row]:
    """The clients on h11 beside that of mcp, and those on httpx2 beside them, in both eras."""
    found: list[Row] = []
    requests = effort.pick(600, 20)
    with running("echo_http", "--adapter=trio") as (_, port):
        Connection(port).socket.close()  # which waits until the server is there
        for revision in (MODERN, LEGACY):
            cases = {
                client: partial(cost, client, port, revision, requests)
                for client in (*_LOOPS, *_BY_HTTPX, _MCP)
            }
            rounds = interleaved(cases, effort.pick(5, 1))
            others = rounds[_MCP]
            for loop in _LOOPS:
                costs = rounds[loop]
                value, spread = median_and_spread(ratios(costs, others))
                own, other = (sorted(part)[len(part) // 2] * 1e6 for part in (costs, others))
                found.append(
                    Row(
                        name=f"HTTP client on {loop}, small call, sequential, {revision}",
                        codec="json",
                        direction="to server",
                        value=value,
                        unit="x",
                        bound=BOUND,
                        spread=f"{spread}; {own:.3g} us, mcp {other:.3g} us",
                    )
                )
            for client, loop in _BY_HTTPX.items():
                value, spread = median_and_spread(ratios(rounds[client], rounds[loop]))
                pair = (rounds[client], rounds[loop])
                own, other = (sorted(part)[len(part) // 2] * 1e6 for part in pair)
                found.append(
                    Row(
                        name=f"HTTP client on {client}, small call, sequential, {revision}",
                        codec="json",
                        direction="to server",
                        value=value,
                        unit="x",
                        bound=None,
                        spread=f"{spread}; {own:.3g} us, h11 on {loop} {other:.3g} us",
                    )
                )
            for client, costs in rounds.items():
                kept[f"HTTP client, {revision}, {client}"] = costs
    return found
