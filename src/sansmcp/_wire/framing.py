"""Newline framing: bytes in any pieces to whole lines, in linear time and bounded space."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import attrs

from .values import Record

EXCERPT_BYTES: Final = 120
"""How much of a bad line an event shows."""

HEAD_BYTES: Final = 512
TAIL_BYTES: Final = 512
"""How much of the start and of the end of a line over the limit is kept, to read its id."""

SPACE: Final = 32
"""A line that ends in a byte up to this one needs a closer look (`Trimmer`)."""

NO_NEWLINE: Final = "the stream ended without a newline"

BOM: Final = b"\xef\xbb\xbf"
"""A byte order mark in UTF-8. JSON has none (RFC 8259, section 8.1), and some writers begin so."""

BOM_NOTE: Final = "a byte order mark came before a message"

_CR: Final = 13


class Overlong(Record):
    """What the reader gives in place of a line over the limit."""

    __slots__ = ()


@attrs.frozen
class OverlongLine(Overlong):
    """A line has grown over the limit: its first bytes. The rest of it is discarded."""

    head: bytes


@attrs.frozen
class OverlongEnd(Overlong):
    """A line over the limit has ended: its last bytes, and how many bytes it had."""

    tail: bytes
    size: int


Line: TypeAlias = bytes | bytearray | OverlongLine


@attrs.define(eq=False, repr=False)
class LineReader:
    """Cuts a byte stream into lines of at most `max_bytes`, the newline not counted.

    A longer line is reported as soon as it is known to be longer, and again when it ends. Between
    the two nothing of it is kept but its last bytes.
    """

    max_bytes: int
    _partial: bytearray = attrs.field(factory=bytearray, init=False)
    _discarded: int = attrs.field(default=0, init=False)  # bytes of a line over the limit; 0: none
    _tail: bytes = attrs.field(default=b"", init=False)

    def feed(self, data: bytes | bytearray | memoryview) -> list[Line | OverlongEnd]:
        """The lines that `data` completes, without their newlines."""
        if not isinstance(data, bytes):
            data = bytes(data)
        lines: list[Any] = data.split(b"\n")
        rest: bytes = lines.pop()
        if self._partial or self._discarded or len(data) > self.max_bytes:
            pieces, lines = lines, []
            for piece in pieces:
                self._keep(piece, lines)
                lines.append(self._complete())
        # Else, as nearly always, they are whole lines, and none can be too long.
        if rest:
            self._keep(rest, lines)
        return lines

    def _complete(self) -> bytearray | OverlongEnd:
        """The line is at its end."""
        if self._discarded:
            end = OverlongEnd(self._tail, self._discarded)
            self._discarded, self._tail = 0, b""
            return end
        line, self._partial = self._partial, bytearray()
        return line

    def _keep(self, piece: bytes, lines: list[Line | OverlongEnd]) -> None:
        """Add to the unfinished line, or discard it where it has grown too long."""
        if self._discarded:
            self._discarded += len(piece)
            self._tail = (self._tail + piece[-TAIL_BYTES:])[-TAIL_BYTES:]
            return
        partial = self._partial
        size = len(partial) + len(piece)
        if size <= self.max_bytes:
            partial += piece
            return
        shown = min(self.max_bytes, HEAD_BYTES)
        head = bytes(partial[:shown]) + piece[: max(0, shown - len(partial))]
        lines.append(OverlongLine(head))
        self._discarded = size
        self._tail = (bytes(partial[-TAIL_BYTES:]) + piece[-TAIL_BYTES:])[-TAIL_BYTES:]
        self._partial = bytearray()

    def end(self) -> bytearray | OverlongEnd | None:
        """What there is of an unfinished last line, once no more will come; None: nothing."""
        return self._complete() or None


@attrs.define(eq=False, repr=False)
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
        line, notes = self.strip_bom(line)
        if is_blank(line):
            if not self._seen_blank:
                self._seen_blank = True
                notes.append("a blank line came; further ones are not reported")
            return None, notes
        if line[-1] == _CR and not self._seen_crlf:
            self._seen_crlf = True
            notes.append("a line ends in CR LF; further ones are not reported")
        return line, notes

    def strip_bom(self, line: bytes | bytearray) -> tuple[bytes | bytearray, list[str]]:
        """A line, or the start of one, without the mark that may stand before the first."""
        notes: list[str] = []
        if self.first:
            self.first = False
            if line.startswith(BOM):
                notes.append("a byte order mark came before the first message")
                line = line[len(BOM) :]
        return line, notes


def excerpt_of(
    data: bytes | bytearray, *, over: int | None = None, start: bytes | None = None
) -> bytes:
    """The start of a message for an event, with a note where it is cut.

    Args:
        data: The message, or the start of one that was not kept.
        over: How many bytes the whole has at least, where it was not kept.
        start: What to show instead of the first bytes, where these hold a secret.
    """
    if start is None:
        start = bytes(data[:EXCERPT_BYTES])
    if over is not None:
        return b"%b ... (cut: more than %d bytes in all)" % (start[:over], over)
    if len(data) > EXCERPT_BYTES:
        return b"%b ... (cut: %d bytes in all)" % (start, len(data))
    return start


def is_blank(line: bytes | bytearray) -> bool:
    """Whether a line holds nothing but white space."""
    return not line.strip(b" \t\r")
