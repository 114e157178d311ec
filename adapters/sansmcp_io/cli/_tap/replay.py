"""Reads recorded conversations: captures (docs/capture.md), and lines with a mark of their side."""

from __future__ import annotations

import base64
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, Final

import attrs

from sansmcp import Config, JSONObject, Side

from .._output.visible import shortened
from .._values import as_text, member, object_of
from .captures import FORMAT, HTTP_VERSION, VERSION

_SIDES: Final[Mapping[str, Side]] = {side.name.lower(): side for side in Side}
_MARKS: Final = {
    b"client:": Side.CLIENT,
    b">": Side.CLIENT,
    b"server:": Side.SERVER,
    b"<": Side.SERVER,
}
_MARKED: Final = re.compile(rb"(client:|server:|>|<) ?(.*)", re.DOTALL)
_AS_WRITTEN: Final = re.compile(
    rb'\{"time":([0-9]+\.[0-9]{6}),"side":"(client|server)","message":(.+)\}\n?', re.DOTALL
)
_BOM: Final = b"\xef\xbb\xbf"
_MOST_MESSAGE: Final = Config().max_message_bytes
_MOST_LINE: Final = 6 * _MOST_MESSAGE + 2**20
"""JSON may write each byte of a text as an escape of six; the rest is for the other members."""
_MOST_SHOWN: Final = 40
_BEGINNINGS: Final = frozenset({"initialize", "server/discover"})


class NoRecord(Exception):
    """Raised for a line that is no valid record. The text says why."""

    def __init__(self, place: int, text: str) -> None:
        super().__init__(text)
        self.place: Final = place


@attrs.frozen
class Sent:
    """A side has sent this, a line with its newline or a piece of one."""

    place: int
    side: Side
    data: bytes
    time: float | None = None


@attrs.frozen
class Ended:
    """A side has ended its stream."""

    place: int
    side: Side
    time: float


Record = Sent | Ended


@attrs.frozen
class Recording:
    """A recorded conversation.

    Attributes:
        records: The records, in order. Each has its place, the number of its line. Taking the
            next one raises `NoRecord`.
        from_start: Whether it begins with the first message of the conversation.
    """

    records: Iterator[Record]
    from_start: bool


