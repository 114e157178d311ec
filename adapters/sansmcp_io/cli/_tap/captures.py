"""Writes captures: a conversation as lines of JSON that give every byte back (docs/capture.md)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from sansmcp import Config, Side

FORMAT: Final = "sansmcp-capture"
VERSION: Final = 1
HTTP_VERSION: Final = 2
"""The version of captures of HTTP, whose records are exchanges; readers of version 1 fail."""

_MOST: Final = Config().max_message_bytes
"""A line that grows longer is handed on in pieces: no message is as long."""


class Pieces:
    """Cuts the bytes of a side after each newline. The last piece may have no newline."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Return the lines that `data` completes, and the beginning of a line that is too long."""
        start = 0
        while (end := data.find(b"\n", start) + 1) > 0:
            piece = data[start:end]
            start = end
            yield self._with_rest(piece) if self._rest else piece
        self._rest += data[start:]
        if len(self._rest) > _MOST:
            yield self._with_rest(b"")

    def end(self) -> bytes:
        """Return the rest, which has no newline."""
        return self._with_rest(b"")

    def _with_rest(self, piece: bytes) -> bytes:
        whole, self._rest = bytes(self._rest + piece), bytearray()
        return whole


def header(started: datetime, command: Sequence[str]) -> bytes:
    """The first line: what this is, and of which conversation."""
    return line(
        {
            "format": FORMAT,
            "version": VERSION,
            "started": started.isoformat(),
            "command": list(command),
        }
    )


def sent(side: Side, piece: bytes, time: float, *, is_message: bool) -> bytes:
    """The line for a piece that a side has sent.

    A message is put into the line as it is: nothing that is decoded and encoded again has the same
    white space, numbers, escapes and duplicate members. Everything else is a string.
    """
    if is_message and _fits(piece):
        return b'{"time":%.6f,"side":"%b","message":%b}\n' % (
            time,
            side.name.lower().encode(),
            piece[:-1],
        )
    text = piece.removesuffix(b"\n")
    record: dict[str, object] = {"time": round(time, 6), "side": side.name.lower()}
    record.update(content(text))
    if len(text) == len(piece):
        record["newline"] = False
    return line(record)


def content(data: bytes) -> dict[str, object]:
    """The member of a record for bytes that are no JSON message."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _fits(piece: bytes) -> bool:
    """Whether a message can stand within a line of the capture unchanged.

    Some readers take a carriage return for the end of the line, a byte order mark
    is no JSON within a line, and a message without its newline is incomplete.
    """
    return piece[:1] in (b"{", b"[") and piece[-2:] in (b"}\n", b"]\n") and piece.find(b"\r") < 0


def ended(side: Side, time: float) -> bytes:
    """The line for the end of a side's stream."""
    return line({"time": round(time, 6), "side": side.name.lower(), "eof": True})


def exited(returncode: int, time: float) -> bytes:
    """The line for the end of the server's process; negative is the number of a signal."""
    what = {"signal": -returncode} if returncode < 0 else {"exit": returncode}
    return line({"time": round(time, 6), "side": "server", **what})


def line(record: object) -> bytes:
    """Format one record."""
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"
