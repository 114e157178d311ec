"""Sessions of the legacy revisions: assigned, required, found, bound to their user."""

from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    Config,
    FailureReason,
    JSONObject,
    LimitReached,
    LocalProtocolError,
    ProtocolViolation,
    Ready,
    RequestAnswered,
    RequestFailed,
    RequestReceived,
    ToolsListChanged,
)
from sansmcp.http import OldPaths, Sessions, SessionStarted
from tests.support.http.server_endpoint import (
    GET,
    JSON,
    LEGACY,
    SSE,
    STREAMABLE,
    answer,
    asked,
    broken,
    client,
    connect,
    drain,
    modern_tool_call,
    new_endpoint,
    of,
    post,
    post_modern,
    progressing,
    request,
    sessions,
    take,
    tool_call,
)
from tests.support.wire import INITIALIZED, call, initialize, new_server, result

REVISIONS = pytest.mark.parametrize("revision", STREAMABLE)


# ------------------------------------------------------------------------------------- opening


@REVISIONS
def test_initialize_opens_a_session(revision: str) -> None:
    """SESS-001: the session id must come with the result, for all later requests."""
    endpoint = new_endpoint()
    exchange = post(endpoint, initialize(0, revision), principal="me")
    response = answer(exchange)

    assert response.json["result"]["protocolVersion"] == revision
    assert response.headers["mcp-session-id"] == "s1"
    started, answered = drain(endpoint)
    assert isinstance(started, SessionStarted)
    assert isinstance(answered, RequestAnswered)
    session = started.session
    assert (session.id, session.principal, session.open) == ("s1", "me", True)
    assert session.revision == session.peer.revision == revision
    assert session.peer.session is session
    assert session.peer.principal == "me"
    assert endpoint.sessions == (session,)
    assert "s1" not in repr(session)


@REVISIONS
def test_a_session_is_a_conversation(revision: str) -> None:
    """The revision and capabilities of the handshake must hold in all later exchanges."""
    one = client(revision)
    exchange, asked_for = one.asked(tool_call(5))

    assert asked_for.revision == revision
    assert asked_for.peer is one.session.peer
    assert one.endpoint.send_result(asked_for, {"content": []})
    assert answer(exchange).json == result(5, {"content": []})


def test_a_peer_is_shown_without_its_secrets() -> None:
    """Logs show reprs, which must have neither the principal nor the session id."""
    one = client()
    assert repr(one.session.peer) == f"<Peer 'client' revision={LEGACY}>"
    assert repr(new_server().peer) == "<Peer None revision=None>"


def test_requests_know_their_exchange() -> None:
    """Each request must have the context that its transport gave."""
    one = client()
    one.post(tool_call(5), context="A")
    one.post(tool_call(6), context="B")

    assert [event.request.context for event in of(RequestReceived, drain(one.endpoint))] == [
        "A",
        "B",
    ]


def test_ready_comes_with_initialized() -> None:
    """`Ready` must come with `notifications/initialized`, and its peer must lead to the session."""
    endpoint = new_endpoint()
    post(endpoint, initialize(0, LEGACY))
    drain(endpoint)
    response = answer(post(endpoint, INITIALIZED, {"mcp-session-id": "s1"}))

    assert (response.status, response.body) == (202, b"")
    (event,) = drain(endpoint)
    assert isinstance(event, Ready)
    assert event.peer.session is endpoint.sessions[0]


@pytest.mark.parametrize(
    "message",
    [
        call(1, "initialize", {"protocolVersion": 7, "capabilities": {}, "clientInfo": {}}),
        call(1, "initialize"),
        {"id": 1, "method": "initialize"},
        call(None, "initialize", {}),
    ],
)
def test_a_refused_initialize_opens_nothing(message: JSONObject) -> None:
    """Broken clients would fill the table of sessions."""
    endpoint = new_endpoint()
    response = answer(post(endpoint, message))

    assert response.status == 400
    assert "mcp-session-id" not in response.headers
    assert endpoint.sessions == ()
    assert not of(SessionStarted, drain(endpoint))
    assert endpoint.next_timeout() is None


