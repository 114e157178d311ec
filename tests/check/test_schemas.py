"""The tables against the official schemas: values of each definition, and single changes of them.

The judge is the schema itself. Where a check and the schema disagree, the reason is listed here.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any, Final

import jsonschema_rs
import pytest

from sansmcp.check import Problem, check_params, check_part
from tests.check.schema_values import mutations, valid_values, values_of
from tests.support.judges.schema import REVISIONS, Schema, schema_of
from tools import payloads

MODERN: Final = REVISIONS[-1]

ENVELOPES: Final = ("Request", "Notification", "Response", "Error", "ResultResponse")
PAYLOADS_NAMED_LIKE_ENVELOPES: Final = {"InputRequest", "InputResponse"}
NO_PAYLOADS: Final = {
    "Error": "JSON-009: `_rules` judges errors",
    "JSONRPCError": "JSON-009",
    "JSONRPCMessage": "JSON-001: `_rules` judges whole messages",
    "Notification": "JSON-001",
    "Request": "JSON-001",
    "ClientResult": "the results of all methods: each is judged by that of its method",
    "ServerResult": "as ClientResult",
    "JSONArray": "any list",
    "JSONObject": "any object",
    "JSONValue": "any value",
}
"""Definitions that no check is for, with the reason."""

STRICTER: Final = {
    "COMP-002": "the limit of values is in the schema of the last revision only",
    "ELIC-006": "as ELIC-013, in the union of both modes",
    "ELIC-008": "a mode that no revision defines",
    "ELIC-012": "the schema has the format `uri`, which a validator need not judge",
    "ELIC-013": "a schema of a string with a wrong `enum` or `oneOf` fits that of any string",
    "ELIC-017": "the schema does not connect content and action",
    "ICON-003": "the schema allows all schemes",
    "META-018": "the oldest schemas have no `_meta` in some params",
    "OWN-076": "formats, which a validator need not judge",
    "OWN-077": "the sizes of icons are described in words",
    "PROMPT-008": "Base64 and MIME types, as OWN-076",
    "PROMPT-009": "as PROMPT-008",
    "RES-018": "the schema allows text beside a blob",
    "RES-019": "Base64, as OWN-076",
    "RES-026": "the schema has any string as time of the last change",
    "ROOT-004": "the schema allows all schemes",
    "SAMP-012": "the schema looks at each message by itself",
    "SAMP-013": "as SAMP-012",
    "TOOL-017": "the schema does not connect structured content and text",
    "TOOL-018": "as TOOL-017",
    "TOOL-033": "the schema allows names of any length",
    "TOOL-034": "the schema allows all characters in names",
    "TOOL-037": "the schema looks at each tool by itself",
}
"""Rules by which a check refuses values that the schema allows, with the reason."""

JUDGED_ELSEWHERE: Final = {
    "_meta": "META-009: the library writes it, and `_rules.request_meta` judges it",
    "io.modelcontextprotocol/protocolVersion": "META-009",
    "io.modelcontextprotocol/clientCapabilities": "META-009",
    "io.modelcontextprotocol/subscriptionId": "SUBS-012: the parts of subscriptions judge it",
    "resultType": "MRTR-019: the library writes it, and an absent one is reported",
    "ttlMs": "CACHE-001: as resultType",
    "cacheScope": "CACHE-001",
}
"""Required members of 2026-07-28 whose absence is judged by other parts, with the rule."""


@cache
def definitions_of(revision: str) -> dict[str, Any]:
    """The definitions of a revision, without the members that are judged elsewhere."""
    definitions: dict[str, Any] = {**deepcopy(schema_of(revision).definitions)}
    if revision == MODERN:
        for body in definitions.values():
            if "required" in body:
                body["required"] = [n for n in body["required"] if n not in JUDGED_ELSEWHERE]
    return definitions


@cache
def judge_of(revision: str, name: str) -> Callable[[Any], bool]:
    """A function that tells whether the schema allows a value."""
    schema = schema_of(revision)
    whole = {
        "$schema": schema.dialect,
        "$ref": f"#/{schema.keyword}/{name}",
        schema.keyword: definitions_of(revision),
    }
    return jsonschema_rs.validator_for(whole, validate_formats=False).is_valid


def part_names(revision: str) -> list[str]:
    return [
        name
        for name in schema_of(revision).definitions
        if name in PAYLOADS_NAMED_LIKE_ENVELOPES
        or not (name in NO_PAYLOADS or name.endswith(ENVELOPES))
    ]


def compare(
    values: list[Any], check: Callable[[Any], list[Problem]], is_valid: Callable[[Any], bool]
) -> None:
    """Compare a check with the schema, on values that the schema allows and their mutations."""
    assert values
    assert check(values[0]) == []
    for value in values:
        assert is_valid(value)
        assert rules_of(check(value)) <= STRICTER.keys()
        for changed in mutations(value):
            if is_valid(changed):
                assert rules_of(check(changed)) <= STRICTER.keys(), changed
            else:
                assert check(changed), changed


def rules_of(problems: list[Problem]) -> set[str]:
    return {problem.rule for problem in problems}


@pytest.mark.parametrize(
    ("revision", "name"),
    [(revision, name) for revision in REVISIONS for name in part_names(revision)],
)
def test_a_check_of_a_definition_agrees_with_its_schema(revision: str, name: str) -> None:
    """A table that lacks a member would let any value pass there."""
    compare(
        valid_values(schema_of(revision), name),
        lambda value: check_part(name, value, revision),
        judge_of(revision, name),
    )


def methods_of(schema: Schema) -> dict[str, str]:
    """The definition of the request or notification of each method, questions included."""
    return {
        body["properties"]["method"]["const"]: name
        for name, body in schema.definitions.items()
        if "const" in body.get("properties", {}).get("method", {})
    }


@pytest.mark.parametrize(
    ("revision", "method"),
    [(revision, method) for revision in REVISIONS for method in methods_of(schema_of(revision))],
)
def test_a_check_of_params_agrees_with_the_schema_of_the_message(
    revision: str, method: str
) -> None:
    """Until 2025-06-18, params have no definitions of their own, but are part of the message."""
    schema = schema_of(revision)
    name = methods_of(schema)[method]
    params = schema.definitions[name]["properties"].get("params", {"type": "object"})
    is_valid_message = judge_of(revision, name)

    def check(value: Any) -> list[Problem]:
        return [] if value is None else check_params(method, value, revision)

    def is_valid(value: Any) -> bool:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": value}
        return value is None or is_valid_message(message)  # None stands for absent params

    compare(values_of(schema, params, name + "Params")[:2], check, is_valid)


def test_the_tables_are_those_that_the_script_writes() -> None:
    """A schema that was changed would not be followed."""
    assert payloads.MODULE.read_text("utf-8") == payloads.text(), "`make generated` writes it again"
