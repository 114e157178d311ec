"""The conversations over HTTP, each with an observer of its own."""

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

_ORDER_RULES: Final = frozenset(
    {
        *("CANC-002", "LIFE-004", "LOG-004", "PROG-003", "PROG-010", "PROG-012", "RES-008"),
        *("TASK-006", "TASK-007", "TASK-009", "TASK-010"),
    }
)
"""Rules of the order of messages. The messages of a session take several connections, on which one
may overtake another, so these rules are not judged there."""
_NO_MESSAGE: Final = {
    # The rule on stdio: that of Streamable HTTP, that of HTTP+SSE, what was wrong.
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
class HTTPConversation:
    """The messages that belong together: a session, a stream of HTTP+SSE, or one exchange.

    Attributes:
        observer: Judges the messages.
        is_shared: Whether it takes several exchanges, on which messages may overtake one another.
        is_old: Whether it is one of HTTP+SSE (2024-11-05).
        is_alone: Whether it is one exchange without a session id, of a revision with sessions.
        refused: Digests of bodies that got an error status and no response, with their numbers:
            no response will come, and the same body may be sent again.
        seen_ids: The ids of events that were seen: a stream that is resumed may repeat them.
    """

    observer: Observer
    is_shared: bool = False
    is_old: bool = False
    is_alone: bool = False
    refused: dict[bytes, int] = attrs.field(factory=dict[bytes, int])
    seen_ids: dict[str, None] = attrs.field(factory=dict[str, None])
    # The observer counts its own messages: the number of each among all that pass.
    _numbers: array[int] = attrs.field(factory=lambda: array("q", [0]), init=False)

    def take(
        self, side: Side, data: bytes, number: int, now: float | None, *, status: int
    ) -> Iterator[Observation]:
        """Judge a text that a side has sent, in a response with this status if it is the server."""
        self._numbers.append(number)
        if data.startswith(_BOM):
            # The observer expects a mark only at the start of a stream; here each text is whole.
            data = data[len(_BOM) :]
            yield violation(side, "OWN-017", _MARKED, number, now)
        self.observer.receive_data(side, _as_line(data), now=now)
        for event in self._events():
            # The body of an error status may be an error without an id (HTTP-017).
            if status >= 400 and isinstance(event, ViolationSeen) and event.rule in _WITHOUT_ID:
                continue
            yield event

    def close(self, now: float | None, *, is_cancelled: bool) -> Iterator[Observation]:
        """End the conversation; `is_cancelled`: the client has closed its only connection."""
        self.observer.close(now=now)
        refused = set(self.refused.values())
        for event in self._events():
            assert isinstance(event, RequestUnanswered)  # everything else was taken before
            if event.request_number not in refused:
                yield attrs.evolve(event, cancelled=event.cancelled or is_cancelled)

    def _events(self) -> Iterator[Observation]:
        """The observations of the observer, with numbers among all that pass."""
        while (event := self.observer.next_event()) is not None:
            match event:
                case ViolationSeen():
                    if not (self.is_shared and event.rule in _ORDER_RULES):
                        yield self._violation(event)
                case AnswerMatched() | CancellationMatched():
                    yield attrs.evolve(
                        event,
                        number=self._numbers[event.number],
                        request_number=self._numbers[event.request_number],
                    )
                case RequestUnanswered():
                    yield attrs.evolve(event, request_number=self._numbers[event.request_number])
                case BlindSpot(cause=BlindCause.MIDDLE) if self.is_alone:
                    number = self._numbers[event.number]
                    yield attrs.evolve(event, number=number, text=_NOT_LINKED)
                case _:
                    assert not isinstance(event, StreamEnded)  # HTTP has no end of a direction
                    yield attrs.evolve(event, number=self._numbers[event.number])

    def _violation(self, event: ViolationSeen) -> ViolationSeen:
        number = self._numbers[event.number]
        if event.rule not in _NO_MESSAGE:
            return attrs.evolve(event, number=number)
        streamable, old, text = _NO_MESSAGE[event.rule]
        rule = old if self.is_old else streamable
        return attrs.evolve(event, number=number, rule=rule, level=LEVELS[rule], text=text)


def violation(
    side: Side, rule: str, text: str, number: int, now: float | None, message: Any = None
) -> ViolationSeen:
    """Report that a side broke a rule with the head or message that has this number."""
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


def _as_line(data: bytes) -> bytes:
    """A text as a line, without the line ends that are legal in a body and not within a line.

    If it is no JSON, it stays so: another control character takes the place of the line ends.
    """
    data = data.strip(b" \t\r\n")
    if b"\n" in data or b"\r" in data:
        try:
            json.loads(data)
        except (ValueError, RecursionError):
            data = _LINE_ENDS.sub(b"\x01", data)
        else:
            data = _LINE_ENDS.sub(b" ", data)
    return data + b"\n"
