"""Each strategy generates what its name says, in all variants."""

import copy
import json
import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias, cast

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from sansmcp import ALL_REVISIONS, MODERN_REVISIONS, ClientConnection, ServerConnection, Side
from sansmcp.testing import (
    CLIENT_INFO,
    SERVER_INFO,
    Pair,
    answers,
    bad_request_ids,
    batches,
    drain,
    encoded,
    envelopes,
    json_objects,
    json_values,
    messages,
    nearly_messages,
    notifications,
    plain,
    progress_tokens,
    request_ids,
    requests,
    wire_bytes,
    wire_lines,
)
from tests.support.judges.schema import Sender, Transcript
from tests.support.machines.budget import examples
from tests.support.machines.promises import check_message

Wanted: TypeAlias = Mapping[str, Callable[[Any], object]]

CONNECTED = Pair()
MODERN = MODERN_REVISIONS[-1]
SENDERS: dict[Side, Sender] = {Side.CLIENT: "client", Side.SERVER: "server"}


def missing(strategy: st.SearchStrategy[Any], wanted: Wanted) -> list[str]:
    """The kinds of values that a strategy does not generate in 2,000 examples.

    Examples of one run are alike, so there are several short runs with fixed seeds.
    """
    left = dict(wanted)

    @settings(
        max_examples=100,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(st.lists(strategy, max_size=4))
    def look(values: list[Any]) -> None:
        for value in values:
            for name in [name for name, found in left.items() if found(value)]:
                del left[name]

    for number in range(20):
        if left:
            seed(number)(look)()
    return list(left)


@given(json_values())
def test_any_json_value_survives_a_round_trip(value: object) -> None:
    """Big integers and lone surrogates must be included."""
    assert json.loads(encoded(value)) == value


def test_json_values_hold_the_odd_ones() -> None:
    """A value that no example has is never tested."""
    odd: Wanted = {
        "big integer": lambda value: isinstance(value, int) and abs(value) > 2**64,
        "surrogate": lambda value: isinstance(value, str) and "\ud800" in value,
        "nested list": has_list,
        "empty object": lambda value: value == {},
    }

    assert missing(json_values(), odd) == []
    assert missing(json_objects(), {"list": lambda value: any(map(is_list, value.values()))}) == []


def is_unicode(value: object) -> bool:
    """Whether the validator can hold this text: it does not accept lone surrogates."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def is_list(value: object) -> bool:
    return isinstance(value, list)


def has_list(value: Any) -> bool:
    return is_list(value) and any(map(is_list, value))


def test_ids_and_tokens_are_of_every_kind() -> None:
    """`1`, `1.0` and `"1"` must all occur."""
    ids: Wanted = {kind.__name__: partial(is_exactly, kind) for kind in (int, str, float)}
    bad: Wanted = {kind.__name__: partial(is_exactly, kind) for kind in (bool, float, list, dict)}
    tokens: Wanted = {repr(token): partial(operator.eq, token) for token in (0, "", 1, "1")}

    assert missing(request_ids(), ids) == []
    assert missing(bad_request_ids(), {**bad, "null": lambda value: value is None}) == []
    assert missing(progress_tokens(), tokens) == []


def is_exactly(kind: type, value: object) -> bool:
    return type(value) is kind


@given(st.one_of(requests(), notifications(), answers(), messages(), messages(MODERN)))
def test_messages_are_well_formed(message: dict[str, Any]) -> None:
    """A test of valid messages needs messages that are valid."""
    check_message(encoded(message))


@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize("sender", Side)
def test_calls_are_valid_by_the_official_schema(revision: str, sender: Side) -> None:
    """The schema is independent of the tables of this library."""

    @given((requests(revision, sender) | notifications(revision, sender)).filter(is_unicode))
    @examples(30, 500)
    def check(message: dict[str, Any]) -> None:
        transcript = Transcript(revision)
        transcript.record(SENDERS[sender], message)
        assert transcript.problems(SENDERS[sender]) == []

    check()


@given(st.sampled_from(Side), st.data())
def test_a_peer_finds_nothing_wrong_with_them(sender: Side, data: st.DataObject) -> None:
    """A valid call must not be reported as a breach."""
    message = data.draw(requests(sender=sender).filter(lambda call: call["method"] != "initialize"))
    receiver = copy.deepcopy(CONNECTED).side(sender.other)
    receiver.receive_data(encoded({**message, "id": 1_000}) + b"\n")

    assert "ProtocolViolation" not in "".join(plain(drain(receiver)))


@given(data=st.data())
def test_a_modern_server_finds_nothing_wrong_with_requests(data: st.DataObject) -> None:
    """Each request must have a valid envelope."""
    message = data.draw(requests(MODERN, Side.CLIENT))
    server = Pair(revision=MODERN, connected=False).server
    server.receive_data(encoded(message) + b"\n")

    assert "ProtocolViolation" not in "".join(plain(drain(server)))


def test_a_modern_server_sends_no_requests() -> None:
    """A modern server must generate results with questions, and notifications."""
    assert requests(MODERN, Side.SERVER).is_empty
    kinds: Wanted = {
        "tagged": lambda message: b"subscriptionId" in encoded(message),
        "progress": lambda message: message.get("method") == "notifications/progress",
        "questions": lambda message: "inputRequests" in message.get("result", {}),
        "state alone": lambda message: (
            message.get("result", {}).keys() == {"resultType", "requestState"}
        ),
        "complete": lambda message: message.get("result", {}).get("resultType") == "complete",
        "error": lambda message: "error" in message,
    }

    assert missing(messages(MODERN, Side.SERVER), kinds) == []


def test_modern_requests_are_of_every_kind() -> None:
    """First and later rounds must occur, with full and minimal envelopes."""
    kinds: Wanted = {
        "answers": lambda message: "inputResponses" in message["params"],
        "state": lambda message: "requestState" in message["params"],
        "level": lambda message: any("logLevel" in name for name in message["params"]["_meta"]),
        "token": lambda message: "progressToken" in message["params"]["_meta"],
        "least": lambda message: len(message["params"]["_meta"]) == 2,
        "subscription": lambda message: message["method"] == "subscriptions/listen",
    }
    more: Wanted = {
        "least": lambda meta: len(meta) == 2,
        "no capabilities": lambda meta: {} in meta.values(),
        "info": lambda meta: any("clientInfo" in name for name in meta),
    }

    assert missing(requests(MODERN), kinds) == []
    assert missing(envelopes(), more) == []


def test_nearly_modern_messages_have_bad_envelopes() -> None:
    """A member of the envelope must be missing or invalid."""
    version, capabilities, level = (
        f"io.modelcontextprotocol/{name}"
        for name in ("protocolVersion", "clientCapabilities", "logLevel")
    )

    def meta_of(message: dict[str, Any]) -> dict[str, Any]:
        value: Any = message
        for name in ("params", "_meta"):
            value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

    def lacks(name: str, message: dict[str, Any]) -> bool:
        meta = meta_of(message)
        return "id" in message and meta != {} and name not in meta

    wrong: Wanted = {
        "no version": partial(lacks, version),
        "no capabilities": partial(lacks, capabilities),
        "odd level": lambda message: isinstance(meta_of(message).get(level), int | list),
    }

    assert missing(nearly_messages(MODERN, Side.CLIENT), wrong) == []


def test_wires_are_of_every_revision() -> None:
    """A server of both eras must read all of them."""
    kinds: Wanted = {
        "modern": lambda wire: b"io.modelcontextprotocol/protocolVersion" in wire,
        "legacy": lambda wire: b'"initialize"' in wire,
    }

    assert missing(wire_bytes(sender=Side.CLIENT), kinds) == []


def test_nearly_messages_have_something_wrong() -> None:
    """One fault in a message shows which rule finds it."""
    wrong: Wanted = {
        "no version": lambda message: "jsonrpc" not in message,
        "bad id": lambda message: message.get("id") is True,
        "call and answer": lambda message: "method" in message and "result" in message,
        "two answers": lambda message: "result" in message and "error" in message,
        "bad params": lambda message: isinstance(message.get("params"), list),
        "bad meta": lambda message: message.get("params") == {"_meta": None},
    }

    assert missing(nearly_messages(), wrong) == []


def test_batches_are_of_every_kind() -> None:
    """Empty, single and mixed batches must occur, and some with an invalid message."""
    kinds: Wanted = {
        "empty": lambda batch: batch == [],
        "no message": lambda batch: 1 in batch,
        "several": lambda batch: len(batch) > 2 and 1 not in batch,
    }

    assert missing(batches(sender=Side.SERVER), kinds) == []


def test_lines_have_every_damage() -> None:
    """Each kind of damage has ended connections in the field."""
    damages: Wanted = {
        "no UTF-8": lambda line: "\ufffd" in line.decode(errors="replace"),
        "NaN": lambda line: b"NaN" in line,
        "no double": lambda line: b"1e400" in line,
        "deep": lambda line: b"[" * 300 in line,
        "long": lambda line: len(line) > 5_000,
        "many digits": lambda line: b"9" * 300 in line,
        "blank": lambda line: line == b"",
        "batch": lambda line: b"[{" in line,
    }

    assert missing(wire_lines(), damages) == []


def test_wires_are_damaged_between_lines_too() -> None:
    """Framing is tested by damage at the start and end of lines."""
    damages: Wanted = {
        "nothing": lambda wire: wire == b"",
        "BOM": lambda wire: wire.startswith(b"\xef\xbb\xbf"),
        "CR LF": lambda wire: b"\r\n" in wire,
        "cut": lambda wire: not wire.endswith(b"\n") and b"\n" in wire,
    }

    assert missing(wire_bytes(), damages) == []


OLD_LINES = wire_lines("2024-11-05", Side.SERVER)


@given(OLD_LINES)
def test_messages_are_those_of_the_wanted_side_and_revision(line: bytes) -> None:
    """A call of another side or revision would be judged by other rules."""
    assert b'"tools/list"' not in line
    assert b'"elicitation/create"' not in line


def test_messages_are_among_the_damage() -> None:
    """Damaged lines need good messages around them."""
    assert missing(OLD_LINES, {"roots": lambda line: b'"roots/list"' in line}) == []


@given(wire=wire_bytes(sender=Side.CLIENT))
def test_a_server_survives_any_wire(wire: bytes) -> None:
    """Invariant 6, in the smallest form in which a user of the strategies would write it."""
    server = ServerConnection(info=SERVER_INFO)
    server.receive_data(wire)
    server.receive_eof()

    assert plain(drain(server))[-1] == "ConnectionClosed(cause=EOF)"


@given(wire=wire_bytes(sender=Side.SERVER))
def test_a_client_survives_any_wire(wire: bytes) -> None:
    """Invariant 6 for the other side."""
    client = ClientConnection(info=CLIENT_INFO)
    client.start()
    client.receive_data(wire)
    client.receive_eof()

    assert plain(drain(client))[-1].startswith("ConnectionClosed(cause=")
