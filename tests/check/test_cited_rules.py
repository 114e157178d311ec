"""Each binding rule that a check judges has a test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

import sansmcp.check
from sansmcp._spec.rule_levels import LEVELS
from tests.support.cited_rules import cited_rules
from tests.support.tables import own_table

ROOM: Final = Path(sansmcp.check.__file__).parent
TABLE: Final = {row["id"]: row for row in own_table("requirements.csv")}
NAMED: Final = {
    rule
    for path in ROOM.glob("*.py")
    for rule in re.findall(r"\b[A-Z]{2,}-[0-9]{3}\b", path.read_text("utf-8"))
}
REPORTED: Final = {
    rule
    for path in ROOM.glob("*.py")
    for rule in re.findall(r'"([A-Z]{2,}-[0-9]{3})"', path.read_text("utf-8"))
}
CITED: Final = cited_rules(("check",))


def test_the_scan_finds_rules() -> None:
    """The tests below compare with it."""
    assert len(NAMED) > 50


@pytest.mark.parametrize("rule", sorted(NAMED - {"CAP-005", "OWN-014"}))
def test_each_rule_has_a_test(rule: str) -> None:
    """A rule that no test cites could be broken unseen."""
    assert CITED.get(rule)


def test_each_reported_rule_has_a_level() -> None:
    """`Problem.level` looks it up."""
    assert LEVELS.keys() >= REPORTED
    assert {rule: TABLE[rule]["level"] for rule in REPORTED} == {r: LEVELS[r] for r in REPORTED}
