"""Finds the tests that cite a rule in their docstring."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from docs._ext.where import read_where
from tests.support.tables import own_table

_TESTS: Final = Path(__file__).parents[1]
_RULES: Final = re.compile(r"\b([A-Z]{2,})-([0-9]{3})(?: to \1-([0-9]{3}))?\b")
"""An id, or the first and the last of several: `TASK-001 to TASK-003`."""


def cited_rules(folders: Sequence[str]) -> dict[str, list[str]]:
    """The tests that cite each rule, as `module::function`.

    A test counts if pytest collects it: a function of a test module whose name begins with `test_`.

    Args:
        folders: The folders of the tests, below `tests`.
    """
    found: dict[str, list[str]] = defaultdict(list)
    paths = [path for folder in folders for path in sorted((_TESTS / folder).rglob("test_*.py"))]
    for path in paths:
        for node in ast.parse(path.read_bytes()).body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if node.name.startswith("test_"):
                for rule in _rules_in(ast.get_docstring(node) or ""):
                    name = path.relative_to(_TESTS).with_suffix("").as_posix()
                    found[rule].append(f"{name}::{node.name}")
    return dict(found)


def _rules_in(text: str) -> dict[str, None]:
    """The ids in a docstring, each once."""
    return {
        f"{area}-{number:03d}": None
        for area, first, last in _RULES.findall(text)
        for number in range(int(first), int(last or first) + 1)
    }


def binding_rules(areas: Sequence[str], layers: Sequence[str] = ()) -> list[dict[str, str]]:
    """The rows of the rules of these areas that the library must keep.

    Args:
        areas: The first parts of the ids.
        layers: The layers whose rules count; empty: all.
    """
    where = read_where()
    return [
        row
        for row in own_table("requirements.csv")
        if row["id"].partition("-")[0] in areas
        and row["level"] in ("MUST", "MUST NOT")
        and (not layers or row["layer"] in layers)
        and where[row["id"]].kept in ("function", "construction")
    ]


def print_citations(areas: Sequence[str], folders: Sequence[str]) -> None:
    """Print each rule of these areas with the tests that cite it."""
    cited = cited_rules(folders)
    for row in own_table("requirements.csv"):
        if row["id"].partition("-")[0] in areas:
            tests = ", ".join(cited.get(row["id"], [])) or "-"
            print(f"{row['id']} {row['level']} {row['role']}: {tests}")
