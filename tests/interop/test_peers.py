"""A missing peer skips its tests on a laptop, and fails them where peers are required."""

import pytest

from tests.interop.peers import REQUIRED, unavailable
from tests.interop.reviewed import REVIEWED
from tests.support.tables import own_table


@pytest.mark.parametrize("environment", [{}, {REQUIRED: "0"}])
def test_a_peer_that_is_missing_skips_its_tests(environment: dict[str, str]) -> None:
    """A developer without a network must be able to run the tests."""
    with pytest.raises(pytest.skip.Exception, match="the peer is missing: run `make peers`"):
        unavailable("the peer", environment=environment)


def test_a_peer_that_is_missing_fails_its_tests_where_it_is_required() -> None:
    """A continuous integration without peers would always succeed."""
    with pytest.raises(pytest.fail.Exception, match="the peer is missing"):
        unavailable("the peer", environment={REQUIRED: "1"})


def test_what_was_reviewed_names_rules_that_exist() -> None:
    """A mistyped rule in the list would excuse the wrong reports."""
    assert {reviewed.rule for reviewed in REVIEWED} <= {
        row["id"] for row in own_table("requirements.csv")
    }
    assert len({(one.peer, one.rule) for one in REVIEWED}) == len(REVIEWED)
