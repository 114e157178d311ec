"""The rules on sampling."""

from __future__ import annotations

from typing import Any

import pytest

from tests.check.parts import TEXT, V1, V2, V3, V4, V5, of_params, of_result
from tests.support.judges.schema import REVISIONS

METHOD = "sampling/createMessage"
USE: Any = {"type": "tool_use", "id": "u", "name": "add", "input": {}}
RESULT: Any = {"type": "tool_result", "toolUseId": "u", "content": []}


def of_messages(*messages: tuple[str, Any], revision: str = V5) -> list[tuple[str, str]]:
    said = [{"role": role, "content": content} for role, content in messages]
    return of_params(METHOD, {"maxTokens": 9, "messages": said}, revision)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_sampling_request_has_messages_and_a_limit_of_tokens(revision: str) -> None:
    """SAMP-008: a model cannot be called without them."""
    assert of_params(METHOD, {}, revision) == [("SAMP-008", "$"), ("SAMP-008", "$")]
    assert of_params(METHOD, {"messages": {}, "maxTokens": "9"}, revision) == [
        ("SAMP-008", "$.messages"),
        ("SAMP-008", "$.maxTokens"),
    ]
    assert of_messages(("user", TEXT), revision=revision) == []


def test_a_sampling_message_has_a_role_and_content() -> None:
    """SAMP-009: nobody knows who said the rest."""
    messages: list[Any] = [{}]
    params = {"maxTokens": 9, "messages": messages}

    assert of_params(METHOD, params) == [("SAMP-009", "$.messages[0]")] * 2
    assert of_params(METHOD, params, V4) == [("OWN-014", "$.messages[0]")] * 2


@pytest.mark.parametrize("revision", [V1, V2, V3])
def test_content_of_a_sampling_message_is_one_block_until_2025_06_18(revision: str) -> None:
    """SAMP-010, SAMP-011: lists of blocks came with tools, in 2025-11-25."""
    path = "$.messages[0].content"
    result = {"role": "assistant", "model": "m", "content": [TEXT]}

    assert of_messages(("user", [TEXT]), revision=revision) == [("SAMP-010", path)]
    assert of_messages(("user", USE), revision=revision) == [("SAMP-010", f"{path}.type")]
    assert of_result(METHOD, result, revision) == [("SAMP-010", "$.content")]
    for later in (V4, V5):
        assert of_messages(("user", [TEXT]), revision=later) == []
        assert of_result(METHOD, result, later) == []


@pytest.mark.parametrize("revision", [V4, V5])
def test_results_of_tools_stand_alone(revision: str) -> None:
    """SAMP-012: models refuse messages that mix them with other content."""
    said: Any = [("assistant", USE), ("user", [RESULT, TEXT])]
    assert of_messages(*said, revision=revision) == [("SAMP-012", "$.messages[1]")]

    said = [("assistant", USE), ("assistant", RESULT)]
    assert of_messages(*said, revision=revision) == [("SAMP-012", "$.messages[1]")]

    said = [("assistant", [TEXT, USE]), ("user", [RESULT]), ("assistant", TEXT)]
    assert of_messages(*said, revision=revision) == []


@pytest.mark.parametrize("revision", [V4, V5])
def test_each_use_of_a_tool_is_followed_by_its_result(revision: str) -> None:
    """SAMP-013: models refuse a conversation that goes on without it."""
    other: Any = {**RESULT, "toolUseId": "v"}
    cases: Any = (
        ([("assistant", USE)], ["$.messages[0]"]),
        ([("assistant", USE), ("user", TEXT)], ["$.messages[1]"]),
        ([("assistant", USE), ("user", [RESULT, other])], ["$.messages[1]"]),
        ([("user", RESULT)], ["$.messages[0]"]),
        ([("assistant", [USE, {**USE, "id": "v"}]), ("user", [other, RESULT])], []),
    )
    for said, expected in cases:
        problems = of_messages(*said, revision=revision)
        assert problems == [("SAMP-013", path) for path in expected], said


def test_no_messages_at_all_are_no_problem() -> None:
    """The schema allows an empty list."""
    assert of_messages() == []
