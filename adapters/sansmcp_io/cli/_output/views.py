"""Views of values that servers send, in which any JSON value may be anywhere."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from sansmcp import JSONObject, JSONValue

from .._values import array_of, as_text, member, object_of
from .printing import Block, Body, Heading, NamedValues, Note, Table
from .visible import shortened

_LONGEST_CELL: Final = 400
_LONGEST_VALUE: Final = 40
_MOST_VALUES: Final = 12
_MOST_DEPTH: Final = 3
"""So deep are choices within choices looked into: a schema may refer to itself."""
_LONGEST_TIME: Final = 1e15
"""Milliseconds above which a time is not converted: an integer may be too large for a float."""
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def as_json(value: JSONValue) -> Body:
    """A value for people who read JSON."""
    return Body(json.dumps(value, ensure_ascii=False, indent=2))


def _cell(value: object) -> str:
    """A text in one line, without its line breaks, which a table cannot show."""
    return shortened(" ".join(as_text(value).split()), _LONGEST_CELL)


def _name(item: object, key: str) -> str:
    """The name of an item, complete and unchanged."""
    name = member(item, key)
    return as_text(item if name is None else name)


def _description(item: object) -> str:
    title = member(item, "title") or member(member(item, "annotations"), "title")
    parts = [title, member(item, "description")]
    return ": ".join(_cell(part) for part in parts if part)


# ------------------------------------------------------------------------------- what there is


def tool_arguments(tool: object) -> str:
    """The arguments of a tool: `text: string, times?: integer, tone?: "warm" or "dry"`."""
    schema = member(tool, "inputSchema")
    required = array_of(member(schema, "required"))
    texts = [
        f"{name}{'' if name in required else '?'}: {_type_of(of_one, schema)}"
        for name, of_one in object_of(member(schema, "properties")).items()
    ]
    return shortened(", ".join(texts), _LONGEST_CELL)


def _type_of(schema: object, whole: object, depth: int = 0) -> str:
    """The type of an argument, in one line; `whole` has the definitions."""
    schema = _resolved(schema, whole)
    values = array_of(member(schema, "enum"))
    if "const" in object_of(schema):
        values = [member(schema, "const")]
    if values:
        more = [f"{len(values) - _MOST_VALUES} more"] if len(values) > _MOST_VALUES else []
        return " or ".join([*map(_value, values[:_MOST_VALUES]), *more])
    kind = member(schema, "type")
    if depth < _MOST_DEPTH:
        choices = array_of(member(schema, "anyOf")) or array_of(member(schema, "oneOf"))
        if choices and kind is None:
            shown = choices[:_MOST_VALUES]
            texts = dict.fromkeys(_type_of(each, whole, depth + 1) for each in shown)
            return " or ".join(texts)
        if kind == "array" and _values_of(member(schema, "items"), whole):
            return f"array of {_type_of(member(schema, 'items'), whole, depth + 1)}"
    if isinstance(kind, list):
        return " or ".join(map(as_text, array_of(kind)))
    return as_text(kind) or "any"


def accepts(schema: object, value: JSONValue, whole: object, depth: int = 0) -> bool:
    """Whether a value fits the type of a schema, and the values that it lists."""
    schema = _resolved(schema, whole)
    if "const" in object_of(schema):
        return _is_same(member(schema, "const"), value)
    if values := array_of(member(schema, "enum")):
        return any(_is_same(one, value) for one in values)
    choices = array_of(member(schema, "anyOf")) or array_of(member(schema, "oneOf"))
    if choices and depth < _MOST_DEPTH:
        return any(accepts(each, value, whole, depth + 1) for each in choices)
    kind = member(schema, "type")
    kinds = array_of(kind) or [kind]
    return any(one not in _TYPES or _is_of(one, value) for one in map(as_text, kinds))


def _is_same(one: object, other: object) -> bool:
    """Whether two JSON values are the same: true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _is_of(kind: str, value: object) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _values_of(schema: object, whole: object) -> bool:
    """Whether a schema lists the possible values."""
    found = object_of(_resolved(schema, whole))
    return "enum" in found or "const" in found


