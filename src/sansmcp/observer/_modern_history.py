"""What an observer remembers of requests that speak for themselves, and of what follows them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import attrs

from .._rules.granted_resources import Resources
from .._rules.sending import FILTERS, Breach
from .._spec.registry import LOG_LEVELS
from .._wire.values import IdKey, JSONObject, is_list_of_strings

_ALL_LEVELS: Final = len(LOG_LEVELS)


@attrs.frozen
class Terms:
    """What a request declares, as far as it binds the server.

    Attributes:
        gates: The gates that the client's capabilities open for questions.
        severity: The least severe level of log messages; None: none are wanted.
        extends: Whether it declares extensions, which may define further methods and results.
        faults: What is wrong with what it declares.
    """

    gates: frozenset[str]
    severity: int | None
    extends: bool
    faults: tuple[Breach, ...]


@attrs.define(eq=False)
class Listening:
    """A subscription, by the request that asked for it.

    Attributes:
        asked: The kinds that were asked for, and the URIs until they are granted; None where the
            filter was a bad one or was forgotten, and after the end.
        acknowledged: Whether an acknowledgement was seen.
        granted: The kinds in a good acknowledgement; None before there was one.
        resources: The URIs in a good acknowledgement, before there is one those that were asked
            for; None where `asked` is.
        over: Whether the server has ended it.
        cancelled_at: The place of the client's cancellation among what it has sent; 0: none.
    """

    asked: Mapping[str, object] | None
    acknowledged: bool = False
    granted: frozenset[str] | None = None
    resources: Resources | None = None
    over: bool = False
    cancelled_at: int = 0


def wishes_in(filter: JSONObject) -> Mapping[str, object]:
    """What a good filter asks for, in a form that is nobody else's."""
    wishes: dict[str, object] = {}
    for name in FILTERS.values():
        value: Any = filter.get(name)
        wishes[name] = frozenset[str](value) if is_list_of_strings(value) else bool(value)
    return wishes


@attrs.define(eq=False)
class Listenings:
    """The URIs of subscriptions that are not over: so many in all, or the oldest are forgotten."""

    bound: int
    _n_uris: dict[Listening, int] = attrs.field(factory=dict[Listening, int], init=False)
    _n_in_all: int = attrs.field(default=0, init=False)

    def keep(self, listening: Listening, uris: frozenset[str]) -> bool:
        """Remember URIs of a subscription, instead of those that were remembered of it before.

        Returns:
            Whether there was room without forgetting those of a subscription.
        """
        self._n_in_all += len(uris) - self._n_uris.pop(listening, 0)
        if uris:
            self._n_uris[listening] = len(uris)
        listening.resources = Resources(uris)
        if self._n_in_all <= self.bound:
            return True
        while self._n_in_all > self.bound:
            self.drop(next(iter(self._n_uris)))
        return False

    def drop(self, listening: Listening) -> None:
        """Forget the URIs of a subscription; it may be one of which none are remembered."""
        self._n_in_all -= self._n_uris.pop(listening, 0)
        listening.asked = listening.resources = None


@attrs.define(eq=False)
class LogWishes:
    """How many requests for log messages of each level may still be served."""

    _open: list[int] = attrs.field(factory=lambda: [0] * _ALL_LEVELS, init=False)

    def asked(self, severity: int) -> None:
        """A request with this level was sent."""
        self._open[severity] += 1

    def answered(self, severity: int) -> None:
        """It was answered."""
        self._open[severity] -= 1

    def permit(self, level: str) -> bool:
        """Whether a message of this level may be about one of them."""
        return any(self._open[: LOG_LEVELS[level] + 1])


@attrs.frozen(eq=False)
class Round:
    """A request that was answered with questions, or with a state to come back with.

    Attributes:
        call: The method of the request, and the tool, prompt or resource it is about.
        key: Its id.
        questions: The method of each question, by its name.
        state: What a retry has to come back with.
        place: The place of the answer among what the server has sent.
    """

    call: tuple[str, object]
    key: IdKey
    questions: Mapping[str, str]
    state: str | None
    place: int


@attrs.define(eq=False)
class Rounds:
    """The latest rounds, the oldest first."""

    bound: int
    forgotten: bool = False
    _rounds: deque[Round] = attrs.field(factory=deque[Round], init=False)
    _filed: dict[tuple[object, object], list[Round]] = attrs.field(
        factory=dict[tuple[object, object], list[Round]], init=False
    )

    def add(self, round: Round) -> None:
        """One more was seen."""
        self._rounds.append(round)
        self._filed.setdefault((round.call, round.state), []).append(round)
        if len(self._rounds) > self.bound:
            self.forgotten = True
            oldest = self._rounds.popleft()
            filed = self._filed[oldest.call, oldest.state]
            filed.remove(oldest)
            if not filed:
                del self._filed[oldest.call, oldest.state]

    def given(self, call: tuple[str, object], state: str | None) -> list[Round]:
        """Those of a call that gave this state."""
        return self._filed.get((call, state), [])

    def gave(self, state: str) -> bool:
        """Whether any call was given this state."""
        return any(round.state == state for round in self._rounds)


def called(method: str, params: JSONObject) -> tuple[str, object]:
    """What a call is about, as far as a retry of it must be about the same."""
    for name in ("name", "uri"):
        about: Any = params.get(name)
        if isinstance(about, str):
            return method, about
    return method, None
