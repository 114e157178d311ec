"""Reads the tables of the package, and the specification data from which they were copied."""

import csv
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import sansmcp
from sansmcp import Side

PACKAGE: Final = Path(sansmcp.__file__).parent

_SHARED: Final = Path(__file__).resolve().parents[3] / "shared" / "spec"
beside_shared_data: Final = pytest.mark.skipif(
    not (_SHARED / "requirements.csv").is_file(),
    reason=f"nothing to compare with is in {_SHARED}",
)
"""Marks the tests that compare our tables with that data, and need nothing else."""


def read_table(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file. A row with too many or too few columns fails an assertion."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, strict=True))
    for row in rows:
        assert None not in row, row
        assert None not in row.values(), row
    return rows


def own_table(name: str) -> list[dict[str, str]]:
    """The rows of a table of the package."""
    return read_table(PACKAGE / "data" / name)


def shared_table(name: str) -> list[dict[str, str]]:
    """The rows of the table with this name in the specification data."""
    return read_table(_SHARED / name)


@cache
def methods_from(sender: Side, kind: str, revision: str) -> tuple[str, ...]:
    """The methods that a side may send in a revision.

    Args:
        sender: The side.
        kind: `request` or `notification`.
        revision: The revision.
    """
    direction = "client->server" if sender is Side.CLIENT else "server->client"
    return tuple(
        row["method"]
        for row in own_table("methods.csv")
        if (row["revision"], row["kind"], row["direction"]) == (revision, kind, direction)
    )
