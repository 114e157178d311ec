"""Every case of the shared specification data that concerns this core has a test here."""

import ast
import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from sansmcp import LEGACY_REVISIONS

from ..support.schema import SHARED

CASES: Final = SHARED / "cases/cases.jsonl"

# Cases about the transport of processes that the framing alone decides.
BYTE_LEVEL: Final = {
    "c012",
    "c035",
    "c090",
    "c091",
    "c093",
    "c094",
    "c095",
    "c098",
    "c099",
    "c100",
    "c102",
    "c105",
    "c106",
    "c111",
    "c112",
    "c134",
    "c137",
    "c138",
    "c268",
}

needs_cases = pytest.mark.skipif(
    not CASES.is_file(), reason=f"the cases of the shared specification data are not in {CASES}"
)


def shared_cases() -> dict[str, dict[str, Any]]:
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    return {case["id"]: case for case in cases}


def applies(case: dict[str, Any]) -> bool:
    """Whether a case concerns a revision that opens with a handshake."""
    named = case["revision"]
    revisions = {named} if isinstance(named, str) else set(named)
    return bool(revisions & {"any", *LEGACY_REVISIONS})


def cited_cases() -> set[str]:
    """The ids in the docstrings of the tests of this folder."""
    cited: set[str] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                cited |= set(re.findall(r"\bc[0-9]{3}\b", ast.get_docstring(node) or ""))
    return cited


@needs_cases
def test_every_core_case_of_these_revisions_is_cited_by_a_test() -> None:
    """A report from the field that no test remembers will be reported again."""
    core = {id for id, case in shared_cases().items() if case["layer"] == "core" and applies(case)}
    assert len(core) >= 57
    assert cited_cases() & core == core


@needs_cases
def test_only_cases_that_exist_and_apply_are_cited() -> None:
    """A citation that leads nowhere explains nothing."""
    cases = shared_cases()
    assert {id for id in cited_cases() if id not in cases or not applies(cases[id])} == set()


def test_every_case_that_framing_decides_is_cited() -> None:
    """They are filed under stdio, and would be waited for until there is a process."""
    assert cited_cases() >= BYTE_LEVEL
