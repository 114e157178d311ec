"""Rules on the messages of a sampling request: uses of tools, and their results.

Source: MCP 2026-07-28, client/sampling, Message Content Constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._wire.values import JSONObject, is_list
from ._problems import Path, Report, shown


def judge_tool_results(params: JSONObject, at: Path, report: Report) -> None:
    """Each use of a tool is answered by the next message, which has results only.

    Keeps SAMP-012, SAMP-013.
    """
    messages: list[JSONObject] = params["messages"]
    uses: list[str] = []  # the ids in the message before
    for index, message in enumerate(messages):
        where = ((at, "messages"), index)
        blocks = _blocks(message)
        results = [block for block in blocks if block["type"] == "tool_result"]
        if results and (message["role"] != "user" or len(results) < len(blocks)):
            text = "has results of tools, and is not a user message of such results only"
            report.add("SAMP-012", where, text)
        _judge_pairs(uses, [block["toolUseId"] for block in results], where, report)
        uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
    _judge_pairs(uses, (), ((at, "messages"), len(messages) - 1), report)


def _blocks(message: JSONObject) -> list[JSONObject]:
    content: Any = message["content"]
    return content if is_list(content) else [content]


def _judge_pairs(uses: Sequence[str], answered: Sequence[str], at: Path, report: Report) -> None:
    """Add a problem for each use of a tool without a result, and each result without a use."""
    known, given = set(uses), set(answered)
    for name in uses:
        if name not in given:
            report.add("SAMP-013", at, f"the use {shown(name)} of a tool has no result here")
    for name in answered:
        if name not in known:
            text = f"the result for {shown(name)} belongs to no use in the message before"
            report.add("SAMP-013", at, text)
