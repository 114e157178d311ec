"""What all checks have in common: paths, bounds, unknown names, levels of rules, nulls."""

from __future__ import annotations

import time
from enum import IntEnum
from typing import Any

import pytest

from sansmcp.check import MAX_PROBLEMS, Problem, check_params, check_part, check_result
from tests.check.parts import TEXT, V1, V4, V5, found, of_params, of_part, of_result, tool
from tests.support.judges.schema import REVISIONS


class Small(IntEnum):
    ONE = 1


def test_a_problem_says_the_rule_the_path_and_the_sentence() -> None:
    """A reader of a log has to find the place without the payload."""
    (problem,) = check_result("tools/list", {"tools": [tool(), {"name": "a"}]}, V5)

    assert problem == Problem("TOOL-008", "$.tools[1]", "has no member inputSchema")
    assert str(problem) == "$.tools[1]: has no member inputSchema [TOOL-008]"


def test_a_problem_knows_how_binding_its_rule_is() -> None:
    """A SHOULD is no reason to refuse a message."""
    (should,) = check_part("Tool", tool(name="a b"), V5)
    (must,) = check_part("Tool", {"name": "a"}, V5)
    (own,) = check_part("Tool", tool(title=7), V5)

    assert (should.level, should.is_binding) == ("SHOULD", False)
    assert (must.level, must.is_binding) == ("MUST", True)
    assert (own.level, own.is_binding) == ("OWN", True)


def test_paths_quote_and_cut_names_that_are_no_words() -> None:
    """A peer chooses the names, and a log must stay readable."""
    long = "a" * 81
    arguments = {"a b": 1, 'c"\n': 1, long: 1, "d1": 1}

    assert [
        path for _, path in of_params("prompts/get", {"name": "p", "arguments": arguments})
    ] == [
        '$.arguments["a b"]',
        '$.arguments["c\\"\\n"]',
        f'$.arguments["{long[:80]}..."]',
        "$.arguments.d1",
    ]


def test_values_are_not_shown() -> None:
    """A log must not have secrets that a payload has in the wrong place."""
    (problem,) = check_part("TextContent", {"type": "text", "text": {"password": "hunter2"}}, V5)

    assert "hunter2" not in str(problem)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_null_in_the_place_of_an_optional_member_is_a_problem(revision: str) -> None:
    """OWN-015: objects dumped from models have such members, and peers refuse them."""
    assert of_part("Tool", tool(description=None), revision) == [("OWN-015", "$.description")]
    assert of_part("TextContent", {"type": "text", "text": None}, revision) == [
        ("OWN-014", "$.text")
    ]


def test_a_number_without_a_fraction_is_an_integer() -> None:
    """JSON has one kind of number; a boolean is none."""
    for good in (1, 1.0, Small.ONE):
        assert of_part("Resource", {"uri": "a:b", "name": "a", "size": good}) == []
    for bad in (1.5, True, "1", (1,)):
        assert of_part("Resource", {"uri": "a:b", "name": "a", "size": bad}) == [
            ("OWN-014", "$.size")
        ]


def test_absent_params_are_empty_params() -> None:
    """A ping has none, and a call needs some."""
    assert check_params("ping", None, V1) == []
    assert of_params("tools/call", None) == [("OWN-014", "$")]


def test_methods_of_extensions_have_no_problems() -> None:
    """Nobody but the extension knows what their payloads are."""
    assert check_params("example/do", {"a": None}, V5) == []
    assert check_result("example/do", {"a": None}, V5) == []
    assert check_result("notifications/message", {"a": None}, V5) == []


def test_an_unknown_revision_or_part_raises() -> None:
    """A typing error must not look like a payload without problems."""
    with pytest.raises(ValueError, match=r"revision must be one of 2024-11-05, .*, not '2020'"):
        check_params("ping", {}, "2020")
    with pytest.raises(ValueError, match="2026-07-28 defines no part 'Tol'"):
        check_part("Tol", {}, V5)
    with pytest.raises(ValueError, match="2024-11-05 defines no part 'Icon'"):
        check_part("Icon", {}, V1)
    with pytest.raises(ValueError, match="2026-07-28 defines no part 'Task'"):
        check_part("Task", {}, V5)  # which the revision before defines


def test_a_part_of_any_value_has_no_problems() -> None:
    """The official schemas have definitions that allow all objects."""
    assert check_part("MetaObject", {"a": [None]}, V5) == []
    assert check_part("Cursor", "", V5) == []


def test_results_of_other_types_are_left_to_their_extension() -> None:
    """A task of the extension of 2026-07-28 has members of its own."""
    kinds: Any = (("task", []), ("complete", ["TOOL-019"]), (7, ["OWN-014", "TOOL-019"]))
    for kind, expected in kinds:
        result = {"resultType": kind, "taskId": "t"}
        assert [rule for rule, _ in of_result("tools/call", result)] == expected


def test_the_result_of_a_request_for_a_task_may_be_a_task() -> None:
    """2025-11-25: without the request for a task, the result is that of the method."""
    result: dict[str, Any] = {"task": {"taskId": "t"}}

    assert {path for _, path in of_result("tools/call", result, V4, as_task=True)} == {"$.task"}
    assert of_result("tools/call", result, V4) == [("TOOL-019", "$")]
    assert of_result("tools/call", {"content": []}, V4, as_task=True) == []


@pytest.mark.parametrize(
    "result",
    [
        {"content": [7] * 10_000},
        {"content": [{"type": "resource", "resource": {"text": 7}}] * 10_000},
    ],
)
def test_a_report_is_bounded(result: Any) -> None:
    """A payload of bad items must not become a larger list of problems."""
    assert len(check_result("tools/call", result, V5)) == MAX_PROBLEMS


def test_a_union_with_too_many_problems_in_each_part_is_bounded() -> None:
    """Each shape of a union is tried to its end, or to the bound."""
    answers = {"a": {"roots": [7] * 500, "content": [7] * 500, "action": 7}}

    problems = check_params("tools/call", {"name": "t", "inputResponses": answers}, V5)
    assert 0 < len(problems) <= MAX_PROBLEMS


def test_rules_are_judged_where_the_shape_is_right() -> None:
    """A rule on the content of a part cannot look at members that are missing."""
    page = {"tools": [tool(name="a"), {"name": "a"}]}

    assert of_result("tools/list", page) == [("TOOL-008", "$.tools[1]")]


def test_the_time_is_linear_in_the_payload() -> None:
    """A check must not make a large message of a peer an attack."""

    def seconds(count: int) -> float:
        blocks = [{**TEXT, "_meta": {f"com.example/{n}": n}} for n in range(count)]
        text = "a" * count * 100
        started = time.process_time()
        assert found(check_result("tools/call", {"content": blocks}, V5)) == []
        for kind, value in (("uri", f"a:{text}"), ("mimeType", f"a/{text}")):
            of_part("Resource", {"uri": "a:b", "name": "a", kind: value})
            of_part("Resource", {"uri": "a:b", "name": "a", kind: value + "%\n"})
        meta = {"traceparent": text, "tracestate": f"{text}=", "baggage": f"a={text} ", text: 1}
        of_part("TextContent", {**TEXT, "_meta": meta})
        return time.process_time() - started

    seconds(100)
    assert seconds(20_000) < 60 * max(seconds(1_000), 0.002)
