"""Every case of the shared specification data that concerns the core or stdio has a test."""

import ast
import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from ..support.schema import SHARED

CASES: Final = SHARED / "cases/cases.jsonl"

needs_cases = pytest.mark.skipif(
    not CASES.is_file(), reason=f"the cases of the shared specification data are not in {CASES}"
)


def shared_cases() -> dict[str, dict[str, Any]]:
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    return {case["id"]: case for case in cases}


def cited_cases() -> set[str]:
    """The ids in the docstrings of the tests, most of which are in this folder."""
    here = Path(__file__).parent
    cited: set[str] = set()
    for path in [*here.glob("test_*.py"), *here.parent.glob("test_*.py")]:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if node.name.startswith("test_"):
                cited |= set(re.findall(r"\bc[0-9]{3}\b", ast.get_docstring(node) or ""))
    return cited


def cases_of(layer: str) -> set[str]:
    return {id for id, case in shared_cases().items() if case["layer"] == layer}


@needs_cases
@pytest.mark.parametrize(("layer", "at_least"), [("core", 73), ("stdio", 34)])
def test_every_case_is_cited_by_a_test(layer: str, at_least: int) -> None:
    """A report from the field that no test remembers will be reported again."""
    cases = cases_of(layer)
    assert len(cases) >= at_least
    assert cases - cited_cases() == set()


@needs_cases
def test_only_cases_that_exist_are_cited() -> None:
    """A citation that leads nowhere explains nothing."""
    cases = shared_cases()
    assert {id for id in cited_cases() if id not in cases} == set()
