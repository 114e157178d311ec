"""Failure class 7, requests and notifications: malformed ones, and how they are refused."""

from typing import Any

import pytest

from sansmcp import (
    MISSING,
    NotificationReceived,
    Phase,
    ProtocolViolation,
    Ready,
    RequestAnswered,
    RequestReceived,
)
from tests.support.wire import (
    INITIALIZED,
    asked,
    assert_usable,
    broken,
    call,
    drain,
    initialize,
    new_server,
    note,
    of,
    only,
    ready_client,
    ready_server,
    receive,
    refusals,
    sent,
    without_id,
)


@pytest.mark.parametrize("version", ["1.0", MISSING, 2.0, 2, None, "", "2", "2.0 "], ids=repr)
def test_a_request_of_another_json_rpc_is_refused_with_its_id(revision: str, version: Any) -> None:
    """Case c122: the message was dropped in silence, and the client waited for ever."""
    server = ready_server(revision)
    request = {"jsonrpc": version, "id": 3, "method": "ping"}
    if version is MISSING:
        del request["jsonrpc"]
    violation, *_ = receive(server, request)
    assert isinstance(violation, ProtocolViolation)
    assert violation.rule == "JSON-001"
    assert refusals(sent(server)) == [(3, -32600)]
    assert_usable(server)


@pytest.mark.parametrize("params", [[], "x", 0, True, False, [{}], ""], ids=repr)
def test_params_that_are_no_object_are_refused(revision: str, params: Any) -> None:
    """Case c123: positional params crashed the handler."""
    server = ready_server(revision)
    events = receive(server, call(3, "tools/list", params), call(4, "ping", params))
    assert broken(events) == ["JSON-017", "JSON-017"]
    assert not of(RequestReceived, events)
    assert refusals(sent(server)) == [(3, -32602), (4, -32602)]
    assert_usable(server)


def test_null_params_count_as_absent(revision: str) -> None:
    """Neighbour of case c123: many libraries write null for nothing."""
    server = ready_server(revision)
    violation, received = receive(server, call(3, "tools/list", None))
    assert isinstance(violation, ProtocolViolation)
    assert (violation.rule, violation.tolerated) == ("OWN-015", True)
    assert isinstance(received, RequestReceived)
    assert received.request.params == {}


def test_absent_params_are_never_written_as_null(revision: str) -> None:
    """Case c125: `"params": null` went out, which strict servers refuse."""
    client = ready_client(revision)
    client.send_request("tools/list")
    client.send_request("tools/list", {})
    client.send_paginated("tools/list")
    client.send_notification("notifications/roots/list_changed")
    client.send_notification("notifications/x", {})
    client.ping()
    messages = sent(client)
    assert len(messages) == 6
    assert [message.get("params", {}) for message in messages] == [{}] * 6


@pytest.mark.parametrize("method", [1, None, True, [], {}, ["ping"], 1.5], ids=repr)
def test_a_method_that_is_no_string_is_an_invalid_request(revision: str, method: Any) -> None:
    """Case c126: it was dispatched, or answered as if the params were at fault."""
    server = ready_server(revision)
    violation = only(ProtocolViolation, receive(server, call(3, method)))
    assert violation.code == -32600
    assert refusals(sent(server)) == [(3, -32600)]
    assert_usable(server)


@pytest.mark.parametrize(
    "value", [{"hello": "world"}, {}, {"jsonrpc": "2.0"}, 1, "x", None, True, 1.5], ids=repr
)
def test_json_that_is_no_message_is_an_invalid_request(revision: str, value: Any) -> None:
    """Case c126, its second message: an error that names no request, where there is a form."""
    server = ready_server(revision)
    violation = only(ProtocolViolation, receive(server, value))
    assert violation.code == -32600
    assert violation.excerpt
    assert refusals(sent(server)) == without_id(revision, -32600)
    assert_usable(server)


@pytest.mark.parametrize("method", ["no/such", "", "tools", "tools/List", " ping", "rpc.x", "é"])
def test_an_unknown_method_is_refused_as_request_and_delivered_as_notification(
    revision: str, method: str
) -> None:
    """Case c127: the notification was answered with an error, which no client can place."""
    server = ready_server(revision)
    refused = only(RequestAnswered, receive(server, call(3, method)))
    assert refused.code == -32601
    assert refusals(sent(server)) == [(3, -32601)]
    only(NotificationReceived, receive(server, note(method, {"a": 1})))
    assert_usable(server)


NOTIFICATIONS = ["initialized", "cancelled", "progress", "roots/list_changed"]


@pytest.mark.parametrize("name", NOTIFICATIONS)
def test_a_notification_with_an_id_is_a_request_for_an_unknown_method(
    revision: str, name: str
) -> None:
    """Case c128: the id made it a request, and still it changed the state."""
    server = ready_server(revision)
    request = asked(server, call(1, "tools/call", {"name": "t"}))
    params = {"requestId": 1, "progressToken": 1, "progress": 1}
    violation, *_ = receive(server, call(5, f"notifications/{name}", params))
    assert isinstance(violation, ProtocolViolation)
    assert refusals(sent(server)) == [(5, -32601)]
    assert request.open
    assert server.phase is Phase.OPERATING
    assert_usable(server)


def test_initialized_with_an_id_does_not_finish_the_handshake(revision: str) -> None:
    """Case c128 for `initialized`: the session must not begin by a message that is no
    notification."""
    server = new_server()
    receive(server, initialize(1, revision))
    sent(server)
    events = receive(server, call(5, "notifications/initialized"))
    assert not of(Ready, events)
    assert server.phase is Phase.AGREED
    assert refusals(sent(server)) == [(5, -32601)]
    only(Ready, receive(server, INITIALIZED))
    assert not drain(server)


@pytest.mark.parametrize("method", ["tools/list", "ping", "initialize"])
def test_a_request_without_id_is_a_notification_and_gets_no_answer(
    revision: str, method: str
) -> None:
    """Neighbour of case c128: without an id the message must be neither served nor answered."""
    server = ready_server(revision)
    events = receive(server, note(method))
    assert not of(RequestReceived, events)
    assert broken(events) == ["OWN-020"]
    assert_usable(server)
