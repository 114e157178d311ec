"""Results for peers of older revisions: blocks that they do not know become some that they do."""

from __future__ import annotations

from typing import Final

import attrs

from .._spec.registry import ALL_REVISIONS
from .._wire.codec import STANDARD_CODEC
from .._wire.setting_checks import check_choice
from .._wire.values import JSONObject, JSONValue, Record, is_list, is_object
from ._results import json_text
from ._tools import display_name
from ._values import as_json

_FIRST_WITH: Final = {
    "audio": ("2025-03-26", "TOOL-020"),
    "resource_link": ("2025-06-18", "TOOL-021"),
    "tool_use": ("2025-11-25", "SAMP-011"),
    "tool_result": ("2025-11-25", "SAMP-011"),
}
"""The revision that adds a type of block, and the rule that says so; the others are in all."""


@attrs.frozen(kw_only=True)
class Loss(Record):
    """A part of a result that a peer of an older revision gets in another form.

    Attributes:
        path: Its place in the result as it was, such as `content[1]`.
        rule: The id of the rule of the revision.
        text: What the peer gets in its place.
    """

    path: str
    rule: str
    text: str


def adapt(result: object, revision: str) -> tuple[JSONObject, list[Loss]]:
    """A result as a peer of this revision can read it, and what is lost by that.

    It takes results of `tools/call`, `prompts/get` and `sampling/createMessage`; of others it
    returns a copy. What the revision does not know is replaced:

    - audio becomes an embedded resource with the same bytes, or a text in sampling,
    - a link to a resource becomes a text with its name and its URI,
    - structured content is left out. If no block of text has its JSON, one is added,
    - several blocks of one message of a model become one text.

    Members that older revisions do not define, such as `_meta` and `icons` of blocks, stay: peers
    ignore them. Keeps TOOL-013, TOOL-018, TOOL-020, TOOL-021, SAMP-010.

    Args:
        result: The result, which is not changed: a dict, or an object that `as_json` takes.
        revision: The revision of the request, as in `IncomingRequest.revision`.

    Returns:
        A new result, and its losses; none if the peer gets all of it.

    Raises:
        TypeError: A part of the result has no JSON value.
        ValueError: The result is no object, it is nested too deep, or there is no such revision.
    """
    check_choice("revision", revision, ALL_REVISIONS)
    adapted = as_json(result, nulls=False)
    if not is_object(adapted):
        raise ValueError(f"a result is an object, not {result!r:.80}")
    adapter = _Adapter(revision)
    if "role" in adapted:
        adapter.adapt_message(adapted, "content")
    elif is_list(messages := adapted.get("messages")):
        for index, message in enumerate(messages):
            if is_object(message) and is_object(block := message.get("content")):
                path = f"messages[{index}].content"
                message["content"] = adapter.adapted(block, path, embeds=True)
    else:
        adapter.adapt_tool_result(adapted, "")
    return adapted, adapter.losses


class _Adapter:
    """Adapts the parts of one result, which it changes in place."""

    __slots__ = ("_revision", "losses")

    def __init__(self, revision: str) -> None:
        self._revision: Final = revision
        self.losses: Final[list[Loss]] = []

    def adapt_tool_result(self, result: JSONObject, path: str) -> None:
        """Adapt the result of a tool, or a block with such a result.

        Args:
            result: The result.
            path: What stands before its members in the path of a loss.
        """
        content: object = result.get("content")
        if is_list(content):
            for index, block in enumerate(content):
                content[index] = self.adapted(block, f"{path}content[{index}]", embeds=True)
        value: JSONValue = result.get("structuredContent")
        if "structuredContent" not in result or self._knows_structured(value):
            return
        del result["structuredContent"]
        text = "left out, as a block of text has it"
        if not is_list(content):
            result["content"] = content = []
        if not any(_has_value(block, value) for block in content):
            content.append(_text(json_text(value)))
            text = "left out; a block of text with it was added"
        rule = "TOOL-013" if self._revision >= "2025-06-18" else "TOOL-017"
        self._lose(f"{path}structuredContent", rule, text)

    def _knows_structured(self, value: JSONValue) -> bool:
        if is_object(value):
            return self._revision >= "2025-06-18"
        return self._revision >= "2026-07-28"

    def adapt_message(self, message: JSONObject, path: str) -> None:
        """Adapt the content of a message of a model."""
        content: object = message.get("content")
        if not is_list(content):
            message["content"] = self.adapted(content, path, embeds=False)
            return
        blocks = [
            self.adapted(block, f"{path}[{index}]", embeds=False)
            for index, block in enumerate(content)
        ]
        message["content"] = blocks
        if self._revision < "2025-11-25":
            message["content"] = blocks[0] if len(blocks) == 1 else _joined(blocks)
            if len(blocks) != 1:
                self._lose(path, "SAMP-010", f"{len(blocks)} blocks became one text")

    def adapted(self, block: object, path: str, *, embeds: bool) -> object:
        """A block as the revision knows it.

        Args:
            block: The block.
            path: Its place.
            embeds: Whether there may be embedded resources.
        """
        if not is_object(block):
            return block
        kind: object = block.get("type")
        first, rule = _FIRST_WITH.get(str(kind), ("", ""))
        if self._revision >= first:
            if kind == "tool_result":
                self.adapt_tool_result(block, f"{path}.")
            return block
        if kind == "audio" and embeds:
            self._lose(path, rule, "audio became an embedded resource")
            return self._embedded(block)
        self._lose(path, rule, f"{kind} became text")
        kept: JSONObject = {name: block[name] for name in ("annotations", "_meta") if name in block}
        return {**_text(_description(block)), **kept}

    def _embedded(self, audio: JSONObject) -> JSONObject:
        """Audio as an embedded resource, with a URI that no other part of the result has."""
        block = dict(audio)
        kind, data = block.pop("mimeType", None), block.pop("data", None)
        uri = f"cid:audio-{len(self.losses)}@content"  # RFC 2392: a part of this message
        return {
            **block,
            "type": "resource",
            "resource": {"uri": uri, "mimeType": kind, "blob": data},
        }

    def _lose(self, path: str, rule: str, text: str) -> None:
        self.losses.append(Loss(path=path, rule=rule, text=text))


def _text(text: str) -> JSONObject:
    return {"type": "text", "text": text}


def _joined(blocks: list[object]) -> JSONObject:
    return _text("\n\n".join(_description(block) for block in blocks if is_object(block)))


def _description(block: JSONObject) -> str:
    """A block in words, for a peer that does not know its type."""
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "resource_link", "uri": uri}:
            about = block.get("description")
            return f"{display_name(block)} ({uri})" + (f": {about}" if about else "")
        case {"type": "tool_use", "name": name}:
            return f"[call of the tool {name}: {json_text(block.get('input'))}]"
        case {"type": "tool_result"} if is_list(block.get("content")):
            return str(_joined(block["content"])["text"])
        case {"type": kind, "mimeType": form}:
            return f"[{kind}, {form}]"
        case _:
            return f"[{block.get('type')}]"


def _has_value(block: object, value: JSONValue) -> bool:
    """Whether a block is the JSON text of a value."""
    if not is_object(block) or block.get("type") != "text":
        return False
    try:
        return STANDARD_CODEC.decode(str(block.get("text")).encode()) == value
    except (ValueError, RecursionError):
        return False
