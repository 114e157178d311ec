"""Questions that are requests of the server may end without a response."""

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    CancelCause,
    Config,
    ConnectionClosed,
    ErrorReceived,
    Event,
    IncomingRequest,
    JSONObject,
    LocalProtocolError,
    MessageIgnored,
    RequestAnswered,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    State,
)
from tests.support.modern import FORM, ROOTS, modern_server, questioned, requested
from tests.support.wire import (
    CLIENT_CAPABILITIES,
    broken,
    call,
    drain,
    error,
    initialize,
    note,
    of,
    only,
    ready_server,
    receive,
    refusals,
    result,
    sent,
)

NEWEST = LEGACY_REVISIONS[-1]
CALL: JSONObject = {"name": "t", "arguments": {"n": 1}}
CANCELLED = "notifications/cancelled"
OURS = (ResponseReceived, ErrorReceived, RequestFailed)


def a_call(server: ServerConnection, id: object = 1, **params: object) -> IncomingRequest:
    return requested(server, call(id, "tools/call", {**CALL, **params}))


def no_ending_of_questions(events: list[Event]) -> None:
    """Assert that no event is about a request of the library's own."""
    assert not [event for event in events if isinstance(event, OURS)]


@pytest.mark.parametrize("answered_first", [False, True])
def test_an_error_of_the_client_ends_the_request(answered_first: bool) -> None:
    """The other questions must be cancelled, and the caller get the reason."""
    server = ready_server(NEWEST)
    request = a_call(server)
    one, two = questioned(server, request, "a", "b")
    if answered_first:
        assert receive(server, result(one, {"roots": []})) == []
    event = only(RequestAnswered, receive(server, error(two, -1, "User said no")))
    assert (event.request, event.code) == (request, -32603)
    *withdrawn, answer = sent(server)
    assert refusals([answer]) == [(1, -32603)]
    assert "User said no" in answer["error"]["message"]
    names = [message["params"]["requestId"] for message in withdrawn]
    assert names == ([] if answered_first else [one])
    # The other answer may have been on its way.
    late = receive(server, result(one, {"roots": []}))
    assert [type(event) for event in late] == [MessageIgnored]
    a_call(server, 2)


@pytest.mark.parametrize("answer", [{}, {"roots": 5}, "none", None])
def test_an_invalid_answer_ends_the_request(answer: object) -> None:
    """The answer must be reported, and the caller get an error."""
    server = ready_server(NEWEST)
    request = a_call(server)
    (id,) = questioned(server, request, "a")
    events = receive(server, result(id, answer))
    assert len(broken(events)) == 1
    assert [event.request for event in of(RequestAnswered, events)] == [request]
    no_ending_of_questions(events)
    assert refusals(sent(server)) == [(1, -32603)]


def test_questions_time_out() -> None:
    """A user who never answers must not keep a request open for ever."""
    server = ready_server(NEWEST)
    request = a_call(server)
    one, two = questioned(server, request, "a", "b", timeout=5)
    assert server.next_timeout() == 15
    receive(server, result(one, {"roots": []}), now=12)
    server.handle_timeout(15)
    assert only(RequestAnswered, drain(server)).request is request
    withdrawn, answer = sent(server)
    assert (withdrawn["method"], withdrawn["params"]["requestId"]) == (CANCELLED, two)
    assert refusals([answer]) == [(1, -32603)]
    assert "5" in answer["error"]["message"]
    assert server.next_timeout() is None


def test_when_all_time_out_together_the_request_ends_once() -> None:
    """Each question has a timer, but the request must have one ending."""
    server = ready_server(NEWEST)
    one, two = questioned(server, a_call(server), "a", "b", timeout=5)
    server.handle_timeout(100)
    only(RequestAnswered, drain(server))
    messages = sent(server)
    named = [m["params"]["requestId"] for m in messages if m.get("method") == CANCELLED]
    assert sorted(named) == [one, two]
    assert refusals(m for m in messages if "error" in m) == [(1, -32603)]


def test_cancelling_the_request_withdraws_its_questions() -> None:
    """The client must not go on asking its user; the event must name the handle that the
    application has."""
    server = ready_server(NEWEST)
    request = a_call(server)
    one, two = questioned(server, request, "a", "b")
    receive(server, result(one, {"roots": []}))
    event = only(
        RequestCancelled, receive(server, note(CANCELLED, {"requestId": 1, "reason": "user"}))
    )
    assert (event.request, event.cause, event.reason) == (request, CancelCause.PEER, "user")
    (withdrawn,) = sent(server)
    assert (withdrawn["method"], withdrawn["params"]["requestId"]) == (CANCELLED, two)
    assert [type(e) for e in receive(server, result(two, {"roots": []}))] == [MessageIgnored]
    assert sent(server) == []
    with pytest.raises(LocalProtocolError, match="OWN-026"):
        server.require_input(request, {"r": ROOTS})  # the handle was spent before


def test_a_cancellation_names_the_newest_handle() -> None:
    """After a round the application works on the new handle."""
    server = ready_server(NEWEST)
    (id,) = questioned(server, a_call(server), "a")
    second = only(RequestReceived, receive(server, result(id, {"roots": []}))).request
    event = only(RequestCancelled, receive(server, note(CANCELLED, {"requestId": 1})))
    assert event.request is second
    assert server.send_result(second, {"content": []}) is False
    assert server.require_input(second, {"r": ROOTS}) is False
    assert sent(server) == []


