"""Prints on a terminal with rich. All text is `Text`, so that nothing counts as markup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TextIO, assert_never

from rich import box
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars
from rich.table import Table as RichTable
from rich.text import Span, Text

from .printing import (
    Block,
    Body,
    Heading,
    Label,
    NamedValues,
    Note,
    Progress,
    Table,
    describe_progress,
)
from .visible import pieces, visible, width

_ESCAPE_STYLE: Final = "reverse"
"""Shows that a backslash stands for something, and was not written by the peer."""
_MOST_STYLED: Final = 1000
"""Each one takes time, and a text with more of them is no text."""
_LINE_STYLES: Final = {
    Label.ERROR: ("bold red", ""),
    Label.HINT: ("green", ""),
    Label.DETAIL: ("", ""),
    Label.WARNING: ("yellow", ""),
    Label.LOGIN: ("bold", ""),
    Label.SERVER: ("dim", "dim"),
    Label.LOG: ("cyan", ""),
    Label.NOTIFICATION: ("dim", "dim"),
    Label.PROGRESS: ("dim", "dim"),
    Label.TASK: ("cyan", ""),
}
_GAP: Final = 3
"""Between two columns of a table."""


def _text(content: str, style: str = "", *, lines: bool = False) -> Text:
    shown: list[str] = []
    spans: list[Span] = []
    place = 0
    for piece, escaped in pieces(content, lines=lines):
        shown.append(piece)
        if escaped and len(spans) < _MOST_STYLED:
            spans.append(Span(place, place + len(piece), _ESCAPE_STYLE))
        place += len(piece)
    return Text("".join(shown), style, spans=spans)


class RichPrinter:
    """Prints on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, markup=False, emoji=False, highlight=False)
        self._begun = False

    def show(self, block: Block) -> None:
        """Print a part of a result."""
        match block:
            case Heading():
                if self._begun:
                    self._console.print()
                self._console.print(_text(block.text, "bold"), soft_wrap=True)
            case NamedValues():
                grid = RichTable.grid(padding=(0, 2))
                for name, value in block.rows:
                    grid.add_row(_text(name, "dim"), _text(value))
                self._console.print(grid)
            case Table():
                self._console.print(_table(block, self._console.width))
            case Body():
                text = _text(block.text.removesuffix("\n"), lines=True)
                self._console.print(text, soft_wrap=True)  # so that long lines can be copied
            case Note():
                self._console.print(_text(f"  {block.text}", "dim italic"))
            case _:
                assert_never(block)
        self._begun = True

    def line(self, label: Label, text: str) -> None:
        """Print one line that begins with its label."""
        of_label, of_text = _LINE_STYLES[label]
        line = Text.assemble(Text(label.value, of_label), " ", _text(text, of_text))
        self._console.print(line, soft_wrap=True)

    def progress(self) -> Progress:
        """Begin to show progress, as a bar that goes away in the end."""
        return BarProgress(self._console)


def _table(block: Table, room: int) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    # The widths are not left to rich, which cuts cells off where it has too little room.
    widths = _share_out(
        [
            max(map(width, map(visible, column)))
            for column in zip(block.columns, *block.rows, strict=True)
        ],
        room - _GAP * (len(block.columns) - 1),
    )
    for number, (column, columns) in enumerate(zip(block.columns, widths, strict=True)):
        table.add_column(
            Text(column),
            style="" if number else "cyan",
            width=columns,
            overflow="fold",  # an ellipsis would make two names look the same
        )
    for row in block.rows:
        table.add_row(*map(_text, row))
    return table


def _share_out(wanted: Sequence[int], room: int) -> list[int]:
    """Widths of columns that fit: the first may have half, the others share alike."""
    first = min(wanted[0], room if len(wanted) == 1 else max(room // 2, 1))
    given = [first]
    rest = room - first
    others = wanted[1:]
    shares: dict[int, int] = {}
    for left, number in enumerate(sorted(range(len(others)), key=others.__getitem__)):
        share = max(min(others[number], rest // (len(others) - left)), 1)
        shares[number] = share
        rest -= share
    return given + [shares[number] for number in range(len(others))]


def _fraction(progress: float, total: float | None) -> float:
    """The part that is done, from 0 to 1, for any numbers of the peer."""
    try:
        return min(max(progress / total, 0), 1) if total else 0
    except OverflowError:
        return 0


class BarProgress:
    """Progress as a bar. Other output of the same console appears above it."""

    def __init__(self, console: Console) -> None:
        self._bars = Bars(
            BarColumn(bar_width=30),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            auto_refresh=False,  # it moves when the server says so: no thread is needed
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bars.add_task("", total=None)

    def show(self, progress: float, total: float | None, message: str | None) -> None:
        """Draw the bar anew."""
        self._bars.start()
        self._bars.update(
            self._task,
            completed=_fraction(progress, total),
            total=1 if total else None,  # without one the bar only shows that something goes on
            description=visible(describe_progress(progress, total, message)),
            refresh=True,
        )

    def close(self) -> None:
        """Take the bar away."""
        self._bars.stop()
