"""Faults that users of HTTP servers have reported, each tested as the right behaviour.

The numbers are those of the shared file of cases, which says where each was reported.
"""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from sansmcp import (
    MODERN_REVISIONS,
    CancelCause,
    JSONObject,
    MessageIgnored,
    PingEnded,
    ProtocolViolation,
    RequestCancelled,
    RequestReceived,
    ResourcesListChanged,
    ToolsListChanged,
)
from sansmcp.http import MessageUndelivered, ServerEndpoint, SessionEnd, SessionEnded
from tests.support.data import cases_of_http
from tests.support.http.server_endpoint import (
    JSON,
    SSE,
    STREAMABLE,
    Client,
    Response,
    answer,
    asked,
    broken,
    client,
    connect,
    drain,
    more,
    new_endpoint,
    of,
    post,
    request,
    sessions,
    take,
    tool_call,
)
from tests.support.modern import CAPABILITIES, MODERN, VERSION
from tests.support.wire import call, initialize, note, result

POST: Final = {"content-type": JSON, "accept": f"{JSON}, {SSE}"}
OK: Final = {"content": [{"type": "text", "text": "ok"}]}
META: Final[JSONObject] = {VERSION: MODERN, CAPABILITIES: {}}

ON_SERVERS: Final = {"c286"}
"""Cases that need a real server below ASGI: they are in
tests/adapters/http_server/test_clients_that_leave.py."""
found: dict[str, Callable[..., None]] = {}


