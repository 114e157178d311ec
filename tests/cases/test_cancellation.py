"""Failure class 2, cancellation: lost races are quiet, and nothing is answered twice."""

from typing import Any

import pytest

from sansmcp import (
    MISSING,
    CancelCause,
    ConnectionClosed,
    ConnectionFailed,
    FailureCause,
    FailureReason,
    LocalProtocolError,
    MessageIgnored,
    ProgressReceived,
    ProtocolViolation,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    State,
)
from tests.support.wire import (
    SAMPLED,
    SAMPLING,
    asked,
    assert_usable,
    call,
    drain,
    error,
    new_client,
    note,
    only,
    ready_client,
    ready_server,
    receive,
    result,
    sent,
)

TOOL_CALL: dict[str, Any] = {"name": "t", "arguments": {}}


def cancelled(id: object, **more: object) -> dict[str, Any]:
    return note("notifications/cancelled", {"requestId": id, **more})


def test_a_cancellation_after_the_answer_is_ignored(revision: str) -> None:
    """Case c026: the cancel crossed the answer, and the server raised or answered again."""
    server = ready_server(revision)
    request = asked(server, call(5, "tools/call", TOOL_CALL))
    assert server.send_result(request, {"content": []})
    sent(server)
    event = only(MessageIgnored, receive(server, cancelled(5)))
    assert (event.id, event.method) == (5, "notifications/cancelled")
    assert_usable(server)


def test_a_cancellation_after_an_error_or_a_refusal_is_ignored(revision: str) -> None:
    """Neighbour of case c026: the answer was an error, ours or the application's."""
    server = ready_server(revision)
    assert server.send_error(asked(server, call(1, "tools/call", TOOL_CALL)), -32000, "no")
    receive(server, call(2, "no/such"), call(3, "ping"))
    sent(server)
    for id in (1, 2, 3):
        only(MessageIgnored, receive(server, cancelled(id)))
    assert_usable(server)


def test_a_second_cancellation_is_ignored(revision: str) -> None:
    """Neighbour of case c026: a client that retries its cancel must not cancel twice."""
    server = ready_server(revision)
    asked(server, call(5, "tools/call", TOOL_CALL))
    only(RequestCancelled, receive(server, cancelled(5)))
    only(MessageIgnored, receive(server, cancelled(5)))
    assert_usable(server)


def test_a_cancellation_of_nothing_is_ignored_by_either_side(revision: str) -> None:
    """Neighbour of case c026: an id that was never used, or that only the other side uses."""
    server = ready_server(revision)
    own = server.send_request("roots/list")
    sent(server)
    only(MessageIgnored, receive(server, cancelled(own.id)))
    only(MessageIgnored, receive(server, cancelled("never")))
    assert server.pending_requests == (own,)
    assert_usable(server)

    client = ready_client(revision)
    own = client.send_request("tools/list")
    sent(client)
    only(MessageIgnored, receive(client, cancelled(own.id)))
    assert client.pending_requests == (own,)
    assert_usable(client)


MALFORMED: list[Any] = [
    {},
    {"requestId": [1]},
    MISSING,
    None,
    {"requestId": None},
    {"requestId": True},
    {"requestId": 1.5},
    {"requestId": {"id": 1}},
    {"requestid": 1},
    {"id": 1},
    [1],
    "1",
    1,
    {"reason": "no id"},
]


@pytest.mark.parametrize("params", MALFORMED, ids=repr)
def test_a_malformed_cancellation_is_reported_and_ignored(revision: str, params: Any) -> None:
    """Case c028: a cancel without a usable id raised, or cancelled whatever was first."""
    server = ready_server(revision)
    request = asked(server, call(1, "tools/call", TOOL_CALL))
    events = receive(server, note("notifications/cancelled", params))
    # `params: null` is reported as such, and then again for the id that is missing.
    assert [type(event) for event in events] == [ProtocolViolation] * (2 if params is None else 1)
    assert request.open
    assert not sent(server)
    assert server.send_result(request, {"content": []})
    assert sent(server) == [result(1, {"content": []})]


def test_a_reason_that_is_no_string_does_not_spoil_a_cancellation(revision: str) -> None:
    """Neighbour of case c028: the id is valid, so the request must stop."""
    server = ready_server(revision)
    for id, reason in ((1, "user"), (2, None), (3, 7), (4, {"why": "x"})):
        request = asked(server, call(id, "tools/call", TOOL_CALL))
        event = receive(server, cancelled(id, reason=reason))[-1]
        assert isinstance(event, RequestCancelled)
        assert event.request is request
        assert event.reason == (reason if reason == "user" else None)


def test_initialize_is_not_cancelled_by_the_client(revision: str) -> None:
    """Case c031: a connect attempt was given up with a cancellation, which the specification
    forbids; here there is no way to send one."""
    client = new_client(revisions=[revision])
    start = client.start()
    (first,) = sent(client)
    assert client.pending_requests == ()
    with pytest.raises(LocalProtocolError) as caught:
        client.cancel(start)
    assert caught.value.rule == "CANC-004"
    assert start.open
    with pytest.raises(LocalProtocolError) as caught:
        client.send_notification("notifications/cancelled", {"requestId": first["id"]})
    assert caught.value.rule == "OWN-025"
    assert client.data_to_send() == b""
    client.close()
    assert client.data_to_send() == b""


