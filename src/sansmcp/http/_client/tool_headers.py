"""Which parameters of a tool are mirrored into fields, as its definition says.

Source: MCP 2026-07-28, basic/transports/streamable-http, Custom Headers from Tool Parameters.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

from ..._wire.values import JSONObject, is_list, is_object
from .._headers import PARAM_PREFIX

Mirrored: TypeAlias = tuple[tuple[bytes, tuple[str, ...]], ...]
"""The name of each field, with the path of its parameter in the arguments."""

_MARK: Final = "x-mcp-header"
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TYPES: Final = ("integer", "string", "boolean")
_SCHEMAS: Final = (
    *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if"),
    *("items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)
"""Keywords whose value is a schema; `items` may be a list of them, too."""
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAPS: Final = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties")
_MAX_SHOWN: Final = 80


class BadAnnotation(ValueError):
    """A mark in a tool's schema breaks a rule.

    Attributes:
        rule: Which one.
    """

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(text)
        self.rule: Final = rule


def read_annotations(schema: object) -> Mirrored:
    """What the marks in an `inputSchema` say.

    Raises:
        BadAnnotation: One of them breaks a rule: the whole definition is invalid.
    """
    found: dict[str, tuple[bytes, tuple[str, ...]]] = {}
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
    return tuple(found.values())


_OTHERS: Final = frozenset((*_SCHEMAS, *_LISTS, *_MAPS))


def _within(node: JSONObject, keyword: str) -> list[Any]:
    value: Any = node[keyword]
    if is_list(value):
        return value
    if is_object(value) and keyword in _MAPS:
        return list(value.values())
    return [value]


def _add(
    found: dict[str, tuple[bytes, tuple[str, ...]]], node: JSONObject, path: tuple[str, ...] | None
) -> None:
    name: Any = node[_MARK]
    if not isinstance(name, str) or not name:
        raise BadAnnotation("HDR-013", f"{_MARK} is no name")
    if not _TOKEN.fullmatch(name):
        raise BadAnnotation("HDR-014", f"{_MARK} {name[:_MAX_SHOWN]!r} is no name of a field")
    if not path:
        where = "not where a chain of properties leads to"
        raise BadAnnotation("HDR-019", f"{_MARK} {name[:_MAX_SHOWN]!r} stands {where}")
    if node.get("type") not in _TYPES:
        where = "at a parameter that is no integer, string or boolean"
        raise BadAnnotation("HDR-017", f"{_MARK} {name[:_MAX_SHOWN]!r} stands {where}")
    lower = name.lower()
    if lower in found:
        raise BadAnnotation("HDR-016", f"{_MARK} {name[:_MAX_SHOWN]!r} stands there twice")
    found[lower] = PARAM_PREFIX + lower.encode(), path