def test_the_application_may_answer_initialize() -> None:
    """With `Config.manual` the session must start with the application's answer, or be
    forgotten."""
    endpoint = new_endpoint(config=Config(manual=frozenset({"initialize"})))
    exchange = post(endpoint, initialize(0, LEGACY))
    handle = asked(endpoint)
    info = {
        "protocolVersion": LEGACY,
        "capabilities": {},
        "serverInfo": {"name": "x", "version": "1"},
    }
    assert endpoint.send_result(handle, info)
    assert answer(exchange).headers["mcp-session-id"] == "s1"
    assert of(SessionStarted, drain(endpoint))

    exchange = post(endpoint, initialize(0, LEGACY))
    handle = asked(endpoint)
    assert len(endpoint.sessions) == 2
    assert endpoint.send_error(handle, -32000, "no")
    response = answer(exchange)
    assert (response.status, response.json["error"]["code"]) == (200, -32000)
    assert "mcp-session-id" not in response.headers
    assert len(endpoint.sessions) == 1
    assert drain(endpoint) == []


@pytest.mark.parametrize("answers", ["auto", "sse"])
def test_nothing_comes_before_the_answer_to_initialize(answers: Any) -> None:
    """SESS-001: the head of the response names the session, so it must not be sent earlier."""
    endpoint = new_endpoint(config=Config(manual=frozenset({"initialize"})), answers=answers)
    opening = initialize(0, LEGACY)
    opening["params"]["_meta"] = {"progressToken": 1}
    exchange = post(endpoint, opening)
    handle = asked(endpoint)
    assert not endpoint.start_stream(handle)
    assert not endpoint.send_progress(handle, 1)
    assert take(exchange) is None
    info: JSONObject = {"name": "s", "version": "1"}
    endpoint.send_result(
        handle, {"protocolVersion": LEGACY, "capabilities": {}, "serverInfo": info}
    )

    response = answer(exchange)
    assert response.headers["mcp-session-id"] == "s1"
    assert response.is_stream is (answers == "sse")


def test_initialize_may_be_answered_on_a_stream() -> None:
    """If only streams are accepted or used, the id must be in the head of the stream."""
    for endpoint, accept in (
        (new_endpoint(), SSE),
        (new_endpoint(answers="sse"), f"{JSON}, {SSE}"),
    ):
        response = answer(post(endpoint, initialize(0, LEGACY), {"accept": accept}))
        assert response.headers["mcp-session-id"] == "s1"
        assert response.messages[-1]["result"]["protocolVersion"] == LEGACY
        assert response.ended


@pytest.mark.parametrize("bad", ["", "a b", "é", "a\n"])
def test_an_id_that_cannot_be_sent_raises(bad: str) -> None:
    """SESS-003: an id of the caller must be visible ASCII, and a refused one leave nothing open."""
    endpoint = new_endpoint(sessions=Sessions(new_id=lambda: bad))
    exchange = endpoint.exchange("POST", "/", {"content-type": JSON}.items())
    exchange.receive_data(__import__("json").dumps(initialize(0, LEGACY)).encode())
    with pytest.raises(LocalProtocolError, match="SESS-003"):
        exchange.receive_end()

    assert endpoint.sessions == ()
    assert answer(exchange).status == 500


def test_an_id_that_is_given_twice_raises() -> None:
    """Two clients would share one session."""
    endpoint = new_endpoint(sessions=Sessions(new_id=lambda: "same"))
    post(endpoint, initialize(0, LEGACY))
    with pytest.raises(LocalProtocolError, match="SESS-003"):
        post(endpoint, initialize(0, LEGACY))

    assert len(endpoint.sessions) == 1


def test_sessions_have_a_limit() -> None:
    """A session over the limit must get 503, until another one has ended."""
    endpoint = new_endpoint(sessions=sessions(max_sessions=1))
    one = connect(endpoint)
    response = answer(post(endpoint, initialize("x", LEGACY)))

    assert (response.status, response.json["id"]) == (503, "x")
    assert response.json["error"]["code"] == -32603
    assert of(LimitReached, drain(endpoint))[0].rule == "OWN-030"
    one.delete()
    drain(endpoint)
    assert connect(endpoint).session.open


# ------------------------------------------------------------------------------------- finding


@REVISIONS
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_without_an_id_there_is_no_session(method: str, revision: str) -> None:
    """SESS-006: a request without a session id must be refused with 400."""
    one = client(revision)
    fields = {"content-type": JSON, "accept": f"{JSON}, {SSE}"}
    response = answer(request(one.endpoint, method, fields, b'{"jsonrpc":"2.0","method":"x"}'))

    assert response.status == 400
    assert "initialize" in response.json["error"]["message"]
    assert broken(one.endpoint) == ["SESS-006"]


