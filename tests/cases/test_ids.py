"""Failure class 1, request ids: types kept apart, echoed unchanged, illegal ones refused."""

from typing import Any

import pytest

from sansmcp import (
    MISSING,
    ErrorReceived,
    MessageIgnored,
    NotificationReceived,
    ProtocolViolation,
    RequestAnswered,
    RequestReceived,
    ResponseReceived,
)
from tests.support.wire import (
    SAMPLING,
    SERVER_CAPABILITIES,
    asked,
    assert_usable,
    call,
    error,
    new_server,
    note,
    of,
    only,
    ready_client,
    ready_server,
    receive,
    refusals,
    result,
    sent,
    without_id,
)

LEGAL: list[Any] = [
    "1",
    1,
    "01",
    " 1",
    "1.0",
    0,
    "",
    -1,
    "null",
    "true",
    'é\u2028\n"\\',
    "\ud800",
    2**31,
    2**53 + 1,
    -(2**53) - 1,
    2**64 + 1,
    10**100 + 1,
]
ILLEGAL: list[Any] = [20050.5, 0.5, -1.5, 1e-7, True, False, None, [1], [], {"a": 1}, {}, [[]]]


@pytest.mark.parametrize("id", LEGAL, ids=repr)
def test_an_answer_repeats_the_id_with_its_type(revision: str, id: Any) -> None:
    """Case c001: the string "1" became the number 1, and the client never found its request.
    Cases c011 and c013: large integers were rounded; 0 and "" were taken for no id at all."""
    server = ready_server(revision)
    request = asked(server, call(id, "tools/list"))
    assert server.send_result(request, {"tools": []})
    assert sent(server) == [result(id, {"tools": []})]
    # What the core answers by itself takes another way.
    assert only(RequestAnswered, receive(server, call(id, "ping"))[-1:]).request.id == id
    (pong,) = sent(server)
    assert (type(pong["id"]), pong) == (type(id), result(id, {}))


def test_the_bytes_of_an_id_are_echoed(revision: str) -> None:
    """Case c001 and c011, byte for byte: a decoder on the other side may be stricter than ours."""
    server = ready_server(revision)
    for text in (b'"1"', b"1", b"9007199254740993", b"-0", b"1.0", b'""'):
        receive(server, b'{"jsonrpc":"2.0","id":%b,"method":"ping"}\n' % text)
        echoed = b"0" if text == b"-0" else text  # the same integer, and JSON knows only one zero
        assert b'"id":%b,' % echoed in server.data_to_send()


@pytest.mark.parametrize("id", ILLEGAL, ids=repr)
def test_a_request_with_an_illegal_id_is_refused(revision: str, id: Any) -> None:
    """Cases c005 and c010: a fraction, a list or an object as id crashed the table of requests,
    or came back in an answer that no client could read."""
    server = ready_server(revision)
    violation = only(ProtocolViolation, receive(server, call(id, "tools/list")))
    assert (violation.rule, violation.code) == ("JSON-002", -32600)
    assert not violation.fatal
    assert not server.open_requests
    assert refusals(sent(server)) == without_id(revision, -32600)
    assert_usable(server)


@pytest.mark.parametrize("id", ILLEGAL, ids=repr)
def test_before_the_handshake_the_newest_revision_decides_how_to_refuse(
    revision: str, id: Any
) -> None:
    """Case c005: no revision is agreed yet, and the refusal still needs a form."""
    server = new_server(revisions=[revision])
    only(ProtocolViolation, receive(server, call(id, "ping")))
    assert refusals(sent(server)) == without_id(revision, -32600)
    assert_usable(server)


def test_two_illegal_ids_do_not_end_the_connection(revision: str) -> None:
    """Case c010: one read with a list, an object and a good id; the last was lost."""
    server = ready_server(revision)
    events = receive(server, call([1], "ping"), call({"a": 1}, "ping"), call(2, "ping"))
    assert [type(event) for event in events] == [
        ProtocolViolation,
        ProtocolViolation,
        RequestAnswered,
    ]
    *refused, pong = sent(server)
    assert refusals(refused) == without_id(revision, -32600, -32600)
    assert pong == result(2, {})


@pytest.mark.parametrize("id", ILLEGAL, ids=repr)
def test_an_answer_with_an_illegal_id_answers_nothing(revision: str, id: Any) -> None:
    """Neighbour of case c005 on the other side: `true` must not answer request 1."""
    client = ready_client(revision)
    waiting = client.send_request("tools/list", id=10)
    also = client.send_request("tools/list", id="1")
    sent(client)
    receive(client, result(id, {"tools": []}))
    assert client.pending_requests == (waiting, also)
    assert not sent(client)
    assert_usable(client)


