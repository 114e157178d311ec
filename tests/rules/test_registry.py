"""The registry of methods in the code equals the table in `data`.

This is the one test that looks inside the package: nothing public lists what a revision defines.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from sansmcp import Side
from sansmcp._spec.methods import Method
from sansmcp._spec.registry import DIALECTS
from tests.support import data
from tests.support.tables import beside_shared_data, own_table, shared_table

Key = tuple[str, str, str, Side]  # revision, method, kind, sender

SIDES: Final = {"client": Side.CLIENT, "server": Side.SERVER}


def key_of(row: dict[str, str]) -> Key:
    return row["revision"], row["method"], row["kind"], SIDES[row["direction"].split("->")[0]]


ROWS: Final = {key_of(row): row for row in own_table("methods.csv")}
BY_THE_LIBRARY: Final = {"_meta", "resultType", "ttlMs", "cacheScope"}
"""What the library writes into messages of the revision without a handshake."""


def registry() -> Iterator[tuple[Key, Method]]:
    none: Mapping[str, Method] = {}
    for revision, dialect in DIALECTS.items():
        assert dialect.revision == revision
        for kind, tables in (
            ("request", dialect.requests),
            ("notification", dialect.notifications),
            ("input_request", (none, dialect.inputs)),
        ):
            for sender in Side:
                for name, method in tables[sender].items():
                    assert (name, sender) == (method.name, method.sender)
                    assert kind.endswith(method.kind)
                    yield (revision, name, kind, sender), method


REGISTRY: Final = dict(registry())


def name(key: Key) -> str:
    revision, method, _, sender = key
    return f"{revision}-{sender.name.lower()}-{method}"


def gate(capability: str, side: Side) -> str:
    """The path of a capability in the table (`server.tools`), which must be one of this side."""
    if not capability:
        return ""
    owner, _, path = capability.partition(".")
    assert SIDES[owner] is side
    return path


def test_table_and_registry_have_the_same_methods() -> None:
    """A method that only one of them has would be refused or served without a rule."""
    assert len(ROWS) == len(own_table("methods.csv"))
    assert set(REGISTRY) == set(ROWS)


@pytest.mark.parametrize("key", ROWS, ids=name)
def test_gates_are_those_of_the_table(key: Key) -> None:
    """A wrong gate would refuse an agreed capability, or send without one."""
    row, method, sender = ROWS[key], REGISTRY[key], key[3]
    if "|" in row["capability_receiver"]:  # each member of the filter has a gate of its own
        assert method.gate == ""
        return
    assert method.gate == gate(row["capability_receiver"], sender.other)
    assert method.sender_gate == gate(row["capability_sender"], sender)


@pytest.mark.parametrize("key", ROWS, ids=name)
def test_required_params_are_those_of_the_table(key: Key) -> None:
    """Too many required params refuse valid requests; too few let invalid ones out."""
    alternatives = [
        frozenset(part.split()) - {"_meta"} for part in ROWS[key]["params_required"].split("|")
    ]
    method = REGISTRY[key]
    ours = [frozenset(member for member, _ in method.params)]
    # `mode` itself is required in the other modes: it is what tells them from the default.
    others = [mode for mode in method.modes.values() if mode != method.params]
    ours += [frozenset(member for member, _ in mode) | {"mode"} for mode in others]
    assert sorted(ours, key=sorted) == sorted(alternatives, key=sorted)


@pytest.mark.parametrize("key", ROWS, ids=name)
def test_required_members_of_results_are_those_of_the_table(key: Key) -> None:
    """Too many required members make good results failures; too few deliver broken ones."""
    required = {member for member, _ in REGISTRY[key].result}
    assert required == set(ROWS[key]["result_required"].split()) - BY_THE_LIBRARY
    assert REGISTRY[key].cacheable == ("ttlMs" in ROWS[key]["result_required"])


@pytest.mark.parametrize("key", ROWS, ids=name)
def test_flags_are_those_of_the_table(key: Key) -> None:
    """Pagination, cancellation and the handshake are decided by them."""
    row, method = ROWS[key], REGISTRY[key]
    answer = {True: "yes", False: "no"}
    assert answer[method.paginated is not None] == row["paginated"]
    if row["kind"] != "input_request":  # which is no message, and so neither of the two
        assert answer[method.cancellable] == row["cancellable"]
        assert answer[method.early] == row["before_initialized"]
    if method.paginated is not None:
        assert method.paginated in {member for member, _ in method.result}


@pytest.mark.parametrize("key", ROWS, ids=name)
def test_what_the_notes_of_the_table_say_is_in_the_registry(key: Key) -> None:
    """The notes have facts without a column: tasks, and capabilities that a param needs."""
    notes, method = ROWS[key]["notes"], REGISTRY[key]
    as_task = "task (CreateTaskResult) instead" in notes
    expected = f"tasks.requests.{method.name.replace('/', '.')}" if as_task else None
    assert method.task_gate == expected
    assert method.allows_questions == ("may be an InputRequiredResult" in notes)
    named = {gate(path, key[3].other) for path in re.findall(r"\bclient\.[\w.]+", notes)}
    assert {condition.gate for condition in method.conditions} == named


TYPES: Final[dict[str, set[type]]] = {
    "string": {str},
    "number": {int, float},
    "integer": {int, float},
    "boolean": {bool},
    "object": {dict},
    "array": {list},
}
"""What Python makes of each JSON type."""


def resolved(definitions: Any, schema: Any) -> list[Any]:
    """The alternatives, or the parts, that a schema comes to."""
    if "$ref" in schema:
        return resolved(definitions, definitions[schema["$ref"].rpartition("/")[2]])
    for word in ("anyOf", "allOf"):
        if word in schema:
            return [part for inner in schema[word] for part in resolved(definitions, inner)]
    return [schema]


def optional_in(definitions: Any, schema: Any) -> dict[str, set[type]]:
    """The optional members of an object, with their types, as far as each has some."""
    members: dict[str, set[type]] = {}
    for part in resolved(definitions, schema):
        for name in part.get("properties", {}).keys() - set(part.get("required", ())):
            kinds: set[type] = set()
            for kind in resolved(definitions, part["properties"][name]):
                said: Any = kind.get("type", "string" if "enum" in kind or "const" in kind else ())
                words: list[str] = [said] if isinstance(said, str) else list(said)
                kinds.update(*(TYPES[word] for word in words))
            if kinds:
                members[name] = kinds
    return members


@pytest.mark.parametrize("key", ROWS, ids=name)
def test_optional_members_are_those_of_the_official_schema(key: Key) -> None:
    """A wrong type here refuses good messages; a missing one lets bad ones through."""
    revision, named, *_ = key
    schema = data.schema(revision)
    definitions = schema.get("$defs") or schema["definitions"]
    method = REGISTRY[key]
    (title,) = [
        title
        for title, body in definitions.items()
        if body.get("properties", {}).get("method", {}).get("const") == named
        and title not in ("ClientNotification", "ClientRequest", "ServerNotification")
    ]
    params = definitions[title]["properties"].get("params", {})
    ours = {member: set(kinds) for member, kinds in method.params_optional}
    required = {member for member, _ in method.params}
    theirs = optional_in(definitions, params)
    assert {**theirs, "_meta": {dict}} == {
        **ours,
        **{member: kinds for member, kinds in theirs.items() if member in required},
    }
    answer = definitions.get(title.replace("Request", "Result"))
    if answer is not None and title.endswith("Request"):
        ours = {member: set(kinds) for member, kinds in method.result_optional}
        assert {**optional_in(definitions, answer), "_meta": {dict}} == ours


@beside_shared_data
def test_the_table_agrees_with_the_shared_specification_data() -> None:
    """Both began as one file, and corrections must reach both.

    On a checkout without that data beside it, this compares nothing.
    """
    assert {key_of(row): row for row in shared_table("methods.csv")} == ROWS