@pytest.mark.parametrize(("revisions", "code"), [(LEGACY_REVISIONS, -32600), (None, -32602)])
def test_the_error_names_the_ways_in(revisions: Any, code: int) -> None:
    """A server of both eras must name `initialize` and the modern envelope."""
    endpoint = new_endpoint() if revisions is None else new_endpoint(revisions=revisions)
    error = answer(post(endpoint, call(3, "tools/list"))).json

    assert (error["id"], error["error"]["code"]) == (3, code)
    assert ("2026-07-28" in error["error"]["message"]) == (code == -32602)


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_an_unknown_id_is_not_found(method: str) -> None:
    """SESS-008: the client must open another session, and the log name a likely cause."""
    fields = {"content-type": JSON, "accept": SSE, "mcp-session-id": "never"}
    endpoint = new_endpoint()
    response = answer(request(endpoint, method, fields, b'{"jsonrpc":"2.0","method":"x"}'))

    assert response.status == 404
    assert b"workers" in response.body
    violation = endpoint.next_event()
    assert isinstance(violation, ProtocolViolation)
    assert violation.rule == "SESS-008"
    assert "several workers" in violation.text


def test_an_id_that_comes_twice_is_none() -> None:
    """A proxy in front may have read the other session id."""
    one = client()
    exchange = one.endpoint.exchange(
        "GET", "/", [*GET.items(), ("mcp-session-id", "s1"), ("Mcp-Session-Id", "s1")]
    )
    exchange.receive_end()

    assert answer(exchange).status == 400


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_session_is_its_owners(method: str) -> None:
    """A client with a foreign session id must not even learn that the session exists."""
    one = connect(new_endpoint(), principal="owner")
    fields = {"content-type": JSON, "accept": f"{JSON}, {SSE}", **one.headers}
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'

    assert answer(request(one.endpoint, method, fields, body, principal="thief")).status == 404
    assert answer(request(one.endpoint, method, fields, body)).status == 404
    assert one.session.open
    assert answer(request(one.endpoint, "POST", fields, body, principal="owner")).status == 200


def test_a_handler_sees_the_principal_of_its_request() -> None:
    """A principal is one account by its key: its object may change with a token and its scopes."""
    endpoint = new_endpoint()
    one = connect(endpoint, principal="ann, may write", principal_key="ann")
    assert one.session.principal_key == "ann"
    reader: dict[str, Any] = {"principal": "ann, may read", "principal_key": "ann"}
    cases: list[tuple[dict[str, Any], int]] = [
        (reader, 0),
        ({"principal": "ann, may write", "principal_key": "bob"}, 404),
        ({"principal": "ann, may write"}, 404),
    ]
    for about, status in cases:
        exchange = one.post(tool_call(3), **about)
        if status:
            assert answer(exchange).status == status
            continue
        handle = asked(endpoint)
        assert (handle.principal, handle.principal_key) == ("ann, may read", "ann")
        assert endpoint.send_result(handle, {"content": []})
        assert answer(exchange).status == 200


# ------------------------------------------------------------------------------------- revision


