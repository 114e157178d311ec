"""`sansmcp.types` agrees with the official schemas of all five revisions."""

from collections.abc import Iterator
from typing import Any, Final, TypeGuard

import pytest

import sansmcp
from sansmcp import types
from tests.support.judges.schema import REVISIONS, schema_of
from tests.types.vocabulary import (
    OFFICIAL,
    VOCABULARIES,
    Constant,
    Object,
    Shape,
    definitions,
    differences,
    exists,
    marks_of,
    peeled,
    typed_dicts,
)

DEFINED: Final = [
    (revision, name) for revision in REVISIONS for name in OFFICIAL[revision].definitions
]
ALIASES: Final = {name: value for name, value in definitions().items() if name not in typed_dicts()}
# What the library adds to what the application gives it, or adds as the envelope around it.
FILLED: Final = {"_meta", "id", "io.modelcontextprotocol/subscriptionId", "jsonrpc", "resultType"}


@pytest.mark.parametrize(("revision", "name"), DEFINED)
def test_definition_says_what_the_schema_says(revision: str, name: str) -> None:
    """A type checker would demand more than the protocol, or allow what it forbids."""
    ours = VOCABULARIES[revision].shape(definitions().get(name))

    assert list(differences(ours, OFFICIAL[revision].named(name), name)) == []


@pytest.fixture(scope="module")
def met() -> dict[str, set[str]]:
    """The TypedDicts in the definitions of each revision."""
    for revision, name in DEFINED:
        VOCABULARIES[revision].shape(definitions()[name])
    return {revision: VOCABULARIES[revision].met for revision in REVISIONS}


@pytest.mark.parametrize("name", typed_dicts())
def test_class_exists_in_the_revisions_that_its_marks_say(
    name: str, met: dict[str, set[str]]
) -> None:
    """A class that no schema has would be an invention."""
    marks = marks_of(typed_dicts()[name])
    said = [revision for revision in REVISIONS if exists(marks, revision)]

    assert said == [revision for revision in REVISIONS if name in met[revision]]


@pytest.mark.parametrize("name", ALIASES)
def test_marked_alias_exists_in_the_revisions_that_its_marks_say(name: str) -> None:
    """An alias without marks may stand for what older schemas write out; one with them may not."""
    known = [revision for revision in REVISIONS if name in OFFICIAL[revision].definitions]
    marks = peeled(ALIASES[name])[1]

    if marks and known:
        assert [revision for revision in REVISIONS if exists(marks, revision)] == known


@pytest.mark.parametrize("name", typed_dicts())
def test_key_is_required_if_all_revisions_require_it_and_nobody_fills_it(
    name: str, met: dict[str, set[str]]
) -> None:
    """A required key that is marked optional would be forgotten; an optional one marked required
    is a burden."""
    definition = typed_dicts()[name]
    always: set[str] | None = None
    for revision in REVISIONS:
        if name in met[revision]:
            required = {member.name for member in members(revision, definition) if member.required}
            always = required if always is None else always & required

    assert definition.__required_keys__ == (always or set()) - FILLED | (
        definition.__required_keys__ & FILLED
    )


def members(revision: str, definition: object) -> Any:
    """The members of a TypedDict in a revision that has it."""
    shape = VOCABULARIES[revision].shape(definition)
    assert shape is not None
    (whole,) = shape
    assert isinstance(whole, Object)
    return whole.members


# ---------------------------------------------------------------------------------- literals


def literals(shape: Shape | None) -> set[str | int]:
    """The values of a union of literals."""
    found = set[str | int]()
    for atom in shape or ():
        assert isinstance(atom, Constant)
        found.add(atom.value)
    return found


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("sender", "kind", "alias"),
    [
        ("client", "request", types.ClientRequestMethod),
        ("server", "request", types.ServerRequestMethod),
        ("client", "notification", types.ClientNotificationMethod),
        ("server", "notification", types.ServerNotificationMethod),
    ],
)
def test_method_names_are_those_of_the_schema(
    revision: str, sender: str, kind: str, alias: object
) -> None:
    """Overloads and exhaustive matches use these names."""
    official = {
        method for who, what, method in schema_of(revision).calls if (who, what) == (sender, kind)
    }

    assert literals(VOCABULARIES[revision].shape(alias)) == official


