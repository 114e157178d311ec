"""Requests that are answered with questions, and the requests that repeat them with the answers.

A retry does not name the request that it repeats. It belongs to a round of the same call (the same
tool, prompt or resource) with the same state. A state that no round has given may come from an
earlier conversation.

Source: MCP 2026-07-28, basic/patterns/mrtr.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import attrs

from .._rules.messages import judge_input_required, judge_inputs, null_member
from .._rules.sending import (
    Breach,
    judge_question,
    question_without_nulls,
    result_shape_breach,
    without_nulls,
)
from .._spec.modern_methods import MODERN_DIALECT
from .._wire.values import MISSING, IdKey, JSONObject, Side, is_object
from ._events import BlindCause
from ._history import ObserverCore, RequestTerms, SeenRequest

_FORGOTTEN: Final = "the oldest questions were forgotten: retries are not judged any more"
_NOT_IN_RESPONSES: Final = frozenset({"jsonrpc", "resultType"})


@attrs.frozen(eq=False)
class _SeenRound:
    """A request that was answered with questions, or with a state that the retry must repeat.

    Attributes:
        call: The method of the request, and the tool, prompt or resource that it names.
        key: The id of the request.
        questions: The method of each question, by its name.
        state: The `requestState` that a retry has to carry; None: no state.
        place: The place of the response among the server's messages.
    """

    call: tuple[str, object]
    key: IdKey
    questions: Mapping[str, str]
    state: str | None
    place: int


@attrs.define(eq=False)
class SeenRounds:
    """The latest rounds, at most `max_rounds`, the oldest first."""

    max_rounds: int
    has_forgotten: bool = False
    _rounds: deque[_SeenRound] = attrs.field(factory=deque[_SeenRound], init=False)
    _by_call: dict[tuple[object, object], list[_SeenRound]] = attrs.field(
        factory=dict[tuple[object, object], list[_SeenRound]], init=False
    )

    def add(self, round: _SeenRound) -> None:
        """Remember a round, and forget the oldest over the limit."""
        self._rounds.append(round)
        self._by_call.setdefault((round.call, round.state), []).append(round)
        if len(self._rounds) > self.max_rounds:
            self.has_forgotten = True
            oldest = self._rounds.popleft()
            same = self._by_call[oldest.call, oldest.state]
            same.remove(oldest)
            if not same:
                del self._by_call[oldest.call, oldest.state]

    def find(self, call: tuple[str, object], state: str | None) -> list[_SeenRound]:
        """The rounds of a call that gave this state."""
        return self._by_call.get((call, state), [])

    def gave(self, state: str) -> bool:
        """Whether any round gave this state."""
        return any(round.state == state for round in self._rounds)


@attrs.define(eq=False, repr=False)
class InputRounds:
    """Judges questions in results, and the requests that bring the answers."""

    _core: ObserverCore
    _rounds: SeenRounds = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Make the table of rounds."""
        self._rounds = SeenRounds(self._core.config.max_late_answers)

    def take_result(
        self, request: SeenRequest, terms: RequestTerms, result: JSONObject
    ) -> Breach | None:
        """Judge a result with questions, and remember them."""
        if request.spec is not None and not request.spec.allows_questions:
            return Breach("MRTR-003", f"{request.method} was answered with questions")
        breach = judge_input_required(result)
        if breach is not None:
            return breach
        core, dialect = self._core, self._core.modern.dialect
        questions: JSONObject = {}
        for name, question in result.get("inputRequests", {}).items():
            questions[name] = question
            if is_object(question):
                questions[name], nulls = question_without_nulls(dialect, question)
                for null in nulls:
                    core.add_violation(Side.SERVER, null_member(null), request.method, request.id)
        self._rounds.add(
            _SeenRound(
                call=request.subject,
                key=request.key,
                questions={
                    name: str(question.get("method")) if is_object(question) else ""
                    for name, question in questions.items()
                },
                state=result.get("requestState"),
                place=core.number,
            )
        )
        if self._rounds.has_forgotten:
            core.add_blind_spot(BlindCause.FORGOTTEN, Side.CLIENT, _FORGOTTEN)
        for question in questions.values():
            breach = judge_question(dialect, terms.gates, question, core.checks_shape)
            if breach is not None:
                return breach
        if "ttlMs" in result or "cacheScope" in result:
            return Breach("CACHE-004", "questions are not kept, and carry no caching hints")
        return None

    def take_request(self, request: SeenRequest, params: JSONObject) -> Breach | None:
        """Judge a request that may be answered with questions, or brings answers to some."""
        request.subject = call = _call_of(request.method, params)
        if "inputResponses" not in params and "requestState" not in params:
            return None
        if judge_inputs(params) is not None:
            text = "inputResponses is no object of objects, or requestState no string"
            return Breach("MRTR-020", text)
        responses: JSONObject = params.get("inputResponses", {})
        for name, response in responses.items():
            if wrong := _NOT_IN_RESPONSES & response.keys():
                text = f"the answer to {name!r:.80} must be a bare result, without {min(wrong)}"
                return Breach("MRTR-020", text)
        client = self._core.client
        if (
            self._rounds.has_forgotten
            or not client.is_complete
            or not self._core.server.is_readable
        ):
            return None  # it may answer questions that were not seen
        state: str | None = params.get("requestState")
        rounds = self._rounds.find(call, state)
        if not rounds:
            if state is not None and self._rounds.gave(state):
                return Breach("MRTR-026", "requestState was given for another request")
            return None  # the state may come from an earlier conversation
        if state is not None:
            client.read_place = max(client.read_place, min(round.place for round in rounds))
        return self._judge_retry(request, rounds, responses)

    def _judge_retry(
        self, request: SeenRequest, rounds: list[_SeenRound], responses: JSONObject
    ) -> Breach | None:
        answered = [round for round in rounds if round.questions.keys() <= responses.keys()]
        if not answered:
            name = min(rounds[-1].questions.keys() - responses.keys())
            return Breach("MRTR-019", f"the answer to {name!r:.80} is missing")
        if all(round.key == request.key for round in answered):
            return Breach("MRTR-025", "a retry has the id of the request that it repeats")
        if self._core.checks_shape:
            found = [_misshapen_response(round.questions, responses) for round in answered]
            if all(found):
                return Breach("MRTR-020", str(found[-1]))
        return None


def _call_of(method: str, params: JSONObject) -> tuple[str, object]:
    """The method, and the tool, prompt or resource that a retry must name again."""
    for name in ("name", "uri"):
        named: Any = params.get(name)
        if isinstance(named, str):
            return method, named
    return method, None


def _misshapen_response(questions: Mapping[str, str], responses: JSONObject) -> str | None:
    """What is wrong with the answers to these questions; None: nothing."""
    for name, method in questions.items():
        spec = MODERN_DIALECT.inputs.get(method)
        response: Any = responses.get(name, MISSING)
        if spec is None:
            continue
        response = without_nulls(spec.result_optional, response)
        if (wrong := result_shape_breach(spec, False, response)) is not None:
            return f"the answer to {name!r:.80}: {wrong}"
    return None
