"""Messages that break the protocol, as a server or a client treats them."""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from sansmcp import (
    Config,
    Event,
    IncomingRequest,
    JSONObject,
    LocalProtocolError,
    MessageIgnored,
    OutgoingRequest,
    ProtocolViolation,
    RequestAnswered,
    RequestReceived,
    ServerConnection,
    State,
)
from sansmcp.testing import Pair, drain
from tests.support.wire import (
    asked,
    call,
    of,
    only,
    ready_client,
    ready_server,
    receive,
    refusals,
    result,
    sent,
    wire,
)

REVISION = "2025-11-25"
Saying: TypeAlias = Callable[[ServerConnection, IncomingRequest], object]


def rules(events: list[Event]) -> list[str]:
    return [event.rule for event in of(ProtocolViolation, events)]


@pytest.mark.parametrize(
    ("message", "rule", "code"),
    [
        ({**call(5, "ping"), "jsonrpc": "1.0"}, "JSON-001", -32600),
        ({**call(5, "ping"), "result": {}}, "ERR-001", -32600),
        ({**call(5, "ping"), "error": {}}, "ERR-001", -32600),
        (call(5, "tools/call", [1]), "JSON-017", -32602),
        (call(5, "tools/call", {}), "OWN-014", -32602),
        (call(5, "tools/call", {"name": True}), "OWN-014", -32602),
        (call(5, "tools/call", {"name": "x", "_meta": []}), "OWN-014", -32602),
        (call(5, "ping", {"_meta": {"progressToken": None}}), "PROG-001", -32602),
        (call(5, "roots/list"), "OWN-020", -32601),
        (call(5, 7), "ERR-001", -32600),
        ({"jsonrpc": "2.0", "id": 5}, "ERR-001", -32600),
    ],
)
def test_a_request_that_breaks_a_rule_is_refused_under_its_id(
    message: dict[str, Any], rule: str, code: int
) -> None:
    """The peer must get an error, and the application no event of the request."""
    server = ready_server(REVISION)

    assert rules(receive(server, message)) == [rule]
    assert refusals(sent(server)) == [(5, code)]
    assert server.open_requests == ()


def test_a_method_that_is_unknown_or_not_declared_is_refused() -> None:
    """Both get -32601; an unknown method may be an extension, so it is no breach."""
    server = ready_server(REVISION, capabilities={"tools": {}})
    answered = only(RequestAnswered, receive(server, call(1, "x/y")))
    assert (answered.code, answered.request.open) == (-32601, False)

    assert rules(receive(server, call(2, "prompts/list"))) == ["CAP-002"]
    assert refusals(sent(server)) == [(1, -32601), (2, -32601)]


def test_a_gateway_gets_them_delivered() -> None:
    """A gateway knows the servers behind it, so it must decide itself."""
    config = Config(unknown_methods="deliver")
    server = ready_server(REVISION, capabilities={}, config=config)

    for id, method in ((1, "x/y"), (2, "prompts/list")):
        request = only(RequestReceived, receive(server, call(id, method))).request
        assert server.send_error(request, -32601, "no")


@pytest.mark.parametrize("id", [None, True, 1.5, [1], {}])
def test_a_request_without_a_usable_id_is_refused_without_one(id: Any) -> None:
    """Only revisions since 2025-11-25 have a form for an error without an id."""
    new, old = ready_server("2025-11-25"), ready_server("2025-06-18")

    assert rules(receive(new, call(id, "ping"))) == ["JSON-002"]
    assert rules(receive(old, call(id, "ping"))) == ["JSON-002"]
    assert ["id" in answer for answer in sent(new)] == [False]
    assert sent(old) == []


def test_a_client_answers_no_noise() -> None:
    """Text that a server prints by mistake must get no response."""
    client = ready_client(REVISION)

    assert rules(receive(client, b"Listening on 8080\n", b"5\n", b"{}\n")) == [
        "ERR-001",
        "JSON-001",
        "ERR-001",
    ]
    assert sent(client) == []


def test_what_is_no_message_but_has_the_id_of_a_request_is_never_answered() -> None:
    """The error would be taken for the response to the request in flight."""
    server = ready_server(REVISION)
    asked(server, call(5, "tools/call", {"name": "echo"}))

    assert rules(receive(server, {"jsonrpc": "2.0", "id": 5, "method": None})) == ["ERR-001"]
    assert sent(server) == []


