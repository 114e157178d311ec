"""Failure class 10, the newest revision: envelopes, choice of era, questions, subscriptions."""

import json

import pytest

from sansmcp import (
    MODERN_REVISIONS,
    CancelCause,
    CloseCause,
    Config,
    ConnectionClosed,
    ConnectionFailed,
    FailureCause,
    IncomingRequest,
    InputRequired,
    JSONObject,
    LimitReached,
    ListenerRemoved,
    LocalProtocolError,
    MessageIgnored,
    NotificationReceived,
    PromptsListChanged,
    ProtocolViolation,
    Ready,
    RequestAnswered,
    RequestCancelled,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    SubscriptionAcknowledged,
    ToolsListChanged,
)
from sansmcp.http import ServerExchange
from tests.support.http.server_endpoint import POST, answer, body_of, modern_headers, new_endpoint
from tests.support.http.server_endpoint import drain as drain_endpoint
from tests.support.http.server_endpoint import of as of_http
from tests.support.modern import (
    BOTH,
    CAPABILITIES,
    FILE,
    FORM,
    LEGACY,
    LISTEN,
    MODERN,
    SUBSCRIPTION,
    VERSION,
    acknowledged,
    cancelled,
    changed,
    discovered,
    envelope,
    input_required,
    listen,
    modern,
    modern_client,
    modern_server,
    probing,
    requested,
    subscribed,
)
from tests.support.wire import (
    INITIALIZED,
    broken,
    call,
    drain,
    error,
    initialize,
    initialized_by,
    new_server,
    note,
    of,
    only,
    receive,
    refusals,
    result,
    sent,
)

BARE: JSONObject = {VERSION: MODERN, CAPABILITIES: {}}
"""The envelope of a client that offers nothing and does not say who it is."""
TOOLS: JSONObject = {"toolsListChanged": True}


def asking(server: ServerConnection, id: object, meta: JSONObject = BARE) -> IncomingRequest:
    """A call of a tool that would like to ask something."""
    return requested(server, modern(id, "tools/call", {"name": "needs_input"}, meta))


# ------------------------------------------------------------------------------------------- ids


def test_second_request_of_an_id_in_flight_is_not_served() -> None:
    """c014: an error with that id would be taken for the response to the first request."""
    server = modern_server()
    first = requested(server, modern(5, "tools/list", {}, BARE))
    events = receive(server, modern(5, "tools/list", {}, BARE))
    assert [type(event) for event in events] == [ProtocolViolation]
    assert broken(events) == ["ID-002"]
    assert sent(server) == []
    assert server.send_result(first, {"tools": []})
    (answer,) = sent(server)
    assert answer["id"] == 5
    assert "result" in answer


def test_id_is_free_once_it_is_answered() -> None:
    """c016: a stateless server must not remember used ids."""
    server = modern_server()
    for _ in range(3):
        request = requested(server, modern(1, "tools/list", {}, BARE))
        assert server.send_result(request, {"tools": []})
        assert len(sent(server)) == 1


# ---------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("code", [-32020 - number for number in range(3, 80, 7)] + [-32050])
def test_codes_of_the_specification_are_its_own(code: int) -> None:
    """c132: a reserved code without a definition must not be sent."""
    server = modern_server()
    request = asking(server, 1)
    with pytest.raises(LocalProtocolError, match="ERR-006"):
        server.send_error(request, code, "mine")
    assert sent(server) == []
    assert server.send_error(request, -32603, "mine")


# -------------------------------------------------------------------------------- a way into an era


def test_discovered_server_is_spoken_to_without_a_handshake() -> None:
    """c221: from the first request on, each must have its envelope."""
    client = probing()
    only(Ready, receive(client, result(1, discovered({"tools": {}}, cacheScope="public"))))
    client.send_request("tools/list")
    client.send_request("tools/call", {"name": "t"})
    messages = sent(client)
    assert [message["method"] for message in messages] == ["tools/list", "tools/call"]
    for message in messages:
        assert message["params"]["_meta"][VERSION] == MODERN
        assert CAPABILITIES in message["params"]["_meta"]


@pytest.mark.parametrize(
    "code", [-32602, -32601, -32600, -32603, -32700, -32000, -32001, -32004, 1]
)
def test_any_other_error_leads_to_the_handshake(code: int) -> None:
    """c223: old servers refuse what comes before `initialize` in many ways."""
    client = probing()
    assert receive(client, error(1, code, "initialize first")) == []
    (message,) = sent(client)
    assert message["method"] == "initialize"
    assert message["params"]["protocolVersion"] == LEGACY


