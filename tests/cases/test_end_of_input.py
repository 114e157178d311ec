"""Failure class 6, the end of input: cut messages, requests still served, dropped responses."""

import pytest

from sansmcp import (
    CancelCause,
    CloseCause,
    ConnectionClosed,
    FailureReason,
    ProtocolViolation,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    State,
)
from tests.support.wire import (
    broken,
    call,
    drain,
    of,
    only,
    ready_client,
    ready_server,
    receive,
    result,
    sent,
    wire,
)


@pytest.mark.parametrize("cut", [1, 10, 28])
def test_a_cut_last_line_is_reported_and_requests_end(revision: str, cut: int) -> None:
    """Case c105: the server died in the middle of its answer, and the call hung."""
    client = ready_client(revision)
    request = client.send_request("tools/list")
    sent(client)
    assert not receive(client, wire(result(request.id, {"tools": []}))[:cut])
    client.receive_eof()
    *violations, failed, closed = drain(client)
    assert "OWN-018" in broken(violations)
    assert all(isinstance(event, ProtocolViolation) for event in violations)
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (request, FailureReason.LOST)
    assert isinstance(closed, ConnectionClosed)
    assert closed.cause is CloseCause.EOF
    assert client.state is State.CLOSED


@pytest.mark.parametrize("rest", [b"", b"\r", b"  "], ids=repr)
def test_a_whole_last_line_without_newline_is_delivered(revision: str, rest: bytes) -> None:
    """Case c106: the response was complete, and was discarded because the newline was missing."""
    client = ready_client(revision)
    request = client.send_request("tools/list")
    sent(client)
    assert not receive(client, wire(result(request.id, {"tools": []}))[:-1] + rest)
    client.receive_eof()
    *violations, answer, closed = drain(client)
    assert broken(violations)[:1] == ["OWN-018"]
    assert all(event.tolerated for event in of(ProtocolViolation, violations))
    assert isinstance(answer, ResponseReceived)
    assert answer.request is request
    assert isinstance(closed, ConnectionClosed)


def test_a_whole_last_request_without_newline_is_served_while_draining(revision: str) -> None:
    """Case c106 for a server: `printf '...' | server` prints its answer."""
    server = ready_server(revision)
    server.receive_data(wire(call(1, "tools/list"))[:-1], now=0)
    server.receive_eof(drain=1)
    (received,) = of(RequestReceived, drain(server))
    assert server.send_result(received.request, {"tools": []})
    assert sent(server) == [result(1, {"tools": []})]
    only(ConnectionClosed, drain(server))


def served(revision: str) -> tuple[ServerConnection, RequestReceived]:
    """A server that handles request 1 when its input ends."""
    server = ready_server(revision)
    (received,) = of(RequestReceived, receive(server, call(1, "tools/list"), now=0))
    return server, received


def test_at_the_end_of_input_requests_are_cancelled_and_answers_dropped(revision: str) -> None:
    """Case c268: a handler answered after the end of input, and crashed on the closed stream."""
    server, received = served(revision)
    server.receive_eof()
    cancelled, closed = drain(server)
    assert isinstance(cancelled, RequestCancelled)
    assert (cancelled.request, cancelled.cause) == (received.request, CancelCause.EOF)
    assert isinstance(closed, ConnectionClosed)
    assert server.send_result(received.request, {"tools": []}) is False
    assert server.send_error(received.request, -32000, "late") is False
    assert server.send_progress(received.request, 1) is False
    assert server.data_to_send() == b""
    assert not drain(server)


def test_what_was_queued_before_the_end_of_input_still_goes_out(revision: str) -> None:
    """Case c268: an answer given in time was lost with the half-closed connection."""
    server, received = served(revision)
    assert server.send_result(received.request, {"tools": []})
    server.receive_eof()
    assert sent(server) == [result(1, {"tools": []})]
    only(ConnectionClosed, drain(server))


def test_with_a_drain_time_requests_already_read_are_answered(revision: str) -> None:
    """Case c268, the policy: `cat file | server` prints every answer."""
    server, received = served(revision)
    (second,) = of(RequestReceived, receive(server, call(2, "tools/list")))
    server.receive_eof(drain=1, now=10)
    assert not drain(server)
    assert server.send_result(received.request, {"tools": []}) is True
    assert server.send_result(second.request, {"tools": []}) is True
    assert sent(server) == [result(1, {"tools": []}), result(2, {"tools": []})]
    assert only(ConnectionClosed, drain(server)).cause is CloseCause.EOF


def test_the_drain_time_is_not_exceeded(revision: str) -> None:
    """Case c268: a server that waits for a handler for ever never exits."""
    server, received = served(revision)
    server.receive_eof(drain=1, now=10)
    assert server.next_timeout() == 11
    server.handle_timeout(11)
    cancelled, closed = drain(server)
    assert isinstance(cancelled, RequestCancelled)
    assert cancelled.cause is CancelCause.EOF
    assert isinstance(closed, ConnectionClosed)
    assert server.send_result(received.request, {"tools": []}) is False
