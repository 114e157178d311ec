"""Server-sent events: a decoder from bytes to events, and an encoder from events to bytes.

Source: WHATWG HTML, section 9.2, Server-sent events. The standard decodes text; this module leaves
the data of events as bytes. The JSON codec decodes them once, and refuses bytes that are no UTF-8
instead of replacing them.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias, final

import attrs

from .._spec.errors import LocalProtocolError
from .._wire.values import Record

DEFAULT_MAX_EVENT_BYTES: Final = 16 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_DATA: Final = b"data:"
_NAME_BYTES: Final = 8
"""The most bytes of the name of a field, which are kept of a line that is too long."""
_RETRY_DIGITS: Final = 15
_EXCERPT_BYTES: Final = 120


@final
@attrs.frozen(kw_only=True)
class ServerSentEvent(Record):
    """One event of a stream.

    Attributes:
        data: The data as bytes, with a line feed between lines; not checked to be UTF-8.
        type: The name of the event, `message` if it has none.
        id: The last event id of the stream, that of this event included; `""` without one.
    """

    data: bytes
    type: str = "message"
    id: str = ""


@final
@attrs.frozen(kw_only=True)
class OverlongEvent(Record):
    """An event that has grown over the limit; the rest of it is discarded.

    Attributes:
        excerpt: The first bytes of the data. Keep them out of logs that others read.
        id: The last event id of the stream so far. The id of this event may still follow.
    """

    excerpt: bytes
    id: str = ""


StreamItem: TypeAlias = ServerSentEvent | OverlongEvent


@final
class SSEDecoder:
    """Decodes the bytes of an event stream, in pieces of any size, in linear time.

    Args:
        max_event_bytes: The most bytes of the data of one event, and of one line. A longer event
            becomes one `OverlongEvent` as soon as it exceeds the limit; a longer comment is
            discarded.
        last_event_id: For a stream that is resumed, the id of the last event before.

    Attributes:
        last_event_id: The value of `Last-Event-ID` when the stream is resumed.
        retry_ms: Milliseconds to wait before the stream is resumed, from its field `retry`; None
            without one.
    """

    __slots__ = (
        "_after_cr",
        "_bytes",
        "_data",
        "_id",
        "_limit",
        "_line",
        "_overlong",
        "_skipping",
        "_started",
        "_type",
        "last_event_id",
        "retry_ms",
    )

    def __init__(
        self, max_event_bytes: int = DEFAULT_MAX_EVENT_BYTES, last_event_id: str = ""
    ) -> None:
        self._limit = max_event_bytes
        self._line = bytearray()  # the unfinished last line
        self._skipping = False  # the unfinished line is too long, and its bytes are discarded
        self._after_cr = False  # a line feed that comes next belongs to the line before
        self._started = False  # the first line is complete: no byte order mark can follow
        self._data: list[bytes] = []
        self._bytes = 0
        self._type = ""
        self._id = last_event_id
        self._overlong = False  # the current event is over the limit and was reported
        self.last_event_id: str = last_event_id
        self.retry_ms: int | None = None

    def feed(self, data: bytes | bytearray | memoryview) -> list[StreamItem]:
        """Take the next bytes of the stream; return the events that they complete.

        An unfinished event at the end of the stream is discarded, so there is no method for the
        end.
        """
        data = bytes(data)
        if self._after_cr and data:
            self._after_cr = False
            if data[:1] == b"\n":
                data = data[1:]
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            lines = _LINE_END.split(data)
        else:
            lines = data.split(b"\n")
        rest = lines.pop()
        items: list[StreamItem] = []
        for piece in lines:
            self._keep(piece, items)
            self._end_line(items)
        self._keep(rest, items)
        return items

    # ------------------------------------------------------------------------------- lines

    def _keep(self, piece: bytes, items: list[StreamItem]) -> None:
        """Add bytes to the unfinished line; of a line that is too long, keep the field name."""
        if self._skipping:
            return
        line = self._line
        line += piece
        size, limit = len(line), self._limit + _NAME_BYTES
        if size + self._bytes <= limit:
            return
        mark = len(_BOM) if not self._started and line.startswith(_BOM) else 0
        if line.startswith(_DATA, mark):
            # The excerpt is the same for each way in which the stream may be cut.
            start = bytes(line[mark + len(_DATA) : max(limit + 1 - self._bytes, 0)])
            self._data.append(start[: _EXCERPT_BYTES + 1].removeprefix(b" "))
            self._report_overlong(items)
        elif size <= limit:
            return
        self._skipping = True
        del line[_NAME_BYTES:]

    def _end_line(self, items: list[StreamItem]) -> None:
        line, self._line = bytes(self._line), bytearray()
        skipped, self._skipping = self._skipping, False
        if not self._started:
            self._started = True
            line = line.removeprefix(_BOM)
        if skipped:
            return
        if line:
            name, _, value = line.partition(b":")
            self._field(name, value.removeprefix(b" "), items)
        else:
            self._end_event(items)

    def _field(self, name: bytes, value: bytes, items: list[StreamItem]) -> None:
        if name == b"data":
            if not self._overlong:
                self._bytes += len(value) + 1
                self._data.append(value)
                if self._bytes > self._limit + 1:
                    self._report_overlong(items)
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif name == b"event":
            self._type = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _RETRY_DIGITS:
            self.retry_ms = int(value)

    def _report_overlong(self, items: list[StreamItem]) -> None:
        """Report the current event as over the limit, and discard its data."""
        data, self._data = self._data, []
        if not self._overlong:
            self._overlong = True
            start = b"\n".join(data)[:_EXCERPT_BYTES]
            items.append(OverlongEvent(excerpt=start, id=self._id))

    # ------------------------------------------------------------------------------ events

    def _end_event(self, items: list[StreamItem]) -> None:
        self.last_event_id = self._id
        data, self._data, self._bytes = self._data, [], 0
        kind, self._type = self._type, ""
        overlong, self._overlong = self._overlong, False
        if data and not overlong:
            data_bytes = b"\n".join(data)
            items.append(ServerSentEvent(data=data_bytes, type=kind or "message", id=self._id))


def encode_event(
    data: bytes | None,
    *,
    type: str | None = None,
    id: str | None = None,
    retry_ms: int | None = None,
) -> bytes:
    """The bytes of one event.

    Args:
        data: Any bytes; each line becomes a field `data`. None: no data, so that clients report no
            event but use `id` and `retry_ms`.
        type: The name of the event; None: `message`.
        id: The event id.
        retry_ms: Milliseconds that the client waits before it connects again.

    Raises:
        LocalProtocolError: `type` or `id` holds CR or LF, or `id` holds NUL; or `retry_ms` is
            negative.
    """
    lines: list[bytes] = []
    for name, value in ((b"id", id), (b"event", type)):
        if value is not None:
            if "\r" in value or "\n" in value or "\0" in value:
                raise LocalProtocolError(
                    "OWN-036", f"an event cannot hold a line break or NUL: {value[:40]!r}"
                )
            lines.append(b"%b: %b" % (name, value.encode("utf-8", "replace")))
    if retry_ms is not None:
        if retry_ms < 0:
            raise LocalProtocolError("OWN-036", f"retry_ms must not be negative, not {retry_ms}")
        lines.append(b"retry: %d" % retry_ms)
    if data is not None:
        lines += [b"data: %b" % line if line else b"data:" for line in _LINE_END.split(data)]
    return b"\n".join(lines) + b"\n\n"


def encode_comment(text: str = "") -> bytes:
    """The bytes of a comment, which keeps a stream alive and which clients ignore.

    Line breaks in the text become spaces.
    """
    return b":%b\n\n" % re.sub(r"[\r\n\0]", " ", text).encode("utf-8", "replace")
