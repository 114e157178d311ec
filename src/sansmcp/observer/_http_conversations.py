"""The conversations that pass over HTTP, each with an observer of its own."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator
from typing import Any, Final

import attrs

from .._spec.rule_levels import LEVELS
from .._wire.values import Side
from ._events import (
    AnswerMatched,
    BlindCause,
    BlindSpot,
    CancellationMatched,
    Observation,
    RequestUnanswered,
    StreamEnded,
    ViolationSeen,
)
from ._http_heads import member
from ._observer import Observer

_BY_ORDER: Final = frozenset(
    {"CANC-002", "LIFE-004", "LOG-004", "PROG-003", "PROG-010", "PROG-012", "RES-008"}
)
"""Rules of the order of messages. In a session they go over several connections, one may overtake
another between the two, and nobody is accused of that."""
_NO_STDIO: Final = {
    # of a session, of the old HTTP+SSE
    "STDIO-002": ("HTTP-018", "HSSE-004", "the server sent something that is no message"),
    "STDIO-003": ("HTTP-011", "HSSE-003", "the client sent something that is no message"),
}
_NOT_LINKED: Final = (
    "without a session id, messages of different exchanges cannot be linked, "
    "and what depends on an earlier message is not judged"
)
_BOM: Final = b"\xef\xbb\xbf"
_MARKED: Final = "a byte order mark came before a message"
_LINE_ENDS: Final = re.compile(rb"[\r\n]+")
_WITHOUT_ID: Final = frozenset({"JSON-003", "JSON-010"})


@attrs.define(eq=False)
class Conversation:
    """What belongs together: a session, a stream of the old transport, or one exchange alone.

    Attributes:
        observer: Judges it.
        is_shared: Whether it goes over several exchanges, which may overtake one another.
        is_old: Whether it is HTTP+SSE of 2024-11-05.
        is_alone: Whether it is one exchange of a revision with sessions that names no session.
        numbers: The number of each of its messages among all that pass.
        refused: Digests of bodies that got an error status and no answer, with their numbers:
            nothing more is to come for them, and they may be sent again as they are.
        seen_ids: Ids of events that were seen: a stream that is resumed may repeat them.
    """

    observer: Observer
    is_shared: bool = False
    is_old: bool = False
    is_alone: bool = False
    numbers: array[int] = attrs.field(factory=lambda: array("q", [0]))
    refused: dict[bytes, int] = attrs.field(factory=dict[bytes, int])
    seen_ids: dict[str, None] = attrs.field(factory=dict[str, None])

    def see(
        self, side: Side, data: bytes, number: int, now: float, *, status: int = 200
    ) -> Iterator[Observation]:
        """A side has sent this text, whatever it is."""
        self.numbers.append(number)
        if data.startswith(_BOM):
            # The observer expects one at the beginning of a stream only, and here each text is one.
            data = data[len(_BOM) :]
            yield violation(side, "OWN-017", _MARKED, number, now)
        self.observer.receive_data(side, one_line(data) + b"\n", now=now)
        for event in self._events():
            # An error status may have an error without an id for its body (HTTP-017).
            if status >= 400 and isinstance(event, ViolationSeen) and event.rule in _WITHOUT_ID:
                continue
            yield event

    def close(self, now: float, *, cancelled: bool = False) -> Iterator[Observation]:
        """It is over; `cancelled` means that the client has closed its only connection."""
        self.observer.close(now=now)
        refused = set(self.refused.values())
        for event in self._events():
            if isinstance(event, RequestUnanswered):
                if event.request_number in refused:
                    continue
                event = attrs.evolve(event, cancelled=event.cancelled or cancelled)
            yield event

    def _events(self) -> Iterator[Observation]:
        while (event := self.observer.next_event()) is not None:
            match event:
                case ViolationSeen():
                    if not (self.is_shared and event.rule in _BY_ORDER):
                        yield self._violation(event)
                case AnswerMatched() | CancellationMatched():
                    yield attrs.evolve(
                        event,
                        number=self.numbers[event.number],
                        request_number=self.numbers[event.request_number],
                    )
                case RequestUnanswered():
                    yield attrs.evolve(event, request_number=self.numbers[event.request_number])
                case BlindSpot(cause=BlindCause.MIDDLE) if self.is_alone:
                    number = self.numbers[event.number]
                    yield attrs.evolve(event, number=number, text=_NOT_LINKED)
                case StreamEnded():
                    pass  # there is no such thing: a session goes over many streams
                case _:
                    yield attrs.evolve(event, number=self.numbers[event.number])

    def _violation(self, event: ViolationSeen) -> ViolationSeen:
        number = self.numbers[event.number]
        if event.rule not in _NO_STDIO:
            return attrs.evolve(event, number=number)
        streamable, old, text = _NO_STDIO[event.rule]
        rule = old if self.is_old else streamable
        return attrs.evolve(event, number=number, rule=rule, level=LEVELS[rule], text=text)


def violation(
    side: Side, rule: str, text: str, number: int, now: float, message: Any = None
) -> ViolationSeen:
    """A rule of HTTP was broken by the message with this number."""
    method, id = member(message, "method"), member(message, "id")
    return ViolationSeen(
        side=side,
        rule=rule,
        level=LEVELS[rule],
        text=text,
        method=method if isinstance(method, str) else None,
        id=id if isinstance(id, str | int) else None,
        number=number,
        index=None,
        time=now,
    )


def one_line(data: bytes) -> bytes:
    """A JSON text without the line ends that HTTP allows in it, and lines of stdio do not.

    What is no JSON stays none: then another control character takes their place.
    """
    data = data.strip(b" \t\r\n")
    if b"\n" not in data and b"\r" not in data:
        return data
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return _LINE_ENDS.sub(b"\x01", data)
    return _LINE_ENDS.sub(b" ", data)
