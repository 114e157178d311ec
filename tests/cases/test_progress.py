"""Failure class 3, progress: tokens of every legal kind; late or foreign ones are harmless."""

from typing import Any

import pytest

from sansmcp import (
    ClientConnection,
    LocalProtocolError,
    MessageIgnored,
    OutgoingRequest,
    ProgressReceived,
    ProtocolViolation,
    RequestReceived,
    ResponseReceived,
)
from tests.support.wire import (
    asked,
    assert_usable,
    broken,
    call,
    note,
    of,
    only,
    ready_client,
    ready_server,
    receive,
    refusals,
    result,
    sent,
)

Token = int | str


def tool_call(id: object, token: object) -> dict[str, Any]:
    return call(id, "tools/call", {"name": "t", "_meta": {"progressToken": token}})


def progress(token: object, value: object, **more: object) -> dict[str, Any]:
    return note("notifications/progress", {"progressToken": token, "progress": value, **more})


def asking(client: ClientConnection, token: Token) -> OutgoingRequest:
    """An open call with this progress token."""
    request = client.send_request("tools/call", {"name": "t"}, meta={"progressToken": token})
    (message,) = sent(client)
    assert message["params"] == {"name": "t", "_meta": {"progressToken": token}}
    assert request.progress_token == token
    return request


@pytest.mark.parametrize("token", ["", 0, "0", -1, "é\n", 2**53 + 1], ids=repr)
def test_progress_goes_out_under_any_legal_token(revision: str, token: Token) -> None:
    """Case c048: the tokens "" and 0 were taken for absent, and no progress was ever sent."""
    server = ready_server(revision)
    request = asked(server, tool_call(1, token))
    assert request.progress_token == token
    assert server.send_progress(request, 1) is True
    assert sent(server) == [progress(token, 1)]


def test_without_a_token_no_progress_goes_out(revision: str) -> None:
    """Neighbour of case c048: the request has no token, so no progress can be sent."""
    server = ready_server(revision)
    request = asked(server, call(1, "tools/call", {"name": "t", "_meta": {}}))
    assert request.progress_token is None
    assert server.send_progress(request, 1) is False
    assert_usable(server)


@pytest.mark.parametrize(
    ("token", "foreign"), [(3, "3"), ("3", 3), (0, ""), ("", 0), (3, 4)], ids=repr
)
def test_progress_under_a_foreign_token_is_ignored(
    revision: str, token: Token, foreign: Token
) -> None:
    """Case c049: an unknown token ended the connection, or reached the wrong call."""
    client = ready_client(revision)
    request = asking(client, token)
    event = only(MessageIgnored, receive(client, progress(foreign, 1)))
    assert (event.id, event.method) == (foreign, "notifications/progress")
    assert client.pending_requests == (request,)
    assert_usable(client)
    assert only(ProgressReceived, receive(client, progress(token, 1))).request is request


@pytest.mark.parametrize("token", [True, 1.5, None, [3], {}], ids=repr)
def test_progress_under_no_token_at_all_is_reported(revision: str, token: Any) -> None:
    """Neighbour of case c049: `true` must not stand for the token 1."""
    client = ready_client(revision)
    asking(client, 1)
    assert only(ProtocolViolation, receive(client, progress(token, 1))).rule == "PROG-001"
    assert_usable(client)


def test_progress_after_the_answer_is_ignored(revision: str) -> None:
    """Case c051: the last progress came behind the answer and was treated as a fault."""
    client = ready_client(revision)
    request = asking(client, 3)
    only(ResponseReceived, receive(client, result(request.id, {"content": []})))
    late = progress(3, 3, total=4, message="sending")
    assert only(MessageIgnored, receive(client, late)).id == 3
    assert_usable(client)


def test_fractions_and_progress_beyond_the_total_are_delivered(revision: str) -> None:
    """Case c054: a client allowed integers only, or refused more than the total."""
    client = ready_client(revision)
    request = asking(client, "a")
    values = [(-1, None), (0, 0), (0.2, 1), (1.5, 1), (2, 0.5), (2**53 + 1, 10)]
    for value, total in values:
        more = {} if total is None else {"total": total}
        event = only(ProgressReceived, receive(client, progress("a", value, **more)))
        assert (event.request, event.progress, event.total) == (request, value, total)