@pytest.mark.parametrize("value", ["1999-01-01-x", "", "2026-07-29", "2025-11-25, 2025-11-25"])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_an_unknown_revision_is_refused(method: str, value: str) -> None:
    """HDR-004: the request must not be delivered."""
    one = client()
    fields = {"content-type": JSON, "accept": SSE, **one.headers, "mcp-protocol-version": value}
    response = answer(
        request(one.endpoint, method, fields, b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    )

    assert response.status == 400
    assert not of(RequestReceived, drain(one.endpoint))
    assert one.session.open


def test_a_revision_that_this_server_does_not_speak_is_refused() -> None:
    """A revision that exists but is not served must be refused too."""
    one = connect(new_endpoint(revisions=("2025-11-25",)))

    assert answer(one.post(call(1, "ping"), {"mcp-protocol-version": "2025-06-18"})).status == 400


def test_the_field_may_be_missing() -> None:
    """HDR-003: the session has a revision already."""
    one = client()
    fields = {"mcp-session-id": one.headers["mcp-session-id"]}

    assert answer(post(one.endpoint, call(1, "ping"), fields)).status == 200


def test_the_field_may_be_another_revision_that_is_served() -> None:
    """HDR-002 is a SHOULD: the difference must be reported, and the session's revision used."""
    one = client("2025-06-18")
    assert answer(one.post(call(1, "ping"), {"mcp-protocol-version": "2025-11-25"})).status == 200

    (event,) = of(ProtocolViolation, drain(one.endpoint))
    assert (event.rule, event.tolerated) == ("HDR-002", True)


def test_the_field_that_comes_twice_is_refused() -> None:
    """Two headers must be refused even if both are right."""
    one = client()
    exchange = one.endpoint.exchange(
        "GET", "/", [*GET.items(), *one.headers.items(), ("MCP-Protocol-Version", LEGACY)]
    )
    exchange.receive_end()

    assert answer(exchange).status == 400
    assert broken(one.endpoint) == ["HDR-004"]


@pytest.mark.parametrize("value", ["1999-01-01", "2025-03-26", "2026-07-28"])
def test_the_field_is_not_judged_on_initialize(value: str) -> None:
    """The revision is only agreed on by `initialize`."""
    response = answer(post(new_endpoint(), initialize(0, LEGACY), {"mcp-protocol-version": value}))

    assert response.json["result"]["protocolVersion"] == LEGACY


def test_a_server_without_streams_keeps_sessions_and_nothing_that_needs_a_get() -> None:
    """Messages that need a GET stream must be refused or reported as lost at once."""
    endpoint = new_endpoint(streams=False)
    response = answer(post(endpoint, initialize(0, LEGACY)))
    assert response.json["result"]["capabilities"]["tools"] == {}
    assert "logging" in response.json["result"]["capabilities"]  # its level lasts in a session
    drain(endpoint)
    one = connect(endpoint)
    refused = answer(one.get())
    assert (refused.status, refused.headers["allow"]) == (405, "POST, DELETE, OPTIONS")
    assert not endpoint.publish(ToolsListChanged())
    drain(endpoint)
    question = endpoint.send_request("roots/list", session=one.session)
    (failed,) = of(RequestFailed, drain(endpoint))
    assert (failed.request, failed.reason) == (question, FailureReason.NO_STREAM)
    exchange, handle = one.asked(progressing(1))
    assert endpoint.send_progress(handle, 1)
    endpoint.send_result(handle, {"content": []})
    response = answer(exchange)
    assert len(response.messages) == 2
    assert response.ids == ["", ""]  # none could be named in a GET

    fixed = new_endpoint(streams=False, sessions=sessions(allow_delete=False))
    assert answer(connect(fixed).get()).headers["allow"] == "POST, OPTIONS"
    with pytest.raises(ValueError, match="old_paths need sessions, and streams"):
        new_endpoint(streams=False, old_paths=OldPaths(stream="/sse", post="/messages"))


# ---------------------------------------------------------------- the session of a client


def test_a_client_is_sent_what_belongs_to_no_request_in_its_session() -> None:
    """The handle of a client must be enough to send on its session."""
    one = client()
    peer = one.session.peer
    assert one.endpoint.session_to_ask(peer, "roots/list") is one.session
    assert one.endpoint.session_to_notify(peer, "notifications/x") is one.session


@pytest.mark.parametrize(
    ("message", "rule_of_request", "rule_of_notification"),
    [(modern_tool_call(1), "STATE-006", "STATE-008"), (tool_call(1), "STATE-006", "OWN-038")],
)
def test_a_client_without_a_session_is_sent_nothing_that_belongs_to_no_request(
    message: JSONObject, rule_of_request: str, rule_of_notification: str
) -> None:
    """Such a client has no stream for it, and the error must name the alternatives."""
    endpoint = new_endpoint(stateless=True)
    if message["params"].get("_meta"):
        post_modern(endpoint, message)
    else:
        post(endpoint, message, {"mcp-protocol-version": LEGACY})
    peer = asked(endpoint).peer
    with pytest.raises(LocalProtocolError) as raised:
        endpoint.session_to_ask(peer, "roots/list")
    assert raised.value.rule == rule_of_request
    with pytest.raises(LocalProtocolError) as raised:
        endpoint.session_to_notify(peer, "notifications/x")
    assert raised.value.rule == rule_of_notification
