"""The marks `x-mcp-header` in the `inputSchema` of a tool: parameters that HTTP headers repeat.

Source: MCP 2026-07-28, basic/transports/streamable-http, Custom Headers from Tool Parameters.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

from .._wire.values import JSONObject, is_list, is_object

Marks: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""The name of each mark in lower case, with the path of its parameter in the arguments."""

_MARK: Final = "x-mcp-header"
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TYPES: Final = ("integer", "string", "boolean")
_SCHEMAS: Final = (
    *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if"),
    *("items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)
"""Keywords whose value is a schema. The value of `items` may be a list of schemas, too."""
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAPS: Final = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties")
_MAX_SHOWN: Final = 80


class BadMark(ValueError):
    """An `x-mcp-header` in the schema of a tool breaks a rule.

    Attributes:
        rule: The id of the rule.
    """

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(text)
        self.rule: Final = rule


def read_marks(schema: object) -> Marks:
    """Return which parameters an `inputSchema` marks with `x-mcp-header`.

    Raises:
        BadMark: A mark breaks a rule, which makes the whole definition invalid.
    """
    found: dict[str, tuple[str, ...]] = {}
    # Schemas that a chain of `properties` leads to have a path, all others None. A list, since
    # what a server sends may be nested deeper than calls may be.
    waiting: list[tuple[object, tuple[str, ...] | None]] = [(schema, ())]
    while waiting:
        node, path = waiting.pop()
        if not is_object(node):
            continue
        if _MARK in node:
            _add(found, node, path)
        properties = node.get("properties")
        if is_object(properties):
            for name, inner in properties.items():
                waiting.append((inner, None if path is None else (*path, name)))
        for keyword in node.keys() & _OTHERS:
            waiting += [(inner, None) for inner in _within(node, keyword)]
    return tuple(found.items())


_OTHERS: Final = frozenset((*_SCHEMAS, *_LISTS, *_MAPS))


def _within(node: JSONObject, keyword: str) -> list[Any]:
    value: Any = node[keyword]
    if is_list(value):
        return value
    if is_object(value) and keyword in _MAPS:
        return list(value.values())
    return [value]


def _add(found: dict[str, tuple[str, ...]], node: JSONObject, path: tuple[str, ...] | None) -> None:
    # Keeps HDR-015.
    name: Any = node[_MARK]
    if not isinstance(name, str) or not name:
        raise BadMark("HDR-013", f"{_MARK} is no name")
    if not _TOKEN.fullmatch(name):
        raise BadMark("HDR-014", f"{_MARK} {name[:_MAX_SHOWN]!r} is no name of a header")
    if not path:
        where = "not where a chain of properties leads to"
        raise BadMark("HDR-019", f"{_MARK} {name[:_MAX_SHOWN]!r} stands {where}")
    if node.get("type") not in _TYPES:
        where = "at a parameter that is no integer, string or boolean"
        raise BadMark("HDR-017", f"{_MARK} {name[:_MAX_SHOWN]!r} stands {where}")
    lower = name.lower()
    if lower in found:
        raise BadMark("HDR-016", f"{_MARK} {name[:_MAX_SHOWN]!r} stands there twice")
    found[lower] = path
