"""Rules on elicitation: the flat schemas of forms with their defaults, and the answers to them.

Source: MCP 2026-07-28, client/elicitation, Requested Schema and Response Actions.
"""

from __future__ import annotations

from typing import Any, Final

from .._wire.values import JSONObject, is_list, is_list_of_strings, is_object
from ._formats import ELICITED_FORMATS
from ._problems import Path, Report, shown
from ._shapes import is_of_kind, kind_of

_SCHEMA: Final = "requestedSchema"
_OF_OPTIONS: Final = ("enum", "oneOf")
_MAX_SHOWN_OPTIONS: Final = 5


def judge_form(params: JSONObject, at: Path, report: Report) -> None:
    """The properties of a form are primitive, and their defaults fit them.

    Keeps ELIC-013, ELIC-015.
    """
    inside = ((at, _SCHEMA), "properties")
    for name, schema in params[_SCHEMA]["properties"].items():
        where = (inside, name)
        for keyword in _OF_OPTIONS:
            # Without its options, such a schema still fits that of any string.
            if keyword in schema and schema["type"] == "string" and _options(schema) is None:
                text = "is no list of strings" if keyword == "enum" else "is no list of options"
                report.add("ELIC-013", (where, keyword), text)
                break
        else:
            if schema.get("default") is not None:
                problem = misfit(schema, schema["default"])
                if problem is not None:
                    report.add("ELIC-013", (where, "default"), problem)


def judge_action(result: JSONObject, at: Path, report: Report) -> None:
    """Only an answer that accepts has content. Keeps ELIC-017."""
    if "content" in result and result["action"] != "accept":
        text = f"is there, and the action is {shown(result['action'])}"
        report.add("ELIC-017", (at, "content"), text)


def judge_answer(params: JSONObject, result: JSONObject, at: Path, report: Report) -> None:
    """The content of an answer fits the form of its request.

    Both have the right shape. Keeps ELIC-017, ELIC-018, ELIC-019, ELIC-020.
    """
    if result["action"] != "accept":
        return
    if params.get("mode") == "url":
        if "content" in result:
            text = "is there, and the request was for a URL"
            report.add("ELIC-017", (at, "content"), text)
        return
    content: JSONObject = result.get("content", {})
    schema = params[_SCHEMA]
    properties: JSONObject = schema["properties"]
    for name in schema.get("required", ()):
        if name not in content:
            report.add("ELIC-017", (at, "content"), f"has no member {shown(name)}")
    for name, value in content.items():
        if name in properties:
            problem = misfit(properties[name], value)
            if problem is not None:
                report.add("ELIC-017", ((at, "content"), name), problem)


def misfit(schema: JSONObject, value: Any) -> str | None:
    """What is wrong with a value for a primitive schema; None: nothing."""
    kind: str = schema["type"]
    if not is_of_kind(value, kind):
        return f"is {kind_of(value)}, not {kind}"
    match kind:
        case "string":
            return _misfit_of_text(schema, value)
        case "array":
            return _misfit_of_list(schema, value)
        case "boolean":
            return None
        case _:
            return _out_of_bounds(schema, "minimum", "maximum", value, "is")


def _misfit_of_text(schema: JSONObject, value: str) -> str | None:
    options = _options(schema)
    if options is not None:
        return None if value in options else f"is none of {_listed(options)}"
    is_good = ELICITED_FORMATS.get(schema.get("format", ""))
    if is_good is not None and not is_good(value):
        return f"is not in the format {schema['format']}"
    return _out_of_bounds(schema, "minLength", "maxLength", len(value), "has a length of")


def _misfit_of_list(schema: JSONObject, values: list[Any]) -> str | None:
    options = _options(schema["items"])
    if options is not None:
        allowed = set(options)
        if not all(type(each) is str and each in allowed for each in values):
            return f"has an item that is none of {_listed(options)}"
    return _out_of_bounds(schema, "minItems", "maxItems", len(values), "has a number of items of")


def _out_of_bounds(
    schema: JSONObject, least: str, most: str, value: float, words: str
) -> str | None:
    if value < schema.get(least, value):
        return f"{words} less than {least}"
    if value > schema.get(most, value):
        return f"{words} more than {most}"
    return None


def _options(schema: JSONObject) -> list[str] | None:
    """The values that a schema allows; None if it does not list them."""
    if is_list_of_strings(listed := schema.get("enum")):
        return listed
    titled: Any = schema.get("oneOf", schema.get("anyOf"))
    if is_list(titled) and all(map(_is_titled, titled)):
        return [each["const"] for each in titled]
    return None


def _is_titled(option: Any) -> bool:
    return is_object(option) and isinstance(option.get("const"), str)


def _listed(options: list[str]) -> str:
    more = ", ..." if len(options) > _MAX_SHOWN_OPTIONS else ""
    return ", ".join(map(shown, options[:_MAX_SHOWN_OPTIONS])) + more
