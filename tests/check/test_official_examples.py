"""The official examples of 2026-07-28 have no problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from sansmcp.check import Problem, check_params, check_part, check_result
from tests.support.examples import FILES, METHODS, load
from tests.support.modern import MODERN

QUESTIONS: Final = {"InputRequiredResult": "tools/call"}
SUFFIX: Final = "Response"
NOT_JUDGED: Final = ("Error",)
"""Errors are judged by `_rules`."""
RESULTS: Final = {
    "CreateMessage": "sampling/createMessage",
    "Discover": "server/discover",
    "Elicit": "elicitation/create",
    "ListRoots": "roots/list",
    "SubscriptionsListen": "subscriptions/listen",
    **METHODS,
}


def problems_of(kind: str, value: Any) -> list[Problem]:
    """The problems of an example, by the name of its folder: that of a definition."""
    if "method" in value and kind.endswith(("Request", "Notification")):
        return check_params(value["method"], value.get("params"), MODERN)
    if kind.endswith("ResultResponse"):
        return problems_of(kind.removesuffix(SUFFIX), value["result"])
    if kind in QUESTIONS:
        return check_result(QUESTIONS[kind], value, MODERN)
    if kind.removesuffix("Result") in RESULTS:
        return check_result(RESULTS[kind.removesuffix("Result")], value, MODERN)
    return check_part(kind, value, MODERN)


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if not path.parent.name.endswith(NOT_JUDGED)],
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_an_official_example_has_no_problems(path: Path) -> None:
    """A check that refuses what the specification shows would refuse good peers."""
    assert problems_of(path.parent.name, load(path)) == []


def test_most_examples_are_judged() -> None:
    """Only errors are left out."""
    assert len([path for path in FILES if path.parent.name.endswith(NOT_JUDGED)]) < 15