def case(*ids: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a test with the numbers of its cases."""

    def mark(test: Callable[..., None]) -> Callable[..., None]:
        found.update(dict.fromkeys(ids, test))
        return test

    return mark


def legacy(*revisions: str) -> pytest.MarkDecorator:
    """Run the test at each of these revisions."""
    return pytest.mark.parametrize("revision", revisions or STREAMABLE)


def test_every_case_has_a_test() -> None:
    """A case without a test could come back unnoticed."""
    ids = cases_of_http("server")

    assert len(ids) > 30
    assert ids == found.keys() | ON_SERVERS


def running(one: Client, id: int) -> tuple[Any, Any]:
    return one.asked(tool_call(id))


@case("c015")
@legacy()
def test_an_id_in_flight_is_not_crossed(revision: str) -> None:
    """The second request must be refused, and the result go to the first one only."""
    one = client(revision)
    a, handle = running(one, 1)
    b = answer(one.post(tool_call(1, "other")))
    assert (b.status, b.json["error"]["code"]) == (400, -32600)

    one.endpoint.send_result(handle, OK)
    assert answer(a).json == result(1, OK)


@case("c023")
@legacy()
def test_a_request_of_the_server_with_the_same_id_ends_no_stream(revision: str) -> None:
    """Only the response to the client's request must end its stream."""
    one = client(revision)
    exchange, handle = running(one, 1)
    question = one.endpoint.send_request("roots/list", request=handle)
    assert question.id == handle.id == 1
    response = answer(exchange)
    assert not response.ended

    one.endpoint.send_result(handle, OK)
    rest = more(exchange, response)
    assert (rest.messages, rest.ended) == ([result(1, OK)], True)


@case("c044")
def test_a_closed_stream_cancels_in_the_modern_revision() -> None:
    """The disconnect must cancel the request, and a late result be dropped."""
    endpoint = new_endpoint(revisions=MODERN_REVISIONS)
    a = modern_post(endpoint, {"mcp-method": "tools/call", "mcp-name": "x"}, called(4, "x"))
    handle = asked(endpoint)
    endpoint.start_stream(handle)
    a.receive_disconnect()

    assert drain(endpoint) == [RequestCancelled(request=handle, cause=CancelCause.PEER)]
    assert not endpoint.send_result(handle, OK)
    assert a.next_output() is None


@case("c045")
@legacy()
def test_a_cancelled_request_ends_its_stream(revision: str) -> None:
    """The connection must be free again, without a response."""
    one = client(revision)
    a, handle = running(one, 4)
    one.endpoint.start_stream(handle)
    before = answer(a)
    cancel = note("notifications/cancelled", {"requestId": 4})
    fields = {"mcp-session-id": one.headers["mcp-session-id"], "content-type": JSON}
    assert answer(request(one.endpoint, "POST", fields, json.dumps(cancel).encode())).status == 202

    assert drain(one.endpoint) == [RequestCancelled(request=handle, cause=CancelCause.PEER)]
    rest = more(a, before)
    assert (rest.body, rest.ended) == (b"", True)


@case("c075")
@legacy()
def test_a_second_initialize_is_refused(revision: str) -> None:
    """The session must stay as it is, and no other be opened."""
    one = client(revision)
    response = answer(one.post(initialize(9, "2025-11-25")))

    assert (response.status, response.json["id"]) == (400, 9)
    assert response.json["error"]["code"] == -32600
    assert "mcp-session-id" not in response.headers
    assert one.endpoint.sessions == (one.session,)
    assert answer(one.post(call(10, "ping"))).status == 200


@case("c145")
@legacy()
def test_media_types_have_parameters_and_no_case(revision: str) -> None:
    """A charset or another case must not refuse JSON."""
    one = client(revision)
    for id, kind in ((2, "application/json; charset=utf-8"), (3, "Application/JSON")):
        assert answer(one.post(call(id, "ping"), {"content-type": kind})).json == result(id, {})


@case("c146")
@pytest.mark.parametrize("revisions", [STREAMABLE, MODERN_REVISIONS])
def test_a_body_that_is_not_called_json_is_not_executed(revisions: tuple[str, ...]) -> None:
    """A page of another origin can send such a body without a preflight."""
    endpoint = new_endpoint(revisions=revisions)
    for fields in ({"content-type": "text/plain"}, {}):
        accept = {"accept": POST["accept"], **fields}
        body = json.dumps(call(2, "ping")).encode()
        assert answer(request(endpoint, "POST", accept, body)).status == 415
    assert not of(RequestReceived, drain(endpoint))


@case("c148")
@pytest.mark.parametrize("revisions", [("2025-11-25",), MODERN_REVISIONS])
def test_pages_of_other_origins_are_refused(revisions: tuple[str, ...]) -> None:
    """The refusal must come before delivery; a client without Origin must be served."""
    endpoint = new_endpoint(revisions=revisions, origins=("http://localhost:3000",))
    for origin in ("https://evil.example", "null"):
        assert answer(post(endpoint, call(1, "ping"), {"origin": origin})).status == 403
    fields = {"origin": "https://evil.example", "accept": SSE}
    assert answer(request(endpoint, "GET", fields)).status == 403
    assert set(broken(endpoint)) == {"HTTP-001"}

    assert answer(post(endpoint, call(1, "ping"))).status != 403
    assert (
        answer(post(endpoint, call(1, "ping"), {"origin": "http://localhost:3000"})).status != 403
    )


@case("c149")
@pytest.mark.parametrize("revisions", [STREAMABLE, MODERN_REVISIONS])
def test_hosts_are_widened_by_configuration(revisions: tuple[str, ...]) -> None:
    """Behind a proxy the server has another host name."""
    endpoint = new_endpoint(revisions=revisions, hosts=("api.example",))

    assert answer(post(endpoint, call(1, "ping"), {"host": "api.example"})).status != 403
    assert answer(post(endpoint, call(2, "ping"), {"host": "rebind.example"})).status == 403


@case("c150")
@legacy()
def test_a_dead_session_is_not_found(revision: str) -> None:
    """404, and not 400, makes clients open a new session."""
    one = client(revision)
    one.endpoint.end_session(one.session)
    for id in (one.session.id, "never-issued"):
        assert answer(one.post(call(2, "ping"), {"mcp-session-id": id})).status == 404


@case("c157")
@legacy()
def test_a_session_without_its_client_expires(revision: str) -> None:
    """An idle session must expire by the caller's clock, and leave no state."""
    endpoint = new_endpoint(sessions=sessions(idle=3600.0))
    one = connect(endpoint, revision, now=0.0)
    endpoint.handle_timeout(100_000.0)

    assert drain(endpoint) == [SessionEnded(session=one.session, cause=SessionEnd.EXPIRED)]
    assert endpoint.sessions == ()
    assert endpoint.next_timeout() is None
    assert answer(one.post(call(2, "ping"))).status == 404


@case("c158")
@legacy("2025-06-18", "2025-11-25")
def test_an_unknown_revision_is_refused(revision: str) -> None:
    """The request must not be delivered."""
    one = client(revision)
    response = answer(one.post(call(2, "tools/list"), {"mcp-protocol-version": "1999-01-01-x"}))

    assert response.status == 400
    assert not of(RequestReceived, drain(one.endpoint))


@case("c159")
@legacy("2025-06-18", "2025-11-25")
def test_the_session_knows_the_revision(revision: str) -> None:
    """The revision header may be missing within a session."""
    one = client(revision)
    fields = {"mcp-session-id": one.session.id}

    assert answer(post(one.endpoint, call(2, "ping"), fields)).json == result(2, {})
    assert one.session.revision == revision


@case("c160")
@legacy("2025-06-18", "2025-11-25")
def test_initialize_needs_no_revision_in_its_head(revision: str) -> None:
    """The revision is agreed on by `initialize` itself."""
    assert answer(post(new_endpoint(revisions=(revision,)), initialize(1, revision))).status == 200


@case("c168")
@legacy()
def test_several_listening_streams_are_no_conflict(revision: str) -> None:
    """A message must go on the newest GET stream only, and calls be untouched."""
    one = client(revision)
    g1 = one.get()
    before = answer(g1)
    _, handle = running(one, 1)
    g2 = one.get()
    response = answer(g2)
    assert response.status == 200
    one.endpoint.publish(ToolsListChanged())

    assert more(g1, before).body == b""
    assert more(g2, response).messages == [note("notifications/tools/list_changed")]
    assert handle.open


@case("c170")
@legacy()
def test_an_answer_goes_on_no_listening_stream(revision: str) -> None:
    """A response must go on the stream of its request."""
    one = client(revision)
    a, handle = running(one, 1)
    g = one.get()
    before = answer(g)
    one.endpoint.send_result(handle, OK)

    assert answer(a).json == result(1, OK)
    assert more(g, before).body == b""


@case("c172")
@legacy()
def test_nothing_is_lost_silently(revision: str) -> None:
    """With a log a message must wait; without one a ping must end at once."""
    one = client(revision)
    one.endpoint.publish(ResourcesListChanged())
    one.endpoint.ping(one.session)
    methods = [message["method"] for message in answer(one.get()).messages]
    assert sorted(methods) == ["notifications/resources/list_changed", "ping"]

    bare = client(revision, sessions=sessions(event_log=None))
    bare.endpoint.send_notification("x/y", session=bare.session)
    bare.endpoint.ping(bare.session)
    lost, ended = drain(bare.endpoint)
    assert isinstance(lost, MessageUndelivered)
    assert isinstance(ended, PingEnded)


@case("c192")
@legacy()
def test_a_replay_is_of_one_stream(revision: str) -> None:
    """The replay must end with the response of that stream."""
    one = client(revision)
    g = one.get()
    a = one.post(call(1, "tools/call", {"name": "t", "_meta": {"progressToken": 1}}))
    handle = asked(one.endpoint)
    one.endpoint.send_progress(handle, 1)
    one.endpoint.publish(ToolsListChanged())
    one.endpoint.send_result(handle, OK)
    one.endpoint.publish(ToolsListChanged())
    answer(g)
    ids = answer(a).ids
    response = answer(one.get({"last-event-id": ids[-2]}))

    assert (response.messages, response.ended) == ([result(1, OK)], True)


@case("c193")
@legacy()
def test_an_event_of_somebody_else_replays_nothing(revision: str) -> None:
    """An event id of another session, or of none, must replay nothing."""
    endpoint = new_endpoint()
    one, other = connect(endpoint, revision), connect(endpoint, revision)
    exchanges = [each.get() for each in (one, other)]
    endpoint.publish(ToolsListChanged())
    mine, theirs = (answer(exchange).ids[-1] for exchange in exchanges)
    assert mine != theirs

    for last in (theirs, "other-1"):
        assert answer(one.get({"last-event-id": last})).status == 400


@case("c194")
@legacy()
def test_an_answer_is_kept_for_a_client_that_comes_back(revision: str) -> None:
    """A response without a connection must be kept in the log."""
    one = client(revision)
    a = one.post(call(1, "tools/call", {"name": "t", "_meta": {"progressToken": 1}}))
    handle = asked(one.endpoint)
    one.endpoint.send_progress(handle, 1)
    last = answer(a).ids[0]
    a.receive_disconnect()
    one.endpoint.send_result(handle, OK)

    assert answer(one.get({"last-event-id": last})).messages[-1] == result(1, OK)


# ------------------------------------------------------------------------------------- modern


def modern_post(endpoint: ServerEndpoint, fields: dict[str, str], message: Any) -> Any:
    return post(endpoint, message, {"mcp-protocol-version": MODERN, **fields})


def called(id: int, name: str, meta: Any = META, **arguments: Any) -> Any:
    params = {"name": name, "arguments": arguments}
    return call(id, "tools/call", params if meta is None else {**params, "_meta": meta})


def refused(response: Response, id: int, code: int) -> bool:
    return (response.status, response.json["id"], response.json["error"]["code"]) == (400, id, code)


BOTH_KINDS = pytest.mark.parametrize("revisions", [MODERN_REVISIONS, (*STREAMABLE, MODERN)])


@case("c199")
@BOTH_KINDS
def test_required_fields_are_required(revisions: tuple[str, ...]) -> None:
    """`Mcp-Method` is always required, and `Mcp-Name` for methods with a name."""
    endpoint = new_endpoint(revisions=revisions)
    tool = called(1, "get_weather")
    assert refused(answer(modern_post(endpoint, {"mcp-name": "get_weather"}, tool)), 1, -32020)
    assert refused(answer(modern_post(endpoint, {"mcp-method": "tools/call"}, tool)), 1, -32020)
    read = call(3, "resources/read", {"uri": "file:///a", "_meta": META})
    assert refused(answer(modern_post(endpoint, {"mcp-method": "resources/read"}, read)), 3, -32020)
    assert not of(RequestReceived, drain(endpoint))

    listing = call(4, "tools/list", {"_meta": META})
    assert take(modern_post(endpoint, {"mcp-method": "tools/list"}, listing)) is None
    assert asked(endpoint).method == "tools/list"


@case("c200")
@BOTH_KINDS
def test_a_name_is_decoded_before_it_is_compared(revisions: tuple[str, ...]) -> None:
    """A URI may have characters that a header cannot have."""
    endpoint = new_endpoint(revisions=revisions)
    uri = "file:///Za\u0142\u0105czniki/r.pdf"
    fields = {
        "mcp-method": "resources/read",
        "mcp-name": "=?base64?ZmlsZTovLy9aYcWCxIVjem5pa2kvci5wZGY=?=",
    }
    modern_post(endpoint, fields, call(1, "resources/read", {"uri": uri, "_meta": META}))

    assert asked(endpoint).params["uri"] == uri


@case("c201")
@BOTH_KINDS
def test_a_name_that_cannot_be_decoded_is_refused(revisions: tuple[str, ...]) -> None:
    """Other spellings of the encoding mark are plain text."""
    endpoint = new_endpoint(revisions=revisions)
    for id, name in ((1, "=?base64?%%%?="), (2, "=?BASE64?eA==?=")):
        fields = {"mcp-method": "tools/call", "mcp-name": name}
        assert refused(answer(modern_post(endpoint, fields, called(id, "x"))), id, -32020)


@case("c203")
@BOTH_KINDS
def test_field_and_body_name_one_revision(revisions: tuple[str, ...]) -> None:
    """A difference must be refused even if both revisions are served."""
    fields = {
        "mcp-protocol-version": "2025-11-25",
        "mcp-method": "tools/call",
        "mcp-name": "get_weather",
    }
    endpoint = new_endpoint(revisions=revisions)

    assert refused(answer(post(endpoint, called(1, "get_weather"), fields)), 1, -32020)


@case("c204")
@BOTH_KINDS
def test_a_missing_envelope_is_no_header_mismatch(revisions: tuple[str, ...]) -> None:
    """The request is malformed, and must open no session."""
    endpoint = new_endpoint(revisions=revisions)
    fields = {"mcp-method": "tools/call", "mcp-name": "get_weather"}
    assert refused(answer(modern_post(endpoint, fields, called(1, "get_weather", None))), 1, -32602)
    listing = call(2, "tools/list", {"_meta": {VERSION: MODERN}})
    assert refused(answer(modern_post(endpoint, {"mcp-method": "tools/list"}, listing)), 2, -32602)

    assert endpoint.sessions == ()


@case("c205")
@BOTH_KINDS
def test_a_missing_revision_is_a_header_mismatch(revisions: tuple[str, ...]) -> None:
    """The body shows that the request is modern."""
    response = answer(post(new_endpoint(revisions=revisions), called(1, "get_weather")))

    assert refused(response, 1, -32020)


@case("c208")
@BOTH_KINDS
def test_names_of_fields_have_no_case_and_values_have(revisions: tuple[str, ...]) -> None:
    """Header names have no case in HTTP; method names have one in JSON-RPC."""
    endpoint = new_endpoint(revisions=revisions)
    fields = {
        "MCP-PROTOCOL-VERSION": MODERN,
        "mCp-MeThOd": "tools/call",
        "MCP-NAME": "get_weather",
    }
    post(endpoint, called(1, "get_weather"), fields)
    assert asked(endpoint).id == 1
    fields = {"mcp-method": "Tools/Call", "mcp-name": "get_weather"}

    assert refused(answer(modern_post(endpoint, fields, called(2, "get_weather"))), 2, -32020)


@case("c209")
@BOTH_KINDS
def test_mirrored_parameters_are_compared(revisions: tuple[str, ...]) -> None:
    """null means no header, and integers are compared as numbers."""
    properties = {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "n": {"type": "integer", "x-mcp-header": "N"},
    }

    def schema(_name: str) -> JSONObject:
        return {"type": "object", "properties": properties}

    endpoint = new_endpoint(revisions=revisions, tool_schema=schema)
    fields = {"mcp-method": "tools/call", "mcp-name": "q"}
    differs = {**fields, "mcp-param-region": "us"}
    assert refused(answer(modern_post(endpoint, differs, called(1, "q", region="eu"))), 1, -32020)
    assert refused(answer(modern_post(endpoint, fields, called(2, "q", region="eu"))), 2, -32020)
    modern_post(endpoint, {**fields, "mcp-param-n": "42.0"}, called(3, "q", region=None, n=42))

    assert asked(endpoint).id == 3
    assert not of(MessageIgnored, drain(endpoint))


@case("c285")
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_call_that_cannot_be_answered_any_more_gets_503(era: str) -> None:
    """The error must have the id and not blame the request; a subscription must get its result."""
    endpoint = new_endpoint()
    if era == "legacy":
        exchange = connect(endpoint).post(tool_call(7))
    else:
        exchange = modern_post(
            endpoint, {"mcp-method": "tools/call", "mcp-name": "x"}, called(7, "x")
        )
    asked(endpoint)
    params = {"notifications": {"toolsListChanged": True}, "_meta": META}
    fields = {"mcp-method": "subscriptions/listen"}
    listening = modern_post(endpoint, fields, call(8, "subscriptions/listen", params))
    endpoint.close()

    response = answer(exchange)
    assert response.status == 503
    assert (response.json["id"], response.json["error"]["code"]) == (7, -32603)
    ended = answer(listening)
    assert (ended.status, ended.ended, ended.messages[-1]["id"]) == (200, True, 8)


@case("c282")
@pytest.mark.parametrize("streams", [True, False])
def test_what_cannot_be_kept_is_not_declared(streams: bool) -> None:
    """Without sessions or streams a server must not declare capabilities that need them."""
    capabilities: JSONObject = {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True},
        "prompts": {},
    }
    endpoint = new_endpoint(capabilities=capabilities, stateless=True, streams=streams)
    kept: JSONObject = {"tools": {}, "resources": {}, "prompts": {}}
    response = answer(post(endpoint, initialize(1, "2025-11-25"), {"accept": JSON}))
    assert response.json["result"]["capabilities"] == kept
    subscribe = call(2, "resources/subscribe", {"uri": "a:b"})
    response = answer(post(endpoint, subscribe, {"mcp-protocol-version": "2025-11-25"}))
    assert response.json["error"]["code"] == -32601
    discover = call(3, "server/discover", {"_meta": META})
    response = answer(modern_post(endpoint, {"mcp-method": "server/discover"}, discover))
    assert response.json["result"]["capabilities"] == (capabilities if streams else kept)
    params = {"notifications": {"toolsListChanged": True}, "_meta": META}
    fields = {"mcp-method": "subscriptions/listen"}
    response = answer(modern_post(endpoint, fields, call(4, "subscriptions/listen", params)))

    if streams:
        assert response.messages[0]["params"]["notifications"] == {"toolsListChanged": True}
    else:
        assert (response.status, response.json["error"]["code"]) == (404, -32601)
        without = {"accept": JSON, **fields}
        message = call(5, "subscriptions/listen", params)
        assert answer(modern_post(endpoint, without, message)).status == 404
    assert endpoint.publish(ToolsListChanged()) is streams


