"""Reads the bodies of HTTP messages: whole texts, or the events of a stream."""

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
    """A whole body, or one event of a stream.

    Attributes:
        data: Its bytes, or the start of a text that is too long.
        event: The type of the event; None: a whole body.
        id: The id of the event; `""` where it has none.
    """

    data: bytes
    event: str | None = None
    id: str = ""


def fields_of(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The fields of a head by name; values of one name are joined by commas."""
    found: dict[str, str] = {}
    for name, value in headers:
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def media_type(value: str | None) -> str:
    """A content type without its parameters, in lower case."""
    return (value or "").partition(";")[0].strip().lower()


class Texts:
    """Reads a body that comes in pieces.

    Args:
        fields: The fields of the head, by name in lower case.
        is_request: Whether this is the body of a request, which is one text whatever its content
            type. Of responses only JSON and event streams are read.

    Attributes:
        unread: Why the body is not read; `""` if it is read.
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
        """Take the next bytes; returns the events that they complete."""
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
        """End the body, and return its text, unless it is an event stream or empty."""
        if not self.unread and self._whole:
            yield Text(bytes(self._whole))
