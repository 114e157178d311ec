"""Failure class 7, batches: served in one revision, refused as a whole in the others."""

from typing import Any

import pytest

from sansmcp import (
    MISSING,
    NotificationReceived,
    Phase,
    ProtocolViolation,
    RequestAnswered,
    RequestReceived,
    ResponseReceived,
)
from tests.support.wire import (
    assert_usable,
    broken,
    call,
    initialize,
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


def test_all_of_a_batch_is_served(revision: str) -> None:
    """Case c111: an array was refused where receiving batches is a must, or the notification in
    it was answered. Case c112: elsewhere it is refused once, and nothing in it is served."""
    server = ready_server(revision)
    events = receive(server, [call(1, "ping"), note("notifications/x"), call(2, "ping")])
    if revision == "2025-03-26":
        kinds = [RequestAnswered, NotificationReceived, RequestAnswered]
        assert [type(event) for event in events] == kinds
        assert sent(server) == [[result(1, {}), result(2, {})]]
    else:
        violation = only(ProtocolViolation, events)
        assert (violation.rule, violation.code) == ("BATCH-008", -32600)
        assert refusals(sent(server)) == without_id(revision, -32600)
    assert_usable(server)


def test_a_refused_batch_does_not_block_the_next_request(revision: str) -> None:
    """Case c112: the message behind the array was lost with it."""
    server = ready_server(revision)
    batch = [call(1, "ping"), call(2, "ping")]
    (received,) = of(RequestReceived, receive(server, batch, call(3, "tools/list")))
    assert received.request.id == 3
    assert server.open_requests == (received.request,)


@pytest.mark.parametrize(
    "batch", [[], [note("notifications/x")], [[call(1, "ping")]], [result(1, {})]], ids=repr
)
def test_what_is_in_a_refused_batch_does_not_matter(batch: list[Any]) -> None:
    """Neighbour of case c112: there must be one refusal, whatever the batch contains."""
    server = ready_server("2025-11-25")
    only(ProtocolViolation, receive(server, batch))
    assert refusals(sent(server)) == [(MISSING, -32600)]
    assert_usable(server)


def test_a_client_never_answers_a_batch_that_it_refuses(revision: str) -> None:
    """Neighbour of case c112: outside of 2025-03-26 a batch is noise for a client."""
    client = ready_client(revision)
    events = receive(client, [call(1, "ping"), note("notifications/x")])
    if revision == "2025-03-26":
        assert sent(client) == [[result(1, {})]]
    else:
        only(ProtocolViolation, events)
    assert_usable(client)


def test_a_batch_of_notifications_and_answers_gets_no_answer() -> None:
    """Neighbour of case c111: not even an empty array."""
    server = ready_server("2025-03-26")
    request = server.send_request("roots/list")
    sent(server)
    events = receive(server, [note("notifications/x"), result(request.id, {"roots": []})])
    assert [type(event) for event in events] == [NotificationReceived, ResponseReceived]
    assert_usable(server)


def test_initialize_is_refused_in_a_batch_by_the_revision_that_has_batches() -> None:
    """Case c114: the batch opened a session, with messages in it that came too early."""
    server = new_server(revisions=["2025-03-26"])
    events = receive(server, [initialize(1, "2025-03-26"), call(2, "tools/list")])
    assert broken(events) == ["BATCH-003", "LIFE-005"]
    (answers,) = sent(server)
    assert refusals(answers) == [(1, -32600), (2, -32600)]
    assert (server.phase, server.revision) == (Phase.NEW, None)
    only(RequestAnswered, receive(server, initialize(3, "2025-03-26")))


def test_initialize_is_refused_in_a_batch_before_a_revision_is_agreed(revision: str) -> None:
    """Case c114 for a server that speaks newer revisions as well: the newest decides the form."""
    server = new_server()
    only(ProtocolViolation, receive(server, [initialize(1, revision), call(2, "tools/list")]))
    assert refusals(sent(server)) == [(MISSING, -32600)]
    assert (server.phase, server.revision) == (Phase.NEW, None)
    only(RequestAnswered, receive(server, initialize(3, revision)))


@pytest.mark.parametrize("junk", [1, {"foo": "bar"}, "x", None, [], [1], True, {}], ids=repr)
def test_a_batch_is_judged_element_by_element(junk: Any) -> None:
    """Case c116: one bad element spoiled the good ones beside it."""
    server = ready_server("2025-03-26")
    events = receive(server, [junk, call(2, "ping"), {"foo": "bar"}])
    violations = of(ProtocolViolation, events)
    assert [event.code for event in violations] == [-32600, -32600]
    assert sent(server) == [[result(2, {})]]
    assert_usable(server)


def test_refusals_with_an_id_join_the_answers_of_their_batch() -> None:
    """Neighbour of case c116: an element whose id can be read is answered in the array."""
    server = ready_server("2025-03-26")
    bad = {"jsonrpc": "2.0", "id": 1, "method": 7}
    old = {**call(3, "ping"), "jsonrpc": "1.0"}
    receive(server, [bad, call(2, "ping"), old, call(4, "no/such")])
    (answers,) = sent(server)
    assert result(2, {}) in answers
    assert sorted(refusals(answer for answer in answers if "error" in answer)) == [
        (1, -32600),
        (3, -32600),
        (4, -32601),
    ]
