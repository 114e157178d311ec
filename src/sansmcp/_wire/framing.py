"""Newline framing: it cuts bytes, in pieces of any size, into lines of bounded size."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import attrs

EXCERPT_BYTES: Final = 120
"""The number of bytes of a bad line that an event shows."""

HEAD_BYTES: Final = 512
TAIL_BYTES: Final = 512
"""The bytes at start and end of a line over the limit that are kept, to read its id."""

SPACE: Final = 32
"""The largest byte of white space; `Trimmer` checks a line that ends in such a byte."""

NO_NEWLINE: Final = "the stream ended without a newline"

BOM: Final = b"\xef\xbb\xbf"
"""The byte order mark in UTF-8. JSON has none (RFC 8259, section 8.1), but some programs write it
before the first message."""

BOM_NOTE: Final = "a byte order mark came before a message"

_CR: Final = 13


class Overlong:
    """The base class of the items that `LineReader` returns for a line over the limit."""

    __slots__ = ()


@attrs.frozen
class OverlongLine(Overlong):
    """The first bytes of a line that has grown over the limit; the rest is discarded."""

    head: bytes


@attrs.frozen
class OverlongEnd(Overlong):
    """The last bytes of a line over the limit, and its size in bytes."""

    tail: bytes
    size: int


Line: TypeAlias = bytes | bytearray | OverlongLine


@attrs.define(eq=False, repr=False)
class LineReader:
    """Cuts a byte stream into lines of at most `max_bytes` bytes, without the newline.

    A longer line gives an `OverlongLine` as soon as it exceeds the limit, and an `OverlongEnd` at
    its end. In between only its last bytes are kept.
    """

    max_bytes: int
    _partial: bytearray = attrs.field(factory=bytearray, init=False)
    _discarded: int = attrs.field(default=0, init=False)  # bytes of a line over the limit; 0: none
    _tail: bytes = attrs.field(default=b"", init=False)

    def feed(self, data: bytes | bytearray | memoryview) -> list[Line | OverlongEnd]:
        """Take the next bytes; return the lines that they complete, without newlines."""
        if not isinstance(data, bytes):
            data = bytes(data)
        lines: list[Any] = data.split(b"\n")
        rest: bytes = lines.pop()
        if self._partial or self._discarded or len(data) > self.max_bytes:
            pieces, lines = lines, []
            for piece in pieces:
                self._keep(piece, lines)
                lines.append(self._complete())
        # Otherwise, in nearly all calls, these are whole lines, and none can be too long.
        if rest:
            self._keep(rest, lines)
        return lines

    def _complete(self) -> bytearray | OverlongEnd:
        """Take the unfinished line, which has ended."""
        if self._discarded:
            end = OverlongEnd(self._tail, self._discarded)
            self._discarded, self._tail = 0, b""
            return end
        line, self._partial = self._partial, bytearray()
        return line

    def _keep(self, piece: bytes, lines: list[Line | OverlongEnd]) -> None:
        """Add bytes to the unfinished line, or discard it if it exceeds the limit."""
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
        """Take the unfinished last line at the end of the stream; None if there is none."""
        return self._complete() or None


@attrs.define(eq=False, repr=False)
class Trimmer:
    """Removes a byte order mark at the start of a stream, and skips blank lines.

    Attributes:
        first: Whether the next line is the first of its stream.
    """

    first: bool = True
    _seen_blank: bool = attrs.field(default=False, init=False)
    _seen_crlf: bool = attrs.field(default=False, init=False)

    def trim(self, line: bytes | bytearray) -> tuple[bytes | bytearray | None, list[str]]:
        """The message in a line (None for a blank line), and notes for reports (OWN-017).

        Blank lines and CR LF are noted once per stream.
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
        """A line without the byte order mark of the first line, and notes for reports."""
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
        data: The message, or its first bytes if the rest was not kept.
        over: The least size of the message in bytes, if the rest was not kept.
        start: The bytes to show instead of the first bytes, if these hold a secret.
    """
    if start is None:
        start = bytes(data[:EXCERPT_BYTES])
    if over is not None:
        return b"%b ... (cut: more than %d bytes in all)" % (start[:over], over)
    if len(data) > EXCERPT_BYTES:
        return b"%b ... (cut: %d bytes in all)" % (start, len(data))
    return start


def is_blank(line: bytes | bytearray) -> bool:
    """Whether a line has only white space."""
    return not line.strip(b" \t\r")