@pytest.mark.parametrize("revision", REVISIONS)
def test_questions_in_results_are_those_of_the_schema(revision: str) -> None:
    """In 2026-07-28 these questions replace the requests of a server."""
    official = set[str | int]()
    if "InputRequest" in OFFICIAL[revision].definitions:
        official = constants_at(OFFICIAL[revision].named("InputRequest"), "method")

    assert literals(VOCABULARIES[revision].shape(types.InputRequestMethod)) == official


def constants_at(shape: Shape, key: str) -> set[str | int]:
    """The values that a key has in all alternatives of a union of objects."""
    found = set[str | int]()
    for atom in shape:
        assert isinstance(atom, Object)
        for member in atom.members:
            if member.name == key:
                found |= literals(member.shape)
    return found


def test_kinds_of_content_are_those_of_the_schemas() -> None:
    """A missing kind could not be matched."""
    official = {
        kind
        for revision in REVISIONS
        for name in ("ContentBlock", "SamplingMessageContentBlock")
        if name in OFFICIAL[revision].definitions
        for kind in constants_at(OFFICIAL[revision].named(name), "type")
    }

    assert literals(VOCABULARIES["2026-07-28"].shape(types.ContentType)) == official


@pytest.mark.parametrize("revision", REVISIONS)
def test_error_codes_are_those_of_the_schema_and_of_json_rpc(revision: str) -> None:
    """The codes of JSON-RPC hold everywhere; the newest schema is the first to name them all."""
    standard = {
        value
        for name, value in vars(sansmcp.ErrorCode).items()
        if not name.startswith("_") and value <= -32600
    }
    official = standard | set(schema_of(revision).errors)

    assert literals(VOCABULARIES[revision].shape(types.KnownErrorCode)) == official


# --------------------------------------------------------------------- can all of this fail?


def is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def mutants(node: object) -> Iterator[tuple[str, Any]]:
    """Copies of a schema node, each with one change that a type checker could notice."""
    if is_list(node):
        for index, part in enumerate(node):
            for what, changed in mutants(part):
                yield what, [*node[:index], changed, *node[index + 1 :]]
    elif is_object(node):
        yield from mutants_of_object(node)


def mutants_of_object(given: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(given.get("properties"), dict):
        properties: dict[str, Any] = given["properties"]
        required: list[str] = given.get("required", [])
        for name in properties:
            rest = {key: value for key, value in properties.items() if key != name}
            needed = [key for key in required if key != name]
            yield f"without {name}", {**given, "properties": rest, "required": needed}
            flipped = needed if name in required else [*required, name]
            yield f"{name} required or not", {**given, "required": flipped}
            for what, changed in mutants(properties[name]):
                yield f"{name}: {what}", {**given, "properties": {**properties, name: changed}}
        yield "a new key", {**given, "properties": {**properties, "new": {"type": "string"}}}
    if isinstance(given.get("enum"), list):
        yield "a value less", {**given, "enum": given["enum"][1:]}
        yield "a value more", {**given, "enum": [*given["enum"], "new"]}
    elif "const" in given:
        yield "another constant", {**given, "const": "new"}
    elif isinstance(given.get("type"), str) and "properties" not in given:
        yield "another type", {"type": "null"}
    elif isinstance(given.get("type"), list):
        yield "a type less", {**given, "type": given["type"][1:]}
    for key in ("items", "additionalProperties", "anyOf"):
        for what, changed in mutants(given.get(key)):
            yield f"{key}: {what}", {**given, key: changed}
    if isinstance(given.get("anyOf"), list):
        yield "an alternative more", {**given, "anyOf": [*given["anyOf"], {"const": "new"}]}


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_change_of_a_schema_is_found(revision: str) -> None:
    """A comparison that misses keys, types, enums or requiredness would prove nothing."""
    official, overlooked, count = OFFICIAL[revision], list[str](), 0
    for name in official.definitions:
        ours = VOCABULARIES[revision].shape(definitions()[name])
        for what, mutant in mutants(official.node(name)):
            count += 1
            if not list(differences(ours, official.shape(mutant), name)):
                overlooked.append(f"{name}: {what}")

    assert overlooked == []
    assert count > 500
