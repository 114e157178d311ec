"""Notifications in both directions, log messages included."""

from typing import Any

import pytest

from sansmcp import (
    LOG_LEVELS,
    Config,
    LocalProtocolError,
    NotificationReceived,
    ProtocolViolation,
    RequestAnswered,
    RequestReceived,
    ServerConnection,
    State,
)
from sansmcp.testing import Pair, canonical
from tests.support.wire import (
    asked,
    call,
    new_server,
    note,
    of,
    only,
    ready_client,
    ready_server,
    receive,
    refusals,
    result,
    sent,
)

REVISION = "2025-11-25"
STAMP = "2025-11-25T00:00:00Z"
TASK = {"taskId": "t", "createdAt": STAMP, "lastUpdatedAt": STAMP}  # no `ttl`


def test_a_notification_arrives_as_it_was_sent() -> None:
    """Known and unknown notifications must arrive with and without params."""
    pair = Pair()
    pair.server.send_notification("notifications/tools/list_changed")
    pair.server.send_notification("notifications/x", {"a": 1}, meta={"b": 2}, now=1)
    pair.client.send_notification("notifications/roots/list_changed", {})
    pair.deliver()

    assert pair.client_events == [
        NotificationReceived(method="notifications/tools/list_changed", params={}),
        NotificationReceived(method="notifications/x", params={"a": 1, "_meta": {"b": 2}}),
    ]
    assert pair.server_events == [
        NotificationReceived(method="notifications/roots/list_changed", params={})
    ]


@pytest.mark.parametrize(
    ("method", "params", "rule"),
    [
        ("notifications/cancelled", {"requestId": 1}, "OWN-025"),
        ("notifications/progress", {"progressToken": 1, "progress": 1}, "OWN-025"),
        ("notifications/message", {"level": "info", "data": 1}, "OWN-025"),
        ("notifications/initialized", None, "OWN-025"),
        ("notifications/roots/list_changed", None, "OWN-020"),
        ("notifications/resources/updated", {}, "OWN-014"),
        ("notifications/x", [1], "OWN-014"),
        ("notifications/x", {"_meta": 1}, "OWN-014"),
        ("notifications/\ud800", {"a": object()}, "OWN-024"),
    ],
)
def test_what_cannot_be_sent_raises_and_changes_nothing(
    method: str, params: Any, rule: str
) -> None:
    """The error must name the verb to use instead, if there is one."""
    server = ready_server(REVISION)
    before = canonical(server)

    with pytest.raises(LocalProtocolError) as caught:
        server.send_notification(method, params)
    assert caught.value.rule == rule
    assert canonical(server) == before


@pytest.mark.parametrize(
    ("message", "rules", "delivered"),
    [
        (note("notifications/x", None), ["OWN-015"], True),
        (note("notifications/x", [1]), ["JSON-017"], False),
        ({**note("notifications/x"), "jsonrpc": "1.0"}, ["JSON-001"], False),
        (note("notifications/tools/list_changed"), ["OWN-020"], False),
        (note("notifications/tasks/status", {}), ["OWN-014"], False),
        (
            note("notifications/tasks/status", {**TASK, "status": "working"}),
            ["OWN-014"],
            False,
        ),
        (note("tools/call", {"name": "x"}), ["OWN-020"], False),
    ],
)
def test_a_notification_that_breaks_a_rule_is_reported_and_never_answered(
    message: dict[str, Any], rules: list[str], delivered: bool
) -> None:
    """A notification has no response."""
    server = ready_server(REVISION)
    events = receive(server, message)

    assert [event.rule for event in of(ProtocolViolation, events)] == rules
    assert len(of(NotificationReceived, events)) == delivered
    assert sent(server) == []


def test_a_notification_before_the_handshake_is_over_is_not_delivered() -> None:
    """Between the response to `initialize` and `initialized` it must be delivered and reported."""
    server = new_server()
    early = only(ProtocolViolation, receive(server, note("notifications/x")))
    assert (early.rule, early.tolerated) == ("LIFE-001", False)

    pair = Pair(connected=False)
    pair.client.start(now=0)
    pair.deliver_message_to_server()
    events = receive(pair.server, note("notifications/x"))[-2:]
    assert [type(event) for event in events] == [ProtocolViolation, NotificationReceived]
    assert of(ProtocolViolation, events)[0].rule == "LIFE-004"


def test_an_undeclared_notification_is_delivered_and_reported() -> None:
    """A server that forgot to declare a capability has still changed its list."""
    for revision, rule in (("2025-03-26", "CAP-001"), ("2025-06-18", "CAP-002")):
        client = ready_client(revision, server={"tools": {}})
        events = receive(client, note("notifications/tools/list_changed"))

        assert [event.rule for event in of(ProtocolViolation, events)] == [rule]
        assert len(of(NotificationReceived, events)) == 1


