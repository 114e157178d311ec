"""State diagrams drawn at build time from the tables of the lifecycle, so that they cannot drift.

The directive `lifecycle` takes the name of a table in `sansmcp._rules.state_tables` and shows it
three times: as a picture, as the meaning of each state, and as rows.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import attrs
from docutils import nodes
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

from sansmcp._rules import state_tables

if TYPE_CHECKING:
    from sphinx.application import Sphinx

Table = Mapping[tuple[enum.IntEnum, enum.IntEnum], enum.IntEnum]

BOX_HEIGHT = 38
CHARACTER = 7.4  # the width of one character in the fonts of sansmcp.css, generously
LINE = 17
ROW = 92
MARGIN = 12


@attrs.define
class Box:
    """A state, or (without one) the place where a long arrow crosses a column."""

    state: enum.IntEnum | None
    column: int
    x: float = 0
    y: float = 0
    width: float = 0


def arrows(table: Table) -> dict[tuple[enum.IntEnum, enum.IntEnum], list[str]]:
    """The triggers that lead from one state to another, in the order of the table."""
    found: dict[tuple[enum.IntEnum, enum.IntEnum], list[str]] = {}
    for (source, trigger), target in table.items():
        found.setdefault((source, target), []).append(trigger.name)
    return found


def columns_of(states: Sequence[enum.IntEnum], table: Table) -> dict[enum.IntEnum, int]:
    """The length of the longest way to each state; states are numbered in the order they come."""
    column = dict.fromkeys(states, 0)
    for source in states:
        for target in {t for (s, _), t in table.items() if s is source and t > source}:
            column[target] = max(column[target], column[source] + 1)
    return column


class Drawing:
    """One table as SVG: columns from left to right, long arrows through the middle."""

    def __init__(self, table: Table) -> None:
        self.arrows = arrows(table)
        states = list(type(next(iter(table.values()))))
        column = columns_of(states, table)
        self.boxes = {
            state: Box(state, column[state], width=len(state.name) * CHARACTER + 24)
            for state in states
        }
        self.columns: list[list[Box]] = [
            [box for box in self.boxes.values() if box.column == index]
            for index in range(max(column.values()) + 1)
        ]
        self.crossings: dict[tuple[enum.IntEnum, enum.IntEnum], list[Box]] = {}
        for source, target in self.arrows:
            between = range(column[source] + 1, column[target])
            self.crossings[source, target] = [self._crossing(index) for index in between]
        self.parts: list[str] = []
        self._place()

    def _crossing(self, index: int) -> Box:
        column = self.columns[index]
        box = Box(None, index)
        column.insert((len(column) + 1) // 2, box)
        return box

    def _place(self) -> None:
        self.rows = max(map(len, self.columns))
        x = float(MARGIN)
        for index, column in enumerate(self.columns):
            width = max(box.width for box in column)
            for row, box in enumerate(column):
                box.x = x + (width - box.width) / 2
                box.y = MARGIN + ROW * (row + (self.rows - len(column)) / 2) + ROW / 2
            x += width + self._gap(index)
        self.width = x + MARGIN
        self.height = 2 * MARGIN + ROW * self.rows

    def _gap(self, index: int) -> float:
        """The room right of a column: for the labels of the arrows (or loops) that begin there."""
        names = [
            name
            for (source, target), triggers in self.arrows.items()
            for name in triggers
            if min(self.boxes[source].column, self.boxes[target].column) == index
        ]
        return max((len(name) * CHARACTER for name in names), default=0) + 36

    # ----------------------------------------------------------------------------- drawing

    def svg(self, title: str) -> str:
        """The whole picture."""
        for (source, target), names in self.arrows.items():
            start, end = self.boxes[source], self.boxes[target]
            if start is end:
                self._loop(start, names)
            elif start.column < end.column:
                self._forward(start, self.crossings[source, target], end, names)
            else:
                self._back(start, end, names)
        for box in self.boxes.values():
            self._box(box)
        size = f"{self.width:.0f} {self.height:.0f}"
        return (
            f'<svg class="lifecycle" role="img" viewBox="0 0 {size}" width="{self.width:.0f}" '
            f'xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>'
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
            'markerHeight="8" orient="auto"><path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>'
            + "".join(self.parts)
            + "</svg>"
        )

    def _box(self, box: Box) -> None:
        assert box.state is not None
        x, y = box.x, box.y - BOX_HEIGHT / 2
        self.parts.append(
            f'<rect class="state" x="{x:.0f}" y="{y:.0f}" width="{box.width:.0f}" '
            f'height="{BOX_HEIGHT}" rx="6"/>'
            f'<text class="state" x="{x + box.width / 2:.0f}" y="{box.y + 5:.0f}">'
            f"{box.state.name}</text>"
        )

    def _arrow(self, path: str) -> None:
        self.parts.append(f'<path class="arrow" marker-end="url(#tip)" d="{path}"/>')

    def _label(self, x: float, y: float, names: Iterable[str]) -> None:
        lines = list(names)
        top = y - LINE * (len(lines) - 1) / 2 + 4
        for index, name in enumerate(lines):
            self.parts.append(
                f'<text class="trigger" x="{x:.0f}" y="{top + index * LINE:.0f}">{name}</text>'
            )

    def _forward(self, start: Box, crossings: list[Box], end: Box, names: list[str]) -> None:
        points = [
            (start.x + start.width, start.y),
            *((box.x + box.width / 2, box.y) for box in crossings),
            (end.x, end.y),
        ]
        path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
        for (x, y), (to_x, to_y) in itertools.pairwise(points):
            bend = (x + to_x) / 2
            path += f"C{bend:.0f} {y:.0f} {bend:.0f} {to_y:.0f} {to_x:.0f} {to_y:.0f}"
        self._arrow(path)
        if crossings:
            middle = crossings[len(crossings) // 2]
            self._label(middle.x, middle.y, names)
        else:
            (x, y), (to_x, to_y) = points
            self._label((x + to_x) / 2, (y + to_y) / 2, names)

    def _back(self, start: Box, end: Box, names: list[str]) -> None:
        """Around the outside: above both boxes if it begins in the higher one, else below them."""
        side = -1 if start.y < end.y else 1
        x, to_x = start.x + start.width / 2, end.x + end.width / 2
        y, to_y = (box.y + side * BOX_HEIGHT / 2 for box in (start, end))
        bend = y + side * (ROW / 2 - 8)
        self._arrow(
            f"M{x:.0f} {y:.0f}C{x:.0f} {bend:.0f} {to_x:.0f} {bend:.0f} {to_x:.0f} {to_y:.0f}"
        )
        self._label((x + to_x) / 2, (y + 6 * bend + to_y) / 8, names)

    def _loop(self, box: Box, names: list[str]) -> None:
        x, y = box.x + box.width, box.y
        self._arrow(f"M{x:.0f} {y - 9:.0f}c34 -14 34 32 0 18")
        widest = max(map(len, names)) * CHARACTER
        self._label(x + 34 + widest / 2, y, names)


# --------------------------------------------------------------------------------- the directive


def meanings(kind: type[enum.IntEnum]) -> list[tuple[str, str]]:
    """Each member of an enumeration with the docstring below it."""
    documented = ModuleAnalyzer.for_module(kind.__module__).find_attr_docs()
    return [
        (member.name, " ".join(documented.get((kind.__name__, member.name), [])).strip())
        for member in kind
    ]


class Lifecycle(SphinxDirective):
    """Show one table of `sansmcp._rules.state_tables`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The picture, the states and the rows."""
        name = self.arguments[0]
        table: Table = getattr(state_tables, name)
        self.env.note_dependency(state_tables.__file__)
        picture = nodes.raw("", Drawing(table).svg(f"The table {name}"), format="html")
        figure = nodes.container("", picture, classes=["lifecycle"])
        states = nodes.definition_list()
        for state, text in meanings(type(next(iter(table.values())))):
            inline, _ = self.parse_inline(text)
            states += nodes.definition_list_item(
                "",
                nodes.term("", "", nodes.literal("", state)),
                nodes.definition("", nodes.paragraph("", "", *inline)),
            )
        return [figure, states, rows_table(table)]


def rows_table(table: Table) -> nodes.table:
    """The table as it stands."""
    rows = [[source.name, trigger.name, target.name] for (source, trigger), target in table.items()]
    return literal_table(["in state", "on", "goes to"], rows)


def literal_table(head: list[str], rows: list[list[str]]) -> nodes.table:
    """A table of names."""
    group = nodes.tgroup("", cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    top = nodes.row("", *(nodes.entry("", nodes.paragraph("", text)) for text in head))
    group += nodes.thead("", top)
    group += nodes.tbody(
        "",
        *(
            nodes.row(
                "",
                *(nodes.entry("", nodes.paragraph("", "", nodes.literal("", c))) for c in row),
            )
            for row in rows
        ),
    )
    return nodes.table("", group)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("lifecycle", Lifecycle)
    return {"version": "1", "parallel_read_safe": True}