def test_an_initialize_that_times_out_ends_the_connection_without_a_cancellation(
    revision: str,
) -> None:
    """Cases c031 and c036: no cancellation may be sent for `initialize`; the attempt ends
    locally instead."""
    client = new_client(revisions=[revision])
    start = client.start(timeout=30, now=0)
    (first,) = sent(client)
    client.handle_timeout(30)
    failed, closed = drain(client)
    assert isinstance(failed, ConnectionFailed)
    assert (failed.start, failed.cause) == (start, FailureCause.TIMED_OUT)
    assert isinstance(closed, ConnectionClosed)
    assert client.data_to_send() == b""
    assert client.state is State.CLOSED
    assert not receive(client, result(first["id"], {}))


def test_a_cancellation_of_initialize_is_ignored_by_the_server(revision: str) -> None:
    """Case c031 from the other side: the handshake must stand, whatever the client sends."""
    server = ready_server(revision)
    only(MessageIgnored, receive(server, cancelled("hello")))
    assert server.revision == revision
    assert_usable(server)


@pytest.mark.parametrize("id", [0, "", "0", -1], ids=repr)
def test_any_legal_id_can_be_cancelled(revision: str, id: int | str) -> None:
    """Case c033: the id 0 was taken for no id, and the request ran on."""
    server = ready_server(revision)
    request = asked(server, call(id, "tools/call", TOOL_CALL))
    event = only(RequestCancelled, receive(server, cancelled(id, reason="user")))
    assert (event.request, event.cause, event.reason) == (request, CancelCause.PEER, "user")
    assert server.send_result(request, {"content": []}) is False
    assert server.send_error(request, -32000, "cancelled") is False
    assert server.send_progress(request, 1) is False
    assert_usable(server)


@pytest.mark.parametrize(("id", "named"), [("5", 5), (5, "5"), (1, "1"), ("", 0)], ids=repr)
def test_a_cancellation_names_an_id_of_the_same_type(
    revision: str, id: int | str, named: int | str
) -> None:
    """Case c034: the integer 5 cancelled the request "5"."""
    server = ready_server(revision)
    request = asked(server, call(id, "tools/call", TOOL_CALL))
    only(MessageIgnored, receive(server, cancelled(named)))
    assert request.open
    assert server.send_result(request, {"content": []})
    assert sent(server) == [result(id, {"content": []})]


def test_a_cancellation_does_not_overtake_its_request(revision: str) -> None:
    """Case c035: both came in one read, and the cancel was handled first and lost."""
    server = ready_server(revision)
    received, event = receive(server, call(7, "tools/call", TOOL_CALL), cancelled(7))
    assert isinstance(received, RequestReceived)
    assert isinstance(event, RequestCancelled)
    assert event.request is received.request
    assert received.request.id == 7
    assert server.send_result(received.request, {"content": []}) is False
    assert_usable(server)


def test_a_request_that_times_out_is_cancelled_once_and_its_late_answer_ignored(
    revision: str,
) -> None:
    """Case c036: the entry leaked, or the late answer ended a call that had ended before."""
    client = ready_client(revision)
    request = client.send_request("tools/call", TOOL_CALL, timeout=10, now=100)
    sent(client)
    client.handle_timeout(109.9)
    assert not drain(client)
    client.handle_timeout(110)
    event = only(RequestFailed, drain(client))
    assert (event.request, event.reason) == (request, FailureReason.TIMED_OUT)
    (notice,) = sent(client)
    assert notice["method"] == "notifications/cancelled"
    assert notice["params"]["requestId"] == request.id
    assert client.pending_requests == ()
    assert client.next_timeout() is None
    late = result(request.id, {"content": [{"type": "text", "text": "ok"}]})
    ignored = only(MessageIgnored, receive(client, late))
    assert (ignored.rule, ignored.id) == ("CANC-011", request.id)
    # It was expected once; after that the id names nothing any more.
    assert only(MessageIgnored, receive(client, late)).rule == "JSON-004"
    assert_usable(client)


def test_an_answer_read_before_the_timer_fires_wins(revision: str) -> None:
    """Neighbour of case c036: a busy loop must not turn an answer into a timeout."""
    client = ready_client(revision)
    request = client.send_request("tools/call", TOOL_CALL, timeout=10, now=0)
    sent(client)
    event = only(ResponseReceived, receive(client, result(request.id, {"content": []}), now=99))
    assert event.request is request
    client.handle_timeout(99)
    assert_usable(client)


def test_cancelling_twice_sends_one_notification(revision: str) -> None:
    """Case c039: each caller that gave up sent a cancel of its own."""
    client = ready_client(revision)
    request = client.send_request("tools/call", TOOL_CALL)
    sent(client)
    assert client.cancel(request, reason="user") is True
    assert client.cancel(request, reason="user") is False
    assert sent(client) == [cancelled(request.id, reason="user")]
    event = only(RequestFailed, drain(client))
    assert (event.request, event.reason) == (request, FailureReason.CANCELLED)
    assert_usable(client)


