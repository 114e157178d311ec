"""Every cell of the compatibility matrix is tried, and the page shows its outcome."""

import re
from pathlib import Path

import pytest

from tests.interop.compatibility import PAGE, key_of, outcomes_on, with_tables
from tests.interop.matrix import CLIENTS, OUTCOMES, SERVERS, Cell, cells
from tests.support.programs.era_server import ERAS

TEXT = PAGE.read_text("utf-8")
SHOWN = outcomes_on(TEXT)
USEFUL = re.compile(r"handshake|2026-07-28|2025-11-25")
"""What a text has to name, so that its reader knows that it is the era which does not fit."""


# Those with programs of others start two or three processes, a second of work each.
@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(cell, marks=[pytest.mark.proof] * (cell.table in (CLIENTS, SERVERS)))
        for cell in cells()
    ],
    ids=str,
)
def test_cell_comes_out_as_the_specification_says(cell: Cell, tmp_path: Path) -> None:
    """Only cells about silence wait for a deadline; an impossible combination must fail at once."""
    outcome = cell.run(tmp_path)
    assert outcome.revision == cell.expected, outcome
    if cell.expected is None:
        assert USEFUL.search(outcome.text), outcome
    assert outcome == SHOWN[key_of(cell)], "the page says otherwise: see its last section"


def test_every_combination_of_eras_is_in_the_matrix() -> None:
    """A combination that no test tries would stop working unnoticed."""
    assert OUTCOMES.keys() == {(client, server) for client in ERAS for server in ERAS}


def test_page_shows_every_cell_and_nothing_else() -> None:
    """A row that is no longer tested would stay on the page."""
    assert SHOWN.keys() == {key_of(cell) for cell in cells()}
    assert with_tables(TEXT, SHOWN) == TEXT
