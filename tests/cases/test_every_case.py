"""Every case from a public report that concerns the core or stdio has a test."""

from pathlib import Path
from typing import Final

import pytest

from tests.support.cited import citations
from tests.support.data import cases

ROOT: Final = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cited() -> set[str]:
    return set(citations(ROOT, "tests"))


def cases_of(layer: str) -> set[str]:
    return {id for id, case in cases().items() if case["layer"] == layer}


@pytest.mark.parametrize(("layer", "at_least"), [("core", 73), ("stdio", 34)])
def test_every_case_is_cited_by_a_test(layer: str, at_least: int, cited: set[str]) -> None:
    """A report from the field that no test remembers will be reported again."""
    of_layer = cases_of(layer)
    assert len(of_layer) >= at_least
    assert of_layer - cited == set()


def test_only_cases_that_exist_are_cited(cited: set[str]) -> None:
    """A citation that leads nowhere explains nothing."""
    assert cited - cases().keys() == set()


CITING: Final = '''
import pytest

def case(*ids):
    return lambda test: test

def test_one():
    """Case c901: this broke. Case c902 did, too."""

async def test_other():
    """c903, c904: so did this."""

@pytest.mark.parametrize("value", [1, 2])
@case("c905", "c906")
def test_decorated(value):
    """Without an id."""
'''
NOT_CITING: Final = '''
"""Case c911: a module tests nothing."""
import pytest

def test_commented():
    """Neighbour of case c912 and c913: they are not what it tests."""
    # Case c914: this is a comment.
    text = "Case c915"

    def test_within():
        """Case c916: nobody calls it."""

def helper():
    """Case c917: it is no test."""

def test_shadowed():
    """Case c918: the next one takes its place."""

def test_shadowed():
    pass

@pytest.mark.skip
def test_skipped():
    """Case c919: it never runs."""

@pytest.mark.xfail(reason="broken")
def test_failing():
    """Case c920: it does not pass."""

@pytest.mark.parametrize("value", [])
def test_of_nothing(value):
    """Case c921: it runs with no value."""

if False:
    def test_hidden():
        """Case c922: it does not exist."""
'''


def test_only_tests_that_run_cite(tmp_path: Path) -> None:
    """An id in a comment or a helper proves nothing: only a test that runs may cite a case."""
    (tmp_path / "test_citing.py").write_text(CITING)
    (tmp_path / "test_not_citing.py").write_text(NOT_CITING)
    tests = {
        "test_citing.py::test_one": ["c901", "c902"],
        "test_citing.py::test_other": ["c903", "c904"],
        "test_citing.py::test_decorated": ["c905", "c906"],
    }
    assert citations(tmp_path, ".") == {id: {name} for name, ids in tests.items() for id in ids}
