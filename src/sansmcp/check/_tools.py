"""Rules on tools: their names, the marks in their schemas, and structured content.

Source: MCP 2026-07-28, server/tools.
"""

from __future__ import annotations

import re
from typing import Any, Final

from .._rules.header_marks import BadMark, read_marks
from .._wire.codec import STANDARD_CODEC
from .._wire.values import JSONObject, is_object
from ._problems import Path, Report, shown

_MAX_NAME: Final = 128
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]*")


def judge_tool_name(tool: JSONObject, at: Path, report: Report) -> None:
    """A tool name is short, and has letters, digits and `_-.` only.

    Keeps TOOL-033, TOOL-034, TOOL-035.
    """
    name = tool["name"]
    if not 1 <= len(name) <= _MAX_NAME:
        text = f"is a tool name of {len(name)} characters, not of 1 to {_MAX_NAME}"
        report.add("TOOL-033", (at, "name"), text)
    if _NAME.fullmatch(name) is None:
        text = f"{shown(name)} has characters that a tool name does not have"
        report.add("TOOL-034", (at, "name"), text)


def judge_tool_names(result: JSONObject, at: Path, report: Report) -> None:
    """Tool names are unique in a page, with case.

    Keeps TOOL-036, TOOL-037.
    """
    seen = set[str]()
    for index, tool in enumerate(result["tools"]):
        name = tool["name"]
        if name in seen:
            where = (((at, "tools"), index), "name")
            report.add("TOOL-037", where, f"{shown(name)} is the name of an earlier tool, too")
        seen.add(name)


def judge_header_marks(tool: JSONObject, at: Path, report: Report) -> None:
    """The marks `x-mcp-header` in an `inputSchema` keep the rules on them.

    Keeps HDR-013, HDR-014, HDR-015, HDR-016, HDR-017, HDR-019.
    """
    try:
        read_marks(tool["inputSchema"])
    except BadMark as bad:
        report.add(bad.rule, (at, "inputSchema"), str(bad))


def judge_structured_content(result: JSONObject, at: Path, report: Report) -> None:
    """Structured content is also there as text, for clients that do not know it.

    The text of an object is the object as JSON. That of an array or a primitive value may be in
    words, too: an official example describes an array of users in a sentence.
    Keeps TOOL-014, TOOL-017, TOOL-018.
    """
    if "structuredContent" not in result or result.get("isError") is True:
        return
    value: Any = result["structuredContent"]
    texts = [block["text"] for block in result["content"] if block["type"] == "text"]
    if not is_object(value):
        if not texts:
            report.add("TOOL-018", at, "has structuredContent, and no text block")
    elif not any(_is_text_of(text, value) for text in texts):
        text = "has structuredContent, and no text block with the same value as JSON"
        report.add("TOOL-017", at, text)


def _is_text_of(text: str, value: JSONObject) -> bool:
    """Whether a text is JSON of a value."""
    try:
        return STANDARD_CODEC.decode(text.encode()) == value
    except (ValueError, RecursionError):
        return False
