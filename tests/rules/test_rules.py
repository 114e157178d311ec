"""The table of rules explains every rule id that the library reports."""

import ast
import re
from collections import Counter
from typing import Final

import pytest

from sansmcp import LEGACY_REVISIONS, Config
from tests.support import wire
from tests.support.judges.schema import REVISIONS
from tests.support.tables import PACKAGE, beside_shared_data, own_table, shared_table

RULE_ID: Final = re.compile(r"\b(?!SHA-)[A-Z]{2,}-[0-9]{3}\b")

SETTINGS: Final = (
    "_connection/config.py",
    "_connection/tasks/settings.py",
    "http/_server/sessions.py",
)

RULES: Final = {row["id"]: row for row in own_table("requirements.csv")}

ROLES: Final = {"client", "server", "both", "host", "authorization-server", "idp"}

# The shared specification data has these for some revisions only. All revisions follow JSON-RPC,
# which has all three, and so do their schemas: the complaint is the same in each of them.
WIDENED: Final = {"JSON-005", "JSON-006", "JSON-007"}

# Rows of an RFC whose level or sentence there is from memory, and is put right here.
CORRECTED: Final = {
    "AUTH-208",
    "AUTH-228",
    "AUTH-258",
    "AUTH-283",
    "AUTH-317",
    "AUTH-319",
    "AUTH-322",
    "AUTH-323",
    "AUTH-324",
    "AUTH-330",
    "AUTH-358",
}


def ids_in_source() -> dict[str, str]:
    """Each rule id in a string of the package, docstrings included, with one of its files."""
    found: dict[str, str] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= dict.fromkeys(RULE_ID.findall(node.value), path.name)
    return found


def test_the_scan_of_the_source_finds_rule_ids() -> None:
    """The tests below compare with the scan, which must find ids."""
    found = ids_in_source()
    assert {"CANC-004", "JSON-001", "OWN-001", "OWN-014"} <= set(found)


def test_every_rule_id_in_the_source_is_in_the_table() -> None:
    """A report with an id that is not in the table cannot be looked up."""
    missing = {rule: file for rule, file in ids_in_source().items() if rule not in RULES}
    assert missing == {}


def test_every_rule_of_our_own_is_used() -> None:
    """A rule of ours that no code names may not be kept."""
    own = {rule for rule in RULES if rule.startswith("OWN-")}
    assert own
    assert own - set(ids_in_source()) == set()


def test_ids_are_unique() -> None:
    """An id with two meanings could not be looked up."""
    counts = Counter(row["id"] for row in own_table("requirements.csv"))
    assert [rule for rule, count in counts.items() if count > 1] == []


def malformed(row: dict[str, str]) -> list[str]:
    """The columns of a row that the page of rules could not print."""
    own = row["id"].startswith("OWN-")
    levels = {"OWN"} if own else {"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY"}
    revisions = row["revisions"].split(" ")
    page = r"sansmcp/(limits|decisions)" if own else r"[-\w./]+"
    good = {
        "id": RULE_ID.fullmatch(row["id"]),
        "level": row["level"] in levels,
        "role": row["role"] in ROLES,
        "layer": row["layer"] in {"core", "stdio", "http", "auth", "application"},
        "revisions": revisions == [name for name in REVISIONS if name in revisions],
        "page": re.fullmatch(page, row["page"]),
        "text": re.fullmatch(r"\S.*(\.|\.\))", row["text"]),
    }
    return [column for column in row if not good[column]]


def test_columns_are_well_formed() -> None:
    """`sansmcp explain` and the page of rules print these columns as they are."""
    faults = {rule: malformed(row) for rule, row in RULES.items()}
    assert {rule: columns for rule, columns in faults.items() if columns} == {}


@beside_shared_data
def test_rules_of_the_specification_are_those_of_the_shared_data() -> None:
    """The sentences were checked against the specification there; a copy that differs misquotes it.

    On a checkout without that data beside it, this compares nothing.
    """
    ours = {rule: row for rule, row in RULES.items() if not rule.startswith("OWN-")}
    tables = ("requirements.csv", "auth-extra.csv", "tasks-extension.csv")
    theirs = {row["id"]: row for name in tables for row in shared_table(name)}
    assert set(ours) == set(theirs)
    assert {rule for rule in ours if ours[rule] != theirs[rule]} == WIDENED | CORRECTED
    assert {row["page"][:3] for rule, row in ours.items() if rule in CORRECTED} == {"rfc"}
    for rule in WIDENED:
        assert ours[rule] | {"revisions": ""} == theirs[rule] | {"revisions": ""}
        assert ours[rule]["revisions"] == " ".join(REVISIONS)


