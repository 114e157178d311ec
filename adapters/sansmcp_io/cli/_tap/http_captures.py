"""Captures of HTTP: exchanges as lines of JSON (docs/capture.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import attrs

from sansmcp import JSONObject, Side

from .._values import array_of
from . import captures
from .http_texts import Pairs, Text
from .replay import NoRecord, data_of, is_json, object_in, side_of, time_of

_HIDDEN: Final = "(not kept)"
_SECRETS: Final = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"}
)
_AS_WRITTEN: Final = re.compile(
    rb'(\{"time":[0-9]+\.[0-9]{6},"side":"(?:client|server)"(?:,"(?:exchange|event|id)":'
    rb'(?:[0-9]+|"(?:[^"\\]|\\.)*"))+),"message":(.+)\}\n?',
    re.DOTALL,
)

# ----------------------------------------------------------------------------------- writing


def header(started: datetime, url: str) -> bytes:
    """The first line."""
    return captures.line(
        {
            "format": captures.FORMAT,
            "version": captures.HTTP_VERSION,
            "started": started.isoformat(),
            "url": url,
        }
    )


def began(exchange: int, method: str, target: str, headers: Pairs, time: float) -> bytes:
    """The line for the head of a request."""
    record = _record(Side.CLIENT, exchange, time)
    return captures.line(
        {**record, "method": method, "target": target, "headers": _without_secrets(headers)}
    )


def answered(exchange: int, status: int, headers: Pairs, time: float) -> bytes:
    """The line for the head of a response."""
    record = _record(Side.SERVER, exchange, time)
    return captures.line({**record, "status": status, "headers": _without_secrets(headers)})


def sent(side: Side, exchange: int, text: Text, time: float) -> bytes:
    """The line for a text of a body. JSON is put into it as it is."""
    record: dict[str, object] = {"side": side.name.lower(), "exchange": exchange}
    if text.event is not None:
        record["event"] = text.event
    if text.id:
        record["id"] = text.id
    data = text.data
    if data[:1] in (b"{", b"[") and b"\n" not in data and b"\r" not in data and is_json(data):
        members = captures.line(record)[1:-2]
        return b'{"time":%.6f,%b,"message":%b}\n' % (time, members, data)
    return captures.line({"time": round(time, 6), **record, **captures.content(data)})


def ended(exchange: int, time: float, by: Side | None) -> bytes:
    """The line for the end of an exchange."""
    side = Side.SERVER if by is None else by
    return captures.line({**_record(side, exchange, time), "end": by is None})


def _record(side: Side, exchange: int, time: float) -> dict[str, object]:
    return {"time": round(time, 6), "side": side.name.lower(), "exchange": exchange}


def _without_secrets(headers: Pairs) -> list[list[str]]:
    return [[name, _HIDDEN if name in _SECRETS else value] for name, value in headers]


# ----------------------------------------------------------------------------------- reading


@attrs.frozen
class Began:
    """A request begins."""

    place: int
    time: float
    exchange: int
    method: str
    target: str
    headers: Pairs


@attrs.frozen
class Answered:
    """A response begins."""

    place: int
    time: float
    exchange: int
    status: int
    headers: Pairs


@attrs.frozen
class Sent:
    """A side has sent a text."""

    place: int
    time: float
    exchange: int
    side: Side
    text: Text


@attrs.frozen
class Ended:
    """The end of an exchange; `by` is the side that has broken it off, if one has."""

    place: int
    time: float
    exchange: int
    by: Side | None


Record = Began | Answered | Sent | Ended


def read(lines: Iterable[tuple[int, bytes]]) -> Iterator[Record]:
    """The records behind the first line.

    Raises:
        NoRecord: A line is not what it should be.
    """
    for place, line in lines:
        written = _AS_WRITTEN.fullmatch(line)
        if written is not None and is_json(written[2]):
            record, data = object_in(place, written[1] + b"}"), written[2]
        else:
            record, data = object_in(place, line), None
        time, side = time_of(place, record), side_of(place, record)
        exchange = _exchange(place, record)
        match record:
            case {"method": str(method), "target": str(target)}:
                yield Began(place, time, exchange, method, target, _headers(place, record))
            case {"status": int(status)} if not isinstance(status, bool):
                yield Answered(place, time, exchange, status, _headers(place, record))
            case {"end": bool(complete)}:
                yield Ended(place, time, exchange, None if complete else side)
            case _:
                if data is None:
                    data = data_of(place, {**record, "newline": False})
                event, id = record.get("event"), record.get("id")
                text = Text(
                    data,
                    event if isinstance(event, str) else None,
                    id if isinstance(id, str) else "",
                )
                yield Sent(place, time, exchange, side, text)


def _exchange(place: int, record: JSONObject) -> int:
    exchange = record.get("exchange")
    if isinstance(exchange, int) and not isinstance(exchange, bool):
        return exchange
    raise NoRecord(place, "its exchange is no integer")


def _headers(place: int, record: JSONObject) -> Pairs:
    pairs: list[tuple[str, str]] = []
    for pair in array_of(record.get("headers")):
        match pair:
            case [str(name), str(value)]:
                pairs.append((name.lower(), value))
            case _:
                raise NoRecord(place, "its headers are no pairs of strings")
    return tuple(pairs)