def _resolved(schema: object, whole: object) -> object:
    """The definition that a schema refers to within the same document; else the schema itself."""
    reference = member(schema, "$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return schema
    found = whole
    for name in reference[2:].split("/"):
        found = member(found, name.replace("~1", "/").replace("~0", "~"))
    return found


def _value(value: object) -> str:
    """A value as JSON, shortened."""
    return shortened(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)


def prompt_arguments(prompt: object) -> str:
    """The arguments of a prompt: `name, tone?`."""
    texts = [
        _name(argument, "name") + ("" if member(argument, "required") is True else "?")
        for argument in array_of(member(prompt, "arguments"))
    ]
    return shortened(", ".join(texts), _LONGEST_CELL)


def _tool(tool: object) -> tuple[str, ...]:
    return _name(tool, "name"), tool_arguments(tool), _description(tool)


def _resource(resource: object) -> tuple[str, ...]:
    name, kind = _cell(member(resource, "name")), _cell(member(resource, "mimeType"))
    return _name(resource, "uri"), name, kind, _description(resource)


def _template(template: object) -> tuple[str, ...]:
    name, kind = _cell(member(template, "name")), _cell(member(template, "mimeType"))
    return _name(template, "uriTemplate"), name, kind, _description(template)


def _prompt(prompt: object) -> tuple[str, ...]:
    return _name(prompt, "name"), prompt_arguments(prompt), _description(prompt)


_TABLES: Final[Mapping[str, tuple[str, tuple[str, ...], Callable[[object], tuple[str, ...]]]]] = {
    "tools": ("tools", ("name", "arguments", "description"), _tool),
    "resources": ("resources", ("uri", "name", "type", "description"), _resource),
    "resourceTemplates": (
        "resource templates",
        ("uri template", "name", "type", "description"),
        _template,
    ),
    "prompts": ("prompts", ("name", "arguments", "description"), _prompt),
}


def title_of(member_name: str) -> str:
    """The title of a listing, by the member of its result."""
    return _TABLES[member_name][0]


def listing(member_name: str, items: Sequence[JSONValue]) -> Iterator[Block]:
    """The table of a listing. Empty columns are left out."""
    title, columns, row = _TABLES[member_name]
    yield Heading(f"{title} ({len(items)})")
    rows = [row(item) for item in items]
    kept = [n for n in range(len(columns)) if not n or any(cells[n] for cells in rows)]
    if rows:
        yield Table(
            tuple(columns[n] for n in kept), tuple(tuple(cells[n] for n in kept) for cells in rows)
        )


def server(
    info: JSONObject, revision: str, supported: Sequence[str], instructions: str | None
) -> Iterator[Block]:
    """The name, version and other facts of the server."""
    rows = [("server", as_text(info.get("name"))), ("version", as_text(info.get("version")))]
    rows += [(name, as_text(info[name])) for name in ("title", "description") if info.get(name)]
    rows.append(("revision", revision))
    if supported:
        rows.append(("supports", _cell(", ".join(map(as_text, supported)))))
    yield NamedValues(tuple(rows))
    if instructions:
        yield Heading("instructions")
        yield Body(instructions)


def capabilities(declared: JSONObject) -> Iterator[Block]:
    """The capabilities that the server declares."""
    yield Heading("capabilities")
    rows = [(name, _options(value)) for name, value in sorted(declared.items())]
    if rows:
        yield NamedValues(tuple(rows))


def _options(value: object) -> str:
    if not isinstance(value, dict):
        return as_text(value)
    options = object_of(value).items()
    texts = [name if on is True else f"{name}: {as_text(on)}" for name, on in options]
    return ", ".join(texts) or "yes"


# -------------------------------------------------------------------------------------- tasks


def task(state: JSONObject) -> Iterator[Block]:
    """The state of a task, in either form; what it asks is counted."""
    ttl = member(state, "ttlMs" if "ttlMs" in state else "ttl")
    poll = member(state, "pollIntervalMs" if "pollIntervalMs" in state else "pollInterval")
    questions = object_of(state.get("inputRequests"))
    rows = [
        ("id", as_text(state.get("taskId"))),
        ("status", as_text(state.get("status"))),
        ("message", _cell(state.get("statusMessage"))),
        ("asks for", ", ".join(_cell(member(one, "method")) for one in questions.values())),
        ("created", _cell(state.get("createdAt"))),
        ("changed", _cell(state.get("lastUpdatedAt"))),
        ("kept for", "without end" if ttl is None else _duration(ttl)),
        ("poll every", "" if poll is None else _duration(poll)),
    ]
    yield NamedValues(tuple(row for row in rows if row[1]))


def tasks(states: Sequence[JSONValue]) -> Iterator[Block]:
    """The table of a server's tasks."""
    if not states:
        yield Note("no tasks")
        return
    keys = ("taskId", "status", "createdAt", "statusMessage")
    rows = [
        (_name(state, keys[0]), *(_cell(member(state, key)) for key in keys[1:]))
        for state in states
    ]
    yield Table(("id", "status", "created", "message"), tuple(rows))


def _duration(milliseconds: object) -> str:
    """A time in seconds, or what a server has sent instead of a number."""
    if type(milliseconds) in (int, float):
        number: Any = milliseconds
        return f"{number / 1000:g} s" if abs(number) < _LONGEST_TIME else _value(number)
    return _cell(milliseconds)


# --------------------------------------------------------------------------------- what comes


def tool_result(result: JSONObject) -> Iterator[Block]:
    """The content of a result, and its structured content if the content does not repeat it."""
    content: Sequence[object] = result["content"]
    for part in content:
        yield Body(_content(part))
    structured: Any = result.get("structuredContent")
    if structured is not None and not any(_says(part, structured) for part in content):
        if content:
            yield Heading("structured content")
        yield as_json(structured)


def _says(part: object, structured: JSONValue) -> bool:
    """Whether a text is the JSON of a value, which servers repeat for older clients."""
    text = member(part, "text")
    if not isinstance(text, str):
        return False
    try:
        said: Any = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return bool(said == structured)


def _content(part: object) -> str:
    match member(part, "type"):
        case "text":
            return as_text(member(part, "text"))
        case "image" | "audio" as kind:
            data = _size(member(part, "data"))
            return f"[{kind}, {_cell(member(part, 'mimeType'))}, {data}; --json has it]"
        case "resource_link":
            return f"[link to {_cell(member(part, 'uri'))}, {_cell(member(part, 'name'))}]"
        case "resource":
            resource = member(part, "resource")
            return f"[resource {_cell(member(resource, 'uri'))}]\n{_resource_text(resource)}"
        case _:
            return as_text(part)


def contents(result: JSONObject) -> Iterator[Block]:
    """The contents of a resource. Several parts are distinguished by their URIs."""
    parts: Sequence[object] = result["contents"]
    for part in parts:
        if len(parts) > 1:
            yield Heading(as_text(member(part, "uri")))
        yield Body(_resource_text(part))


def _resource_text(resource: object) -> str:
    text, blob = member(resource, "text"), member(resource, "blob")
    if text is not None:
        return as_text(text)
    if blob is not None:
        kind = _cell(member(resource, "mimeType")) or "of no stated type"
        return f"[binary, {kind}, {_size(blob)}; --json has it]"
    return as_text(resource)


def _size(data: object) -> str:
    try:
        return f"{len(base64.b64decode(as_text(data), validate=True))} bytes"
    except (binascii.Error, ValueError):
        return "not valid base64"


def prompt_result(result: JSONObject) -> Iterator[Block]:
    """The messages of a prompt, each with its role."""
    if result.get("description"):
        yield NamedValues((("description", _cell(result["description"])),))
    messages: Sequence[object] = result["messages"]
    for message in messages:
        yield Heading(as_text(member(message, "role")))
        yield Body(_content(member(message, "content")))
