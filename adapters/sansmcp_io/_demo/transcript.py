"""The transcript of the demo: records of both sides, and how they are printed."""

from __future__ import annotations

import enum
import json
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import attrs
import trio

from sansmcp import (
    Event,
    IncomingRequest,
    JSONObject,
    Listener,
    Listing,
    OutgoingRequest,
    Peer,
    Ping,
    Start,
    Subscription,
)

from .._common.anomalies import printable

_WIDTH: Final = 150


class Kind(enum.Enum):
    """The kind of a line of the transcript. The value is the mark of the line."""

    HEADING = "=="
    NOTE = "--"
    SENT = ">>"
    RECEIVED = "<<"
    EVENT = "* "
    STDERR = "2>"


@attrs.frozen
class TranscriptLine:
    """One line. `at` is the monotonic clock, which the processes of one machine share."""

    at: float
    side: str
    kind: Kind
    text: str
    details: JSONObject = attrs.field(factory=dict[str, Any])


class SideTrace:
    """The `Trace` of one side: makes records of wire lines and events."""

    def __init__(self, side: str, write: Callable[[TranscriptLine], object]) -> None:
        self._side = side
        self._write = write
        self._unfinished = b""

    def sent(self, data: bytes) -> None:
        """Whole messages, as the core queues them."""
        for line in data.splitlines():
            self._note(Kind.SENT, line.decode("utf-8", "replace"))

    def received(self, data: bytes | bytearray) -> None:
        """Pieces cut anywhere; the last line is kept until its end comes."""
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        for line in lines:
            self._note(Kind.RECEIVED, line.decode("utf-8", "replace"))

    def happened(self, event: Event) -> None:
        """An event, with the members that are not at their default."""
        details = {
            field.name: _plain(getattr(event, field.name))
            for field in attrs.fields(type(event))
            if getattr(event, field.name) != field.default
        }
        self._note(Kind.EVENT, type(event).__name__, details)

    def _note(self, kind: Kind, text: str, details: JSONObject | None = None) -> None:
        self._write(TranscriptLine(time.monotonic(), self._side, kind, text, details or {}))


def _plain(value: object) -> object:
    match value:
        case IncomingRequest() | OutgoingRequest():
            return f"{value.method}#{value.id}"
        case Listing():
            return value.method
        case Listener():
            return _plain(value.request)
        case Peer():
            return (value.info or {}).get("name")
        case Start() | Ping() | Subscription():
            return type(value).__name__.lower()
        case enum.Enum():
            return value.name
        case bytes():
            return value.decode("utf-8", "replace")
        case _:
            return value


def write_to_stderr(record: TranscriptLine) -> None:
    """Hand the records of a server process to the demo, each as a line of JSON."""
    line = {"at": record.at, "kind": record.kind.name, "text": record.text}
    print(json.dumps({**line, "details": record.details}), file=sys.stderr, flush=True)


class Transcript:
    """The records of both sides. The client's come by its trace, the server's by its stderr."""

    def __init__(self) -> None:
        self.records: list[TranscriptLine] = []
        self.client: Final = SideTrace("client", self.add)
        self._grown = trio.Event()

    def add(self, record: TranscriptLine) -> None:
        """Keep a record, and wake steps that wait for one."""
        self.records.append(record)
        self._grown.set()
        self._grown = trio.Event()

    def heading(self, text: str) -> None:
        """Begin a step."""
        self.add(TranscriptLine(time.monotonic(), "", Kind.HEADING, text))

    def note(self, text: str) -> None:
        """Add a note on the demo itself."""
        self.add(TranscriptLine(time.monotonic(), "", Kind.NOTE, text))

    def server_line(self, line: str) -> None:
        """A line of the server's standard error: a record of its trace, or anything else."""
        try:
            value: Any = json.loads(line)
            record = TranscriptLine(
                float(value["at"]),
                "server",
                Kind[value["kind"]],
                str(value["text"]),
                dict[str, Any](value["details"]),
            )
        except (ValueError, TypeError, KeyError):
            record = TranscriptLine(time.monotonic(), "server", Kind.STDERR, line)
        self.add(record)

    def find(self, side: str, kind: Kind, text: str, **details: object) -> list[TranscriptLine]:
        """The records of a side and kind whose text contains `text`, with these details.

        A request is given by its method.
        """
        return [
            record
            for record in self.records
            if record.side == side
            and record.kind is kind
            and text in record.text
            and all(
                str(record.details.get(name)).split("#")[0] == str(value)
                for name, value in details.items()
            )
        ]

    async def wait_for(self, side: str, kind: Kind, text: str, **details: object) -> TranscriptLine:
        """Wait for the first such record, within the time limit of the step."""
        while True:
            grown = self._grown
            if found := self.find(side, kind, text, **details):
                return found[0]
            await grown.wait()

    def lines(self) -> list[str]:
        """The transcript for people, in the order in which things happened."""
        return [_line(record) for record in sorted(self.records, key=lambda record: record.at)]


def _line(record: TranscriptLine) -> str:
    if record.kind is Kind.HEADING:
        return f"\n{record.kind.value} {record.text}"
    text = " ".join([record.text, *(f"{k}={_short(v)}" for k, v in record.details.items())])
    if len(text) > _WIDTH:
        text = f"{text[:_WIDTH]}... ({len(text)} characters)"
    margin = "        " if record.side == "server" else ""
    return f"{margin}{record.side:6} {record.kind.value} {printable(text)}"


def _short(value: object) -> str:
    if isinstance(value, list):
        return f"[{len(value)}]"  # pyright: ignore[reportUnknownArgumentType]  # JSON
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
