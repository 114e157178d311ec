"""The public functions of the room."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from .._spec.modern_methods import MODERN_REVISION
from .._wire.values import JSONObject
from ._elicitation import judge_answer
from ._linking import shapes_of
from ._problems import Full, Problem, Report
from ._shapes import Shape


def check_params(method: str, params: JSONObject | None, revision: str) -> list[Problem]:
    """The problems of the params of a request or a notification.

    Args:
        method: The method. A method that the revision does not define belongs to an extension, and
            has no problems.
        params: The params; None if there are none.
        revision: The revision of the specification.

    Raises:
        ValueError: The revision is unknown.
    """
    payload = shapes_of(revision).payload(method)
    if payload is None:
        return []
    return _judged(payload.params, {} if params is None else params).problems


def check_result(
    method: str,
    result: JSONObject,
    revision: str,
    *,
    params: JSONObject | None = None,
    as_task: bool = False,
) -> list[Problem]:
    """The problems of a result.

    Args:
        method: The method of the request, as for `check_params`.
        result: The result. In 2026-07-28 it may be one with questions to the client, if the method
            allows that; the result of another type, which an extension adds, has no problems.
        revision: The revision of the specification.
        params: The params of the request, without problems. If they are given, the content of an
            answer to an elicitation is compared with the form that was asked for.
        as_task: Whether the request asked for a task (2025-11-25): the result may be a task, then.

    Raises:
        ValueError: The revision is unknown.
    """
    shapes = shapes_of(revision)
    payload = shapes.payload(method)
    shape = None if payload is None else payload.result
    if payload is not None and revision == MODERN_REVISION:
        kind: Any = result.get("resultType", "complete")
        if kind == "input_required" and payload.questions is not None:
            shape = payload.questions
        elif isinstance(kind, str) and kind not in ("complete", "input_required"):
            shape = None
    elif as_task and "task" in result:
        shape = shapes.part("CreateTaskResult")
    if shape is None:
        return []
    report = _judged(shape, result)
    if params is not None and method == "elicitation/create" and not report.problems:
        with suppress(Full):
            judge_answer(params, result, None, report)
    return report.problems


def check_part(definition: str, value: Any, revision: str) -> list[Problem]:
    """The problems of a part of params or of a result, such as a tool or a block of content.

    Args:
        definition: The name of the part in the official schema of the revision: `Tool`,
            `ContentBlock`, `ElicitResult`.
        value: The part.
        revision: The revision of the specification.

    Raises:
        ValueError: The revision is unknown, or has no part of this name.
    """
    try:
        shape: Shape | None = shapes_of(revision).part(definition)
    except KeyError:
        raise ValueError(f"{revision} defines no part {definition!r}") from None
    return [] if shape is None else _judged(shape, value).problems


def _judged(shape: Shape, value: Any) -> Report:
    """The report on a value."""
    report = Report()
    try:  # noqa: SIM105 - faster than a context manager
        shape.judge(value, None, report)
    except Full:
        pass
    return report