@case("c275")
def test_a_batch_has_calls_or_responses_and_not_both() -> None:
    """BATCH-004: a mixed batch must be refused as a whole, without any effect."""
    one = client("2025-03-26")
    progress = {"name": "t", "arguments": {}, "_meta": {"progressToken": "p"}}
    changed = note("notifications/roots/list_changed")
    a = one.post([call(1, "tools/list"), changed, call(2, "tools/call", progress)])
    first, second = [event.request for event in of(RequestReceived, drain(one.endpoint))]
    one.endpoint.send_progress(second, 1)
    one.endpoint.send_result(second, OK)
    before = answer(a)
    assert not before.ended
    one.endpoint.send_result(first, {"tools": []})
    response = more(a, before)
    assert response.ended
    answered = [*before.messages, *response.messages]
    assert answered[0]["params"] == {"progressToken": "p", "progress": 1}
    assert sorted(part["id"] for part in answered[1]) == [1, 2]
    question = one.endpoint.send_request("roots/list", session=one.session)

    refused = answer(one.post([result(question.id, {"roots": []}), call(3, "ping")]))
    assert (refused.status, "id" in refused.json) == (400, False)
    assert refused.json["error"]["code"] == -32600
    assert question.open
    (violation,) = drain(one.endpoint)
    assert isinstance(violation, ProtocolViolation)
    assert violation.rule == "BATCH-004"
    accepted = answer(one.post([changed, note("notifications/cancelled", {"requestId": 99})]))
    assert (accepted.status, accepted.body) == (202, b"")
    assert answer(one.post([result(question.id, {"roots": []})])).status == 202
    assert not question.open
