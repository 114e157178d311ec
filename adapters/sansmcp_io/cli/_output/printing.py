"""The blocks that a command shows, and their printer for plain text."""

from __future__ import annotations

import enum
import os
import time
from collections.abc import Callable
from typing import Final, Protocol, TextIO, TypeAlias, assert_never

import attrs

from .visible import shortened, visible, width

_WIDEST_PADDING: Final = 60
"""A longer cell pushes the rest of its own line to the right, and of no other."""
_LINES_PER_SECOND: Final = 10


@attrs.frozen
class Heading:
    """Begins a part."""

    text: str


@attrs.frozen
class NamedValues:
    """Names with their values."""

    rows: tuple[tuple[str, str], ...]


@attrs.frozen
class Table:
    """A line for each item, below the names of the columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@attrs.frozen
class Body:
    """A text of its own, whose lines are kept."""

    text: str


@attrs.frozen
class Note:
    """A line about the other blocks, or about missing blocks."""

    text: str


Block: TypeAlias = Heading | NamedValues | Table | Body | Note


class Label(enum.Enum):
    """The kind of a line on standard error. The value begins the line."""

    ERROR = "error:"
    HINT = "  hint:"
    DETAIL = "  "
    WARNING = "warning:"
    LOGIN = "to log in, open:"
    SERVER = "server|"
    LOG = "log:"
    NOTIFICATION = "notification:"
    PROGRESS = "progress:"
    TASK = "task:"


class Progress(Protocol):
    """Shows how far a request has come."""

    def show(self, progress: float, total: float | None, message: str | None) -> None:
        """Show how far the request has come."""
        ...

    def close(self) -> None:
        """Remove progress from the screen."""
        ...


class Printer(Protocol):
    """Prints on one stream."""

    def show(self, block: Block) -> None:
        """Print a part of a result."""
        ...

    def line(self, label: Label, text: str) -> None:
        """Print one line that begins with its label."""
        ...

    def progress(self) -> Progress:
        """Begin to show progress."""
        ...


def make_printer(stream: TextIO) -> Printer:
    """Make a printer: rich for a terminal, if it is installed; else plain text."""
    if stream.isatty() and os.environ.get("TERM") != "dumb":
        try:
            from .rich_printing import RichPrinter
        except ModuleNotFoundError:
            pass
        else:
            return RichPrinter(stream)
    return PlainPrinter(stream)


class PlainPrinter:
    """Prints plain text."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = False

    def show(self, block: Block) -> None:
        """Print a part of a result."""
        match block:
            case Heading():
                text = ("\n" if self._begun else "") + visible(block.text)
            case NamedValues():
                text = _aligned([(f"{name}:", value) for name, value in block.rows])
            case Table():
                text = _aligned([tuple(c.upper() for c in block.columns), *block.rows], "  ")
            case Body():
                text = visible(block.text, lines=True).removesuffix("\n")
            case Note():
                text = f"  ({visible(block.text)})"
            case _:
                assert_never(block)
        self._begun = True
        print(text, file=self._stream, flush=True)

    def line(self, label: Label, text: str) -> None:
        """Print one line that begins with its label."""
        print(label.value, visible(text), file=self._stream, flush=True)

    def progress(self) -> Progress:
        """Begin to show progress, as lines."""
        return LineProgress(self.line, time.monotonic)


def _aligned(rows: list[tuple[str, ...]], margin: str = "") -> str:
    seen = [[visible(cell) for cell in row] for row in rows]
    widths = [min(max(map(width, column)), _WIDEST_PADDING) for column in zip(*seen, strict=True)]
    return "\n".join(
        margin
        + "  ".join(
            cell + " " * (space - width(cell)) for cell, space in zip(row, widths, strict=True)
        ).rstrip()
        for row in seen
    )


class LineProgress:
    """Progress as lines of text, only as many as a person can read."""

    def __init__(self, line: Callable[[Label, str], None], clock: Callable[[], float]) -> None:
        self._line = line
        self._clock = clock
        self._next = 0.0

    def show(self, progress: float, total: float | None, message: str | None) -> None:
        """Show progress as a line; the first and the last are always shown."""
        now = self._clock()
        if now < self._next and (total is None or progress < total):
            return
        self._next = now + 1 / _LINES_PER_SECOND
        self._line(Label.PROGRESS, describe_progress(progress, total, message))

    def close(self) -> None:
        """Lines stay."""


def describe_progress(progress: float, total: float | None, message: str | None) -> str:
    """`3 of 10, message`."""
    text = _number(progress) if total is None else f"{_number(progress)} of {_number(total)}"
    return text if not message else f"{text}, {shortened(message, 200)}"


def _number(value: float) -> str:
    try:
        return f"{value:.6g}" if type(value) is float else shortened(str(value), 24)
    except ValueError:  # more digits than Python writes; the peer may send them
        return "a very large number"
