"""Batches of 2025-03-26: messages are handled one by one, and their responses sent together."""

from typing import Any

import pytest

from sansmcp import (
    CancelCause,
    Config,
    ConnectionClosed,
    ConnectionFailed,
    NotificationReceived,
    ProtocolViolation,
    RequestCancelled,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
)
from sansmcp.testing import drain
from tests.support.wire import (
    call,
    error,
    initialize,
    new_client,
    new_server,
    note,
    of,
    ready_client,
    ready_server,
    receive,
    refusals,
    result,
    sent,
)

REVISION = "2025-03-26"


def server_with(config: Config | None = None) -> ServerConnection:
    return ready_server(REVISION, config=config)


def rules(events: Any) -> list[str]:
    return [event.rule for event in of(ProtocolViolation, events)]


def test_answers_go_out_together_when_the_last_request_has_ended() -> None:
    """The responses must be in the order in which they were made; other output need not wait."""
    server = server_with()
    batch = [call(1, "tools/list"), call(2, "ping"), note("notifications/x"), call(3, "tools/list")]
    events = receive(server, batch)
    assert len(of(NotificationReceived, events)) == 1
    one, three = [event.request for event in of(RequestReceived, events)]
    assert server.send_result(three, {"tools": []})
    assert sent(server) == []
    receive(server, call(4, "ping"))
    assert sent(server) == [result(4, {})]
    assert server.send_error(one, 1, "no")

    (answers,) = sent(server)
    assert [answer["id"] for answer in answers] == [2, 3, 1]


def test_a_batch_of_one_is_answered_by_a_batch() -> None:
    """A batch must be answered with a batch."""
    server = server_with()
    receive(server, [call(1, "ping")])

    assert sent(server) == [[result(1, {})]]


def test_a_batch_without_requests_gets_no_answer() -> None:
    """Not even an empty array may be sent."""
    server = server_with()
    events = receive(server, [note("notifications/x"), result(99, {})])

    assert len(events) == 2
    assert sent(server) == []


def test_a_cancelled_request_is_left_out() -> None:
    """If no response remains, none may be sent."""
    server = server_with()
    cancel = {"requestId": 1}
    receive(server, [call(1, "tools/list"), call(2, "ping")])
    receive(server, note("notifications/cancelled", cancel))
    assert sent(server) == [[result(2, {})]]

    server = server_with()
    events = receive(server, [call(1, "tools/list"), note("notifications/cancelled", cancel)])
    assert of(RequestCancelled, events)[0].cause is CancelCause.PEER
    assert sent(server) == []


def test_answers_of_the_peer_may_come_in_a_batch() -> None:
    """Each response must end its own request."""
    client = ready_client(REVISION)
    calls = [client.send_request("tools/list") for _ in range(3)]
    sent(client)
    events = receive(client, [result(one.id, {"tools": []}) for one in reversed(calls)])

    assert [event.request for event in of(ResponseReceived, events)] == calls[::-1]


def test_errors_with_an_id_join_the_answers() -> None:
    """An error without an id has no form in this revision."""
    server = server_with()
    events = receive(
        server,
        [
            5,
            call(True, "ping"),
            call(1, "x/y"),
            {"jsonrpc": "2.0", "id": 2, "method": 5},
            {"jsonrpc": "2.0", "method": 5},
            initialize(3, REVISION),
            call(4, "ping"),
        ],
    )

    assert rules(events) == ["JSON-001", "JSON-002", "ERR-001", "ERR-001", "BATCH-003"]
    (answers,) = sent(server)
    assert refusals(answers[:-1]) == [(1, -32601), (2, -32600), (3, -32600)]
    assert answers[-1] == result(4, {})


def test_an_empty_batch_and_one_too_long_are_refused_as_a_whole() -> None:
    """None of the messages may be served, and no form of error exists."""
    server = server_with(Config(max_batch=2))
    assert rules(receive(server, [])) == ["BATCH-005"]
    assert rules(receive(server, [call(1, "ping")] * 3)) == ["OWN-006"]
    assert sent(server) == []
    receive(server, [call(1, "ping"), call(2, "ping")])

    assert len(sent(server)[0]) == 2


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_other_revisions_have_none(revision: str) -> None:
    """The newest revisions have a form of error for a batch."""
    server = ready_server(revision)

    assert rules(receive(server, [call(1, "ping")])) == ["BATCH-008"]
    assert [answer["error"]["code"] for answer in sent(server)] == (
        [-32600] if revision == "2025-11-25" else []
    )


def test_before_an_agreement_the_newest_revision_decides() -> None:
    """A server of 2025-03-26 alone must accept a batch of pings."""
    server = new_server(revisions=[REVISION])
    receive(server, [call(1, "ping")])

    assert sent(server) == [[result(1, {})]]


def test_requests_of_a_batch_end_with_their_connection() -> None:
    """Responses that were given before must still be sent."""
    server = server_with()
    receive(server, [call(1, "tools/list"), call(2, "ping"), call(3, "tools/list")])
    server.receive_eof()

    assert len(of(RequestCancelled, drain(server))) == 2
    assert sent(server) == [[result(2, {})]]


def test_a_batch_is_finished_while_draining() -> None:
    """Requests that were read must be answered after the end of the stream, if there is time."""
    server = server_with()
    receive(server, [call(1, "tools/list"), call(2, "tools/list")], now=0)
    requests = server.open_requests
    server.receive_eof(drain=1)
    for request in requests:
        assert server.send_result(request, {"tools": []})

    assert [answer["id"] for answer in sent(server)[0]] == [1, 2]


def test_what_follows_the_end_of_the_connection_in_a_batch_is_nobodys() -> None:
    """`ConnectionClosed` must be the last event, whatever follows in the batch."""
    client = new_client(revisions=[REVISION])
    client.start()
    sent(client)
    events = receive(client, [error(1, -32603), note("notifications/x"), call(1, "ping")])

    assert [type(event) for event in events] == [ConnectionFailed, ConnectionClosed]
    assert sent(client) == []


def test_an_id_in_flight_is_not_refused_in_a_batch_either() -> None:
    """The error would answer the first request."""
    server = server_with()
    receive(server, call(1, "tools/list"))

    assert rules(receive(server, [call(1, "ping"), {"id": 1, "method": 5}])) == [
        "ID-001",
        "ERR-001",
    ]
    assert sent(server) == []