@pytest.mark.parametrize("data", [None, {}, [], "x", {"supported": None}, {"supported": [5, None]}])
def test_refusal_of_the_version_without_a_list_ends_the_start(data: object) -> None:
    """c230: the server is modern, and no other revision can be tried."""
    client = probing()
    message = error(1, -32022, "Unsupported protocol version")
    if data is not None:
        message["error"]["data"] = data
    (failed,) = of(ConnectionFailed, receive(client, message))
    assert failed.cause is FailureCause.UNSUPPORTED_REVISION
    assert (failed.code, failed.message, failed.data) == (
        -32022,
        "Unsupported protocol version",
        data,
    )
    assert sent(client) == []


def test_server_of_one_era_names_it_to_a_client_of_the_other() -> None:
    """c234: the server must go on serving, as the client may retry in its era."""
    server = modern_server()
    only(RequestAnswered, receive(server, initialize(0, "2025-11-25")))
    (answer,) = sent(server)
    assert answer["id"] == 0
    assert MODERN in answer["error"]["message"]
    assert answer["error"]["data"]["supported"] == list(MODERN_REVISIONS)
    assert asking(server, 1).open


def test_handshake_never_leads_to_a_revision_without_one() -> None:
    """c235: the newest revision with a handshake must be offered instead."""
    server = new_server(revisions=BOTH)
    receive(server, initialize(0, MODERN))
    (answer,) = sent(server)
    assert answer["result"]["protocolVersion"] == LEGACY


def test_both_eras_live_side_by_side() -> None:
    """c236: each request must be answered in the form of its era."""
    server = new_server(revisions=BOTH)
    receive(server, initialize(1, "2025-06-18"), INITIALIZED)
    sent(server)
    events = receive(server, modern("m1", "tools/list", {}, BARE), call(2, "tools/list"))
    for event in of(RequestReceived, events):
        server.send_result(event.request, {"tools": []})
    first, second = sent(server)
    assert (first["id"], first["result"]["resultType"]) == ("m1", "complete")
    assert second == result(2, {"tools": []})


def test_discovery_is_refused_like_any_request() -> None:
    """c239: the error must list the supported revisions, which the client asked for."""
    server = modern_server()
    receive(server, modern(1, "server/discover", {}, {**BARE, VERSION: "1900-01-01"}))
    (answer,) = sent(server)
    assert refusals([answer]) == [(1, -32022)]
    assert answer["error"]["data"]["supported"] == list(MODERN_REVISIONS)
    assert LEGACY not in answer["error"]["data"]["supported"]


# --------------------------------------------------------------------------------------- questions


def test_nothing_is_remembered_of_an_earlier_envelope() -> None:
    """c237, c254: a capability of one request must not count for the next; the error names it."""
    server = modern_server()
    requested(server, modern(1, "tools/list", {}, envelope({"elicitation": {"form": {}}})))
    request = asking(server, 2)
    with pytest.raises(LocalProtocolError, match="MRTR-008"):
        server.require_input(request, {"a": FORM})
    needed: JSONObject = {"requiredCapabilities": {"elicitation": {}}}
    assert server.send_error(request, -32021, "a form is needed", needed)
    (answer,) = sent(server)
    assert refusals([answer]) == [(2, -32021)]
    assert answer["error"]["data"] == needed


def test_absent_kind_of_a_result_means_complete() -> None:
    """c240: the result must be delivered, and the breach be reported."""
    client = modern_client()
    request = client.send_request("tools/call", {"name": "t"})
    events = receive(client, result(request.id, {"content": []}))
    assert broken(events) == ["JSON-020"]
    assert of(ResponseReceived, events)[0].request is request


def test_retry_has_the_keys_that_were_asked_and_no_state_where_none_was_given() -> None:
    """c247: a server may take an empty state for a lost one."""
    client = modern_client()
    request = client.send_request("tools/call", {"name": "t"})
    sent(client)
    asked = only(InputRequired, receive(client, input_required(request.id, {"k1": FORM})))
    client.provide_input(asked.request, {"k1": {"action": "decline"}})
    (again,) = sent(client)
    assert again["id"] == 3
    assert again["params"]["inputResponses"] == {"k1": {"action": "decline"}}
    assert "requestState" not in again["params"]


# ----------------------------------------------------------------------------------- subscriptions