@pytest.mark.parametrize("value", [1, 0.5, 1.0], ids=repr)
def test_progress_that_does_not_increase_is_reported_and_not_delivered(
    revision: str, value: float
) -> None:
    """Neighbour of case c054: each value must be larger than the last."""
    client = ready_client(revision)
    asking(client, "a")
    receive(client, progress("a", 1))
    assert only(ProtocolViolation, receive(client, progress("a", value))).rule == "PROG-003"
    only(ProgressReceived, receive(client, progress("a", 1.1)))
    assert_usable(client)


@pytest.mark.parametrize(("token", "again"), [("a", "a"), (0, 0), (7, 7.0), ("", "")], ids=repr)
def test_a_token_in_use_is_refused_locally(revision: str, token: Token, again: Any) -> None:
    """Case c055: two calls shared a token, and the progress of one was shown for the other."""
    client = ready_client(revision)
    request = asking(client, token)
    meta = {"progressToken": again}
    with pytest.raises(LocalProtocolError) as caught:
        client.send_request("tools/call", {"name": "t"}, meta=meta)
    assert caught.value.rule == "PROG-002"
    with pytest.raises(LocalProtocolError) as caught:
        client.send_request("tools/call", {"name": "t", "_meta": meta})
    assert caught.value.rule == "PROG-002"
    assert client.pending_requests == (request,)
    assert_usable(client)


def test_a_token_may_be_used_again_after_the_end_of_its_request(revision: str) -> None:
    """Neighbour of case c055: unique among requests in flight, not for ever."""
    client = ready_client(revision)
    receive(client, result(asking(client, "a").id, {"content": []}))
    client.cancel(asking(client, "a"))
    sent(client)
    asking(client, "a")


def test_tokens_of_the_librarys_choice_avoid_those_in_use(revision: str) -> None:
    """Neighbour of case c055: `progress=True` must not pick a token given by hand before."""
    client = ready_client(revision)
    tokens: list[Any] = [asking(client, token).progress_token for token in (2, 3, 4, "4")]
    tokens += [client.send_request("tools/list", progress=True).progress_token for _ in range(4)]
    assert len({repr(token) for token in tokens}) == 8


def test_a_second_request_under_a_token_in_use_is_served_without_progress(revision: str) -> None:
    """Case c056: the client broke uniqueness; progress of both would be mixed up."""
    server = ready_server(revision)
    first = asked(server, tool_call(1, "a"))
    assert server.send_progress(first, 1)
    violation, received = receive(server, tool_call(2, "a"))
    assert isinstance(violation, ProtocolViolation)
    assert (violation.rule, violation.tolerated) == ("PROG-002", True)
    assert isinstance(received, RequestReceived)
    second = received.request
    assert second.progress_token is None
    sent(server)
    assert server.send_progress(second, 9) is False
    assert server.send_progress(first, 2) is True
    assert server.send_result(second, {"content": []})
    assert server.send_progress(first, 3) is True
    assert sent(server) == [progress("a", 2), result(2, {"content": []}), progress("a", 3)]


def test_progress_stops_with_the_answer(revision: str) -> None:
    """Case c058: a handler that went on after its answer kept sending."""
    server = ready_server(revision)
    answered = asked(server, tool_call(1, "a"))
    refused = asked(server, tool_call(2, "b"))
    gone = asked(server, tool_call(3, "c"))
    assert server.send_result(answered, {"content": []})
    assert server.send_error(refused, -32000, "no")
    receive(server, note("notifications/cancelled", {"requestId": 3}))
    sent(server)
    for request in (answered, refused, gone):
        assert server.send_progress(request, 9) is False
    assert_usable(server)


@pytest.mark.parametrize("token", [True, False, 1.5, None, [], {}, ["a"]], ids=repr)
def test_a_request_with_an_illegal_token_is_refused(revision: str, token: Any) -> None:
    """Case c059: the token came back in progress that no client could match, or was used as a
    key and crashed the server."""
    server = ready_server(revision)
    events = receive(server, tool_call(1, token), tool_call("2", token))
    assert broken(events) == ["PROG-001", "PROG-001"]
    assert not of(RequestReceived, events)
    assert refusals(sent(server)) == [(1, -32602), ("2", -32602)]
    assert_usable(server)


@pytest.mark.parametrize("token", [True, 1.5, None, []], ids=repr)
def test_an_illegal_token_is_refused_locally(revision: str, token: Any) -> None:
    """Case c059 from the other side: our caller may not send one either."""
    client = ready_client(revision)
    with pytest.raises(LocalProtocolError) as caught:
        client.send_request("tools/call", {"name": "t"}, meta={"progressToken": token})
    assert caught.value.rule == "PROG-001"
    assert_usable(client)
