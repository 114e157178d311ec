"""Without sessions, each legacy POST is served by itself, and no state remains after it."""

from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    CancelCause,
    Config,
    JSONObject,
    LimitReached,
    LocalProtocolError,
    MessageIgnored,
    NotificationReceived,
    RequestCancelled,
    RequestReceived,
    ToolsListChanged,
)
from sansmcp.http import MessageUndelivered, ServerEndpoint, SessionStarted
from tests.support.http.server_endpoint import (
    GET,
    LEGACY,
    STREAMABLE,
    answer,
    asked,
    broken,
    connect,
    drain,
    modern_tool_call,
    more,
    new_endpoint,
    of,
    post,
    post_modern,
    progressing,
    request,
    take,
    tool_call,
)
from tests.support.modern import FILE
from tests.support.wire import INITIALIZED, call, initialize, note, result

REVISIONS = pytest.mark.parametrize("revision", STREAMABLE)


def stateless(**settings: Any) -> ServerEndpoint:
    return new_endpoint(stateless=True, **settings)


def at(revision: str) -> dict[str, str]:
    return {"mcp-protocol-version": revision}


@REVISIONS
def test_the_handshake_leads_to_no_session(revision: str) -> None:
    """Clients that insist on a handshake must get it, and any server of a farm may take the next
    request."""
    endpoint = stateless()
    response = answer(post(endpoint, initialize(0, revision)))

    assert response.json["result"]["protocolVersion"] == revision
    assert "mcp-session-id" not in response.headers
    assert answer(post(endpoint, INITIALIZED, at(revision))).status == 202
    assert not of(SessionStarted, drain(endpoint))
    assert endpoint.sessions == ()


@pytest.mark.parametrize("revision", [None, *LEGACY_REVISIONS])
def test_a_request_is_served_at_the_revision_of_its_field(revision: str | None) -> None:
    """HDR-003: the revision is 2025-03-26 without the header, and an old session id is ignored."""
    endpoint = stateless()
    fields = {} if revision is None else at(revision)
    exchange = post(endpoint, tool_call(5), {**fields, "mcp-session-id": "old"}, principal="me")
    handle = asked(endpoint)

    assert handle.revision == (revision or "2025-03-26")
    assert (handle.principal, handle.peer_info, handle.peer_capabilities) == ("me", None, {})
    assert endpoint.send_result(handle, {"content": []})
    assert answer(exchange).json == result(5, {"content": []})


def test_what_is_assumed_has_to_be_served() -> None:
    """If the assumed revision is not served, the error must say so."""
    endpoint = stateless(revisions=("2025-06-18", "2025-11-25"))
    response = answer(post(endpoint, tool_call(5)))

    assert (response.status, response.json["id"]) == (400, 5)
    assert broken(endpoint) == ["HDR-003"]


def test_another_revision_is_refused() -> None:
    """HDR-004: an unknown revision must be refused."""
    assert answer(post(stateless(), tool_call(5), at("1999-01-01"))).status == 400


def test_progress_and_notifications_turn_the_answer_into_a_stream() -> None:
    """Events have no ids, since no client could resume the stream."""
    endpoint = stateless()
    exchange = post(endpoint, call(1, "tools/call", {"name": "t", "_meta": {"progressToken": 1}}))
    handle = asked(endpoint)
    assert endpoint.send_progress(handle, 1)
    endpoint.send_notification("x/y", request=handle)
    endpoint.send_result(handle, {"content": []})

    response = answer(exchange)
    assert len(response.messages) == 3
    assert response.ids == [""] * 3
    assert response.ended


def test_nothing_can_be_asked() -> None:
    """Without a session, the client has declared nothing and could not respond."""
    endpoint = stateless()
    post(endpoint, tool_call(1))
    handle = asked(endpoint)
    why = r"revision 2025-03-26 cannot be asked by a server without sessions \[STATE-006"
    with pytest.raises(LocalProtocolError, match=why):
        endpoint.send_request("ping", request=handle)
    with pytest.raises(LocalProtocolError, match=why) as raised:
        endpoint.require_input(handle, {"r": {"method": "roots/list"}})
    assert raised.value.needed == {"roots": {}}
    with pytest.raises(LocalProtocolError, match="MRTR-006"):
        endpoint.require_input(handle, {"r": {"method": "un/known"}})

    assert handle.open


