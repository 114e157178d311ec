"""Requests that are answered with questions, and asked again with the answers.

A retry does not say which request it repeats. Among the rounds that were seen it belongs to one of
the same call (the same tool, prompt or resource) with the same state or, where it brings a state
that none of them gave, with questions that it answers: then the state was not echoed.

Source: MCP 2026-07-28, basic/patterns/mrtr.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .._rules.messages import judge_input_required, judge_inputs, null_member
from .._rules.sending import (
    Breach,
    judge_question,
    misshapen_result,
    question_without_nulls,
    without_nulls,
)
from .._spec.modern_methods import MODERN_DIALECT
from .._wire.values import MISSING, JSONObject, Side, is_object
from ._events import BlindCause
from ._history import Asked, Half
from ._modern_history import Round, Terms, called
from ._subscriptions import ListenWatching

_FORGOTTEN: Final = "the oldest questions were forgotten: retries are not judged any more"
_ALIEN: Final = frozenset({"jsonrpc", "resultType"})


class RoundWatching(ListenWatching):
    """Judges questions inside of results, and the requests that answer them."""

    __slots__ = ()

    def _questioned(
        self, half: Half, asked: Asked, terms: Terms, result: JSONObject
    ) -> Breach | None:
        """A request is answered with questions."""
        if asked.spec is not None and not asked.spec.asks:
            return Breach("MRTR-003", f"{asked.method} was answered with questions")
        breach = judge_input_required(result)
        if breach is not None:
            return breach
        questions: JSONObject = {}
        for key, question in result.get("inputRequests", {}).items():
            questions[key] = question
            if is_object(question):
                questions[key], nulls = question_without_nulls(self._dialect, question)
                for name in nulls:
                    self._accuse(half, null_member(name), asked.method, asked.id)
        self._rounds.add(
            Round(
                call=asked.subject,
                key=asked.key,
                questions={
                    name: str(question.get("method")) if is_object(question) else ""
                    for name, question in questions.items()
                },
                state=result.get("requestState"),
                place=self._number,
            )
        )
        if self._rounds.forgotten:
            self._blind(BlindCause.FORGOTTEN, self._halves[Side.CLIENT], _FORGOTTEN)
        for question in questions.values():
            breach = judge_question(self._dialect, terms.gates, question, self._shape)
            if breach is not None:
                return breach
        if "ttlMs" in result or "cacheScope" in result:
            return Breach("CACHE-004", "questions are not kept, and carry no caching hints")
        return None

    def _take_call(self, half: Half, asked: Asked, params: JSONObject) -> Breach | None:
        """A request that may be answered with questions, or brings answers to some."""
        asked.subject = call = called(asked.method, params)
        if "inputResponses" not in params and "requestState" not in params:
            return None
        if judge_inputs(params) is not None:
            text = "inputResponses is no object of objects, or requestState no string"
            return Breach("MRTR-020", text)
        responses: JSONObject = params.get("inputResponses", {})
        for name, response in responses.items():
            if alien := _ALIEN & response.keys():
                text = f"the answer to {name!r:.80} is a bare result, and has no {min(alien)}"
                return Breach("MRTR-020", text)
        server = self._halves[Side.SERVER]
        if self._rounds.forgotten or not half.whole or not server.readable:
            return None  # it may answer what is not known
        state: str | None = params.get("requestState")
        rounds = self._rounds.given(call, state)
        if not rounds:
            if state is not None and self._rounds.gave(state):
                return Breach("MRTR-026", "requestState was given for another request")
            return None  # it may go back to an earlier conversation
        if state is not None:
            half.read = max(half.read, min(round.place for round in rounds))
        return self._judge_retry(asked, rounds, responses)

    def _judge_retry(
        self, asked: Asked, rounds: list[Round], responses: JSONObject
    ) -> Breach | None:
        answered = [round for round in rounds if round.questions.keys() <= responses.keys()]
        if not answered:
            name = min(rounds[-1].questions.keys() - responses.keys())
            return Breach("MRTR-019", f"the answer to {name!r:.80} is missing")
        if all(round.key == asked.key for round in answered):
            return Breach("MRTR-025", "a retry has the id of the request that it repeats")
        if self._shape:
            faults = [_misshapen_answer(round.questions, responses) for round in answered]
            if all(faults):
                return Breach("MRTR-020", str(faults[-1]))
        return None


def _misshapen_answer(questions: Mapping[str, str], responses: JSONObject) -> str | None:
    """What is wrong with the answers to these questions, or None."""
    for name, method in questions.items():
        spec = MODERN_DIALECT.inputs.get(method)
        response: Any = responses.get(name, MISSING)
        if spec is None:
            continue
        response = without_nulls(spec.result_optional, response)
        if (fault := misshapen_result(spec, False, response)) is not None:
            return f"the answer to {name!r:.80}: {fault}"
    return None
