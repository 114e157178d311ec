"""How a client of 2026-07-28 judges results.

Rules: JSON-021 to JSON-023, JSON-004 to JSON-008.
"""

import pytest

from sansmcp import (
    ErrorReceived,
    FailureReason,
    JSONObject,
    MessageIgnored,
    ProtocolViolation,
    RequestFailed,
    ResponseReceived,
)
from tests.support.modern import CACHE, SERVED_BY, complete, input_required, modern_client
from tests.support.wire import error, of, only, receive, result, sent

CALL: JSONObject = {"name": "t"}


def test_result_comes_as_it_was_sent() -> None:
    """Server info and caching hints in a result must reach the caller."""
    client = modern_client()
    client.send_request("resources/read", {"uri": "a:b"})
    value: JSONObject = {
        "contents": [],
        "resultType": "complete",
        "_meta": SERVED_BY,
        **CACHE,
        "x": {"y": 1},
    }
    assert only(ResponseReceived, receive(client, result(2, value))).result == value


@pytest.mark.parametrize("kind", ["COMPLETE", "complete ", "task", True, 0, {}, ["complete"], None])
@pytest.mark.parametrize("method", ["tools/call", "tools/list", "x/extension"])
def test_unknown_kind_of_result_fails_the_request(method: str, kind: object) -> None:
    """A result of an unknown kind must not be delivered as a success (JSON-022)."""
    client = modern_client()
    asked = client.send_request(method, CALL)
    sent(client)
    value: JSONObject = {"resultType": kind, "content": [], "tools": []}
    violation, failed = receive(client, result(2, value))
    assert isinstance(violation, ProtocolViolation)
    assert (violation.rule, violation.request) == ("JSON-022", asked)
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (asked, FailureReason.INVALID_ANSWER)
    assert sent(client) == []


def test_long_kind_is_not_quoted_in_full() -> None:
    """A report must not hold megabytes of the peer's text."""
    client = modern_client()
    client.send_request("tools/call", CALL)
    events = receive(client, result(2, {"resultType": "x" * 10_000}))
    (failed,) = of(RequestFailed, events)
    assert len(failed.text) < 200


@pytest.mark.parametrize(
    "answer",
    [
        {"jsonrpc": "2.0", "id": 2},
        {"jsonrpc": "2.0", "id": 2, "result": None},
        {"jsonrpc": "2.0", "id": 2, "result": [], "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "1.0", "id": 2, "result": {"content": []}},
        {"jsonrpc": "2.0", "id": 2, "error": {"code": "1", "message": "x"}},
        result(2, {"content": {}}),
        result(2, {"resultType": "complete"}),
    ],
)
def test_invalid_answer_is_an_ending(answer: JSONObject) -> None:
    """c118, c120: the caller must not wait for ever after an invalid response."""
    client = modern_client()
    client.send_request("tools/call", CALL)
    (violation, failed) = receive(client, answer)
    assert isinstance(violation, ProtocolViolation)
    assert isinstance(failed, RequestFailed)
    assert failed.reason is FailureReason.INVALID_ANSWER


@pytest.mark.parametrize("code", [-31999, -32002, -32000, -32042, -32020, -32021, -32022, 5])
def test_error_comes_as_it_was_sent(code: int) -> None:
    """c130, c245: no error code has a special meaning once the conversation is open."""
    client = modern_client()
    client.send_request("tools/call", CALL)
    sent(client)
    received = only(ErrorReceived, receive(client, error(2, code, "why", {"k": [1]})))
    assert (received.code, received.message, received.data) == (code, "why", {"k": [1]})
    assert sent(client) == []


def test_ids_are_told_apart_by_their_type() -> None:
    """c004: 7 and "7" are two requests, and each must get its own response."""
    client = modern_client()
    number = client.send_request("tools/call", CALL, id=7)
    text = client.send_request("tools/call", CALL, id="7")
    assert only(ResponseReceived, receive(client, complete("7", {"content": []}))).request is text
    assert number.open
    assert only(ResponseReceived, receive(client, complete(7, {"content": []}))).request is number


def test_answers_to_nothing_are_ignored() -> None:
    """c019: the connection must go on."""
    client = modern_client()
    events = receive(client, result(999, {}), error(998, -32603), input_required(997, {}, "s"))
    assert [type(event) for event in events] == [MessageIgnored] * 3
    assert sent(client) == []
