"""The tests of tasks and of caching, by the rules that they cite: `python -m tests.rules`."""

from __future__ import annotations

from typing import Final

import pytest

from tests.support.cited_rules import binding_rules, cited_rules

AREAS: Final = ("CACHE", "TASK", "TASKX", "XTASK")
FOLDERS: Final = ("connection", "http", "observer", "rules")
CITED: Final = cited_rules(FOLDERS)
RULES: Final = [row["id"] for row in binding_rules(AREAS, ("core", "http"))]


def test_most_rules_are_kept_by_the_library() -> None:
    """The test below compares with this list; it must not be empty."""
    assert len(RULES) > 140


@pytest.mark.parametrize("rule", RULES)
def test_each_binding_rule_has_a_test(rule: str) -> None:
    """A rule that is kept here, and that no test cites, could be broken unseen."""
    assert CITED.get(rule)
