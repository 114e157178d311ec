"""The time that `sansmcp tap` adds to a message, between a driver and the bare loop.

Both servers, the bare one and the one behind the tap, are open at once, and answer in turn. The
driver waits for each response, so that the work of the tap before it has passed a message on is in
the time; its work afterwards, while the others run, is not.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from . import _traffic
from ._measure import Effort, Rounds, Row, median_and_spread
from .stdio import Process, running

_SERVER: Final = "benchmarks.servers.bare_loop"
_BOUND_MS: Final = 1.0
_SMALL: Final = json.dumps(_traffic.PARAMS["arguments"]["text"]).encode()
_LARGE: Final = b'"' + b"x" * 65_536 + b'"'
_CASES: Final = (
    # name, text, round trips in a round (full, quick), whether all is shown and kept
    ("small call, summary only", _SMALL, (1_000, 20), False),
    ("small call, trace and capture", _SMALL, (1_000, 20), True),
    ("echo of 64 KiB, trace and capture", _LARGE, (200, 5), True),
)


def _round(direct: Process, tapped: Process, text: bytes, trips: int) -> tuple[float, float]:
    """The medians of the round trips of one round, in seconds: without the tap, and with it."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(trips):
        for process, found in zip((direct, tapped), times, strict=True):
            start = time.perf_counter()
            process.echo(text, 1, 1)
            found.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def _measure(
    text: bytes, trips: int, rounds: int, options: Sequence[str]
) -> tuple[list[float], list[float]]:
    server = (sys.executable, "-m", _SERVER)
    tap = (sys.executable, "-m", "sansmcp_io", "tap", *options, "--", *server)
    with running(*server) as direct, running(*tap) as tapped:
        _round(direct, tapped, text, max(1, trips // 10))  # warms up
        pairs = [_round(direct, tapped, text, trips) for _ in range(rounds)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def rows(effort: Effort, kept: Rounds) -> list[Row]:
    """The median added to each of the two messages of a round trip."""
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, text, (full, quick), everything in _CASES:
            options = ["--trace", str(Path(folder, "trace"))]
            options += ["--jsonl", str(Path(folder, "capture"))] if everything else ["--quiet"]
            direct, tapped = _measure(text, effort.pick(full, quick), effort.pick(7, 2), options)
            added = [(b - a) / 2 * 1e3 for a, b in zip(direct, tapped, strict=True)]
            value, spread = median_and_spread(added, 3)
            bare, behind = (statistics.median(part) * 1e3 for part in (direct, tapped))
            found.append(
                Row(
                    name=f"tap, {name}, latency added per message",
                    codec="json",
                    direction="both",
                    value=value,
                    unit="ms",
                    bound=_BOUND_MS,
                    spread=f"{spread}; round trip {bare:.3f} ms, behind the tap {behind:.3f} ms",
                )
            )
            kept[f"tap, {name}, without"] = direct
            kept[f"tap, {name}, with"] = tapped
    return found