def test_acknowledgement_is_the_first_message_of_a_subscription() -> None:
    """c256: a change that is published before the acknowledgement must wait."""
    server = modern_server(config=Config(manual={LISTEN}))
    (event,) = of(RequestReceived, receive(server, listen(1, TOOLS)))
    assert server.publish(ToolsListChanged())
    assert sent(server) == []
    server.acknowledge(event.request)
    assert server.publish(ToolsListChanged())
    assert [message["method"] for message in sent(server)] == [
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
        "notifications/tools/list_changed",
    ]


def test_only_what_was_asked_for_is_told() -> None:
    """c261: a subscription must carry neither other changes nor messages of requests."""
    server = modern_server()
    receive(server, listen(1, TOOLS))
    (listener,) = server.listeners
    sent(server)
    assert server.publish(PromptsListChanged()) is False
    assert server.send_progress(listener.request, 1) is False
    assert server.send_log("error", "x", request=listener.request) is False
    assert sent(server) == []


def test_only_what_was_granted_is_expected() -> None:
    """Case c279: changes that the server had not granted were not reported."""
    client = modern_client()
    first = subscribed(client, {"promptsListChanged": True})
    second = client.listen({"toolsListChanged": True, "resourceSubscriptions": [FILE]})
    (message,) = sent(client)
    id = message["id"]

    early, told = receive(client, changed(id))
    assert isinstance(early, ProtocolViolation)
    assert (early.rule, early.tolerated) == ("SUBS-005", True)
    assert isinstance(told, NotificationReceived)
    assert second.acknowledged is None
    told = only(NotificationReceived, receive(client, changed(2, "prompts/list_changed")))
    assert told.subscription is first

    granted: JSONObject = {"resourceSubscriptions": [FILE]}
    acknowledgement = only(SubscriptionAcknowledged, receive(client, acknowledged(id, granted)))
    assert acknowledgement.notifications == granted
    assert broken(receive(client, changed(id))) == ["SUBS-002"]
    updated = "resources/updated"
    told = only(NotificationReceived, receive(client, changed(id, updated, uri=FILE)))
    assert told.subscription is second
    assert broken(receive(client, changed(id, updated, uri="file:///b"))) == ["SUBS-003"]
    untagged = note("notifications/tools/list_changed")
    assert broken(receive(client, untagged)) == ["SUBS-009"]


def test_what_was_refused_for_one_resource_is_not_expected_for_it() -> None:
    """Neighbour of case c279: of two requested resources one was granted."""
    client = modern_client()
    client.listen({"resourceSubscriptions": [FILE, "file:///b"]})
    sent(client)
    receive(client, acknowledged(2, {"resourceSubscriptions": [FILE]}))
    events = receive(client, changed(2, "resources/updated", uri="file:///b"))
    assert broken(events) == ["SUBS-003"]
    (told,) = of(NotificationReceived, events)
    assert told.params["uri"] == "file:///b"


def test_close_ends_each_subscription_with_its_result() -> None:
    """Case c280: clients took the end of the process for a crash, and subscribed again."""
    server = modern_server()
    receive(server, listen(1, TOOLS), listen(2, TOOLS))
    gone, listener = server.listeners
    open_call = requested(server, modern(3, "tools/call", {"name": "t"}))
    sent(server)
    only(ListenerRemoved, receive(server, cancelled(1)))
    assert server.publish(ToolsListChanged())
    assert sent(server) == [changed(2)]
    assert only(MessageIgnored, receive(server, cancelled(1))).rule == "CANC-013"
    with pytest.raises(LocalProtocolError, match="publish"):
        server.send_notification("notifications/tools/list_changed", {"_meta": {SUBSCRIPTION: 1}})

    server.close()
    removed, call_over, closed = drain(server)
    assert isinstance(removed, ListenerRemoved)
    assert (removed.listener, removed.cause) == (listener, CancelCause.CLOSED)
    assert isinstance(call_over, RequestCancelled)
    assert call_over.request is open_call
    assert isinstance(closed, ConnectionClosed)
    answer, ending = sent(server)
    assert answer["id"] == 2
    assert answer["result"]["resultType"] == "complete"
    assert answer["result"]["_meta"][SUBSCRIPTION] == 2
    assert ending == cancelled(2)  # and none for 1 and 3
    assert server.end_listener(gone) is False
    assert sent(server) == []


