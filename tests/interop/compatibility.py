"""Writes the compatibility page from the matrix: `python -m tests.interop.compatibility`.

The tables of `docs/compatibility.md` stand between comments that name them; the rest of the page is
written by hand.
"""

import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from tests.interop.matrix import CLIENTS, OURS, Cell, Outcome, cells
from tests.interop.peers import ROOT

PAGE: Final = ROOT / "docs" / "compatibility.md"
Key: TypeAlias = tuple[str, str, str]
"""A table, a row and a column."""
_TABLE: Final = re.compile(r"(<!-- begin (\w+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)
_FAILURE: Final = re.compile(r"- (.+) with (.+): `(\w+)`: (.+)")


def key_of(cell: Cell) -> Key:
    """The key of a row: the peer of another project, or our client if both sides are ours."""
    if cell.table in (OURS, CLIENTS):
        return cell.table, cell.client, cell.server
    return cell.table, cell.server, cell.client


def table_of(outcomes: Mapping[Key, Outcome], table: str) -> str:
    """The text of one table, and of a list that says what the failures are."""
    columns = list(dict.fromkeys(column for name, _, column in outcomes if name == table))
    corner = "client \\ server" if table in (OURS, CLIENTS) else "server \\ client"
    lines = [f"| {' | '.join([corner, *columns])} |", "| --- " * (len(columns) + 1) + "|"]
    failures: list[str] = []
    for row in dict.fromkeys(row for name, row, _ in outcomes if name == table):
        shown = [row]
        for column in columns:
            outcome = outcomes[table, row, column]
            shown.append(outcome.revision or "fails")
            if outcome.revision is None:
                failures.append(f"- {row} with {column}: `{outcome.error}`: {outcome.text}")
        lines.append(f"| {' | '.join(shown)} |")
    return "".join(f"{line}\n" for line in [*lines, "", *failures])


def outcomes_on(page: str) -> dict[Key, Outcome]:
    """The outcomes that a page shows: the inverse of `table_of`, for all tables."""
    found: dict[Key, Outcome] = {}
    for _, table, text, _ in _TABLE.findall(page):
        rows = [line[2:-2].split(" | ") for line in text.splitlines() if line.startswith("| ")]
        failures = {
            (row, column): Outcome(None, error, text)
            for row, column, error, text in _FAILURE.findall(text)
        }
        columns = rows[0][1:]
        for row, *shown in rows[2:]:
            for column, outcome in zip(columns, shown, strict=True):
                failure = failures.get((row, column))
                found[table, row, column] = failure or Outcome(outcome)
    return found


def with_tables(page: str, outcomes: Mapping[Key, Outcome]) -> str:
    """The page with these tables instead."""
    return _TABLE.sub(lambda match: match[1] + table_of(outcomes, match[2]) + match[4], page)


def run(all_cells: Iterable[Cell]) -> dict[Key, Outcome]:
    """Try every cell; a cell that contradicts the specification is printed on standard error."""
    outcomes: dict[Key, Outcome] = {}
    for cell in all_cells:
        with tempfile.TemporaryDirectory() as folder:
            outcome = outcomes[key_of(cell)] = cell.run(Path(folder))
        if outcome.revision != cell.expected:
            print(f"{cell}: {outcome} instead of {cell.expected}", file=sys.stderr)
    return outcomes


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text("utf-8"), run(cells())), "utf-8")
