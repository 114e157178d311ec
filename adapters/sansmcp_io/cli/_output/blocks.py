"""What a command shows, whatever it is shown on. Printers make all of the text visible."""

from __future__ import annotations

from typing import TypeAlias

import attrs


@attrs.frozen
class Heading:
    """Begins a part."""

    text: str


@attrs.frozen
class Fields:
    """Names with their values."""

    rows: tuple[tuple[str, str], ...]


@attrs.frozen
class Table:
    """One line for each thing, with the names of the columns on top."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@attrs.frozen
class Body:
    """A text of its own, whose lines are kept."""

    text: str


@attrs.frozen
class Note:
    """One line about what is shown, or why it is not."""

    text: str


Block: TypeAlias = Heading | Fields | Table | Body | Note
