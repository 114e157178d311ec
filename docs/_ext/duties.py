"""The table of what applications have to do: `docs/duties.csv`, and what a page shows of it.

It has a row for each rule of the layer `application`, which no library can keep alone. The
directive `duties` makes one table for each area of rules.
"""

from __future__ import annotations

import csv
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from docs._ext.rules import AREAS, read_rules
from docs._ext.rules import TABLE as RULES
from docs._ext.where import row

if TYPE_CHECKING:
    from sphinx.application import Sphinx

TABLE: Final = Path(__file__).parents[1] / "duties.csv"
LAYER: Final = "application"
"""The layer of the rules that have a row."""

KEEPERS: Final = {
    "library": "the library",
    "helper": "your program, with a helper",
    "program": "your program",
}
"""Who keeps a rule, with the words for it on the page."""


@attrs.frozen
class Duty:
    """One row of the table.

    Attributes:
        rule: The id of the rule.
        kept: A key of `KEEPERS`.
        helpers: Full public names of what helps, the most useful first.
        sentence: What the library does, or what the program has to do; in MyST.
    """

    rule: str
    kept: str
    helpers: tuple[str, ...]
    sentence: str


def read_duties() -> dict[str, Duty]:
    """The rows by the ids of their rules, in the order of the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {
            row["id"]: Duty(row["id"], row["kept"], tuple(row["helpers"].split()), row["sentence"])
            for row in csv.DictReader(file, strict=True)
        }


def rules_of_applications() -> dict[str, dict[str, str]]:
    """The rules that need a row, by their ids, in the order of the table of rules."""
    return {
        rule["id"]: rule
        for rules in read_rules().values()
        for rule in rules
        if rule["layer"] == LAYER
    }


class Duties(SphinxDirective):
    """Shows a section with a table for each area that has rules of applications."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        self.env.note_dependency(str(TABLE))
        self.env.note_dependency(str(RULES))
        rules = rules_of_applications()
        by_area = groupby(read_duties().values(), lambda duty: duty.rule.rpartition("-")[0])
        return [self._section(area, list(duties), rules) for area, duties in by_area]

    def _section(
        self, area: str, duties: list[Duty], rules: dict[str, dict[str, str]]
    ) -> nodes.section:
        name = f"duties-{area.lower()}"
        title, _ = self.parse_inline(AREAS[area])
        group = nodes.tgroup("", cols=4)
        group += [nodes.colspec(colwidth=width) for width in (2, 2, 3, 8)]
        head = ("rule", "level", "kept by", "how")
        group += nodes.thead("", row(*(nodes.Text(text) for text in head)))
        body = nodes.tbody()
        for duty in duties:
            facts = " · ".join((rules[duty.rule]["level"], rules[duty.rule]["role"]))
            how = " ".join((duty.sentence, self._helped(duty))).rstrip()
            body += row(
                self._inline(f"{{rule}}`{duty.rule}`"),
                nodes.Text(facts),
                nodes.Text(KEEPERS[duty.kept]),
                self._inline(how),
            )
        group += body
        section = nodes.section("", nodes.title("", "", *title), ids=[name], names=[name])
        section += nodes.table("", group)
        return section

    def _helped(self, duty: Duty) -> str:
        """The helpers of a row, with links to the reference."""
        if not duty.helpers:
            return ""
        return f"({', '.join(f'{{py:obj}}`~{name}`' for name in duty.helpers)})"

    def _inline(self, text: str) -> nodes.Node:
        found, _ = self.parse_inline(text)
        return nodes.inline("", "", *found)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive; Sphinx calls this."""
    app.add_directive("duties", Duties)
    return {"version": "1", "parallel_read_safe": True}