@attrs.frozen
class HTTPRecording:
    """The capture of an endpoint: its URL, and the lines behind the header."""

    url: str
    lines: Iterator[tuple[int, bytes]]


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, without the byte order mark that some editors put before the first.

    Raises:
        NoRecord: A line is longer than any record. No more of it is read than that takes.
    """
    line = file.readline(_MOST_LINE + 1).removeprefix(_BOM)
    place = 1
    while line:
        if len(line) > _MOST_LINE:
            raise NoRecord(place, f"it is longer than a record can be ({_MOST_LINE} bytes)")
        yield line
        line = file.readline(_MOST_LINE + 1)
        place += 1


def read(lines: Iterable[bytes]) -> Recording | HTTPRecording:
    """Read a recorded conversation, whose first line tells its format.

    Raises:
        NoRecord: The first line is no header of a capture, and has no mark of a side.
    """
    numbered = enumerate(lines, 1)
    blank: list[tuple[int, bytes]] = []
    for place, line in numbered:
        if line.startswith(b"{"):
            header = _header(place, line)
            if header.get("version") == HTTP_VERSION:
                return HTTPRecording(as_text(header.get("url")), numbered)
            return Recording(_captured(numbered), from_start=True)
        blank.append((place, line))
        if not _is_nothing(line):
            break
    return _marked(itertools.chain(blank, numbered))


# --------------------------------------------------------------------------------- captures


def _header(place: int, line: bytes) -> JSONObject:
    found = object_in(place, line)
    if found.get("format") != FORMAT:
        raise NoRecord(
            place,
            f'the header of a capture has "format":"{FORMAT}"; '
            "lines of messages begin with client: or server:, or with > or <",
        )
    version = found.get("version")
    if isinstance(version, bool) or version not in (VERSION, HTTP_VERSION):
        shown = shortened(json.dumps(version), _MOST_SHOWN)
        raise NoRecord(
            place,
            f"version {shown} of the format is not known here, {VERSION} and {HTTP_VERSION} are",
        )
    return found


def _captured(lines: Iterable[tuple[int, bytes]]) -> Iterator[Record]:
    for place, line in lines:
        if (written := _AS_WRITTEN.fullmatch(line)) and is_json(written[3]):
            side = _SIDES[written[2].decode()]
            yield Sent(place, side, written[3] + b"\n", float(written[1]))
            continue
        record = object_in(place, line)
        time = time_of(place, record)
        side = side_of(place, record)
        if record.get("eof") is True:
            yield Ended(place, side, time)
        elif "exit" not in record and "signal" not in record:
            yield Sent(place, side, data_of(place, record), time)


def time_of(place: int, record: JSONObject) -> float:
    """The seconds of a record."""
    match record.get("time"):
        case bool():
            pass
        case int() | float() as time if 0 <= time < math.inf:
            return time
        case _:
            pass
    raise NoRecord(place, "its time is no number of seconds")


def side_of(place: int, record: JSONObject) -> Side:
    """The side of a record."""
    for name, side in _SIDES.items():
        if record.get("side") == name:
            return side
    raise NoRecord(place, "its side is neither client nor server")


def is_json(text: bytes) -> bool:
    """Whether `text` is a JSON text, so that the line around it is valid JSON, too."""
    try:
        json.loads(text.decode())
    except (ValueError, RecursionError):
        return False
    return True


def object_in(place: int, line: bytes) -> JSONObject:
    """The JSON object on a line."""
    try:
        value: Any = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise NoRecord(place, f"it is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise NoRecord(place, "it is no object")
    return object_of(value)


def data_of(place: int, record: JSONObject) -> bytes:
    """The bytes of a record, with their newline."""
    newline = b"" if record.get("newline") is False else b"\n"
    try:
        match record:
            case {"message": message}:  # written by another tool, or it would have been found
                return json.dumps(message, separators=(",", ":")).encode() + newline
            case {"text": str(text)}:
                return text.encode() + newline
            case {"base64": str(text)}:
                return base64.b64decode(text, validate=True) + newline
            case _:
                pass
    except ValueError as error:
        raise NoRecord(place, f"its content is no such text: {error}") from None
    raise NoRecord(place, "it has none of message, text, base64, eof, exit and signal")


# ----------------------------------------------------------------------------- marked lines


def _is_nothing(line: bytes) -> bool:
    return not line.strip() or line.startswith(b"#")


def _marked(lines: Iterable[tuple[int, bytes]]) -> Recording:
    """Lines with marks. They may be an excerpt, so that the first request tells what they are."""
    rest = _without_marks(lines)
    first: list[Sent] = []
    broken: NoRecord | None = None
    try:
        for record in rest:
            first.append(record)
            if record.side is Side.CLIENT:
                break
    except NoRecord as error:
        broken = error
    if not first:
        raise broken or NoRecord(1, "there is nothing in it")

    def all_records() -> Iterator[Record]:
        yield from first
        if broken is not None:
            raise broken
        yield from rest

    return Recording(all_records(), from_start=_begins(first))


def _without_marks(lines: Iterable[tuple[int, bytes]]) -> Iterator[Sent]:
    for place, line in lines:
        if _is_nothing(line):
            continue
        found = _MARKED.fullmatch(line.rstrip(b"\r\n"))
        if found is None:
            raise NoRecord(place, "it begins with none of client:, server:, > and <")
        yield Sent(place, _MARKS[found[1]], found[2] + b"\n")


def _begins(records: Iterable[Sent]) -> bool:
    """Whether the first that the client says begins a conversation."""
    first = next((record.data for record in records if record.side is Side.CLIENT), b"")
    try:
        return member(json.loads(first.decode()), "method") in _BEGINNINGS
    except (ValueError, RecursionError, TypeError):
        return False
