"""`import sansmcp` from an installed wheel, beside one `import attrs, json`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

from ._measure import ROOT, Effort, Rounds, Row, interleaved, median_and_spread, ratios

_NAME: Final = "import, installed wheel, no extras"
_BOUND: Final = 1.9
_PROGRAM: Final = """
from time import perf_counter_ns
start = perf_counter_ns()
import {names}
print(perf_counter_ns() - start)
"""


def import_time(python: Path, names: str) -> float:
    """Nanoseconds that one import takes in a new interpreter, whose own start is not counted."""
    command = [str(python), "-I", "-c", _PROGRAM.format(names=names)]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return float(run.stdout)


def _install(folder: Path) -> Path:
    """An environment with the wheel of this checkout only; returns its interpreter."""
    python = folder / "bin" / "python"
    make = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(make, check=True, capture_output=True)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "-qq", str(ROOT)], check=True, capture_output=True)
    return python


def rows(effort: Effort, kept: Rounds) -> list[Row]:
    """One row; without a value where the wheel could not be built (that needs the network)."""
    value: float | None = None
    with tempfile.TemporaryDirectory(prefix="sansmcp-bench-") as folder:
        try:
            python = _install(Path(folder))
        except subprocess.CalledProcessError as error:
            spread = f"not measured: {error.cmd[1:4]} failed: {error.stderr.decode()[-200:]!r}"
        else:
            cases = {
                "import floor": partial(import_time, python, "attrs, json"),
                "import sansmcp": partial(import_time, python, "sansmcp"),
            }
            rounds = interleaved(cases, effort.pick(60, 8))
            times, floors = rounds["import sansmcp"], rounds["import floor"]
            value, spread = median_and_spread(ratios(times, floors))
            spent, bare = median_and_spread(times)[0] / 1e6, median_and_spread(floors)[0] / 1e6
            spread += f"; {spent:.1f} ms, floor {bare:.1f} ms"
            kept.update({name: [ns / 1e9 for ns in values] for name, values in rounds.items()})
    return [
        Row(
            name=_NAME,
            codec="json",
            direction="-",
            value=value,
            unit="x",
            bound=_BOUND,
            spread=spread,
        )
    ]
