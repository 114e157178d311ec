"""Newline framing: bytes in any pieces to whole lines, in linear time and bounded space."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import attrs

EXCERPT_BYTES: Final = 120
"""How much of a bad line an event shows."""

SPACE: Final = 32
"""A line that ends in a byte up to this one needs a closer look (`Trimmer`)."""

NO_NEWLINE: Final = "the stream ended without a newline"

BOM: Final = b"\xef\xbb\xbf"
"""A byte order mark in UTF-8. JSON has none (RFC 8259, section 8.1), and some writers begin so."""

MARKED: Final = "a byte order mark came before a message"

_CR: Final = 13


@attrs.frozen
class OverlongLine:
    """The first bytes of a line that was thrown away because it grew over the limit."""

    excerpt: bytes


Line: TypeAlias = bytes | bytearray | OverlongLine


@attrs.define(eq=False)
class LineReader:
    """Cuts a byte stream into lines of at most `max_bytes`, the newline not counted.

    A longer line is reported once, as soon as it is known to be longer, and thrown away up to its
    end without being kept.
    """

    max_bytes: int
    _partial: bytearray = attrs.field(factory=bytearray, init=False)
    _discarding: bool = attrs.field(default=False, init=False)

    def feed(self, data: bytes | bytearray | memoryview) -> list[Line]:
        """The lines that `data` completes, without their newlines."""
        if not isinstance(data, bytes):
            data = bytes(data)
        lines: list[Any] = data.split(b"\n")
        rest: bytes = lines.pop()
        if self._partial or self._discarding or len(data) > self.max_bytes:
            lines = [line for piece in lines if (line := self._complete(piece)) is not None]
        # Else, as nearly always, they are whole lines, and none can be too long.
        if rest and (overlong := self._keep(rest)) is not None:
            lines.append(overlong)
        return lines

    def _complete(self, piece: bytes) -> Line | None:
        """The line that ends with this piece; None where it was given up before."""
        if self._discarding:
            self._discarding = False
            return None
        overlong = self._keep(piece)
        if overlong is not None:
            self._discarding = False
            return overlong
        line, self._partial = self._partial, bytearray()
        return line

    def _keep(self, piece: bytes) -> OverlongLine | None:
        """Add to the unfinished line, or give it up where it has grown too long."""
        if self._discarding:
            return None
        partial = self._partial
        if len(partial) + len(piece) <= self.max_bytes:
            partial += piece
            return None
        shown = min(self.max_bytes, EXCERPT_BYTES)
        excerpt = bytes(partial[:shown]) + piece[: max(0, shown - len(partial))]
        self._partial = bytearray()
        self._discarding = True
        return OverlongLine(excerpt)

    def end(self) -> bytearray | None:
        """The bytes of an unfinished last line, once no more will come."""
        line, self._partial = self._partial, bytearray()
        return line or None


@attrs.define(eq=False)
class Trimmer:
    """Takes off what may stand around a message: a byte order mark at first, white space.

    Attributes:
        first: Whether the next line is the first of its stream.
    """

    first: bool = True
    _seen_blank: bool = attrs.field(default=False, init=False)
    _seen_crlf: bool = attrs.field(default=False, init=False)

    def trim(self, line: bytes | bytearray) -> tuple[bytes | bytearray | None, list[str]]:
        """The message in a line, None where it is blank, and what is odd about the line.

        Blank lines and CR LF are told of once (OWN-017).
        """
        notes: list[str] = []
        if self.first:
            self.first = False
            if line.startswith(BOM):
                notes.append("a byte order mark came before the first message")
                line = line[len(BOM) :]
        if is_blank(line):
            if not self._seen_blank:
                self._seen_blank = True
                notes.append("a blank line came; further ones are not reported")
            return None, notes
        if line[-1] == _CR and not self._seen_crlf:
            self._seen_crlf = True
            notes.append("a line ends in CR LF; further ones are not reported")
        return line, notes


def is_blank(line: bytes | bytearray) -> bool:
    """Whether a line holds nothing but white space."""
    return not line.strip(b" \t\r")