def test_ids_and_tokens_of_clients_may_be_alike() -> None:
    """Without sessions, ids may be equal or used again at once."""
    endpoint = stateless()
    message = call(1, "tools/call", {"name": "t", "_meta": {"progressToken": 1}})
    exchanges = [post(endpoint, message) for _ in "abc"]
    handles = [event.request for event in of(RequestReceived, drain(endpoint))]
    assert len(handles) == 3
    for number, handle in enumerate(handles):
        assert endpoint.send_progress(handle, 1)
        assert endpoint.send_result(handle, {"content": [], "number": number})

    found = [answer(exchange).messages[-1]["result"]["number"] for exchange in exchanges]
    assert found == [0, 1, 2]
    assert drain(endpoint) == []


@REVISIONS
def test_what_needs_a_session_is_not_declared(revision: str) -> None:
    """A log level, a subscription and a stream need a session, so they must not be declared."""
    endpoint = stateless()
    response = answer(post(endpoint, initialize(0, revision), at(revision)))
    declared: JSONObject = {"tools": {}, "resources": {}, "prompts": {}}
    if revision >= "2025-03-26":
        declared["completions"] = {}
    assert response.json["result"]["capabilities"] == declared
    for method, params in (
        ("logging/setLevel", {"level": "emergency"}),
        ("resources/subscribe", {"uri": FILE}),
        ("resources/unsubscribe", {"uri": FILE}),
    ):
        response = answer(post(endpoint, call(1, method, params), at(revision)))
        assert (response.status, response.json["error"]["code"]) == (200, -32601)

    assert not of(RequestReceived, drain(endpoint))
    assert not endpoint.publish(ToolsListChanged())


def test_logs_for_a_client_that_was_not_told_of_logging_are_not_sent() -> None:
    """A handler serves clients of all kinds, so its log call must return False and not raise."""
    endpoint = stateless()
    exchange = post(endpoint, tool_call(3))
    handle = asked(endpoint)
    assert not endpoint.send_log("debug", "x", request=handle)
    with pytest.raises(LocalProtocolError, match="LOG-002"):
        endpoint.send_log("loud", "x", request=handle)
    undeclared = stateless(capabilities={"tools": {}})
    post(undeclared, tool_call(3))
    with pytest.raises(LocalProtocolError, match="LOG-001"):
        undeclared.send_log("debug", "x", request=asked(undeclared))

    endpoint.send_result(handle, {"content": []})
    assert answer(exchange).json == result(3, {"content": []})


def test_a_cancellation_cancels_nothing() -> None:
    """Clients share ids without sessions, so the cancellation may name another client's request
    (as in c044)."""
    endpoint = stateless()
    exchange = post(endpoint, tool_call(1))
    handle = asked(endpoint)
    assert answer(post(endpoint, note("notifications/cancelled", {"requestId": 1}))).status == 202
    assert [type(event) for event in drain(endpoint)] == [MessageIgnored]

    endpoint.send_result(handle, {"content": []})
    assert answer(exchange).status == 200


def test_notifications_and_answers_are_taken() -> None:
    """Notifications and responses must be accepted without a session."""
    endpoint = stateless()

    assert answer(post(endpoint, note("notifications/roots/list_changed"))).status == 202
    assert answer(post(endpoint, result(1, {}))).status == 202
    told, late = drain(endpoint)
    assert isinstance(told, NotificationReceived | MessageIgnored)
    assert isinstance(late, MessageIgnored)


def test_a_broken_connection_cancels_nothing() -> None:
    """SSE-009 holds without sessions too; the lost response must be reported."""
    endpoint = stateless()
    exchange = post(endpoint, tool_call(1))
    handle = asked(endpoint)
    exchange.receive_disconnect()
    assert handle.open
    assert not endpoint.close_stream(handle)

    assert not endpoint.send_result(handle, {"content": []})
    assert drain(endpoint) == [MessageUndelivered(session=None, is_answer=True)]


def test_batches_are_served() -> None:
    """A request without the revision header is of 2025-03-26, which has batches."""
    endpoint = stateless()
    exchange = post(endpoint, [tool_call(1), tool_call(2), call(3, "ping"), tool_call(1)])
    first, second = (event.request for event in of(RequestReceived, drain(endpoint)))
    assert take(exchange) is None
    endpoint.send_result(first, {"content": []})
    endpoint.send_result(second, {"content": []})

    assert [message["id"] for message in answer(exchange).json] == [3, 1, 2]
    assert answer(post(endpoint, [note("notifications/x")])).status == 202
    assert answer(post(endpoint, [tool_call(1)], at(LEGACY))).status == 400


