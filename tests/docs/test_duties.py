"""The page of duties: each rule of applications has a row, and its helpers are there."""

import pkgutil
import re
from pathlib import Path
from typing import Final

import pytest

from docs._ext.duties import KEEPERS, Duty, read_duties, rules_of_applications
from docs._ext.where import read_where

DUTIES: Final = read_duties()
DOCS: Final = Path(__file__).parents[2] / "docs"
WITH_HELPERS: Final = [duty for duty in DUTIES.values() if duty.helpers]


def test_each_rule_of_applications_has_a_row() -> None:
    """A duty without a row would be overlooked by whoever embeds the library."""
    assert list(DUTIES) == list(rules_of_applications())
    assert len(DUTIES) > 140


def test_rows_say_who_keeps_the_rule() -> None:
    """The page has words for these, and for no others."""
    assert {duty.kept for duty in DUTIES.values()} == set(KEEPERS)


def test_rows_agree_with_the_places_where_rules_are_kept() -> None:
    """Two pages that tell different stories help nobody."""
    where = read_where()
    for duty in DUTIES.values():
        entry = where[duty.rule]
        if entry.kept in ("function", "construction"):
            is_check = any(place.startswith("sansmcp.check.") for place in entry.places)
            assert duty.kept in ("library", *(("helper",) if is_check else ())), duty.rule
        else:
            assert duty.kept != "library", duty.rule
            assert entry.kept != "helper" or duty.kept == "helper", duty.rule


@pytest.mark.parametrize("duty", WITH_HELPERS, ids=lambda duty: duty.rule)
def test_helpers_are_public_names(duty: Duty) -> None:
    """A helper that was renamed would lead nowhere."""
    for name in duty.helpers:
        pkgutil.resolve_name(name)
        assert not any(part.startswith("_") for part in name.split(".")), name


def test_a_helper_is_named_where_one_helps() -> None:
    """A row that promises help must say whose."""
    without = {rule for rule, duty in DUTIES.items() if duty.kept == "helper" and not duty.helpers}
    assert without == set()


@pytest.mark.parametrize("duty", DUTIES.values(), ids=lambda duty: duty.rule)
def test_each_row_is_one_sentence_whose_links_lead_somewhere(duty: Duty) -> None:
    """The cells of a table are read alone."""
    assert re.fullmatch(r"[A-Z`].*[.]", duty.sentence)
    for target in re.findall(r"\]\(([^)]+)\)", duty.sentence):
        assert (DOCS / target).is_file(), target
