"""Requests in both directions: sending, one response, refusals, and endings."""

from typing import Any

import pytest

from sansmcp import (
    Config,
    ErrorWithoutIdReceived,
    FailureReason,
    LocalProtocolError,
    MessageIgnored,
    ProtocolViolation,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
)
from sansmcp.testing import Pair, canonical
from tests.support.wire import (
    error,
    of,
    only,
    ready_client,
    ready_server,
    receive,
    result,
    sent,
)

REVISION = "2025-11-25"
ECHO: dict[str, Any] = {"name": "echo"}


# -------------------------------------------------------------------------------- ours


def test_a_call_and_its_answer() -> None:
    """The usual course on both sides, with all properties of the handles."""
    pair = Pair()
    ours = pair.client.send_request("tools/call", {"name": "echo"}, meta={"x": 1}, data="mine")
    assert (ours.method, ours.open, ours.data) == ("tools/call", True, "mine")
    assert pair.client.pending_requests == (ours,)
    theirs = pair.deliver_one(RequestReceived).request
    assert (theirs.method, theirs.id, theirs.meta) == ("tools/call", ours.id, {"x": 1})
    assert theirs.params == {"name": "echo", "_meta": {"x": 1}}
    assert (theirs.revision, theirs.peer) == (REVISION, pair.server.peer)
    assert (theirs.peer_info, theirs.peer_capabilities) == (
        pair.server.peer.info,
        pair.server.peer.capabilities,
    )
    assert (theirs.principal, theirs.log_level, theirs.progress_token) == (None, None, None)
    assert pair.server.open_requests == (theirs,)

    assert pair.server.send_result(theirs, {"content": []}, meta={"y": 2})
    answer = pair.deliver_one(ResponseReceived)
    assert (answer.request, answer.result) == (ours, {"content": [], "_meta": {"y": 2}})
    assert (ours.open, theirs.open) == (False, False)
    assert not pair.client.pending_requests
    assert not pair.server.open_requests
    assert pair.events == ([], [])


@pytest.mark.parametrize(
    ("params", "meta", "expected"),
    [
        (None, None, None),
        ({}, None, {}),
        (None, {"a": 1}, {"_meta": {"a": 1}}),
        ({"cursor": "c"}, {"a": 1}, {"cursor": "c", "_meta": {"a": 1}}),
        ({"_meta": {"a": 1, "b": 1}}, {"b": 2}, {"_meta": {"a": 1, "b": 2}}),
        ({"_meta": {"a": 1}}, None, {"_meta": {"a": 1}}),
    ],
)
def test_meta_is_merged_and_nothing_of_the_caller_is_changed(
    params: Any, meta: Any, expected: Any
) -> None:
    """A caller may use its dicts again."""
    client = ready_client(REVISION)
    before = repr((params, meta))
    client.send_request("tools/list", params, meta=meta)
    (message,) = sent(client)

    assert message.get("params") == expected
    assert ("params" in message) == (expected is not None)
    assert repr((params, meta)) == before


def test_a_method_of_no_revision_is_sent_as_it_is() -> None:
    """Extensions are agreed on between the two applications."""
    pair = Pair(server_config=Config(unknown_methods="deliver"))
    ours = pair.client.send_request('x/"odd"', {"a": 1})
    theirs = pair.deliver_one(RequestReceived).request
    assert theirs.method == 'x/"odd"'
    pair.server.send_result(theirs, {"any": "thing"})

    assert pair.deliver_one(ResponseReceived).request is ours


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"method": "initialize"}, "LIFE-001"),
        ({"method": 5}, "OWN-014"),
        ({"method": "roots/list"}, "OWN-020"),
        ({"method": "tools/call"}, "OWN-014"),
        ({"method": "tools/call", "params": {"name": 5}}, "OWN-014"),
        ({"method": "tools/call", "params": {"name": "x", "_meta": 5}}, "OWN-014"),
        ({"method": "x/y", "params": ["a"]}, "OWN-014"),
        ({"method": "x/y", "params": {"a": b"bytes"}}, "OWN-024"),
        ({"method": "tools/list", "meta": {"a": object()}}, "OWN-024"),
    ],
)
def test_a_request_that_cannot_be_sent_raises_and_changes_nothing(
    arguments: dict[str, Any], rule: str
) -> None:
    """The mistake must be reported to the caller that made it."""
    client = ready_client(REVISION)
    before = canonical(client)

    with pytest.raises(LocalProtocolError) as caught:
        client.send_request(**arguments)
    assert caught.value.rule == rule
    assert canonical(client) == before


