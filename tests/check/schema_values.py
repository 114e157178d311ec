"""Values that an official schema allows, and mutations of them."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from sansmcp._wire.values import is_list, is_object
from tests.support.judges.schema import Schema

OF_PLACES: Final[dict[str, list[Any]]] = {
    "Root.uri": ["file:///home"],
    "CallToolResult.content": [[{"type": "text", "text": "{}"}]],
    "CallToolResult.structuredContent": [{}],
    "CreateMessageRequestParams.messages": [
        [{"role": "user", "content": {"type": "text", "text": "hi"}}]
    ],
    "RequestMetaObject.io.modelcontextprotocol/protocolVersion": ["2026-07-28"],
}
"""Values for places where rules beside the schema ask for more than it does."""
OF_MEMBERS: Final[dict[str, list[Any]]] = {
    "lastModified": ["2025-01-12T15:00:58Z"],
    "mimeType": ["text/plain"],
    "sizes": [["48x48", "any"]],
}
OF_FORMATS: Final = {
    "byte": "aGk=",
    "uri": "https://example.com/a",
    "uri-template": "file:///{path}",
}
OTHERS: Final[tuple[Any, ...]] = (None, True, 7, 1.5, -3, "", "other", [], [7], {}, {"type": 7})
"""Values to put in the place of valid ones."""


def valid_values(schema: Schema, name: str) -> list[Any]:
    """Values for a definition: with as few members as possible, with all, and each variant."""
    return list(_values(schema, schema.definitions[name], name, 0))


def values_of(schema: Schema, body: Any, place: str) -> list[Any]:
    """Values for a schema that stands at a place."""
    return list(_values(schema, body, place, 0))


def _values(schema: Schema, body: Any, place: str, depth: int) -> Iterator[Any]:
    member = place.rpartition(".")[2]
    if place in OF_PLACES:
        yield from deepcopy(OF_PLACES[place])
    elif "$ref" in body:
        name = body["$ref"].rpartition("/")[2]
        yield from _values(schema, schema.definitions[name], name, depth)
    elif "anyOf" in body:
        for part in body["anyOf"]:
            yield from _values(schema, part, place, depth)
    elif "allOf" in body:
        parts = [_resolved(schema, part) for part in body["allOf"]]
        merged = {
            "properties": {
                name: each for part in parts for name, each in part.get("properties", {}).items()
            },
            "required": [name for part in parts for name in part.get("required", [])],
        }
        yield from _objects(schema, merged, place, depth)
    elif "const" in body:
        yield body["const"]
    elif "enum" in body:
        yield from body["enum"]
    elif member in OF_MEMBERS:
        yield from deepcopy(OF_MEMBERS[member])
    else:
        kinds: Any = body.get("type", "string")
        for kind in [kinds] if isinstance(kinds, str) else kinds:
            yield from _values_of_kind(schema, kind, body, place, depth)


def _values_of_kind(schema: Schema, kind: Any, body: Any, place: str, depth: int) -> Iterator[Any]:
    match kind:
        case "object":
            yield from _objects(schema, body, place, depth)
        case "array":
            yield []
            if depth < 4:
                yield list(_values(schema, body.get("items", {}), place + "[]", depth + 1))
        case "string":
            yield OF_FORMATS[body["format"]] if "format" in body else "text"
        case "integer":
            yield body.get("minimum", 3)
        case "number":
            yield body.get("maximum", 0.5)
        case "boolean":
            yield True
        case _:
            yield None


def _objects(schema: Schema, body: Any, place: str, depth: int) -> Iterator[Any]:
    properties = body.get("properties", {})
    members = {
        name: list(_values(schema, each, f"{place}.{name}", depth + 1))
        for name, each in properties.items()
    }
    least = {name: members[name][0] for name in body.get("required", [])}
    rest = body.get("additionalProperties")
    most = {name: values[-1] for name, values in members.items()}
    if isinstance(rest, dict) and rest and depth < 4:
        inner = list(_values(schema, rest, place + ".*", depth + 1))
        most |= {f"member{index}": value for index, value in enumerate(inner)}
    yield least
    if most != least:
        yield most
    for name, values in members.items():
        for value in values[:-1] if depth < 1 else []:
            yield {**most, name: value}


def _resolved(schema: Schema, body: Any) -> Any:
    return schema.definitions[body["$ref"].rpartition("/")[2]] if "$ref" in body else body


def mutations(value: Any, levels: int = 2) -> Iterator[Any]:
    """Copies of a value with one change: a member is removed, a part replaced, an item added.

    Args:
        value: The value.
        levels: The levels below the value that are changed, too. Deeper parts have definitions of
            their own.
    """
    others = OTHERS if levels > 1 else OTHERS[::3]
    yield from (other for other in others if not _is_same(other, value))
    if is_object(value) and levels:
        for name, member in value.items():
            yield {key: each for key, each in value.items() if key != name}
            for changed in mutations(member, levels - 1):
                yield {**value, name: changed}
    elif is_list(value) and levels:
        yield [*value, None]
        for index, item in enumerate(value):
            for changed in mutations(item, levels - 1):
                yield [*value[:index], changed, *value[index + 1 :]]


def _is_same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other
