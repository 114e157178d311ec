"""A request for a session of another process is carried there, and its response back."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from sansmcp import Config, LocalProtocolError, ToolsListChanged
from sansmcp.http import (
    CarriedRequest,
    LookupEnd,
    OldPaths,
    RelayEnded,
    SendBody,
    SendHead,
    ServerEndpoint,
    ServerExchange,
    SessionWanted,
)
from tests.support.http.lookups import ends, is_empty, one
from tests.support.http.server_endpoint import (
    GET,
    LEGACY,
    answer,
    asked,
    body_of,
    broken,
    connect,
    drain,
    more,
    new_endpoint,
    of,
    post,
    progressing,
    request,
    sessions,
    take,
)
from tests.support.wire import call, initialize, note, result

NAMED = {"mcp-session-id": "s1", "mcp-protocol-version": LEGACY}
STREAM = {"content-type": "text/event-stream", "cache-control": "no-cache"}


def worker(**settings: Any) -> ServerEndpoint:
    """A process that asks for the sessions that it does not have."""
    return new_endpoint(sessions=sessions(unknown="ask"), **settings)


def wanted(
    endpoint: ServerEndpoint, method: str = "POST", **fields: str
) -> tuple[ServerExchange, SessionWanted]:
    """A request for a session of another process, and the event that asks for that session."""
    if method == "POST":
        exchange = post(endpoint, call(7, "ping"), {**NAMED, **fields}, principal="user")
    else:
        exchange = request(endpoint, method, {**GET, **NAMED, **fields}, principal="user")
    return exchange, one(SessionWanted, endpoint)


def carried(
    endpoint: ServerEndpoint, method: str = "POST", **fields: str
) -> tuple[ServerExchange, CarriedRequest]:
    exchange, question = wanted(endpoint, method, **fields)
    taken = endpoint.carry(question)
    assert taken is not None
    return exchange, taken


def relay(source: ServerExchange, to: ServerExchange) -> None:
    """Play the other process: relay all output that there is."""
    while (output := source.next_output()) is not None:
        if isinstance(output, SendHead):
            assert to.relay_head(output.status, output.headers)
        elif isinstance(output, SendBody):
            assert to.relay_body(output.data)
        else:
            assert to.relay_end()


# ------------------------------------------------------------------------------ the question


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_session_that_does_not_exist_is_refused(method: str) -> None:
    """An unknown session must be 404 as without a lookup, so that the client opens another one."""
    endpoint = worker()
    exchange, question = wanted(endpoint, method)
    assert (question.session_id, question.stream, question.after) == ("s1", None, 0)
    assert "s1" not in repr(question)
    assert question.exchange.principal == "user"
    assert endpoint.held_bytes > 0
    assert endpoint.refuse_session(question)

    response = answer(exchange)
    assert response.status == 404
    assert b"the worker that had opened it" in response.body
    assert b"several workers" not in response.body, "these workers do share their sessions"
    assert broken(endpoint) == ["SESS-008"]
    assert is_empty(endpoint)
    with pytest.raises(LocalProtocolError, match="answered already"):
        endpoint.carry(question)


def test_a_session_that_cannot_be_looked_up_now_may_be_asked_for_again() -> None:
    """A store that fails must not look like a session that has ended."""
    endpoint = worker()
    exchange, question = wanted(endpoint)
    assert endpoint.fail_lookup(question, "try again", status=503, retry_after=2)

    response = answer(exchange)
    assert (response.status, response.headers["retry-after"]) == (503, "2")
    assert response.json["id"] == 7
    assert ends(endpoint) == [LookupEnd.FAILED]
    assert is_empty(endpoint)


def test_nobody_is_asked_for_what_is_here_or_cannot_be() -> None:
    """A local session, a session of another principal and an invalid id need no lookup."""
    endpoint = worker()
    connect(endpoint, principal="owner")
    assert answer(post(endpoint, call(7, "ping"), NAMED, principal="other")).status == 404
    fields = {**NAMED, "mcp-session-id": "s 2"}
    assert answer(post(endpoint, call(7, "ping"), fields)).status == 404
    unversioned = {"mcp-session-id": "s2", "mcp-protocol-version": "1999-01-01"}
    assert answer(post(endpoint, call(7, "ping"), unversioned)).status == 400

    assert not of(SessionWanted, drain(endpoint))


@pytest.mark.parametrize(
    ("last", "resumed"),
    [
        ("1a2b3c4d-2-5", (None, 0)),
        ("4c3f4bd9-2-5", (2, 5)),
        ("nonsense", (None, 0)),
    ],
)
def test_the_question_says_which_stream_is_resumed(last: str, resumed: Any) -> None:
    """A store needs the stream, which is known only if the event id belongs to the session."""
    tagged = last.replace("4c3f4bd9", tag())
    _, question = wanted(worker(), "GET", **{"last-event-id": tagged})

    assert (question.stream, question.after) == resumed


def tag() -> str:
    """The prefix of event ids of the session s1."""
    endpoint = new_endpoint()
    first = answer(connect(endpoint).get())
    return first.ids[0].partition("-")[0]


def refuse(endpoint: ServerEndpoint, question: SessionWanted) -> bool:
    return endpoint.refuse_session(question)


def carry(endpoint: ServerEndpoint, question: SessionWanted) -> bool:
    return endpoint.carry(question) is not None


def fail(endpoint: ServerEndpoint, question: SessionWanted) -> bool:
    return endpoint.fail_lookup(question)


@pytest.mark.parametrize("verb", [refuse, carry, fail])
def test_an_answer_after_the_client_has_left_does_nothing(
    verb: Callable[[ServerEndpoint, SessionWanted], bool],
) -> None:
    """A late answer to a lookup must neither raise nor serve the request."""
    endpoint = worker()
    exchange, question = wanted(endpoint)
    exchange.receive_disconnect()

    assert not verb(endpoint, question)
    assert ends(endpoint) == [LookupEnd.DISCONNECTED]
    assert is_empty(endpoint)


# ------------------------------------------------------------------------ between processes


def test_a_request_is_served_by_the_process_that_has_its_session() -> None:
    """The client must see one server, whichever process it connects to."""
    owner, other = worker(), worker()
    connect(owner, principal="user")
    exchange, taken = carried(other)
    assert (taken.method, taken.target, taken.principal) == ("POST", "/mcp", "user")
    assert (b"mcp-session-id", b"s1") in taken.headers
    assert "s1" not in repr(taken)
    assert other.carried == (exchange,)
    there = owner.receive_carried(taken, context="carried", now=1.0, at=2.0)
    relay(there, exchange)

    response = answer(exchange)
    assert response.status == 200
    assert response.json == {"jsonrpc": "2.0", "id": 7, "result": {}}
    assert is_empty(other)


def test_a_stream_comes_back_piece_by_piece() -> None:
    """Progress must not be held back until the result."""
    owner, other = worker(), worker()
    connect(owner, principal="user")
    exchange = post(other, progressing(), NAMED, principal="user")
    taken = other.carry(one(SessionWanted, other))
    assert taken is not None
    there = owner.receive_carried(taken)
    handle = asked(owner)
    owner.send_progress(handle, 1)
    relay(there, exchange)
    first = answer(exchange)
    assert first.is_stream
    assert exchange.is_stream
    assert not first.ended
    owner.send_result(handle, {"content": []})
    relay(there, exchange)

    last = more(exchange, first)
    assert last.messages[-1]["id"] == 1
    assert last.ended
    assert is_empty(other)


def test_a_get_stream_and_its_resumption_are_carried_as_well() -> None:
    """Notifications must reach a client at whichever process it has connected to."""
    owner, other = worker(), worker()
    connect(owner, principal="user")
    exchange, taken = carried(other, "GET")
    there = owner.receive_carried(taken)
    owner.publish(ToolsListChanged())
    relay(there, exchange)
    first = answer(exchange)
    (message,) = first.messages
    assert message["method"] == "notifications/tools/list_changed"
    exchange.receive_disconnect()
    assert ends(other) == [LookupEnd.DISCONNECTED]
    there.receive_disconnect()
    again, taken = carried(other, "GET", **{"last-event-id": first.ids[0]})
    relay(owner.receive_carried(taken), again)

    assert answer(again).messages == [message]


def test_a_session_that_has_just_ended_is_not_asked_for_twice() -> None:
    """Two processes must not carry a request to and fro."""
    owner = worker()
    _, taken = carried(worker())
    there = owner.receive_carried(taken)

    assert answer(there).status == 404
    assert not of(SessionWanted, drain(owner))


def test_a_carried_request_is_not_asked_for_credentials() -> None:
    """The first process has found the principal; None means that the caller is anonymous."""
    owner = new_endpoint(sessions=sessions(unknown="ask"), credentials="ask")
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    taken = CarriedRequest(
        method="POST",
        target="/",
        headers=((b"content-type", b"application/json"), (b"mcp-session-id", b"s1")),
        body=body,
    )
    assert answer(owner.receive_carried(taken)).status == 404

    assert not owner.open_questions


def test_a_delete_is_carried() -> None:
    """A 204 must have neither body nor Content-Length."""
    owner, other = worker(), worker()
    connect(owner, principal="user")
    exchange, taken = carried(other, "DELETE")
    relay(owner.receive_carried(taken), exchange)

    assert answer(exchange).status == 204
    assert owner.sessions == ()


def test_clients_of_the_old_transport_are_carried() -> None:
    """The session of HTTP+SSE is named in the query."""
    paths = OldPaths(stream="/sse", post="/messages")
    owner, other = worker(old_paths=paths), worker(old_paths=paths)
    stream = request(owner, "GET", GET, target="/sse")
    target = "/messages?session_id=s1"
    exchange = post(other, initialize(1, "2024-11-05"), target=target)
    question = one(SessionWanted, other)
    assert question.session_id == "s1"
    taken = other.carry(question)
    assert taken is not None
    assert taken.target == target
    relay(owner.receive_carried(taken), exchange)

    assert answer(exchange).status == 202
    assert json.loads(answer(stream).events[-1].data)["id"] == 1
    missing = post(other, initialize(1, "2024-11-05"), target="/messages")
    assert answer(missing).status == 404


def test_headers_of_cors_are_sent_once() -> None:
    """A browser refuses a response in which a CORS header occurs twice."""
    page = {"origin": "https://app.example"}
    owner, other = (worker(origins=("https://app.example",)) for _ in range(2))
    connect(owner, principal="user")
    exchange, taken = carried(other, **page)
    relay(owner.receive_carried(taken), exchange)

    head = exchange.next_output()
    assert isinstance(head, SendHead)
    names = [name for name, _ in head.headers]
    assert len(names) == len(set(names))
    assert dict(head.headers)[b"access-control-allow-origin"] == b"https://app.example"


# --------------------------------------------------------------------------- the response


def test_a_response_of_known_length_is_sent_whole() -> None:
    """A client cannot tell an incomplete object from an invalid one."""
    endpoint = worker()
    exchange, _ = carried(endpoint)
    body = b'{"jsonrpc":"2.0","id":7,"result":{}}'
    head = {
        "content-type": "application/json",
        "Content-Length": str(len(body)),
        "connection": "close",
    }
    assert exchange.relay_head(200, head)
    assert exchange.relay_body(body[:5])
    assert take(exchange) is None
    assert not exchange.has_output
    assert exchange.relay_body(b"")
    assert exchange.relay_body(body[5:], now=1.0)
    assert exchange.relay_end()

    response = answer(exchange)
    assert response.json["result"] == {}
    assert "connection" not in response.headers


def test_a_response_that_lacks_a_part_becomes_an_error() -> None:
    """If the other process dies in the middle, the client must get an error."""
    endpoint = worker()
    exchange, _ = carried(endpoint)
    exchange.relay_head(200, {"content-length": "4"})
    exchange.relay_body(b"[1")
    assert not exchange.relay_end()

    response = answer(exchange)
    assert (response.status, response.json["id"]) == (503, 7)
    assert "retry-after" not in response.headers  # it may have been served
    assert ends(endpoint) == [LookupEnd.FAILED]
    assert not exchange.relay_end()
    assert not exchange.relay_head(200, {})
    assert not exchange.relay_failed()
    assert is_empty(endpoint)


@pytest.mark.parametrize("begun", [False, True])
def test_a_process_that_does_not_answer_is_answered_for(begun: bool) -> None:
    """The client must get an error, or the end of a stream that it may resume."""
    endpoint = worker()
    exchange, _ = carried(endpoint)
    if begun:
        exchange.relay_head(200, STREAM)
        exchange.relay_body(b": \n\n")
    assert exchange.relay_failed("it is away")
    assert not exchange.relay_failed()

    response = answer(exchange)
    assert response.ended
    assert response.status == (200 if begun else 503)
    assert begun or response.json["error"]["message"] == "it is away"
    assert ends(endpoint) == [LookupEnd.FAILED]
    assert is_empty(endpoint)


def test_a_request_that_was_not_served_may_be_sent_again() -> None:
    """The caller knows that, and says when."""
    endpoint = worker()
    exchange, _ = carried(endpoint)
    with pytest.raises(ValueError, match="retry_after"):
        exchange.relay_failed(retry_after=-1)
    assert exchange.relay_failed("it was not sent", retry_after=3)

    response = answer(exchange)
    assert (response.status, response.headers["retry-after"]) == (503, "3")
    assert is_empty(endpoint)


def test_a_session_that_turns_out_not_to_exist_is_404() -> None:
    """A process that had died before the request was sent has no session any more."""
    endpoint = worker()
    exchange, _ = carried(endpoint)
    with pytest.raises(ValueError, match="404 or 503"):
        exchange.relay_failed(status=500)
    assert exchange.relay_failed("open another session", status=404)

    response = answer(exchange)
    assert (response.status, response.json["id"]) == (404, 7)
    assert "retry-after" not in response.headers
    assert is_empty(endpoint)


def test_a_session_is_found_by_its_id() -> None:
    """A request from another process names a session by its id."""
    endpoint = worker()
    connect(endpoint)
    session = endpoint.sessions[0]
    assert endpoint.find_session(session.id) is session
    assert endpoint.find_session("\udc80") is None
    assert new_endpoint(sessions=None).find_session(session.id) is None


def test_a_client_that_leaves_is_reported() -> None:
    """The other process must learn of the disconnect, or it would work for no client."""
    endpoint = worker()
    exchange, _ = carried(endpoint)
    exchange.relay_head(200, STREAM)
    exchange.relay_body(b": \n\n")
    exchange.receive_disconnect()
    (event,) = of(RelayEnded, drain(endpoint))

    assert (event.exchange, event.cause) == (exchange, LookupEnd.DISCONNECTED)
    assert not exchange.relay_body(b": \n\n")
    assert exchange.next_output() is None
    assert is_empty(endpoint)


def test_a_client_that_has_all_but_the_end_may_leave() -> None:
    """A disconnect after a complete response must not be reported."""
    endpoint = worker()
    exchange, _ = carried(endpoint)
    exchange.relay_head(200, {"content-length": "2"})
    exchange.relay_body(b"{}")
    exchange.relay_end()
    exchange.receive_disconnect()

    assert ends(endpoint) == []
    assert exchange.held_bytes == 0


@pytest.mark.parametrize("length", [None, "100"])
def test_a_client_that_does_not_read_is_let_go(length: str | None) -> None:
    """Relayed output that waits for a client must be bounded as in one process."""
    endpoint = worker(config=Config(max_unsent_bytes=50, soft_unsent_bytes=10))
    exchange, _ = carried(endpoint)
    exchange.relay_head(200, STREAM if length is None else {"content-length": length})
    assert exchange.relay_body(b"x" * 40)
    assert not exchange.relay_body(b"x" * 40)

    rules = [getattr(event, "rule", None) for event in drain(endpoint)]
    assert rules == ["OWN-012", None]
    assert answer(exchange).status == (200 if length is None else 503)
    assert is_empty(endpoint)


def test_what_was_read_makes_room() -> None:
    """The limit is on waiting output, and not on the whole response."""
    endpoint = worker(config=Config(max_unsent_bytes=50, soft_unsent_bytes=10))
    exchange, _ = carried(endpoint)
    exchange.relay_head(200, STREAM)
    for _ in range(5):
        assert exchange.relay_body(b": " + b"x" * 38)
        while exchange.next_output() is not None:
            pass


def test_what_waits_for_a_client_is_held_until_it_is_read() -> None:
    """Other processes decide how much it is, so it must not fill the memory of this one."""
    size = 10_000
    endpoint = worker(config=Config(max_held_bytes=2 * size))
    unread: list[ServerExchange] = []
    for ends_well in (True, False):
        exchange, _ = carried(endpoint)
        exchange.relay_head(200, STREAM)
        exchange.relay_body(b"x" * size)
        (exchange.relay_end if ends_well else exchange.relay_failed)()
        unread.append(exchange)
    assert endpoint.held_bytes == 2 * size
    exchange, question = resumed(endpoint)
    assert endpoint.replay_ended(question, [(4, b"x" * size)])
    assert answer(exchange).status == 503
    assert len(answer(unread.pop()).body) == size
    exchange, question = resumed(endpoint)
    assert endpoint.replay_ended(question, [(4, b"x" * (size - 100))])
    assert endpoint.held_bytes > 2 * size - 100
    exchange.receive_disconnect()
    unread.pop().receive_disconnect()
    assert is_empty(endpoint)


def test_a_closed_endpoint_ends_what_it_relays() -> None:
    """Closing the endpoint must end all relayed responses."""
    endpoint = worker()
    silent, _ = carried(endpoint)
    begun, _ = carried(endpoint)
    begun.relay_head(200, STREAM)
    endpoint.close()

    assert answer(silent).status == 503
    assert answer(begun).ended
    assert ends(endpoint) == [LookupEnd.CLOSED, LookupEnd.CLOSED]
    assert is_empty(endpoint)


def test_verbs_of_a_relay_have_an_order() -> None:
    """A wrong order of verbs is a mistake of the caller, and must raise."""
    endpoint = worker()
    exchange, _ = carried(endpoint)
    with pytest.raises(LocalProtocolError, match="relay_body has no place here") as raised:
        exchange.relay_body(b"x")
    assert raised.value.rule == "OWN-064"
    with pytest.raises(LocalProtocolError, match="relay_end has no place here"):
        exchange.relay_end()
    exchange.relay_head(200, {"content-length": "2"})
    with pytest.raises(LocalProtocolError, match="relay_head has no place here"):
        exchange.relay_head(200, {})
    with pytest.raises(LocalProtocolError, match="by 1 bytes"):
        exchange.relay_body(b"xxx")
    exchange.relay_body(b"{}")
    exchange.relay_end()
    with pytest.raises(LocalProtocolError, match="the response is complete"):
        exchange.relay_end()
    with pytest.raises(LocalProtocolError, match="was not carried"):
        post(endpoint, note("notifications/x")).relay_end()
    other, _ = wanted(endpoint)
    with pytest.raises(LocalProtocolError, match="was not carried"):
        other.relay_failed()


@pytest.mark.parametrize(
    ("status", "headers"),
    [(199, {}), (600, {}), (200, {"a b": "c"}), (200, {"a": "b\r\nc: d"})],
)
def test_a_head_that_is_none_raises(status: int, headers: Any) -> None:
    """An invalid header would end the response, or begin another one."""
    exchange, _ = carried(worker())
    with pytest.raises(ValueError, match="no response can have"):
        exchange.relay_head(status, headers)

    assert exchange.relay_head(200, {})


def test_a_carried_request_is_not_refused() -> None:
    """A carried request is being served, so `relay_failed` must be used to end it."""
    exchange, _ = carried(worker())

    assert not exchange.refuse(503, "no")
    assert exchange.relay_failed()


def test_waiting_and_carried_requests_have_one_limit() -> None:
    """Both kinds take memory."""
    endpoint = worker(config=Config(max_requests=2))
    carried(endpoint)
    wanted(endpoint)
    late = post(endpoint, call(7, "ping"), NAMED)

    response = answer(late)
    assert (response.status, response.json["id"]) == (503, 7)


def test_the_limit_spares_small_notifications() -> None:
    """A notification may be what ends a request, in whichever process."""
    endpoint = worker(config=Config(max_held_bytes=1))
    post(endpoint, note("notifications/cancelled", {"requestId": 1}), NAMED)

    assert one(SessionWanted, endpoint).session_id == "s1"


# ------------------------------------------------------------------- sessions that are over


def resumed(endpoint: ServerEndpoint) -> tuple[ServerExchange, SessionWanted]:
    return wanted(endpoint, "GET", **{"last-event-id": f"{tag()}-2-3"})


def test_the_rest_of_a_stream_is_read_after_its_process_has_died() -> None:
    """Stored events must be sent although the session was lost with its process."""
    endpoint = worker()
    exchange, question = resumed(endpoint)
    progress = {"progressToken": 1, "progress": 2}
    messages = [note("notifications/progress", progress), result(1, {"content": []})]
    stored = list(zip((4, 6), map(body_of, messages), strict=True))
    assert endpoint.replay_ended(question, stored)

    response = answer(exchange)
    assert response.messages == messages
    assert response.ids == [f"{tag()}-2-4", f"{tag()}-2-6"]
    assert response.ended
    assert is_empty(endpoint)
    with pytest.raises(LocalProtocolError, match="answered already"):
        endpoint.replay_ended(question, [])


def test_a_stream_without_a_rest_ends_at_once() -> None:
    """If the client has all events, the response must end."""
    endpoint = worker()
    exchange, question = resumed(endpoint)
    assert endpoint.replay_ended(question, ())

    whole = exchange.response()
    assert whole is not None
    assert (whole[0], whole[2]) == (200, b"")


def test_the_rest_of_a_stream_is_judged_before_it_is_sent() -> None:
    """A verb that raises must change nothing."""
    endpoint = worker(config=Config(max_unsent_bytes=50, soft_unsent_bytes=10))
    exchange, question = resumed(endpoint)
    for events, match in (
        ([(3, b"{}")], "event 3 does not follow event 3"),
        ([(5, b"{}"), (4, b"{}")], "event 4 does not follow event 5"),
        ([(4, b"x" * 60)], "max_unsent_bytes"),
        ([(4, "{}")], "its number and the bytes of its message, not int and str"),
        ([(True, b"{}")], "not bool and bytes"),
    ):
        wrong: Any = events
        with pytest.raises(LocalProtocolError, match=match):
            endpoint.replay_ended(question, wrong)
    other, unresumed = wanted(endpoint, "GET")
    with pytest.raises(LocalProtocolError, match="resumes no stream"):
        endpoint.replay_ended(unresumed, [])

    exchange.receive_disconnect()
    assert not endpoint.replay_ended(question, [])
    other.receive_disconnect()
    assert is_empty(endpoint)
