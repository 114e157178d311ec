"""A description of the machine, and pyperf's file format for the measured rounds."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from ._measure import Rounds

# pyperf has no type information; its use is confined to this module.
_PYPERF: Final[Any] = importlib.import_module("pyperf")

_SHOWN: Final = {
    "cpu_model_name": "processor",
    "cpu_count": "processors",
    "platform": "system",
    "load_avg_1min": "load",
    "python_implementation": "python",
    "python_version": "version",
    "python_compiler": "compiler",
    "timer": "clock",
}


def description() -> list[str]:
    """Machine and versions, one fact a line."""
    metadata: Mapping[str, object] = _PYPERF.Run([1.0], collect_metadata=True).get_metadata()
    lines = [f"{word}: {metadata[key]}" for key, word in _SHOWN.items() if key in metadata]
    packages = ("sansmcp", "attrs", "msgspec", "pyperf")
    return [*lines, "packages: " + ", ".join(f"{name} {version(name)}" for name in packages)]


def write_rounds(path: Path, rounds: Rounds) -> None:
    """Keep all rounds (seconds) for `python -m pyperf stats`, `hist` and `compare_to`."""
    benchmarks: list[Any] = [
        _PYPERF.Benchmark([_PYPERF.Run(values, metadata={"name": name}, collect_metadata=True)])
        for name, values in rounds.items()
    ]
    _PYPERF.BenchmarkSuite(benchmarks).dump(str(path), replace=True)