def limited_rules() -> list[str]:
    """The ids that the docstrings of `Config` and `Sessions` name."""
    trees = [ast.parse((PACKAGE / name).read_bytes()) for name in SETTINGS]
    strings = [
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return sorted(set(RULE_ID.findall(" ".join(strings))))


def test_the_page_of_limits_is_what_config_documents() -> None:
    """The page of limits is made from the table, the defaults on it from `Config`."""
    assert limited_rules() == sorted(
        rule for rule, row in RULES.items() if row["page"] == "sansmcp/limits"
    )


# ----------------------------------------------------------- the rules that events really cite


BAD_FOR_A_SERVER: Final[dict[str, bytes]] = {
    "no JSON": b"hello\n",
    "no object": b"7\n",
    "a batch": b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n',
    "an empty batch": b"[]\n",
    "no method": b'{"jsonrpc":"2.0","id":1}\n',
    "no version": b'{"id":1,"method":"ping"}\n',
    "id null": b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n',
    "id true": b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n',
    "params list": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}\n',
    "params null": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}\n',
    "missing name": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}\n',
    "undeclared": b'{"jsonrpc":"2.0","id":1,"method":"resources/list"}\n',
    "wrong direction": b'{"jsonrpc":"2.0","id":1,"method":"roots/list"}\n',
    "initialize again": wire.wire(wire.initialize(1, "2025-06-18")),
    "initialized again": wire.wire(wire.INITIALIZED),
    "cancel of nothing": b'{"jsonrpc":"2.0","method":"notifications/cancelled"}\n',
    "cancel of true": wire.wire(wire.note("notifications/cancelled", {"requestId": True})),
    "bad token": wire.wire(wire.note("notifications/progress", {"progressToken": None})),
    "bad progress": wire.wire(wire.note("notifications/progress", {"progressToken": 1})),
    "undeclared change": wire.wire(wire.note("notifications/roots/list_changed")),
    "bad level": wire.wire(wire.call(1, "logging/setLevel", {"level": "loud"})),
    "token twice": wire.wire(
        *(
            wire.call(id, "tools/call", {"name": "t", "_meta": {"progressToken": 1}})
            for id in (1, 2)
        )
    ),
    "id twice": wire.wire(*(wire.call(1, "tools/list") for _ in range(2))),
    "CR LF": b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n',
}


@pytest.mark.parametrize("bad", BAD_FOR_A_SERVER)
@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
def test_what_a_server_complains_about_is_a_rule_of_the_revision(revision: str, bad: str) -> None:
    """A peer must not be accused by a rule that its revision does not have."""
    server = wire.ready_server(revision, client={}, capabilities={"tools": {}, "logging": {}})
    cited = wire.broken(wire.receive(server, BAD_FOR_A_SERVER[bad]))
    if bad == "a batch" and revision == "2025-03-26":
        assert cited == []
        return
    assert cited
    assert [rule for rule in cited if revision not in RULES[rule]["revisions"]] == []


BAD_ANSWERS: Final[dict[str, dict[str, object]]] = {
    "neither": {},
    "both": {"result": {"tools": []}, "error": {"code": 1, "message": "x"}},
    "result null": {"result": None},
    "result list": {"result": []},
    "error text": {"error": "x"},
    "error without code": {"error": {"message": "x"}},
    "code is text": {"error": {"code": "1", "message": "x"}},
    "no tools": {"result": {}},
    "other version": {"result": {"tools": []}, "jsonrpc": "1.0"},
    "id as text": {"result": {"tools": []}, "id": "2"},
}


@pytest.mark.parametrize("bad", BAD_ANSWERS)
@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
def test_what_a_client_complains_about_is_a_rule_of_the_revision(revision: str, bad: str) -> None:
    """A user looks up the rule in a log for the spoken revision."""
    client = wire.ready_client(revision)
    call = client.send_request("tools/list", id=2)
    answer = {"jsonrpc": "2.0", "id": call.id, **BAD_ANSWERS[bad]}
    cited = wire.broken(wire.receive(client, answer))
    assert cited
    assert [rule for rule in cited if revision not in RULES[rule]["revisions"]] == []


@pytest.mark.parametrize(
    ("config", "line", "rule"),
    [
        (Config(max_message_bytes=10), b"x" * 11 + b"\n", "OWN-001"),
        (Config(max_json_depth=3), b"[[[[]]]]\n", "OWN-002"),
        (Config(max_integer_digits=3), b'{"jsonrpc":"2.0","id":1234,"method":"ping"}\n', "OWN-003"),
    ],
)
def test_a_message_over_a_limit_is_reported_under_the_rule_of_that_limit(
    config: Config, line: bytes, rule: str
) -> None:
    """The event must name the setting to change, and not just "not JSON"."""
    server = wire.new_server(config=config)
    assert wire.broken(wire.receive(server, line)) == [rule]