def test_cancelling_after_the_answer_or_the_timeout_sends_nothing(revision: str) -> None:
    """Neighbour of case c039: the request is over, however it ended."""
    client = ready_client(revision)
    answered = client.send_request("tools/call", TOOL_CALL)
    refused = client.send_request("tools/call", TOOL_CALL)
    expired = client.send_request("tools/call", TOOL_CALL, timeout=1, now=0)
    receive(client, result(answered.id, {"content": []}), error(refused.id, -32000))
    client.handle_timeout(1)
    drain(client)
    sent(client)
    for request in (answered, refused, expired):
        assert client.cancel(request) is False
    assert_usable(client)


def test_progress_and_answer_after_a_cancellation_are_ignored_quietly(revision: str) -> None:
    """Case c046: messages that crossed the cancellation must not be reported as breaches."""
    client = ready_client(revision)
    request = client.send_request("tools/call", TOOL_CALL, progress=True)
    assert request.progress_token is not None
    assert client.cancel(request)
    drain(client)
    sent(client)
    late = note("notifications/progress", {"progressToken": request.progress_token, "progress": 3})
    progress, answer = receive(client, late, result(request.id, {"content": []}))
    assert isinstance(progress, MessageIgnored)
    assert (progress.rule, progress.id) == ("PROG-006", request.progress_token)
    assert isinstance(answer, MessageIgnored)
    assert (answer.rule, answer.id) == ("CANC-011", request.id)
    assert_usable(client)


def test_an_error_after_a_cancellation_is_ignored_quietly(revision: str) -> None:
    """Neighbour of case c046: some servers answer a cancelled request with an error."""
    client = ready_client(revision)
    request = client.send_request("tools/call", TOOL_CALL)
    assert client.cancel(request)
    drain(client)
    sent(client)
    late = only(MessageIgnored, receive(client, error(request.id, -32800, "cancelled")))
    assert late.rule == "CANC-011"
    assert_usable(client)


def test_a_server_cancels_its_requests_by_the_same_rules(revision: str) -> None:
    """Cases c036, c039 and c046 for the other side: sampling can take minutes."""
    server = ready_server(revision)
    request = server.send_request("sampling/createMessage", SAMPLING)
    sent(server)
    assert server.cancel(request) is True
    assert server.cancel(request) is False
    assert sent(server) == [cancelled(request.id)]
    assert only(RequestFailed, drain(server)).reason is FailureReason.CANCELLED
    only(MessageIgnored, receive(server, result(request.id, SAMPLED)))
    assert_usable(server)


def test_a_cancellation_of_a_question_to_the_client_says_why(revision: str) -> None:
    """Case c270: a client went on with a cancelled question, and lost the server's reason."""
    client = ready_client(revision)
    question = asked(client, call("s1", "sampling/createMessage", SAMPLING))
    said = {"com.example/k": 1}
    event = only(
        RequestCancelled, receive(client, cancelled("s1", reason="no longer needed", _meta=said))
    )
    assert (event.request, event.cause) == (question, CancelCause.PEER)
    assert (event.reason, event.meta) == ("no longer needed", said)
    assert client.send_result(question, SAMPLED) is False
    assert sent(client) == []
    assert_usable(client)


@pytest.mark.parametrize("meta", [None, [], "text", 1])
def test_a_meta_that_is_no_object_is_none(revision: str, meta: object) -> None:
    """Neighbour of case c270: an application reads members of `_meta` without checking its type."""
    server = ready_server(revision)
    request = asked(server, call(1, "tools/call", TOOL_CALL))
    rule = "OWN-015" if meta is None else "OWN-014"
    violation, event = receive(server, cancelled(1, _meta=meta))
    assert isinstance(violation, ProtocolViolation)
    assert isinstance(event, RequestCancelled)
    assert (event.request, event.meta) == (request, None)
    assert (violation.rule, violation.tolerated) == (rule, True)

    client = ready_client(revision)
    ours = client.send_request("tools/call", TOOL_CALL, progress=True)
    told = {"progressToken": ours.progress_token, "progress": 1, "_meta": meta}
    violation, progress = receive(client, note("notifications/progress", told))
    assert isinstance(violation, ProtocolViolation)
    assert isinstance(progress, ProgressReceived)
    assert (violation.rule, progress.meta) == (rule, None)


def test_progress_comes_with_its_meta(revision: str) -> None:
    """Neighbour of case c270: the `_meta` of progress must arrive."""
    client = ready_client(revision)
    ours = client.send_request("tools/call", TOOL_CALL, progress=True)
    told = {"progressToken": ours.progress_token, "progress": 1, "_meta": {"com.example/k": 1}}
    progress = only(ProgressReceived, receive(client, note("notifications/progress", told)))
    assert progress.meta == {"com.example/k": 1}