# ---------------------------------------------------------------------------------------- logs


def test_a_log_message_arrives_with_all_its_parts() -> None:
    """The data of a log message may be any JSON value."""
    pair = Pair()
    assert pair.server.send_log("warning", {"disk": [99]}, logger="disk", meta={"a": 1}, now=1)
    pair.deliver()

    assert pair.client_events[0] == NotificationReceived(
        method="notifications/message",
        params={"level": "warning", "data": {"disk": [99]}, "logger": "disk", "_meta": {"a": 1}},
    )


def test_a_log_below_the_level_of_the_client_is_not_sent() -> None:
    """The client's last level must count; before it is set, all messages are sent."""
    server = ready_server(REVISION)
    assert all(server.send_log(level, "text") for level in LOG_LEVELS)
    assert len(sent(server)) == 8
    assert server.peer.log_level is None
    events = receive(server, call(1, "logging/setLevel", {"level": "error"}))
    assert only(RequestAnswered, events).code is None
    assert sent(server) == [result(1, {})]

    assert server.peer.log_level == "error"
    loud = {"error", "critical", "alert", "emergency"}
    assert {level for level in LOG_LEVELS if server.send_log(level, "text")} == loud
    assert {message["params"]["level"] for message in sent(server)} == loud


@pytest.mark.parametrize("level", ["verbose", "ERROR", ""])
def test_an_unknown_level_is_refused_both_ways(level: str) -> None:
    """A peer must get -32602, and a caller an exception."""
    server = ready_server(REVISION)
    events = receive(server, call(1, "logging/setLevel", {"level": level}))
    assert only(ProtocolViolation, events).rule == "LOG-006"
    assert refusals(sent(server)) == [(1, -32602)]

    with pytest.raises(LocalProtocolError) as caught:
        server.send_log(level, "text")
    assert caught.value.rule == "LOG-002"


@pytest.mark.parametrize("level", ["verbose", 5, None])
def test_a_log_message_of_an_unknown_level_is_delivered_and_reported(level: Any) -> None:
    """The text is useful whatever its level is called."""
    client = ready_client(REVISION, config=Config(check="none"))
    events = receive(client, note("notifications/message", {"level": level, "data": "text"}))

    assert [event.rule for event in of(ProtocolViolation, events)] == ["LOG-002"]
    assert len(of(NotificationReceived, events)) == 1


def test_logging_must_be_declared() -> None:
    """Clients may refuse log messages without the capability."""
    server = ready_server(REVISION, capabilities={"tools": {}})

    with pytest.raises(LocalProtocolError) as caught:
        server.send_log("info", "text")
    assert caught.value.rule == "LOG-001"


@pytest.mark.parametrize(
    ("data", "logger"), [(b"x", None), (float("nan"), None), ({1, 2}, None), ("text", 5)]
)
def test_what_has_no_json_form_is_not_logged(data: Any, logger: Any) -> None:
    """The verb must raise and queue no output."""
    server = ready_server(REVISION)

    with pytest.raises(LocalProtocolError):
        server.send_log("info", data, logger=logger)
    assert sent(server) == []


def test_logs_that_nobody_could_receive_are_dropped() -> None:
    """Code that logs must not have to know the state of the connection."""
    server = new_server()
    assert server.send_log("info", "too early") is False

    server = ready_server(REVISION)
    request = asked(server, call(1, "tools/list"))
    assert server.send_log("info", "for the request", request=request)
    server.send_result(request, {"tools": []})
    assert server.send_log("info", "too late", request=request) is False
    server.send_failed()
    assert server.send_log("info", "nowhere") is False
    server.close()
    assert server.state is State.CLOSED
    assert server.send_log("info", "nowhere") is False
    assert sent(server) == []


def level_asked(server: ServerConnection, level: Any) -> Any:
    return asked(server, call(f"set {level}", "logging/setLevel", {"level": level}))


def test_the_application_may_answer_the_level_itself() -> None:
    """The level must count from the application's result on."""
    server = ready_server(REVISION, config=Config(manual={"logging/setLevel"}))
    request = level_asked(server, "error")
    assert server.peer.log_level is None
    assert server.send_result(request, {})
    assert request.log_level == "error"

    assert server.send_error(level_asked(server, "debug"), -32603, "not now")
    assert server.peer.log_level == "error"


def test_the_application_may_answer_pings_itself() -> None:
    """A gateway may have to pass pings on."""
    server = ready_server(REVISION, config=Config(manual={"ping"}))
    (event,) = receive(server, call(1, "ping"))

    assert isinstance(event, RequestReceived)
    assert server.send_result(event.request, {})
