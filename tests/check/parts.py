"""What the tests of rules share: one problem of a part, and small parts without problems."""

from __future__ import annotations

from typing import Any, Final

from sansmcp.check import Problem, check_params, check_part, check_result
from tests.support.judges.schema import REVISIONS

V1, V2, V3, V4, V5 = REVISIONS
SCHEMA: Final[dict[str, Any]] = {"type": "object"}
TEXT: Final[dict[str, Any]] = {"type": "text", "text": "hi"}


def found(problems: list[Problem]) -> list[tuple[str, str]]:
    """The rule and the path of each problem."""
    return [(problem.rule, problem.path) for problem in problems]


def of_params(method: str, params: Any, revision: str = V5) -> list[tuple[str, str]]:
    return found(check_params(method, params, revision))


def of_result(method: str, result: Any, revision: str = V5, **more: Any) -> list[tuple[str, str]]:
    return found(check_result(method, result, revision, **more))


def of_part(definition: str, value: Any, revision: str = V5) -> list[tuple[str, str]]:
    return found(check_part(definition, value, revision))


def tool(**members: Any) -> dict[str, Any]:
    return {"name": "add", "inputSchema": SCHEMA, **members}
