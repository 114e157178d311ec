"""Results of tools: structured content beside its text, and failures for the model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from .._wire.codec import STANDARD_CODEC
from .._wire.setting_checks import check_flag
from .._wire.values import JSONObject, JSONValue
from ._blocks import text as text_block
from ._values import as_json

if TYPE_CHECKING:
    from ..types import CallToolResult, ContentBlock


def structured(
    value: object,
    *content: ContentBlock | object,
    text: str | None = None,
    is_error: bool = False,
    meta: object = None,
) -> CallToolResult:
    """The result of a tool with structured content, and the same as a block of text.

    The text is for clients that do not know structured content. Keeps TOOL-017, TOOL-018.

    Args:
        value: A JSON value, or an object that `as_json` takes. Before 2026-07-28 only objects are
            valid; see `adapt`.
        content: Further blocks, after the text.
        text: The text for models, in place of the JSON text of the value.
        is_error: Whether the tool has failed.
        meta: The member `_meta` of the result.

    Raises:
        TypeError: A part of the value has no JSON value.
        ValueError: The value is nested too deep, or has a number that JSON does not have.
    """
    check_flag("is_error", is_error)
    plain = as_json(value)
    twin = text_block(json_text(plain) if text is None else text)
    blocks = [as_json(one, nulls=False) for one in content]
    return _result([twin, *blocks], is_error, meta, structuredContent=plain)


def tool_error(text: str, *content: ContentBlock | object, meta: object = None) -> CallToolResult:
    """The result of a tool that has failed, which the model reads. Keeps TOOL-024, TOOL-027.

    A tool that does not exist is no such failure, but a JSON-RPC error.

    Args:
        text: What is wrong, and what the model can do about it.
        content: Further blocks, after the text.
        meta: The member `_meta` of the result.
    """
    blocks = [as_json(one, nulls=False) for one in content]
    return _result([text_block(text), *blocks], True, meta)


def json_text(value: JSONValue) -> str:
    """The compact JSON text of a value."""
    return STANDARD_CODEC.encode(value).decode()


def _result(
    blocks: Iterable[object], is_error: bool, meta: object, **members: JSONValue
) -> CallToolResult:
    result: JSONObject = {"content": list(blocks), **members}
    if is_error:
        result["isError"] = True
    if meta is not None:
        result["_meta"] = as_json(meta, nulls=False)
    return cast("CallToolResult", result)
