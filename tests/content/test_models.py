"""The model for a sampling request is chosen by hints, then by priorities."""

import math
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp.content import ModelScores, choose_model
from sansmcp.testing import json_objects

NAMES: Final = ["large-2", "large-1", "small-2", "small-1"]
SCORES: Final = {
    "large-2": ModelScores(cost=0, speed=0.2, intelligence=1),
    "large-1": ModelScores(cost=0.2, speed=0.1, intelligence=0.8),
    "small-2": ModelScores(cost=0.8, speed=1, intelligence=0.3),
}


@pytest.mark.parametrize(
    ("preferences", "name"),
    [
        (None, "large-2"),
        ({}, "large-2"),
        ({"hints": [{"name": "small"}]}, "small-2"),
        ({"hints": [{"name": "small-1"}, {"name": "large-2"}]}, "small-1"),
        ({"hints": [{"name": "tiny"}, {"name": "-1"}]}, "large-1"),
        ({"hints": [{"name": "tiny"}]}, "large-2"),
        ({"hints": [{"name": "Small"}]}, "large-2"),
        ({"hints": [{}, {"name": ""}, {"name": "small"}]}, "small-2"),
        ({"hints": [None, {"name": 1}, "small"]}, "large-2"),
        ({"hints": "small"}, "large-2"),
    ],
)
def test_the_first_hint_that_fits_decides(preferences: Any, name: str) -> None:
    """SAMP-016, SAMP-017: hints are tried in order, as parts of names."""
    assert choose_model(preferences, NAMES) == name


@pytest.mark.parametrize(
    ("preferences", "name"),
    [
        ({"intelligencePriority": 1}, "large-2"),
        ({"costPriority": 1, "intelligencePriority": 0.1}, "small-2"),
        ({"speedPriority": 0.5}, "small-2"),
        ({"speedPriority": 1, "hints": [{"name": "large"}]}, "large-2"),
        ({"costPriority": 1, "hints": [{"name": "large"}]}, "large-1"),
        ({"costPriority": 1, "hints": [{"name": "small-1"}]}, "small-1"),
        ({"costPriority": 0}, "large-2"),
        ({"costPriority": 2}, "large-2"),
        ({"costPriority": math.nan}, "large-2"),
        ({"costPriority": True, "speedPriority": "1"}, "large-2"),
    ],
)
def test_priorities_decide_between_equal_names(preferences: Any, name: str) -> None:
    """SAMP-017: priorities come after the hints, and only valid ones count."""
    assert choose_model(preferences, NAMES, SCORES) == name


@given(json_objects(), st.lists(st.sampled_from(NAMES)))
def test_nothing_that_a_server_sends_raises(preferences: dict[str, Any], names: list[str]) -> None:
    """The client has to choose in any case."""
    chosen = choose_model(preferences, names, SCORES)

    assert chosen in names if names else chosen is None


def test_one_name_is_no_list_of_names() -> None:
    """A string would be taken as many names of one letter."""
    with pytest.raises(ValueError, match="names"):
        choose_model({}, "large")
