"""Failure class 7, answers: invalid ones fail their request, valid ones arrive unchanged."""

from typing import Any

import pytest

from sansmcp import (
    MISSING,
    Codec,
    Config,
    ErrorReceived,
    FailureReason,
    MsgspecCodec,
    ProtocolViolation,
    RequestFailed,
    ResponseReceived,
    StandardCodec,
)
from tests.support.modern import input_required, modern_client
from tests.support.wire import (
    assert_usable,
    broken,
    error,
    of,
    only,
    ready_client,
    receive,
    result,
    sent,
)

INVALID_ANSWERS: dict[str, dict[str, Any]] = {
    "both": {"result": {}, "error": {"code": -32603, "message": "x"}},
    "both, error null": {"result": {"tools": []}, "error": None},
    "both, result null": {"result": None, "error": {"code": 1, "message": "x"}},
    "neither": {},
    "result null": {"result": None},
    "result list": {"result": []},
    "result text": {"result": "ok"},
    "result false": {"result": False},
    "error null": {"error": None},
    "error text": {"error": "x"},
    "error empty": {"error": {}},
    "no code": {"error": {"message": "x"}},
    "code is text": {"error": {"code": "-32603", "message": "x"}},
    "code is a fraction": {"error": {"code": 1.5, "message": "x"}},
    "code is true": {"error": {"code": True, "message": "x"}},
    "no message": {"error": {"code": 1}},
    "message is no text": {"error": {"code": 1, "message": 1}},
    "no jsonrpc": {"result": {"tools": []}, "jsonrpc": None},
    "old jsonrpc": {"error": {"code": 1, "message": "x"}, "jsonrpc": "1.0"},
}


@pytest.mark.parametrize("bad", INVALID_ANSWERS)
def test_an_invalid_answer_fails_its_request(revision: str, bad: str) -> None:
    """Case c118: result and error together counted as success. Case c120: neither of both was
    an empty success, or left the call waiting for ever."""
    client = ready_client(revision)
    request = client.send_request("tools/list")
    sent(client)
    answer = {"jsonrpc": "2.0", "id": request.id, **INVALID_ANSWERS[bad]}
    violation, failed = receive(client, answer)
    assert isinstance(violation, ProtocolViolation)
    assert violation.request is request
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (request, FailureReason.INVALID_ANSWER)
    assert client.pending_requests == ()
    assert_usable(client)


def test_a_message_with_the_id_null_and_nothing_else_is_only_reported(revision: str) -> None:
    """Case c120, its second message: it names no request, so none may end."""
    client = ready_client(revision)
    request = client.send_request("tools/list")
    sent(client)
    only(ProtocolViolation, receive(client, {"jsonrpc": "2.0", "id": None}))
    only(ProtocolViolation, receive(client, {"jsonrpc": "2.0"}))
    assert client.pending_requests == (request,)
    assert_usable(client)


ERRORS: list[tuple[int, Any]] = [
    (-31999, {"k": 1}),
    (-32601, MISSING),
    (-32000, None),
    (-32002, {"uri": "file:///a"}),
    (-32042, {"elicitations": []}),
    (-32800, "cancelled"),
    (0, []),
    (1, 0),
    (2**40, False),
]


@pytest.mark.parametrize(("code", "data"), ERRORS, ids=repr)
def test_an_error_arrives_unchanged(revision: str, code: int, data: Any) -> None:
    """Case c130: codes that the library did not know were mapped to others, and data was lost."""
    client = ready_client(revision)
    request = client.send_request("tools/list")
    sent(client)
    event = only(ErrorReceived, receive(client, error(request.id, code, "custom", data)))
    assert (event.request, event.code, event.message) == (request, code, "custom")
    assert event.data == (None if data is MISSING else data)
    assert_usable(client)


CODECS: list[Codec] = [StandardCodec(), MsgspecCodec()]


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: type(codec).__name__)
@pytest.mark.parametrize(
    "number", [12345678901234567890, 2**53 + 1, -(2**64), 10**200, 0, -7], ids=repr
)
def test_integers_arrive_exactly(revision: str, codec: Codec, number: int) -> None:
    """Case c139: a large integer went through a float and came out as another number."""
    client = ready_client(revision, config=Config(codec=codec))
    request = client.send_request("tools/call", {"name": "t", "arguments": {"n": number}})
    (message,) = sent(client)
    assert message["params"]["arguments"] == {"n": number}
    value: dict[str, Any] = {"content": [], "structuredContent": {"id": number, "in": [[number]]}}
    event = only(ResponseReceived, receive(client, result(request.id, value)))
    assert event.result == value
    assert type(event.result["structuredContent"]["id"]) is int


def test_an_invalid_result_comes_with_the_failure() -> None:
    """Case c274: an undeclared `resultType` is no success, and the result must be shown as it
    came."""
    client = modern_client()
    calls = [client.send_request("tools/call", {"name": "t"}) for _ in range(3)]
    sent(client)
    task = {"resultType": "task", "taskId": "T", "status": "working"}
    cased: dict[str, Any] = {"resultType": "Complete", "content": []}
    known: dict[str, Any] = {"resultType": "complete", "content": [], "x-unknown": {"k": 1}}
    for request, refused in zip(calls, (task, cased), strict=False):
        events = receive(client, result(request.id, refused))
        (failure,) = of(RequestFailed, events)
        assert (failure.request, failure.reason) == (request, FailureReason.INVALID_ANSWER)
        assert failure.result == refused
        assert broken(events) == ["JSON-022"]
    event = only(ResponseReceived, receive(client, result(calls[2].id, known)))
    assert event.result == known


@pytest.mark.parametrize("refused", [[], "ok", False, {"content": "no list"}, {}])
def test_a_result_of_the_wrong_shape_comes_with_the_failure(refused: object) -> None:
    """Neighbour of case c274: the caller needs the result to find the fault."""
    client = ready_client("2025-11-25")
    request = client.send_request("tools/call", {"name": "t"})
    (failure,) = of(RequestFailed, receive(client, result(request.id, refused)))
    assert failure.result == refused


def test_questions_that_are_not_valid_come_with_the_failure() -> None:
    """Neighbour of case c274: the same for a result with questions."""
    client = modern_client()
    request = client.send_request("tools/call", {"name": "t"})
    answer = input_required(request.id, {"q": {"method": "tools/list"}})
    (failure,) = of(RequestFailed, receive(client, answer))
    assert failure.result == answer["result"]


def test_a_failure_without_a_result_has_none() -> None:
    """Neighbour of case c274: without a result the failure must have None."""
    client = ready_client("2025-11-25")
    request = client.send_request("tools/call", {"name": "t"})
    (failure,) = of(RequestFailed, receive(client, {"jsonrpc": "2.0", "id": request.id}))
    assert failure.result is None
