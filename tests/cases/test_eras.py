"""Failure class 10, the newest revision: envelopes, the way into it, questions, subscriptions."""

import pytest

from sansmcp import (
    MODERN_REVISIONS,
    Config,
    ConnectionFailed,
    FailureCause,
    IncomingRequest,
    InputRequired,
    JSONObject,
    LocalProtocolError,
    PromptsListChanged,
    ProtocolViolation,
    Ready,
    RequestAnswered,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    ToolsListChanged,
)

from ..support.modern import (
    BOTH,
    CAPABILITIES,
    FORM,
    LEGACY,
    LISTEN,
    MODERN,
    VERSION,
    discovered,
    envelope,
    input_required,
    listen,
    modern,
    modern_client,
    modern_server,
    probing,
    requested,
)
from ..support.wire import (
    INITIALIZED,
    broken,
    call,
    error,
    initialize,
    new_server,
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
    """c014: an error with that id would be taken for the answer to the first."""
    server = modern_server()
    first = requested(server, modern(5, "tools/list", {}, BARE))
    events = receive(server, modern(5, "tools/list", {}, BARE))
    assert [type(event) for event in events] == [ProtocolViolation]
    assert broken(events) == ["ID-001"]
    assert sent(server) == []
    assert server.send_result(first, {"tools": []})
    (answer,) = sent(server)
    assert answer["id"] == 5
    assert "result" in answer


def test_id_is_free_once_it_is_answered() -> None:
    """c016: nothing is remembered of what came before."""
    server = modern_server()
    for _ in range(3):
        request = requested(server, modern(1, "tools/list", {}, BARE))
        assert server.send_result(request, {"tools": []})
        assert len(sent(server)) == 1


# ---------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("code", [-32020 - number for number in range(3, 80, 7)] + [-32050])
def test_codes_of_the_specification_are_its_own(code: int) -> None:
    """c132: one that it does not define is not sent."""
    server = modern_server()
    request = asking(server, 1)
    with pytest.raises(LocalProtocolError, match="ERR-006"):
        server.send_error(request, code, "mine")
    assert sent(server) == []
    assert server.send_error(request, -32603, "mine")


# -------------------------------------------------------------------------------- a way into an era


def test_discovered_server_is_spoken_to_without_a_handshake() -> None:
    """c221: from the first request on each says for itself who asks."""
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
    """c230: the server is of the newer era, and there is nothing else to offer."""
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
    """c234: and goes on serving, perhaps a client that has learnt."""
    server = modern_server()
    only(RequestAnswered, receive(server, initialize(0, "2025-11-25")))
    (answer,) = sent(server)
    assert answer["id"] == 0
    assert MODERN in answer["error"]["message"]
    assert answer["error"]["data"]["supported"] == list(MODERN_REVISIONS)
    assert asking(server, 1).open


def test_handshake_never_leads_to_a_revision_without_one() -> None:
    """c235: the newest that has one is offered instead."""
    server = new_server(revisions=BOTH)
    receive(server, initialize(0, MODERN))
    (answer,) = sent(server)
    assert answer["result"]["protocolVersion"] == LEGACY


def test_both_eras_live_side_by_side() -> None:
    """c236: each request is answered in the form of its own."""
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
    """c239: the list of what is supported is what the client came for."""
    server = modern_server()
    receive(server, modern(1, "server/discover", {}, {**BARE, VERSION: "1900-01-01"}))
    (answer,) = sent(server)
    assert refusals([answer]) == [(1, -32022)]
    assert answer["error"]["data"]["supported"] == list(MODERN_REVISIONS)
    assert LEGACY not in answer["error"]["data"]["supported"]


# --------------------------------------------------------------------------------------- questions


def test_nothing_is_remembered_of_an_earlier_envelope() -> None:
    """c237, c254: what one request offers, the next may not; the error says what is needed."""
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
    """c240: and the server is told on."""
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
    """c256: a change that is published before it waits."""
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
    """c261: neither other changes nor what belongs to a request."""
    server = modern_server()
    receive(server, listen(1, TOOLS))
    (listener,) = server.listeners
    sent(server)
    assert server.publish(PromptsListChanged()) is False
    assert server.send_progress(listener.request, 1) is False
    assert server.send_log("error", "x", request=listener.request) is False
    assert sent(server) == []