def test_both_eras_are_served_side_by_side() -> None:
    """The header and the envelope must tell the eras apart."""
    endpoint = stateless()
    legacy, modern = post(endpoint, tool_call(1)), post_modern(endpoint, modern_tool_call(1))
    one, other = (event.request for event in of(RequestReceived, drain(endpoint)))
    endpoint.send_result(one, {"content": []})
    endpoint.send_result(other, {"content": []})

    assert "resultType" not in answer(legacy).json["result"]
    assert answer(modern).json["result"]["resultType"] == "complete"


def test_close_answers_what_is_open() -> None:
    """Open requests must get 503, so that another server may serve them."""
    endpoint = stateless()
    exchange = post(endpoint, tool_call(1))
    started = post(endpoint, tool_call(1))
    endpoint.start_stream(of(RequestReceived, drain(endpoint))[1].request)
    before = answer(started)
    endpoint.close()

    assert answer(exchange).status == 503
    assert more(started, before).ended
    assert answer(request(endpoint, "GET", GET)).status == 405


def test_an_initialize_that_the_application_answers_is_an_open_request() -> None:
    """It must be among the open requests, and end when the endpoint is closed."""
    endpoint = stateless(config=Config(manual=frozenset({"initialize"})))
    first, second = post(endpoint, initialize(1, LEGACY)), post(endpoint, initialize(1, LEGACY))
    handles = [event.request for event in of(RequestReceived, drain(endpoint))]
    assert endpoint.open_requests == tuple(handles)
    endpoint.send_error(handles[0], -32603, "not today")
    assert answer(first).status == 200
    assert endpoint.open_requests == (handles[1],)

    endpoint.close()
    assert drain(endpoint) == [RequestCancelled(request=handles[1], cause=CancelCause.CLOSED)]
    assert answer(second).status == 503


def test_the_application_may_answer_initialize() -> None:
    """With `Config.manual` the application's answer must leave no state."""
    endpoint = stateless(config=Config(manual=frozenset({"initialize"})))
    answer_of_ours: JSONObject = {
        "protocolVersion": LEGACY,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "1"},
    }
    for id in (1, 2):
        exchange = post(endpoint, initialize(id, LEGACY))
        assert endpoint.send_result(asked(endpoint), answer_of_ours)
        assert answer(exchange).json == result(id, answer_of_ours)
    assert endpoint.open_requests == ()


def test_initializes_that_the_application_answers_have_a_limit() -> None:
    """The limit on open requests must hold for them too."""
    endpoint = stateless(config=Config(manual=frozenset({"initialize"}), max_requests=1))
    post(endpoint, initialize(1, LEGACY))
    drain(endpoint)
    response = answer(post(endpoint, initialize(2, LEGACY)))

    assert (response.status, response.json["id"]) == (503, 2)
    assert of(LimitReached, drain(endpoint))[0].rule == "OWN-004"


def test_a_batch_whose_client_does_not_read_is_given_up() -> None:
    """Each request of the batch must get its ending, as no response can be sent."""
    endpoint = stateless(config=Config(max_unsent_bytes=1000))
    exchange = post(endpoint, [progressing(1), progressing(2), note("x/y")])
    handles = [event.request for event in of(RequestReceived, drain(endpoint))]
    assert len(handles) == 2
    for number in range(1, 60):
        endpoint.send_progress(handles[0], number)

    cancelled = of(RequestCancelled, drain(endpoint))
    assert [event.request for event in cancelled] == handles
    assert not any(handle.open for handle in handles)
    assert exchange.ended


@pytest.mark.parametrize("bad", [call({}, "ping"), call(None, "ping"), {"id": {}}, 7])
@pytest.mark.parametrize("has_sessions", [False, True])
def test_what_cannot_be_read_in_a_batch_answers_nothing_else(bad: Any, has_sessions: bool) -> None:
    """The response must wait for the readable requests of the batch."""
    endpoint = new_endpoint(stateless=not has_sessions)
    batch = [bad, tool_call(1), bad]
    if has_sessions:
        exchange = connect(endpoint, "2025-03-26").post(batch)
    else:
        exchange = post(endpoint, batch)
    assert take(exchange) is None
    handle = asked(endpoint)
    assert endpoint.send_result(handle, {"content": []})

    assert answer(exchange).json == [result(1, {"content": []})]
