"""`sansmcp explain` shows the rule with a given id."""

import re

import pytest

from tests.support.command_line import document, sansmcp


def test_rule_is_shown_with_all_that_the_table_knows() -> None:
    """A rule must be shown with its level, side, revisions and source."""
    done = sansmcp("explain", "CANC-004")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("CANC-004\n")
    assert re.search(r"^level: +MUST NOT$", done.stdout, re.M)
    assert re.search(r"^role: +client$", done.stdout, re.M)
    assert re.search(
        r"^revisions: +2024-11-05 2025-03-26 2025-06-18 2025-11-25$", done.stdout, re.M
    )
    assert re.search(r"^page: +2025-11-25/basic/utilities/cancellation$", done.stdout, re.M)
    assert "The client never cancels its initialize request." in done.stdout


def test_several_rules_are_shown_in_the_order_asked_for() -> None:
    """Several ids may be given, in lower case too."""
    done = sansmcp("explain", "own-001", "CANC-004")

    assert re.findall(r"^[A-Z]+-\d+$", done.stdout, re.M) == ["OWN-001", "CANC-004"]


def test_json_is_an_array_of_rules() -> None:
    """A program must get an array also for one rule."""
    (rule,) = document(sansmcp("explain", "--json", "CANC-004"))

    assert set(rule) == {"id", "level", "role", "layer", "revisions", "page", "text"}
    assert rule["id"] == "CANC-004"
    assert rule["revisions"] == ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("LIFE-1", "did you mean LIFE-001, LIFE-002, LIFE-003?"),
        ("canc004", "did you mean CANC-003, CANC-004, CANC-005?"),
        ("CANC", "the rules of CANC are CANC-001 to "),
        ("CANCL-004", "did you mean CANC-004"),
        ("nonsense", "an id is an area and a number, as in CANC-004; areas are AUTH, "),
        ("", "an id is an area and a number"),
    ],
)
def test_unknown_rule_is_answered_with_those_near_it(given: str, hint: str) -> None:
    """An id is often typed by hand, so the error must propose similar ones."""
    done = sansmcp("explain", "CANC-004", given)

    assert (done.returncode, done.stdout) == (2, "")
    assert f"there is no rule {given}" in done.stderr
    assert hint in done.stderr


def test_rule_that_a_warning_names_can_be_explained() -> None:
    """The id in a warning must be an id that `explain` knows."""
    warned = sansmcp("call", "t", "--", "echo", "noise").stderr
    rules = re.findall(r"\[([A-Z]+-\d+)\]$", warned, re.M)
    hinted = re.findall(r"sansmcp explain (\S+?)\)?$", warned, re.M)

    assert rules
    assert hinted
    assert sansmcp("explain", *rules, *hinted).returncode == 0
