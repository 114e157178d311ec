"""Rows of the table, and the statistics behind them.

A ratio is the median over rounds. In each round everything that is compared runs once, one after
the other, so that whatever else the machine does meanwhile hits both sides of the ratio.
"""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import attrs

ROOT: Final = Path(__file__).resolve().parent.parent

clock: Final = time.process_time_ns
"""Processor time. What is measured with it never waits, so that on an idle machine it is the time
on the wall; on a busy one it leaves out the moments that other programs had the processor."""

Rounds: TypeAlias = dict[str, list[float]]
"""For each thing that was measured, one number a round."""


@attrs.frozen(kw_only=True)
class Row:
    """One line of the table. `value` is None if it could not be measured; `spread` has the
    reason."""

    name: str
    codec: str
    direction: str
    value: float | None
    unit: str
    bound: float | None
    spread: str

    @property
    def met(self) -> bool | None:
        """Whether the bound is met; None where there is none."""
        if self.bound is None:
            return None
        return self.value is not None and self.value <= self.bound


@attrs.frozen
class Effort:
    """The time to spend: `full` numbers for claims, `quick` ones for a test that all works."""

    quick: bool

    def pick(self, full: int, quick: int) -> int:
        """The number for this effort."""
        return quick if self.quick else full


def interleaved(cases: Mapping[str, Callable[[], float]], rounds: int) -> Rounds:
    """Run every case once a round. Of several rounds one more, the first, only warms caches up."""
    found: Rounds = {name: [] for name in cases}
    for number in range(0 if rounds > 1 else 1, rounds + 1):
        for name, case in cases.items():
            gc.collect()  # outside of what a case times: it pays for its own garbage only
            value = case()
            if number > 0:
                found[name].append(value)
    return found


def in_fresh_processes(module: str, processes: int, *args: str) -> Rounds:
    """The rounds that a module of this package prints as JSON, from several interpreters.

    Addresses and hash seeds differ from process to process and shift all times of one process.
    """
    found: Rounds = {}
    for _ in range(processes):
        command = [sys.executable, "-m", f"benchmarks.{module}", *args]
        run = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
        part: Rounds = json.loads(run.stdout)
        for name, values in part.items():
            found.setdefault(name, []).extend(values)
    return found


def ratios(values: Sequence[float], floors: Sequence[float]) -> list[float]:
    """Each value over the floor of the same round."""
    return [value / floor for value, floor in zip(values, floors, strict=True)]


def median_and_spread(values: Sequence[float], digits: int = 2) -> tuple[float, str]:
    """The median, and in words how far from it half of the rounds lie."""
    if len(values) < 3:
        return statistics.median(values), f"{len(values)} round(s)"
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    words = f"half of {len(values)} rounds in {low:.{digits}f} to {high:.{digits}f}"
    return middle, words


def flatness(costs: Sequence[Sequence[float]]) -> float:
    """The highest over the lowest cost of several sizes, each the median over rounds.

    The costs of one round are divided by their mean first: what slows a whole round down says
    nothing about sizes.
    """
    means = [statistics.mean(round_) for round_ in zip(*costs, strict=True)]
    medians = [statistics.median(ratios(cost, means)) for cost in costs]
    return max(medians) / min(medians)
