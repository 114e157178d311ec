"""The rules on tools and their results."""

from __future__ import annotations

from typing import Any

import pytest

from tests.check.parts import SCHEMA, TEXT, V1, V2, V3, V4, V5, of_part, of_result, tool
from tests.support.judges.schema import REVISIONS


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (None, "$.inputSchema"),
        ([], "$.inputSchema"),
        ({}, "$.inputSchema"),
        ({"type": "array"}, "$.inputSchema.type"),
    ],
)
def test_a_tool_has_an_input_schema_of_an_object(revision: str, schema: Any, path: str) -> None:
    """TOOL-008, TOOL-009: clients build the arguments of a call from it."""
    assert of_part("Tool", {"name": "add"}, revision) == [("TOOL-008", "$")]
    assert of_part("Tool", tool(inputSchema=schema), revision) == [("TOOL-008", path)]


def test_an_input_schema_may_have_any_keyword() -> None:
    """TOOL-010: composition, conditions and references stand beside the type."""
    schema: Any = {
        "type": "object",
        "oneOf": [{"$ref": "#/$defs/a"}],
        "$defs": {"a": {}},
        "if": True,
    }

    assert of_part("Tool", tool(inputSchema=schema)) == []


def test_an_output_schema_is_that_of_an_object_until_2025_11_25() -> None:
    """TOOL-011, TOOL-012: the last revision allows any schema."""
    array = tool(outputSchema={"type": "array"})

    for revision in (V3, V4):
        assert of_part("Tool", array, revision) == [("TOOL-011", "$.outputSchema.type")]
    assert of_part("Tool", array, V5) == []
    assert of_part("Tool", tool(outputSchema=[]), V5) == [("OWN-014", "$.outputSchema")]


def test_structured_content_is_an_object_until_2025_11_25() -> None:
    """TOOL-013, TOOL-014: the last revision allows any value, null included."""
    for revision in (V3, V4):
        result = {"content": [TEXT], "structuredContent": [1]}
        assert of_result("tools/call", result, revision) == [("TOOL-013", "$.structuredContent")]
    for value in ([1], 7, "a", False):
        result = {"content": [TEXT], "structuredContent": value}
        assert of_result("tools/call", result, V5) == []


def test_null_is_a_structured_content() -> None:
    """TOOL-014: a present null differs from an absent member."""
    assert of_result("tools/call", {"content": [TEXT], "structuredContent": None}, V5) == []


def test_structured_content_is_there_as_text_too() -> None:
    """TOOL-017: a client that does not know structured content shows the text."""
    good = {
        "content": [TEXT, {"type": "text", "text": '{"a": 1.0}'}],
        "structuredContent": {"a": 1},
    }

    assert of_result("tools/call", good) == []
    for text in ('{"a": 2}', "{", "a: 1", "\ud800"):
        bad: Any = {**good, "content": [{"type": "text", "text": text}]}
        assert of_result("tools/call", bad) == [("TOOL-017", "$")]
        assert of_result("tools/call", {**bad, "isError": True}) == []


def test_an_array_as_structured_content_comes_with_a_text() -> None:
    """TOOL-018: older clients know text only. An official example has it in words."""
    assert of_result("tools/call", {"content": [], "structuredContent": [1]}) == [("TOOL-018", "$")]
    assert of_result("tools/call", {"content": [TEXT], "structuredContent": [1]}) == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_result_of_a_tool_has_content(revision: str) -> None:
    """TOOL-019: a list, which may be empty."""
    assert of_result("tools/call", {}, revision) == [("TOOL-019", "$")]
    assert of_result("tools/call", {"content": TEXT}, revision) == [("TOOL-019", "$.content")]
    assert of_result("tools/call", {"content": []}, revision) == []


