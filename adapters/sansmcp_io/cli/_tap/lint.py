"""`sansmcp lint`: who broke which rule in a recorded conversation."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sansmcp import (
    BlindSpot,
    JSONObject,
    Observation,
    Observer,
    RequestUnanswered,
    Side,
    TextSeen,
    ViolationSeen,
)
from sansmcp.observer import HTTPObserver

from .._errors import Failure, Status, UsageError
from .._explain import near, read_rules
from .._output.output import Output
from .._output.visible import visible
from . import http_captures
from .http_recording import end, give
from .recording import drain
from .replay import Ended, HTTPRecording, NoRecord, Recording, Sent, lines_of, read
from .trace import excerpt, name_of, quote, violation

BINDING: Final = frozenset({"MUST", "MUST NOT"})
FROM_THE_SCHEMA: Final = frozenset({"OWN-014", "OWN-020"})
"""Readings of our own that only say what the schema demands: they count as MUST."""


def lint(path: str, *, select: Sequence[str], ignore: Sequence[str], output: Output) -> int:
    """Replay a capture file, print each breach in it, and return the exit status.

    Args:
        path: The file; `-` is standard input.
        select: Rule ids or their beginnings, several with commas between: show these only.
        ignore: Do not show these, whether or not they are selected.
        output: The streams to print on.

    Raises:
        UsageError: There is no such rule.
    """
    chosen = Chosen(select, ignore)
    try:
        with _opened(path) as lines:
            try:
                report = _Report(path, chosen, output)
                recording = read(lines)
                if isinstance(recording, HTTPRecording):
                    _replay_http(recording, report)
                else:
                    _replay(recording, report)
                return Status.TOOL_FAILED if report.is_bad else Status.OK
            except NoRecord as error:
                kind = "no-record"
                text = f"{path}:{error.place}: {error}"
    except OSError as error:
        kind = "unreadable"
        text = f"{path} cannot be read: {error.strerror or error}"
    except ValueError as error:  # a NUL in the name
        kind = "unreadable"
        text = f"{path!r} cannot be read: {error}"
    output.failure(Failure(kind=kind, text=text))
    return Status.PROTOCOL


@contextmanager
def _opened(path: str) -> Generator[Iterable[bytes], None, None]:
    if path == "-":
        yield lines_of(sys.stdin.buffer)
        return
    with Path(path).open("rb") as file:
        yield lines_of(file)


class Chosen:
    """Which rules are asked for.

    Raises:
        UsageError: No rule is called so.
    """

    def __init__(self, select: Iterable[str], ignore: Iterable[str]) -> None:
        rules = read_rules()
        self._select = _prefixes(select, rules)
        self._ignore = _prefixes(ignore, rules)

    def __contains__(self, rule: str) -> bool:
        wanted = not self._select or rule.startswith(self._select)
        return wanted and not (self._ignore and rule.startswith(self._ignore))


def _prefixes(given: Iterable[str], rules: Iterable[str]) -> tuple[str, ...]:
    found = tuple(part.strip().upper() for text in given for part in text.split(","))
    for prefix in found:
        if not prefix or not any(rule.startswith(prefix) for rule in rules):
            raise UsageError(f"there is no rule {prefix!r}", *near(prefix, rules))
    return found


def _replay(recording: Recording, report: _Report) -> None:
    observer = Observer(from_start=recording.from_start)
    places: dict[Side, int] = {}
    time: float | None = None
    broken: NoRecord | None = None
    try:
        for record in recording.records:
            time = record.time
            match record:
                case Sent():
                    places[record.side] = record.place
                    observer.receive_data(record.side, record.data, now=time)
                case Ended():
                    observer.receive_eof(record.side, now=time)
            # What comes to light at the end is about the last that was sent.
            report.add(drain(observer), observer.messages, places.get(record.side, record.place))
    except NoRecord as error:  # what was found before it is no less true
        broken = error
    observer.close(now=time)
    report.add(drain(observer), observer.messages, 0)
    if broken is not None:
        raise broken


def _replay_http(recording: HTTPRecording, report: _Report) -> None:
    observer = HTTPObserver(recording.url)
    time: float | None = None
    broken: NoRecord | None = None
    try:
        for record in http_captures.read(recording.lines):
            time, exchange = record.time, record.exchange
            match record:
                case http_captures.Began():
                    observer.receive_request_head(
                        exchange, record.method, record.target, record.headers, now=time
                    )
                case http_captures.Answered():
                    observer.receive_response_head(
                        exchange, record.status, record.headers, now=time
                    )
                case http_captures.Sent():
                    give(observer, exchange, record.side, record.text, time)
                case http_captures.Ended():
                    end(observer, exchange, record.by, time)
            report.add(drain(observer), observer.messages, record.place)
    except NoRecord as error:
        broken = error
    observer.close(now=time)
    report.add(drain(observer), observer.messages, 0)
    if broken is not None:
        raise broken


class _Places:
    """The place of each message, by its number.

    Most captures hold a message a line. So what is kept is where the places begin to be other
    than those of line after line: a recording of any length takes a few entries. Of HTTP, each
    exchange takes one, of 16 bytes.
    """

    def __init__(self) -> None:
        self._messages = 0
        self._numbers = array("q", [0])
        self._starts = array("q", [0])

    def add(self, messages: int, place: int) -> None:
        """Give the messages up to a number this place."""
        for number in range(self._messages + 1, messages + 1):
            if self[number] != place:
                self._numbers.append(number)
                self._starts.append(place)
        self._messages = messages

    def __getitem__(self, number: int) -> int:
        run = bisect_right(self._numbers, number) - 1
        return self._starts[run] + number - self._numbers[run]


class _Report:
    """Prints breaches, with their places in the file."""

    def __init__(self, path: str, chosen: Chosen, output: Output) -> None:
        self.is_bad = False
        self._path = path
        self._chosen = chosen
        self._output = output
        self._places = _Places()
        self._text: TextSeen | None = None

    def add(self, events: Iterable[Observation], messages: int, place: int) -> None:
        """Show this, with a place for the messages that are new."""
        self._places.add(messages, place)
        for event in events:
            match event:
                case TextSeen():
                    self._text = event
                case ViolationSeen() if event.rule in self._chosen:
                    self._violation(event, self._places[event.number])
                case BlindSpot():
                    text = f"less is judged from here on: {event.text}"
                    side = None if event.side is None else name_of(event.side)
                    self._note(
                        "blind-spot", self._places[event.number], text, side, event.cause.name
                    )
                case RequestUnanswered():
                    self._unanswered(event, self._places[event.request_number])
                case _:
                    pass

    def _violation(self, event: ViolationSeen, place: int) -> None:
        self.is_bad |= event.level in BINDING or event.rule in FROM_THE_SCHEMA
        document: JSONObject = {
            "kind": "violation",
            "file": self._path,
            "line": place,
            "rule": event.rule,
            "level": event.level,
            "side": name_of(event.side),
            "text": event.text,
            "method": event.method,
            "id": event.id,
            "index": event.index,
            "time": event.time,
        }
        self._show(document, violation(event) + quote(event, self._text), place)

    def _unanswered(self, event: RequestUnanswered, place: int) -> None:
        cancelled = " (it was cancelled)" if event.cancelled else ""
        what = f"{event.method} id {excerpt(event.id)} of the {name_of(event.side)}"
        text = f"no answer to {what} was seen{cancelled}"
        self._note("unanswered", place, text, name_of(event.side), event.method)

    def _note(self, kind: str, place: int, text: str, side: str | None, about: str) -> None:
        document: JSONObject = {
            "kind": kind,
            "file": self._path,
            "line": place,
            "side": side,
            "text": text,
            "cause" if kind == "blind-spot" else "method": about,
        }
        self._show(document, f"note: {visible(text)}", place)

    def _show(self, document: JSONObject, text: str, place: int) -> None:
        self._output.finding(document, f"{visible(self._path)}:{place}: {text}")
