"""HTTP+SSE of 2024-11-05: a stream names the address for POST, and each POST is answered by 202.

Source: MCP 2024-11-05, basic/transports, HTTP with SSE.
"""

from typing import Any

import pytest

from sansmcp import (
    CancelCause,
    Config,
    ProtocolViolation,
    RequestCancelled,
    RequestReceived,
    ToolsListChanged,
)
from sansmcp.http import (
    OldPaths,
    ServerEndpoint,
    SessionEnd,
    SessionEnded,
    Sessions,
    SessionStarted,
)
from tests.support.http.server_endpoint import (
    GET,
    JSON,
    LEGACY,
    Response,
    answer,
    asked,
    body_of,
    broken,
    connect,
    drain,
    more,
    new_endpoint,
    of,
    request,
    sessions,
    tool_call,
)
from tests.support.wire import INITIALIZED, call, initialize, note, result

REVISION = "2024-11-05"
PATHS = OldPaths(stream="/sse", post="/messages")


def old_endpoint(**settings: Any) -> ServerEndpoint:
    return new_endpoint(old_paths=PATHS, **settings)


class Old:
    """A client of 2024-11-05 that has read the first event of its stream."""

    def __init__(self, endpoint: ServerEndpoint, **about: Any) -> None:
        self.endpoint = endpoint
        self.about = about
        self.exchange = request(endpoint, "GET", GET, target="/sse?x=1", **about)
        self.response = answer(self.exchange)
        (event,) = self.response.events
        assert event.type == "endpoint"
        self.target = event.data.decode()

    def post(self, message: object) -> Response:
        fields = {"content-type": JSON}
        return answer(
            request(
                self.endpoint, "POST", fields, body_of(message), target=self.target, **self.about
            )
        )

    def read(self) -> list[Any]:
        """The events of the stream since the last call."""
        self.response = more(self.exchange, self.response)
        assert {event.type for event in self.response.events} <= {"message"}
        return self.response.messages


def shaken(endpoint: ServerEndpoint, **about: Any) -> Old:
    old = Old(endpoint, **about)
    assert old.post(initialize(0, REVISION)).status == 202
    (message,) = old.read()
    assert message["result"]["protocolVersion"] == REVISION
    assert old.post(INITIALIZED).status == 202
    return old


def test_the_stream_names_where_to_post() -> None:
    """HSSE-002: without the `endpoint` event a client cannot send."""
    old = Old(old_endpoint())

    assert old.target == "/messages?session_id=s1"
    assert old.response.headers["content-type"] == "text/event-stream"
    assert not old.response.ended


def test_a_conversation_runs_over_both() -> None:
    """HSSE-004: responses come on the stream, and a POST has none."""
    old = shaken(old_endpoint())
    assert of(SessionStarted, drain(old.endpoint))
    response = old.post(tool_call(1))
    assert (response.status, response.body) == (202, b"")
    handle = asked(old.endpoint)
    assert handle.revision == REVISION
    question = old.endpoint.send_request("roots/list", request=handle)
    old.post(result(question.id, {"roots": []}))
    old.endpoint.send_result(handle, {"content": []})
    old.endpoint.publish(ToolsListChanged())

    assert [message.get("method", message.get("id")) for message in old.read()] == [
        "roots/list",
        1,
        "notifications/tools/list_changed",
    ]
    assert old.response.ids == ["", "", ""]


def test_requests_can_be_cancelled() -> None:
    """No request has a stream of its own, so a disconnect cannot cancel it."""
    old = shaken(old_endpoint())
    drain(old.endpoint)
    old.post(tool_call(1))
    handle = asked(old.endpoint)
    old.post(note("notifications/cancelled", {"requestId": 1}))

    assert drain(old.endpoint) == [RequestCancelled(request=handle, cause=CancelCause.PEER)]
    assert old.read() == []
    assert old.post(call(2, "ping")).status == 202
    assert old.read() == [result(2, {})]


def test_the_end_of_the_stream_is_the_end_of_the_session() -> None:
    """A session over HTTP+SSE cannot be resumed."""
    old = shaken(old_endpoint())
    old.post(tool_call(1))
    (handle,) = (event.request for event in of(RequestReceived, drain(old.endpoint)))
    (session,) = old.endpoint.sessions
    old.exchange.receive_disconnect()

    assert drain(old.endpoint) == [
        RequestCancelled(request=handle, cause=CancelCause.CLOSED),
        SessionEnded(session=session, cause=SessionEnd.DISCONNECTED),
    ]
    assert old.post(call(1, "ping")).status == 404


def test_a_stream_that_is_closed_cannot_be_polled() -> None:
    """This revision has no polling."""
    old = shaken(old_endpoint())

    assert not old.endpoint.close_stream(old.endpoint.sessions[0])
    assert old.endpoint.end_session(old.endpoint.sessions[0])
    old.read()
    assert old.response.ended


@pytest.mark.parametrize(
    "target", ["/messages", "/messages?session_id=x", "/messages?session_id=s2"]
)
def test_a_session_has_to_be_named(target: str) -> None:
    """The URI of the stream names the session; a session of Streamable HTTP is no match."""
    endpoint = old_endpoint()
    Old(endpoint)
    connect(endpoint)
    fields = {"content-type": JSON}
    response = answer(request(endpoint, "POST", fields, body_of(call(1, "ping")), target=target))

    assert response.status == 404


def test_a_session_is_its_owners() -> None:
    """Another principal must not use the session, nor may Streamable HTTP."""
    endpoint = old_endpoint()
    old = shaken(endpoint, principal="owner")
    old.about = {"principal": "thief"}
    assert old.post(call(1, "ping")).status == 404
    fields = {**GET, "mcp-session-id": "s1"}
    assert answer(request(endpoint, "GET", fields, principal="owner")).status == 404