def test_kinds_of_content_are_those_of_the_revision() -> None:
    """TOOL-020, TOOL-021, TOOL-022: audio came in 2025-03-26, links in 2025-06-18."""
    resource = {"uri": "file:///a", "text": "hi"}
    blocks: dict[str, tuple[dict[str, Any], str]] = {
        "text": (TEXT, V1),
        "resource": ({"type": "resource", "resource": resource}, V1),
        "image": ({"type": "image", "data": "aGk=", "mimeType": "image/png"}, V1),
        "audio": ({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}, V2),
        "resource_link": ({"type": "resource_link", "uri": "file:///a", "name": "a"}, V3),
        "txt": ({"type": "txt", "text": "hi"}, "never"),
    }
    for block, since in blocks.values():
        for revision in REVISIONS:
            problems = of_result("tools/call", {"content": [TEXT, block]}, revision)
            expected = [] if revision >= since else [("OWN-076", "$.content[1].type")]
            assert problems == expected, (block, revision)


def test_a_block_of_content_has_a_type() -> None:
    """Without it nobody knows what the block is."""
    assert of_part("ContentBlock", {"text": "hi"}) == [("OWN-014", "$")]
    assert of_part("ContentBlock", "hi") == [("OWN-014", "$")]
    assert of_part("ContentBlock", {"type": 7}) == [("OWN-076", "$.type")]


@pytest.mark.parametrize(("name", "is_good"), [("a", True), ("a" * 128, True), ("a" * 129, False)])
def test_a_tool_name_has_1_to_128_characters(name: str, is_good: bool) -> None:
    """TOOL-033: other programs cut longer ones."""
    assert of_part("Tool", tool(name=name)) == ([] if is_good else [("TOOL-033", "$.name")])
    assert of_part("Tool", tool(name="")) == [("TOOL-033", "$.name")]


@pytest.mark.parametrize("name", ["a b", "a,b", "a/b", "ä", "a\n"])
def test_a_tool_name_has_letters_digits_and_three_other_characters(name: str) -> None:
    """TOOL-034, TOOL-035: many models refuse others."""
    assert of_part("Tool", tool(name=name)) == [("TOOL-034", "$.name")]
    assert of_part("Tool", tool(name=name), V3) == []  # where there is no such rule
    assert of_part("Tool", tool(name="Get_v1.0-a")) == []


def test_tool_names_of_a_page_are_unique() -> None:
    """TOOL-036, TOOL-037: a call could mean either; names that differ by case are different."""
    page = {"tools": [tool(name="a"), tool(name="A"), tool(name="a")]}

    assert of_result("tools/list", page) == [("TOOL-037", "$.tools[2].name")]


def a_property(**members: Any) -> dict[str, Any]:
    return tool(inputSchema={"type": "object", "properties": {"p": members}})


@pytest.mark.parametrize(
    ("marked", "rule"),
    [
        (a_property(type="string", **{"x-mcp-header": ""}), "HDR-013"),
        (a_property(type="string", **{"x-mcp-header": "a b"}), "HDR-014"),
        (a_property(type="string", **{"x-mcp-header": "a\x07"}), "HDR-014"),
        (a_property(type="number", **{"x-mcp-header": "a"}), "HDR-017"),
        (a_property(type="object", items={"type": "string", "x-mcp-header": "a"}), "HDR-019"),
    ],
)
def test_marks_for_headers_keep_their_rules(marked: dict[str, Any], rule: str) -> None:
    """HDR-013 to HDR-019: a client over HTTP leaves such a tool out."""
    assert of_part("Tool", marked) == [(rule, "$.inputSchema")]
    assert of_part("Tool", marked, V4) == []  # where the mark has no meaning
    assert of_part("Tool", a_property(type="string", **{"x-mcp-header": "Region"})) == []


def test_a_mark_for_a_header_is_unique_in_its_schema() -> None:
    """HDR-016: two parameters cannot share a header."""
    mark = {"type": "string", "x-mcp-header": "a"}
    schema = {**SCHEMA, "properties": {"one": mark, "two": {**mark, "x-mcp-header": "A"}}}

    assert of_part("Tool", tool(inputSchema=schema)) == [("HDR-016", "$.inputSchema")]