def test_null_in_place_of_params_or_cursor_counts_as_absent() -> None:
    """Serializers write null for missing members; each must be reported."""
    server = ready_server(REVISION)
    events = receive(server, call(1, "tools/list", None), call(2, "tools/list", {"cursor": None}))

    assert rules(events) == ["OWN-015", "OWN-015"]
    assert [event.request.params for event in of(RequestReceived, events)] == [{}, {}]


def test_a_request_before_initialized_is_served_and_reported() -> None:
    """Many clients send requests before `notifications/initialized`."""
    pair = Pair(connected=False)
    pair.client.start(now=0)
    pair.deliver_message_to_server()
    pair.server.receive_data(wire(call("early", "tools/list")))
    broken, received = pair.server_events[-2:]

    assert isinstance(broken, ProtocolViolation)
    assert (broken.rule, broken.tolerated) == ("LIFE-004", True)
    assert isinstance(received, RequestReceived)
    assert broken.request is received.request


def test_after_sending_failed_requests_are_ignored_and_answers_taken() -> None:
    """Requests that were written before may still get a response."""
    client = ready_client(REVISION)
    ours = client.send_request("tools/list")
    sent(client)
    client.send_failed()
    assert client.state is State.SEND_CLOSED
    events = receive(client, call(1, "ping"), result(ours.id, {"tools": []}), b"noise\n")

    assert [event.rule for event in of(MessageIgnored, events)] == ["OWN-021"]
    assert not ours.open
    assert sent(client) == []


def test_a_handle_of_another_connection_is_refused() -> None:
    """Its id may name another request on this connection."""
    mine, other = ready_server(REVISION), ready_server(REVISION)
    request = asked(other, call(1, "tools/call", {"name": "echo"}))
    asked(mine, call(1, "tools/call", {"name": "echo"}))

    with pytest.raises(LocalProtocolError, match="belongs to another connection") as caught:
        mine.send_result(request, {"content": []})
    assert caught.value.rule == "OWN-022"
    with pytest.raises(LocalProtocolError, match="belongs to another connection"):
        mine.send_error(request, 1, "no")
    assert (sent(mine), request.open) == ([], True)


def test_handles_say_what_they_are() -> None:
    """A log must show method, id and state of a handle, and a caller can store data in it."""
    pair = Pair()
    ours = pair.client.send_request("tools/call", {"name": "echo"})
    listing = pair.client.send_paginated("tools/list")
    ping = pair.client.ping()
    pair.deliver()
    theirs = next(
        event.request for event in pair.server_events if isinstance(event, RequestReceived)
    )

    assert isinstance(ours, OutgoingRequest)
    assert isinstance(theirs, IncomingRequest)
    assert repr(ours) == "<OutgoingRequest tools/call id=2 OPEN>"
    assert repr(theirs) == "<IncomingRequest tools/call id=2 OPEN>"
    assert repr(listing) == "<Listing tools/list pages=0 items=0>"
    assert repr(ping) == "<Ping open=False>"
    assert "<Start open=True>" in {repr(Pair(connected=False).client.start())}
    assert theirs.data is None
    assert drain(pair.client) == []


SAYINGS: tuple[Saying, ...] = (
    lambda server, request: server.send_log("error", "text", request=request),
    lambda server, request: server.send_progress(request, 1),
    lambda server, request: server.send_notification("notifications/x", request=request),
    lambda server, request: server.send_request("roots/list", request=request),
    lambda server, request: server.send_paginated("tasks/list", request=request),
)


@pytest.mark.parametrize("say", SAYINGS)
def test_nothing_is_said_about_a_request_of_another_connection(
    say: Saying,
) -> None:
    """The message would be judged by the wrong peer's capabilities, and sent to the wrong peer."""
    client: JSONObject = {"roots": {}, "tasks": {"list": {}}}
    one, other = ready_server(REVISION, client=client), ready_server(REVISION, client=client)
    params = {"name": "t", "_meta": {"progressToken": "p"}}
    request = only(RequestReceived, receive(other, call(1, "tools/call", params))).request
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        say(one, request)
    assert sent(one) == []