def test_requests_of_a_session_have_the_principal_of_its_stream() -> None:
    """All responses go there, so a principal with other rights is not let in, whatever its key."""
    endpoint = old_endpoint()
    old = shaken(endpoint, principal="ann, may write", principal_key="ann")
    old.about = {"principal": "ann, may read", "principal_key": "ann"}
    assert old.post(call(1, "ping")).status == 404
    old.about = {"principal": "ann, may write", "principal_key": "ann"}
    assert old.post(call(1, "ping")).status == 202


def test_two_session_ids_in_the_query_are_refused() -> None:
    """A proxy in front of the server may have read the other one."""
    endpoint = old_endpoint()
    old = Old(endpoint)
    drain(endpoint)
    for query in ("session_id=s1&session_id=s1", "session_id=s1&x=1&session_id=s2"):
        old.target = f"/messages?{query}"
        response = old.post(initialize(0, REVISION))
        assert response.status == 400
        assert broken(endpoint) == ["SESS-006"]
    old.target = "/messages?x=1&session_id=s1"
    assert old.post(initialize(0, REVISION)).status == 202


def test_a_session_id_of_any_signs_comes_back_as_it_was() -> None:
    """The id is in a query, where some characters have a meaning."""
    old = shaken(old_endpoint(sessions=Sessions(new_id=lambda: "a&b=c/%41+~'")))

    assert old.target == "/messages?session_id=a%26b%3Dc%2F%2541%2B~%27"
    assert old.endpoint.sessions[0].id == "a&b=c/%41+~'"


@pytest.mark.parametrize(
    ("method", "target", "allowed"),
    [
        ("POST", "/sse", "GET, OPTIONS"),
        ("DELETE", "/sse", "GET, OPTIONS"),
        ("GET", "/messages", "POST, OPTIONS"),
        ("DELETE", "/messages", "POST, OPTIONS"),
        ("PUT", "/mcp", "GET, POST, DELETE, OPTIONS"),
    ],
)
def test_each_endpoint_has_its_methods(method: str, target: str, allowed: str) -> None:
    """COMPAT-010: the MCP endpoint must stay as it is beside the two paths."""
    response = answer(request(old_endpoint(), method, GET, target=target))

    assert (response.status, response.headers["allow"]) == (405, allowed)
    again = answer(request(old_endpoint(), "OPTIONS", GET, target=target))
    assert again.headers["allow"] == allowed


@pytest.mark.parametrize(
    ("body", "answered"),
    [
        (7, False),
        ({"jsonrpc": "2.0", "id": 5}, True),
        ({"jsonrpc": "2.0", "id": True, "method": "x"}, False),
        ([], False),
        ([call(1, "ping")], False),
    ],
)
def test_what_is_no_message_is_reported(body: object, answered: bool) -> None:
    """An error with an id comes on the stream; this revision has no form for one without."""
    old = shaken(old_endpoint())
    drain(old.endpoint)
    assert old.post(body).status == 202

    assert of(ProtocolViolation, drain(old.endpoint))
    assert [message["error"]["code"] for message in old.read()] == [-32600] * answered


def test_a_body_that_is_no_json_gets_400() -> None:
    """A body that is no JSON names no request that could be answered."""
    old = shaken(old_endpoint())

    assert old.post(b"{").status == 400
    assert broken(old.endpoint)[-1] == "ERR-001"


def test_an_id_in_flight_is_reported() -> None:
    """On the shared stream, an error would be taken for the response to the first request."""
    old = shaken(old_endpoint())
    old.post(tool_call(1))
    drain(old.endpoint)

    assert old.post(tool_call(1)).status == 202
    assert broken(old.endpoint) == ["ID-001"]
    assert old.read() == []


def test_sessions_have_a_limit() -> None:
    """The sessions of both transports must count together."""
    endpoint = old_endpoint(sessions=sessions(max_sessions=1))
    connect(endpoint, LEGACY)

    assert answer(request(endpoint, "GET", GET, target="/sse")).status == 503


def test_a_client_that_never_reads_ends_its_session() -> None:
    """The stream has the output limit of a connection."""
    endpoint = old_endpoint(config=Config(max_unsent_bytes=2000, soft_unsent_bytes=10**6))
    old = shaken(endpoint)
    for number in range(200):
        old.post(call(number + 10, "ping"))

    assert of(SessionEnded, drain(endpoint))[0].cause is SessionEnd.OVERFLOW
    assert endpoint.sessions == ()


def test_silent_streams_keep_their_session() -> None:
    """An open stream shows that the client is there."""
    endpoint = old_endpoint(sessions=sessions(idle=10.0), keep_alive=None)
    old = Old(endpoint, now=0.0)
    old.about = {}
    endpoint.handle_timeout(11.0)
    assert endpoint.sessions

    assert old.post(initialize(0, REVISION)).status == 202


@pytest.mark.parametrize("settings", [{"stateless": True}])
def test_it_needs_sessions(settings: Any) -> None:
    """HTTP+SSE has no requests outside of sessions."""
    with pytest.raises(ValueError, match="sessions"):
        old_endpoint(**settings)


@pytest.mark.parametrize(
    ("stream", "post"),
    [
        ("/mcp", "/mcp"),
        ("sse", "/messages"),
        ("/sse", "messages"),
        ("/sse?a", "/b"),
        ("/a b", "/b"),
    ],
)
def test_paths_that_could_not_be_told_apart_or_asked_for_raise(stream: str, post: str) -> None:
    """All requests to such paths would be refused."""
    with pytest.raises(ValueError, match="path"):
        OldPaths(stream=stream, post=post)
