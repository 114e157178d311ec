"""Structured content comes with its text, and failures of tools are results."""

import json
from typing import Any

import attrs
import pytest
from hypothesis import given

from sansmcp import ALL_REVISIONS, JSONValue
from sansmcp.content import structured, text, tool_error
from tests.content.judged import JUDGED
from tests.support.judges.schema import schema_of


@attrs.frozen
class Forecast:
    city: str
    degrees: float | None = None


@given(JUDGED)
def test_structured_content_has_its_text_twin(value: JSONValue) -> None:
    """TOOL-017, TOOL-018: clients before 2025-06-18 read the text only."""
    result: Any = structured(value)

    assert result["structuredContent"] == value
    assert json.loads(result["content"][0]["text"]) == value
    assert (
        schema_of("2026-07-28").violations({**result, "resultType": "complete"}, "CallToolResult")
        == []
    )


def test_members_that_are_none_are_null() -> None:
    """The schema of the tool may require a member that has no value."""
    assert structured(Forecast("Lima")) == {
        "content": [{"type": "text", "text": '{"city":"Lima","degrees":null}'}],
        "structuredContent": {"city": "Lima", "degrees": None},
    }


def test_the_text_may_be_written_for_models() -> None:
    """A sentence is shorter than the JSON; further blocks follow it."""
    result = structured(
        {"degrees": 20}, text("sunny"), text="20 degrees", is_error=True, meta={"a": 1}
    )

    assert result == {
        "content": [{"type": "text", "text": "20 degrees"}, {"type": "text", "text": "sunny"}],
        "structuredContent": {"degrees": 20},
        "isError": True,
        "_meta": {"a": 1},
    }


@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_failure_is_a_result(revision: str) -> None:
    """TOOL-024, TOOL-027: the model reads the text, and may call the tool again."""
    result: Any = tool_error("no such city", text("try Lima"), meta={"a": 1})
    more = {"resultType": "complete"} if revision == "2026-07-28" else {}

    assert result["isError"] is True
    assert [block["text"] for block in result["content"]] == ["no such city", "try Lima"]
    assert result["_meta"] == {"a": 1}
    assert schema_of(revision).violations({**result, **more}, "CallToolResult") == []


@pytest.mark.parametrize("value", [float("nan"), {"a": float("inf")}])
def test_numbers_that_json_does_not_have_are_refused(value: object) -> None:
    """Sending would fail later, where the value is not seen."""
    with pytest.raises(ValueError, match="JSON"):
        structured(value)


def test_is_error_is_a_boolean() -> None:
    """A text there would make each result a failure."""
    with pytest.raises(ValueError, match="is_error"):
        # No bool, which is what is tried.
        structured(1, is_error="no")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
