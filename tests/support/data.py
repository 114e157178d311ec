"""Reads the files in `tests/data`. A missing file fails a test, and never skips it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).resolve().parents[1] / "data"
EXAMPLES: Final = DATA / "examples" / "2026-07-28"


def schema(revision: str) -> dict[str, Any]:
    """A new copy of the official JSON schema of a revision."""
    document: dict[str, Any] = json.loads((DATA / "schema" / f"{revision}.json").read_bytes())
    return document


def example_files() -> list[Path]:
    """The official examples of 2026-07-28. The name of each folder is that of a definition."""
    files = sorted(EXAMPLES.glob("*/*.json"))
    assert len(files) == 129, f"{len(files)} examples are in {EXAMPLES}, not 129"
    return files


@cache
def cases() -> dict[str, dict[str, Any]]:
    """The cases from public reports, by their ids."""
    lines = (DATA / "cases.jsonl").read_text("utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines)}


def cases_of_http(role: str) -> set[str]:
    """The ids of the cases of the HTTP transport that concern a client, or a server."""
    return {
        id
        for id, case in cases().items()
        if case["layer"] == "http" and case["role_under_test"] in (role, "both")
    }