@pytest.mark.parametrize("drained", [False, True])
def test_the_end_of_the_stream_ends_the_request(drained: bool) -> None:
    """No answer can come any more, so the drain must not wait for one."""
    server = ready_server(NEWEST)
    request = a_call(server)
    questioned(server, request, "a", "b")
    server.receive_eof(drain=5 if drained else 0, now=1.0)
    first, *rest = drain(server)
    no_ending_of_questions([first, *rest])
    assert [type(event) for event in rest] == [ConnectionClosed]
    if drained:
        assert isinstance(first, RequestAnswered)
        assert refusals(sent(server)) == [(1, -32603)]
    else:
        assert isinstance(first, RequestCancelled)
        assert (first.request, first.cause) == (request, CancelCause.EOF)
        assert sent(server) == []
    assert server.state is State.CLOSED


def test_nothing_is_asked_after_the_end_of_the_stream() -> None:
    """A request may still be answered, but not with questions."""
    server = ready_server(NEWEST)
    request = a_call(server)
    server.receive_eof(drain=5, now=1.0)
    with pytest.raises(LocalProtocolError, match="OWN-021"):
        server.require_input(request, {"r": ROOTS})
    assert request.open
    assert sent(server) == []
    assert server.send_error(request, -32603, "no")
    assert refusals(sent(server)) == [(1, -32603)]


@pytest.mark.parametrize("how", ["close", "send_failed"])
def test_closing_ends_the_request(how: str) -> None:
    """Each handle of the application must have its ending, and the questions none."""
    server = ready_server(NEWEST)
    request = a_call(server)
    ids = questioned(server, request, "a", "b")
    getattr(server, how)()
    events = drain(server)
    (event,) = of(RequestCancelled, events)
    assert event.request is request
    no_ending_of_questions(events)
    assert sent(server) == []
    for id in ids:
        no_ending_of_questions(receive(server, result(id, {"roots": []})))
    assert sent(server) == []


# ------------------------------------------------------------------------------- what is refused


def test_rounds_are_bounded() -> None:
    """A handler that always asks again would go on for ever."""
    server = ready_server(NEWEST, config=Config(max_input_rounds=2))
    request = a_call(server)
    for _ in range(2):
        (id,) = questioned(server, request, "a")
        request = only(RequestReceived, receive(server, result(id, {"roots": []}))).request
    with pytest.raises(LocalProtocolError, match="OWN-027"):
        server.require_input(request, {"r": ROOTS})
    assert request.open
    assert server.send_error(request, -32603, "no")


@pytest.mark.parametrize(
    ("revision", "client", "question", "rule"),
    [
        ("2024-11-05", CLIENT_CAPABILITIES, FORM, "OWN-020"),
        ("2025-03-26", CLIENT_CAPABILITIES, FORM, "OWN-020"),
        (NEWEST, {}, ROOTS, "MRTR-008"),
        (NEWEST, {"elicitation": {"url": {}}}, FORM, "MRTR-008"),
        (NEWEST, CLIENT_CAPABILITIES, {"method": "ping"}, "MRTR-006"),
    ],
)
def test_what_the_revision_or_the_client_lacks_cannot_be_asked(
    revision: str, client: JSONObject, question: JSONObject, rule: str
) -> None:
    """If one question is not allowed, none may be sent."""
    server = ready_server(revision, client=client)
    request = a_call(server)
    questions = {"q": question}
    if client:
        questions = {"ok": ROOTS, **questions} if "roots" in client else questions
    with pytest.raises(LocalProtocolError, match=rule):
        server.require_input(request, questions)
    assert request.open
    assert sent(server) == []
    assert server.send_error(request, -32603, "no")


def test_requests_to_the_client_are_limited() -> None:
    """Questions count as requests in flight, and all of them must have room."""
    server = ready_server(NEWEST, config=Config(max_requests=2))
    request = a_call(server)
    server.send_request("roots/list")
    sent(server)
    with pytest.raises(LocalProtocolError, match="OWN-005"):
        server.require_input(request, {"a": ROOTS, "b": ROOTS})
    assert request.open
    questioned(server, request, "a")


def test_nothing_is_asked_before_the_handshake_is_done() -> None:
    """The client may not accept requests before `initialized`, but a response may be sent."""
    server = modern_server(revisions=LEGACY_REVISIONS)
    receive(server, initialize("hello", NEWEST))
    request = a_call(server)
    sent(server)
    with pytest.raises(LocalProtocolError, match="LIFE-006"):
        server.require_input(request, {"a": ROOTS})
    assert server.send_result(request, {"content": []})


def test_a_timeout_needs_a_clock() -> None:
    """The timeout must be checked before a question is sent."""
    server = ready_server(NEWEST)
    request = a_call(server)
    with pytest.raises(LocalProtocolError, match="OWN-023"):
        server.require_input(request, {"a": ROOTS}, timeout=5)
    assert request.open
    assert sent(server) == []


def test_an_overflow_while_asking_ends_everything_once() -> None:
    """A question may cross the hard limit on output like any other message."""
    server = ready_server(NEWEST, config=Config(max_unsent_bytes=600))
    request = a_call(server)
    assert server.require_input(request, {str(n): ROOTS for n in range(20)}) is False
    events = drain(server)
    assert [event.request for event in of(RequestCancelled, events)] == [request]
    assert isinstance(events[-1], ConnectionClosed)
    no_ending_of_questions(events)
