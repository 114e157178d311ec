"""Clients show tools by the names and hints that the specification gives."""

from typing import Any

import pytest
from hypothesis import given

from sansmcp.content import ToolHints, display_name, tool_hints
from sansmcp.testing import json_objects


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ({"name": "add", "title": "Add", "annotations": {"title": "Plus"}}, "Add"),
        ({"name": "add", "annotations": {"title": "Plus"}}, "Plus"),
        ({"name": "add", "annotations": {}}, "add"),
        ({"name": "add"}, "add"),
        ({"name": "add", "title": " ", "annotations": {"title": 1}}, "add"),
        ({"name": "add", "title": None, "annotations": "Plus"}, "add"),
        ({"name": 1}, ""),
        ({}, ""),
    ],
)
def test_display_name_is_the_first_of_three(item: dict[str, Any], name: str) -> None:
    """TOOL-032: users see the name that the server gave for them."""
    assert display_name(item) == name


@pytest.mark.parametrize(
    ("annotations", "hints"),
    [
        ({}, ToolHints(read_only=False, destructive=True, idempotent=False, open_world=True)),
        (
            {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True},
            ToolHints(read_only=True, destructive=False, idempotent=True, open_world=True),
        ),
        (
            {"readOnlyHint": "yes", "destructiveHint": 0, "openWorldHint": False},
            ToolHints(read_only=False, destructive=True, idempotent=False, open_world=False),
        ),
        (None, ToolHints()),
    ],
)
def test_absent_hints_have_the_cautious_default(annotations: object, hints: ToolHints) -> None:
    """TOOL-031: a tool without hints may do anything, and so may one with wrong ones."""
    assert tool_hints({"name": "add", "annotations": annotations}) == hints
    assert tool_hints({"name": "add"}) == ToolHints()


@given(json_objects())
def test_nothing_that_a_server_sends_raises(tool: dict[str, Any]) -> None:
    """One odd tool must not hide the others."""
    assert isinstance(display_name(tool), str)
    assert isinstance(tool_hints({"annotations": tool}), ToolHints)