@pytest.mark.parametrize(("answered", "waiting"), [("7", 7), (7, "7")], ids=repr)
def test_an_answer_ends_the_request_whose_id_has_the_same_type(
    revision: str, answered: int | str, waiting: int | str
) -> None:
    """Case c004: 7 and "7" were one key, and the wrong request ended."""
    client = ready_client(revision)
    calls = {id: client.send_request("tools/list", id=id) for id in (7, "7")}
    event = only(ResponseReceived, receive(client, result(answered, {"tools": []})))
    assert event.request is calls[answered]
    assert client.pending_requests == (calls[waiting],)
    event = only(ResponseReceived, receive(client, result(waiting, {"tools": []})))
    assert event.request is calls[waiting]


def test_a_float_that_is_an_integer_is_that_integer(revision: str) -> None:
    """Neighbour of case c004: JSON has one kind of number, and some peers write 7 as 7.0."""
    client = ready_client(revision)
    calls = {id: client.send_request("tools/list", id=id) for id in (7, "7", "7.0")}
    event = only(ResponseReceived, receive(client, result(7.0, {"tools": []})))
    assert event.request is calls[7]


def test_answers_to_nothing_are_ignored(revision: str) -> None:
    """Case c019: an unknown id raised in the reader, and all that followed was lost."""
    client = ready_client(revision)
    events = receive(
        client,
        result(999, {}),
        error(998, -32603, "late"),
        result("x", {"tools": []}),
        result(-5, {}),
        note("notifications/tools/list_changed"),
    )
    ignored = of(MessageIgnored, events)
    assert [(event.id, event.method) for event in ignored] == [
        (999, None),
        (998, None),
        ("x", None),
        (-5, None),
    ]
    assert only(NotificationReceived, events[4:]).method == "notifications/tools/list_changed"
    assert_usable(client)


def test_an_answer_with_the_id_of_a_finished_request_ends_no_other(revision: str) -> None:
    """Case c021: the answer carried the id of `initialize`, long finished, and was given to the
    only request in flight."""
    client = ready_client(revision)
    waiting = client.send_request("tools/list")
    (request,) = sent(client)
    finished = request["id"] - 1
    event = only(MessageIgnored, receive(client, result(finished, {"tools": []})))
    assert event.id == finished
    assert client.pending_requests == (waiting,)
    ended = only(ResponseReceived, receive(client, result(waiting.id, {"tools": []})))
    assert ended.request is waiting


@pytest.mark.parametrize("id", [None, MISSING], ids=["null", "missing"])
def test_an_answer_without_id_is_not_guessed_to_be_the_only_one_awaited(
    revision: str, id: Any
) -> None:
    """Neighbour of case c021: one request in flight is no reason to take any answer for its."""
    client = ready_client(revision)
    waiting = client.send_request("tools/list")
    sent(client)
    answer = result(id, {"tools": []})
    if id is MISSING:
        del answer["id"]
    only(ProtocolViolation, receive(client, answer))
    assert client.pending_requests == (waiting,)
    assert_usable(client)


def test_the_two_directions_have_ids_of_their_own(revision: str) -> None:
    """Case c022: the server asked under the id of the client's own call, and the client's answer
    ended its own call."""
    client = ready_client(revision)
    own = client.send_request("tools/call", {"name": "t"})
    sent(client)
    theirs = only(
        RequestReceived, receive(client, call(own.id, "sampling/createMessage", SAMPLING))
    ).request
    assert client.send_error(theirs, -32603, "no")
    assert sent(client) == [error(own.id, -32603, "no")]
    assert client.pending_requests == (own,)
    content = [{"type": "text", "text": "ok"}]
    ended = only(ResponseReceived, receive(client, result(own.id, {"content": content})))
    assert ended.request is own
    assert ended.result == {"content": content}


def test_the_two_directions_have_ids_of_their_own_on_a_server(revision: str) -> None:
    """Case c022 from the other side."""
    server = ready_server(revision)
    own = server.send_request("roots/list")
    theirs = asked(server, call(own.id, "tools/list"))
    sent(server)
    refused = only(ErrorReceived, receive(server, error(own.id, -32601, "no roots")))
    assert refused.request is own
    assert server.open_requests == (theirs,)
    assert server.send_result(theirs, {"tools": []})
    assert sent(server) == [result(own.id, {"tools": []})]


def test_large_and_empty_ids_of_ours_come_back(revision: str) -> None:
    """Cases c011 and c013 for requests that we send."""
    client = ready_client(revision, server=SERVER_CAPABILITIES)
    for id in ("", 2**53 + 1, 2**64 + 1):
        request = client.send_request("tools/list", id=id)
        assert [message["id"] for message in sent(client)] == [id]
        ended = only(ResponseReceived, receive(client, result(id, {"tools": []})))
        assert ended.request is request
