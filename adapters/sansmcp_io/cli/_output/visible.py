"""Makes text of others safe to show: invisible characters become escapes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

_BLANK: Final = re.compile(
    # Characters that count as printable and show nothing: fillers, and variation selectors but for
    # U+FE0F, which every other emoji has. They can carry a text that only a machine reads.
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0e\uffa0"
    "\U000e0100-\U000e01ef]"
)
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ELLIPSIS: Final = "..."


def _is_seen(character: str) -> bool:
    return character.isprintable() and _BLANK.match(character) is None


def _escape(character: str) -> str:
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def pieces(text: str, *, lines: bool = False) -> Iterator[tuple[str, bool]]:
    """Cut a text into pieces to show, each with a flag for escapes.

    Escaped is all that moves the cursor, changes direction, or is not seen at all.

    Args:
        text: Text of others.
        lines: Leave newlines and tabs as they are: the text is a body of its own, not a name.
    """
    if lines:
        rows = text.replace("\r\n", "\n").split("\n")
        for number, row in enumerate(rows):
            if number:
                yield "\n", False
            for cell_number, cell in enumerate(row.split("\t")):
                if cell_number:
                    yield "\t", False
                yield from pieces(cell)
        return
    if text.isprintable() and _BLANK.search(text) is None:
        if text:
            yield text, False
        return
    start = 0
    for place, character in enumerate(text):
        if not _is_seen(character):
            if start < place:
                yield text[start:place], False
            yield _escape(character), True
            start = place + 1
    if start < len(text):
        yield text[start:], False


def visible(text: str, *, lines: bool = False) -> str:
    """A text with escapes for invisible characters; see `pieces`."""
    return "".join(piece for piece, _ in pieces(text, lines=lines))


def shortened(text: str, limit: int) -> str:
    """A text of at most `limit` characters, and a mark where more would follow."""
    return text if len(text) <= limit else text[: limit - len(_ELLIPSIS)] + _ELLIPSIS


def width(text: str) -> int:
    """The number of columns that a visible text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
