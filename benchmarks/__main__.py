"""Run all benchmarks, print one table, and say what it shows and what it does not."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Final

from . import (
    _machine,
    _traffic,
    attacks,
    checks,
    cluster,
    http_clients,
    http_exchanges,
    http_servers,
    http_servers_asgi,
    import_time,
    in_flight,
    long_lines,
    memory,
    round_trips,
    stdio,
    subscriptions,
    tap,
    tasks,
)
from ._measure import Effort, Rounds, Row

BENCHMARKS: Final[dict[str, Callable[[Effort, Rounds], list[Row]]]] = {
    "round_trips": round_trips.rows,
    "import_time": import_time.rows,
    "memory": memory.rows,
    "long_lines": long_lines.rows,
    "in_flight": in_flight.rows,
    "subscriptions": subscriptions.rows,
    "http_exchanges": http_exchanges.rows,
    "stdio": stdio.rows,
    "http_servers": http_servers.rows,
    "http_servers_asgi": http_servers_asgi.rows,
    "http_clients": http_clients.rows,
    "tap": tap.rows,
    "tasks": tasks.rows,
    "checks": checks.rows,
    "cluster": cluster.rows,
    "attacks": attacks.rows,
}

DATA: Final = f"""\
small call: tools/call, {len(_traffic.REQUEST_TEXT)} B there and {len(_traffic.ANSWER_TEXT)} B \
back; ids rise; input is encoded before the clock starts
floor: json.loads(bytes) + json.dumps(object) of the same two texts, always with the json module
server: receive_data, next_event until None, send_result, data_to_send
client: send_request, data_to_send, receive_data, next_event until None
HTTP exchange: exchange, receive_data, receive_end, next_event until None, send_result, ready,
response; the fields are the same objects in every request but for the length
HTTP on an adapter: one request at a time on each connection; the bare loop is asyncio, h11 and json
beside mcp: its low-level server, async handler, under uvicorn with h11 on asyncio; asked the \
same, with JSON answers and Host checked on both sides; with sessions each connection has one
ASGI: the same under uvicorn with h11 on asyncio; the bare application is json alone
HTTP client on an adapter: one call after the other, beside the client of the mcp package with the \
same server; with httpx2, beside our own on h11
cluster: two workers on asyncio and a Redis; the same calls reach the worker of their session, or \
the other one
long lines: "one text" is a string with a \\n every 60 characters, "records" are small objects
all with the default checks (Config(check="shape")), revision 2025-11-25 where none
is named, garbage collector on"""

METHOD: Final = """\
Times are processor time (time.process_time_ns; for imports and for tap they are time on the wall),
in rounds that run every case and its floor one after the other. Ratios and differences are formed
within a round, and the table shows their median and middle half. Round trips come from several
fresh interpreters, imports from a fresh one each. pyperf's own runner measures one benchmark after
the other and so cannot pair them; it gives the facts about the machine, and the file format of
--output. Of attacks, what the server holds at most is shown, as the system counts it, less what it
held before; they run once."""

NOT_SHOWN: Final = """\
Not shown: pipes, event loops, processes, other interpreters; latency but for tap and attacks
(rounds are averages of many calls); messages of other shapes, other methods; the cost of an
application's own work, beside which these microseconds vanish. Memory leaves out what the
allocator rounds up, but for attacks."""


def table(rows: list[Row]) -> str:
    """The rows with their columns aligned."""
    head = ("benchmark", "codec", "direction", "measured", "bound", "met", "spread and parts")
    cells: list[tuple[str, ...]] = [head]
    for row in rows:
        measured = "-" if row.value is None else _number(row.value, row.unit)
        bound = "-" if row.bound is None else _number(row.bound, row.unit)
        met = {True: "yes", False: "NO", None: "-"}[row.met]
        cells.append((row.name, row.codec, row.direction, measured, bound, met, row.spread))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if at in (3, 4) else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )


def _number(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if unit == "B" else f"{value:.2f} {unit}"


def main(arguments: list[str]) -> int:
    """Exit status: 0, or 1 with `--strict` where a bound is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds: only whether it works")
    parser.add_argument("--strict", action="store_true", help="fail where a bound is not met")
    parser.add_argument("--output", type=Path, help="keep all rounds in pyperf's file format")
    parser.add_argument("only", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHMARKS)}")
    options = parser.parse_args(arguments)
    if unknown := set(options.only) - set(BENCHMARKS):
        parser.error(f"no benchmark is named {', '.join(sorted(unknown))}")
    effort = Effort(options.quick)
    rows: list[Row] = []
    kept: Rounds = {}
    for name in options.only or BENCHMARKS:
        start = perf_counter()
        rows += BENCHMARKS[name](effort, kept)
        print(f"{name}: {perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    missed = [row for row in rows if row.met is False]
    sections = ["\n".join(_machine.description()), DATA, table(rows), METHOD, NOT_SHOWN]
    if effort.quick:
        sections.append("With --quick there are too few rounds for any claim.")
    sections.append(f"{len(missed)} of {sum(row.bound is not None for row in rows)} bounds missed.")
    print("\n\n".join(sections))
    if options.output is not None:
        _machine.write_rounds(options.output, kept)
    return 1 if options.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
