"""Collects the findings of an observer on a whole conversation, by rule."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final

import attrs

from sansmcp import (
    AnswerMatched,
    BlindSpot,
    Observation,
    RequestUnanswered,
    Side,
    TextSeen,
    ViolationSeen,
)

from .._output.visible import visible
from .trace import excerpt, name_of, quote, violation

_MOST_SHOWN: Final = 10
_SLOWEST: Final = 3
_SLOW_SECONDS: Final = 1.0


@attrs.define
class _Broken:
    """The breaches of a rule by a side: the first breach with its text, and the number."""

    first: ViolationSeen
    quoted: str
    count: int = 0


class Findings:
    """Collects observations. Of each rule, the first breach and the number of breaches are kept."""

    def __init__(self) -> None:
        self._broken: dict[tuple[Side, str], _Broken] = {}
        self._text: TextSeen | None = None
        self._unanswered: list[RequestUnanswered] = []
        self._n_unanswered = 0
        self._blind: list[BlindSpot] = []
        # The number orders responses that took equally long, which cannot be compared.
        self._slow: list[tuple[float, int, AnswerMatched]] = []
        self._n_answers = 0

    def add(self, event: Observation) -> None:
        """Add an observation."""
        match event:
            case ViolationSeen():
                key = event.side, event.rule
                if key not in self._broken:
                    self._broken[key] = _Broken(event, quote(event, self._text))
                self._broken[key].count += 1
            case TextSeen():
                self._text = event
            case RequestUnanswered():
                self._n_unanswered += 1
                if len(self._unanswered) < _MOST_SHOWN:
                    self._unanswered.append(event)
            case BlindSpot():
                self._blind.append(event)  # an observer reports each text at most once per side
            case AnswerMatched(seconds=float(seconds)) if seconds >= _SLOW_SECONDS:
                self._n_answers += 1
                heapq.heappush(self._slow, (seconds, -self._n_answers, event))
                if len(self._slow) > _SLOWEST:
                    heapq.heappop(self._slow)
            case _:
                pass

    def lines(self) -> Iterator[str]:
        """The findings as lines for a person."""
        if self._broken:
            yield "rules broken:"
            for broken in sorted(self._broken.values(), key=lambda one: one.first.number):
                yield f"  {_rule(broken)}"
            rule = next(iter(self._broken.values())).first.rule
            yield f"  (what a rule says: sansmcp explain {rule})"
        else:
            yield "no rule was seen broken"
        if self._unanswered:
            yield "without an answer:"
            yield from (f"  {_request(event)}" for event in self._unanswered)
            if self._n_unanswered > _MOST_SHOWN:
                yield f"  and {self._n_unanswered - _MOST_SHOWN} more"
        if self._slow:
            yield "slowest answers:"
            for seconds, _, event in sorted(self._slow, reverse=True):
                what = f"{event.method} id {excerpt(event.id)} of the {name_of(event.side)}"
                yield f"  {seconds:.1f} s: {visible(what)}, #{event.request_number}"
        for spot in self._blind:
            yield f"from #{spot.number} on, less was judged: {visible(spot.text)}"


def _rule(broken: _Broken) -> str:
    times = "" if broken.count == 1 else f" ({broken.count} times)"
    return violation(broken.first, f" #{broken.first.number}{times}") + broken.quoted


def _request(event: RequestUnanswered) -> str:
    cancelled = ", which it cancelled" if event.cancelled else ""
    what = f"{event.method} id {excerpt(event.id)} of the {name_of(event.side)}"
    return f"#{event.request_number}: {visible(what)}{cancelled}"
