"""Newline framing: bytes in any pieces to whole lines, in linear time and bounded space."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

EXCERPT_BYTES: Final = 120
"""How much of a bad line an event shows."""


@attrs.frozen
class OverlongLine:
    """The first bytes of a line that was thrown away because it grew over the limit."""

    excerpt: bytes


@attrs.define(eq=False)
class LineReader:
    """Cuts a byte stream into lines of at most `max_bytes`, the newline not counted.

    A longer line is reported once, as soon as it is known to be longer, and thrown away up to its
    end without being kept.
    """

    max_bytes: int
    _partial: bytearray = attrs.field(factory=bytearray, init=False)
    _discarding: bool = attrs.field(default=False, init=False)

    def feed(
        self, data: bytes | bytearray | memoryview
    ) -> Iterator[bytes | bytearray | OverlongLine]:
        """The lines that `data` completes, without their newline, each good until the next one."""
        if not isinstance(data, bytes):
            data = bytes(data)
        start = 0
        size = len(data)
        while start < size:
            end = data.find(b"\n", start)
            if end < 0:
                overlong = self._keep(data, start, size)
                if overlong is not None:
                    yield overlong
                return
            if self._discarding:
                self._discarding = False
            elif self._partial:
                overlong = self._keep(data, start, end)
                if overlong is None:
                    yield self._take_partial()
                else:
                    self._discarding = False
                    yield overlong
            elif end - start > self.max_bytes:
                yield OverlongLine(data[start : start + min(self.max_bytes, EXCERPT_BYTES)])
            else:
                yield data[start:end]
            start = end + 1

    def _keep(self, data: bytes, start: int, end: int) -> OverlongLine | None:
        if self._discarding:
            return None
        partial = self._partial
        if len(partial) + end - start <= self.max_bytes:
            partial += data[start:end] if end - start < len(data) else data
            return None
        shown = min(self.max_bytes, EXCERPT_BYTES)
        excerpt = bytes(partial[:shown])
        excerpt += data[start : start + shown - len(excerpt)]
        self._partial = bytearray()
        self._discarding = True
        return OverlongLine(excerpt)

    def _take_partial(self) -> bytearray:
        line, self._partial = self._partial, bytearray()
        return line

    def end(self) -> bytearray | None:
        """The bytes of an unfinished last line, once no more will come."""
        return self._take_partial() if self._partial else None