def test_close_takes_no_more_room_than_there_is() -> None:
    """Neighbour of case c280: `ConnectionClosed` is the last event, whatever could not be sent."""
    server = modern_server(config=Config(max_unsent_bytes=300, soft_unsent_bytes=200))
    receive(server, listen(1, TOOLS))
    sent(server)
    receive(server, listen(2, TOOLS))
    server.close()
    events = drain(server)
    assert broken(events) == []
    assert isinstance(events[-1], ConnectionClosed)
    assert events[-1].cause is CloseCause.CLOSED
    removed = of(ListenerRemoved, events)
    assert [event.cause for event in removed] == [CancelCause.CLOSED] * 2
    assert sent(server)[1:] == [cancelled(1)]  # behind the acknowledgement that waited


def test_a_subscription_without_acknowledgement_is_cancelled_by_close() -> None:
    """Neighbour of case c280: a result would be the first message of it (SUBS-004)."""
    server = modern_server(config=Config(manual={LISTEN}))
    requested(server, listen(1, TOOLS))
    server.close()
    cancelled_request, _ = drain(server)
    assert isinstance(cancelled_request, RequestCancelled)
    assert sent(server) == []


# ---------------------------------------------------------------------- ids and late answers


def test_cancelled_ids_of_a_session_with_handshake_are_forgotten_with_their_requests() -> None:
    """Neighbour of case c269: there an id is never used again, and is remembered as used."""
    server = modern_server(revisions=BOTH, config=Config(max_used_ids=2))
    receive(server, initialize(0, "2025-11-25"), note("notifications/initialized"))
    for id in range(1, 6):
        receive(server, call(id, "tools/call", {"name": "t"}))
        [event] = receive(server, cancelled(id))
        assert isinstance(event, RequestCancelled)
    assert server.forgotten_ids == 0


def test_reuse_of_a_cancelled_id_is_served_and_reported() -> None:
    """Case c269: the answer of a slow handler went out as that to the new request."""
    server = modern_server()
    old = asking(server, 5)
    receive(server, cancelled(5))
    violation, received = receive(server, modern(5, "tools/call", {"name": "other"}, BARE))
    assert isinstance(violation, ProtocolViolation)
    assert isinstance(received, RequestReceived)
    new = received.request
    assert (violation.rule, violation.tolerated, violation.request) == ("ID-002", True, new)
    assert server.send_result(old, {"content": [{"type": "text", "text": "of the old call"}]}) is (
        False
    )
    assert sent(server) == []
    assert server.send_result(new, {"content": [{"type": "text", "text": "of the new call"}]})
    (answer,) = sent(server)
    assert answer["id"] == 5
    assert answer["result"]["content"][0]["text"] == "of the new call"
    assert broken(receive(server, modern(5, "tools/call", {"name": "t"}, BARE))) == []


def test_cancelled_ids_keep_their_type_and_the_oldest_is_forgotten() -> None:
    """Neighbour of case c269: 5 is not "5", and what is remembered has a bound that is told of."""
    server = modern_server(config=Config(max_used_ids=2))
    for id in (1, 2):
        asking(server, id)
        receive(server, cancelled(id))
    assert broken(receive(server, modern("2", "tools/list"))) == []
    asking(server, 3)
    limit, _ = receive(server, cancelled(3))
    assert isinstance(limit, LimitReached)
    assert (limit.rule, server.forgotten_ids) == ("OWN-007", 1)
    assert broken(receive(server, modern(1, "tools/list"))) == []
    assert broken(receive(server, modern(2, "tools/list"))) == ["ID-002"]
    asking(server, "a")
    receive(server, cancelled("a"))
    assert broken(receive(server, modern("a", "tools/list"))) == ["ID-002"]
    long = "x" * 1_000
    asking(server, long)
    only(RequestCancelled, receive(server, cancelled(long)))
    assert server.forgotten_ids == 2
    assert broken(receive(server, modern(long, "tools/list"))) == []


def test_a_late_answer_to_the_probe_is_shown() -> None:
    """Case c277: the caller may have to correct the stored era of this server."""
    client = probing(now=0, probe_timeout=1)
    client.handle_timeout(1)
    (opening,) = sent(client)
    assert opening["method"] == "initialize"
    answer = result(1, discovered({"tools": {}}, [MODERN, LEGACY]))
    late, log = receive(
        client, answer, note("notifications/message", {"level": "info", "data": "hi"})
    )
    assert isinstance(late, MessageIgnored)
    assert (late.rule, late.id, late.answer) == ("CANC-011", 1, answer)
    assert "server/discover" in late.text
    assert isinstance(log, NotificationReceived)
    agreed: JSONObject = {**initialized_by(LEGACY), "capabilities": {"tools": {}, "logging": {}}}
    assert only(Ready, receive(client, result(opening["id"], agreed))).revision == LEGACY
    assert sent(client) == [INITIALIZED]
    client.send_request("tools/list")
    (request,) = sent(client)
    assert "params" not in request
    events = receive(client, result(request["id"], {"tools": []}))
    assert only(ResponseReceived, events).result == {"tools": []}


