"""The tests of both sides, by the rules that they cite: `python -m tests.auth` prints them."""

from __future__ import annotations

from typing import Final

import pytest

from tests.support.cited_rules import binding_rules, cited_rules

FOLDERS: Final = ("auth", "http", "adapters/authorization")
CITED: Final = cited_rules(FOLDERS)
SUMS: Final = {"AUTH-005", "AUTH-006"}  # they demand all the others
RULES: Final = {
    role: [
        row["id"]
        for row in binding_rules(["AUTH"])
        if row["role"] == role and row["id"] not in SUMS
    ]
    for role in ("client", "server", "both")
}


@pytest.mark.parametrize(("role", "least"), [("client", 90), ("server", 25)])
def test_most_rules_are_kept_by_the_library(role: str, least: int) -> None:
    """The test below compares with this list; it must not be empty."""
    assert len(RULES[role]) > least


@pytest.mark.parametrize("rule", [*RULES["client"], *RULES["server"], *RULES["both"]])
def test_each_binding_rule_has_a_test(rule: str) -> None:
    """A rule that is kept here, and that no test cites, could be broken unseen."""
    assert CITED.get(rule)
