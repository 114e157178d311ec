"""The bodies of HTTP messages as what is in them: JSON texts, or the events of a stream."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from sansmcp import Config
from sansmcp.http import OverlongEvent, SSEDecoder

Pairs = tuple[tuple[str, str], ...]
"""The fields of a head: names in lower case."""

_MOST: Final = Config().max_message_bytes
_WINDOWS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 47}
_EVENTS: Final = "text/event-stream"


@attrs.frozen
class Text:
    """One text of a body.

    Attributes:
        data: Its bytes; of one that is too long, the start.
        event: The name of the event that it came in; None: it is the whole body.
        id: The id of that event; `""`: none.
    """

    data: bytes
    event: str | None = None
    id: str = ""


def fields_of(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """A head by names; several lines of one name are one list."""
    found: dict[str, str] = {}
    for name, value in headers:
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def media_type(value: str | None) -> str:
    """A content type without its parameters, in lower case."""
    return (value or "").partition(";")[0].strip().lower()


class Texts:
    """Takes a body in any pieces.

    Args:
        fields: The head, by names in lower case.
        is_request: A request's body is one text whatever it calls itself; of responses only JSON
            and streams of events are read.

    Attributes:
        unread: Why nothing is read; `""` where it is.
    """

    def __init__(self, fields: dict[str, str], *, is_request: bool) -> None:
        kind = media_type(fields.get("content-type"))
        coding = fields.get("content-encoding", "identity").strip().lower()
        self.unread = ""
        self._events = SSEDecoder(_MOST) if kind == _EVENTS and not is_request else None
        self._whole = bytearray()
        self._unpack = None
        if coding in _WINDOWS:
            self._unpack = zlib.decompressobj(_WINDOWS[coding])
        elif coding != "identity":
            self.unread = f"its content coding {coding} is not known here"
        if not is_request and kind not in (_EVENTS, "application/json"):
            self.unread = f"it is {kind or 'of no content type'}"

    def feed(self, data: bytes) -> Iterator[Text]:
        """The events that these bytes complete."""
        if self.unread:
            return
        if self._unpack is not None:
            try:
                data = self._unpack.decompress(data)
            except zlib.error as error:
                self.unread = f"it cannot be unpacked: {error}"
                return
        if self._events is None:
            # One byte more than a message may have, so that it is known for too long.
            self._whole += data[: _MOST + 1 - len(self._whole)]
            return
        for item in self._events.feed(data):
            if isinstance(item, OverlongEvent):
                yield Text(item.excerpt, "message", item.id)
            else:
                yield Text(item.data, item.type, item.id)

    def end(self) -> Iterator[Text]:
        """What the whole body is, unless it is a stream."""
        if not self.unread and self._whole:
            yield Text(bytes(self._whole))
