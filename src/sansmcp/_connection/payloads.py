"""Payloads judged in full, by `sansmcp.check`: for `Config(check="full")` only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .._rules.sending import Breach
from .._spec.errors import ErrorCode
from .._wire.values import JSONObject, is_object
from ..check import Problem, check_params, check_result

_REPORTED: Final = frozenset(
    {
        *("META-002", "META-003", "META-005", "META-006", "META-007", "META-017"),
        *("ICON-003", "OWN-015", "OWN-077"),
    }
)
"""Rules on parts that a receiver can leave alone: keys of `_meta`, which never cause rejection
(META-018), trace context, icons, and null for a member that is optional."""


class Payloads:
    """Judges params and results of both sides.

    Problems that break a SHOULD are left out: they are no reason to refuse a message. What the peer
    has sent is tolerated if it breaks only rules on parts that can be left alone.
    """

    __slots__ = ()

    def judge_params(self, method: str, params: JSONObject, revision: str) -> Breach | None:
        """Return the breach if params have a problem; else None."""
        return _first(f"params of {method}", check_params(method, params, revision))

    def judge_result(
        self,
        method: str,
        result: JSONObject,
        revision: str,
        params: JSONObject | None = None,
        *,
        as_task: bool = False,
    ) -> Breach | None:
        """Return the breach if a result has a problem; else None.

        Args:
            method: The method of the request.
            result: The result.
            revision: The revision of the conversation.
            params: The params of the request, if the content of an answer is compared with them.
            as_task: Whether the request asked for a task.
        """
        found = check_result(method, result, revision, params=params, as_task=as_task)
        return _first(f"result of {method}", found)

    def check_params(
        self, method: str, params: JSONObject, meta: JSONObject | None, revision: str
    ) -> None:
        """Judge params that the application wants to send, together with `meta`.

        Raises:
            LocalProtocolError: The params have a problem.
        """
        breach = self.judge_params(method, with_meta(params, meta), revision)
        if breach is not None:
            raise breach.error()

    def check_result(
        self,
        method: str,
        result: JSONObject,
        meta: JSONObject | None,
        revision: str,
        params: JSONObject | None = None,
        *,
        as_task: bool = False,
    ) -> None:
        """Judge a result that the application wants to send; see `check_params`."""
        whole = with_meta(result, meta)
        breach = self.judge_result(method, whole, revision, params, as_task=as_task)
        if breach is not None:
            raise breach.error()


PAYLOADS: Final = Payloads()
"""The one instance, which all connections share."""


def with_meta(payload: JSONObject, meta: JSONObject | None) -> JSONObject:
    """A payload with further members in its `_meta`."""
    if not meta:
        return payload
    given = payload.get("_meta")
    return {**payload, "_meta": {**given, **meta} if is_object(given) else meta}


def _first(what: str, problems: Sequence[Problem]) -> Breach | None:
    """The breach for the first problem whose rule is binding; a tolerated one comes last."""
    binding = [problem for problem in problems if problem.is_binding]
    if not binding:
        return None
    problem = next((each for each in binding if each.rule not in _REPORTED), binding[0])
    text = f"{what}: {problem.path} {problem.text}"
    tolerated = problem.rule in _REPORTED
    return Breach(problem.rule, text, ErrorCode.INVALID_PARAMS, tolerated=tolerated)