def test_an_answer_to_nothing_is_shown() -> None:
    """Neighbour of case c277: a user who looks for a fault needs the message."""
    client = modern_client()
    answer = error(99, -32603)
    assert only(MessageIgnored, receive(client, answer)).answer == answer


# ----------------------------------------------------------------------------- sealed states


def test_a_bad_state_is_refused_before_a_handler_sees_it() -> None:
    """Case c278: a handler ran with the state of another call, and of another user."""
    config = Config(state_keys=(b"k" * 16,), state_seconds=60)
    endpoint = new_endpoint(config=config)

    def called(id: int, who: str, at: float, a: int, state: str | None = None) -> ServerExchange:
        params: JSONObject = {"name": "t", "arguments": {"a": a}}
        if state is not None:
            params["requestState"] = state
        message = modern(id, "tools/call", params, {**BARE, CAPABILITIES: {"elicitation": {}}})
        fields = [*POST.items(), *modern_headers(message).items()]
        exchange = endpoint.exchange("POST", "/mcp", fields, principal=who, principal_key=who)
        exchange.receive_data(body_of(message))
        exchange.receive_end(at=at)
        return exchange

    first = called(1, "u1", 1_000, 1)
    (received,) = of_http(RequestReceived, drain_endpoint(endpoint))
    assert endpoint.require_input(received.request, {"q": FORM}, state="s", at=1_000)
    state: str = answer(first).json["result"]["requestState"]
    altered = state[:30] + ("A" if state[30] != "A" else "B") + state[31:]

    refused = (
        (2, "u1", 1_000, 2, state, "another request"),
        (3, "u1", 1_000, 1, altered, "altered"),
        (4, "u2", 1_000, 1, state, "another principal"),
        (6, "u1", 1_061, 1, state, "time is over"),
    )
    for id, who, at, a, given, cause in refused:
        response = answer(called(id, who, at, a, given))
        assert response.status == 400
        body = response.json
        assert (body["id"], body["error"]["code"]) == (id, -32602)
        assert body["error"]["message"] == "requestState is not valid"
        (violation,) = drain_endpoint(endpoint)  # and no handler is asked
        assert isinstance(violation, ProtocolViolation)
        assert (violation.rule, violation.code) == ("MRTR-013", -32602)
        assert cause in violation.text

    last = called(5, "u1", 1_060, 1, state)
    (received,) = of_http(RequestReceived, drain_endpoint(endpoint))
    assert endpoint.read_state(received.request) == "s"
    assert endpoint.send_result(received.request, {"content": []})
    assert answer(last).status == 200


@pytest.mark.parametrize("by", ["data", "message", "end"])
def test_a_connection_refuses_a_bad_state_where_the_time_is_known(by: str) -> None:
    """Case c278, on a stream: as bytes, as messages, and in a last line without its newline."""
    server = modern_server(config=Config(state_keys=(b"k" * 16,)))
    forged = modern(1, "tools/call", {"name": "t", "requestState": "forged"})
    text = json.dumps(forged)
    if by == "data":
        server.receive_data(text.encode() + b"\n", at=1_000)
    elif by == "message":
        server.receive_message(text, at=1_000)
    else:
        server.receive_data(text.encode())
        server.receive_eof(drain=1, at=1_000, now=0)
    events = drain(server)
    assert "MRTR-013" in broken(events)
    assert of(RequestReceived, events) == []
    assert refusals(sent(server)) == [(1, -32602)]


def test_without_the_time_a_state_is_read_by_the_handler() -> None:
    """Neighbour of case c278: without the time, expiry cannot be checked before delivery."""
    server = modern_server(config=Config(state_keys=(b"k" * 16,)))
    server.receive_data(b"\n", at=1_000)  # that time is over
    request = requested(server, modern(1, "tools/call", {"name": "t", "requestState": "forged"}))
    assert server.read_state(request, at=1_000) is None
    assert refusals(sent(server)) == [(1, -32602)]