def test_initialize_is_sent_by_start_alone() -> None:
    """`send_request` would open a conversation without the connection knowing it."""
    pair = Pair(connected=False)

    with pytest.raises(LocalProtocolError) as caught:
        pair.client.send_request(  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]  # untyped callers
            "initialize", {"protocolVersion": "x", "capabilities": {}, "clientInfo": {}}
        )
    assert caught.value.rule == "OWN-025"


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ({"result": [1]}, "JSON-007"),
        ({"result": None}, "JSON-007"),
        ({}, "JSON-005"),
        ({"result": {"content": []}, "error": {"code": 1, "message": "m"}}, "JSON-006"),
        ({"error": None}, "JSON-008"),
        ({"error": {"code": 1.5, "message": "m"}}, "JSON-008"),
        ({"error": {"code": True, "message": "m"}}, "JSON-008"),
        ({"error": {"code": 1, "message": None}}, "JSON-008"),
        ({"result": {"content": []}, "jsonrpc": "1.0"}, "JSON-001"),
        ({"error": {"code": 1, "message": "m"}, "jsonrpc": 2}, "JSON-001"),
        ({"result": {}}, "OWN-014"),
        ({"result": {"content": {}}}, "OWN-014"),
    ],
)
def test_an_answer_that_is_not_valid_ends_its_request_so(answer: dict[str, Any], rule: str) -> None:
    """A call must neither hang because of an invalid response, nor return it."""
    client = ready_client(REVISION)
    ours = client.send_request("tools/call", ECHO)
    sent(client)
    broken, failed = receive(client, {"jsonrpc": "2.0", "id": ours.id, **answer})

    assert isinstance(broken, ProtocolViolation)
    assert (broken.rule, broken.request) == (rule, ours)
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (ours, FailureReason.INVALID_ANSWER)
    assert sent(client) == []


def test_without_the_check_of_shapes_any_object_is_a_result() -> None:
    """Gateways pass unknown results on."""
    client = ready_client(REVISION, config=Config(check="none"))
    ours = client.send_request("tools/call", ECHO)
    sent(client)

    assert only(ResponseReceived, receive(client, result(ours.id, {}))).result == {}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("id", "echo"), [(7, "7"), ("7", 7), ("7", 7.0)])
def test_an_id_that_changed_its_type_is_matched_unless_strict(
    id: Any, echo: Any, strict: bool
) -> None:
    """Some servers store all ids as strings."""
    client = ready_client(REVISION, config=Config(strict=strict))
    ours = client.send_request("tools/list", id=id)
    sent(client)
    events = receive(client, result(echo, {"tools": []}))

    (broken,) = of(ProtocolViolation, events)
    assert (broken.rule, broken.tolerated) == (("JSON-004", False) if strict else ("OWN-019", True))
    assert ours.open is strict


@pytest.mark.parametrize("id", ["x", "9" * 30, 8, "\u0667", -7])
def test_an_answer_to_nothing_is_ignored(id: Any) -> None:
    """It is unknown which side made the mistake."""
    client = ready_client(REVISION)
    client.send_request("tools/list", id=7)
    sent(client)

    ignored = only(MessageIgnored, receive(client, result(id, {"tools": []})))
    assert (ignored.rule, ignored.id, ignored.method) == ("JSON-004", id, None)


def test_a_server_is_told_of_an_error_without_an_id_too() -> None:
    """A client that could not read a message of the server sends the same kind of error."""
    server = ready_server(REVISION)

    told = receive(server, {"jsonrpc": "2.0", "error": error(1, 5)["error"]})

    assert only(ErrorWithoutIdReceived, told) == ErrorWithoutIdReceived(code=5, message="no")


def test_an_answer_without_a_usable_id() -> None:
    """An error without an id says that a message could not be read, and not which one."""
    client = ready_client(REVISION)
    client.send_request("tools/list")
    sent(client)

    assert only(
        ErrorWithoutIdReceived, receive(client, {"jsonrpc": "2.0", "error": error(1, 5)["error"]})
    ) == ErrorWithoutIdReceived(code=5, message="no")
    odd, received = receive(client, error(None, 5, "no", [1]))
    assert isinstance(odd, ProtocolViolation)
    assert (odd.rule, odd.tolerated) == ("JSON-003", True)
    assert received == ErrorWithoutIdReceived(code=5, message="no", data=[1])
    bads: list[dict[str, Any]] = [
        {"error": {}},
        {"result": {}},
        {"id": True, "result": {}},
        {"error": 1},
    ]
    for bad in bads:
        broken = only(ProtocolViolation, receive(client, {"jsonrpc": "2.0", **bad}))
        assert broken.rule == "JSON-002"
    assert len(client.pending_requests) == 1


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18"])
def test_an_error_without_an_id_is_odd_in_older_revisions(revision: str) -> None:
    """Their schema has no form for it, but the error must still be delivered."""
    client = ready_client(revision)
    odd, received = receive(client, {"jsonrpc": "2.0", "error": error(1, 5)["error"]})

    assert isinstance(odd, ProtocolViolation)
    assert (odd.rule, odd.tolerated) == ("JSON-010", True)
    assert received == ErrorWithoutIdReceived(code=5, message="no")
