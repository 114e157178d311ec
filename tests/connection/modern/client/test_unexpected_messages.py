"""Messages that a server of 2026-07-28 may not send, or that no request waits for.

Rules: STATE-006, STATE-007, OWN-020.
"""

from typing import Any

import pytest

from sansmcp import (
    CloseCause,
    Config,
    ConnectionClosed,
    JSONObject,
    LocalProtocolError,
    NotificationReceived,
    ProtocolViolation,
    ResponseReceived,
)
from tests.support.modern import complete, modern_client
from tests.support.wire import broken, call, drain, note, of, only, receive, sent

CALL: JSONObject = {"name": "t"}

UNANSWERED: list[Any] = [
    call(1, "ping"),
    call(2, "ping"),
    call("a", "roots/list"),
    call(5, "sampling/createMessage", {"messages": [], "maxTokens": 1}),
    call(5, "elicitation/create", {"message": "m", "requestedSchema": {}}),
    call(5, "x/extension"),
    call(5, "tools/list"),
    call(5, "server/discover"),
    call(None, "ping"),
    call(True, "ping"),
    call(5, "ping", [1]),
    {**call(5, "ping"), "jsonrpc": "1.0"},
    {**call(5, "ping"), "result": {}},
    [call(5, "ping")],
    [],
    {"id": 5, "method": 5},
    {"id": 5},
    5,
    b"no JSON\n",
    b"\xff\xfe\n",
    b'{"level":"info"}\n',
]


@pytest.mark.parametrize("unknown_methods", ["refuse", "deliver"])
@pytest.mark.parametrize("message", UNANSWERED)
def test_client_never_answers(message: Any, unknown_methods: Any) -> None:
    """A client of this revision sends no responses (STATE-006, STATE-007)."""
    client = modern_client(config=Config(unknown_methods=unknown_methods))
    asked = client.send_request("tools/call", CALL, id=9)
    sent(client)
    (violation,) = receive(client, message)
    assert isinstance(violation, ProtocolViolation)
    assert not violation.fatal
    assert sent(client) == []
    assert client.open_requests == ()
    assert only(ResponseReceived, receive(client, complete(9, {"content": []}))).request is asked


def test_client_does_not_answer_after_sending_has_failed_either() -> None:
    """Messages that still come must be read to the end."""
    client = modern_client()
    client.send_failed()
    receive(client, call(1, "ping"))
    client.receive_eof()
    assert only(ConnectionClosed, drain(client)).cause is CloseCause.SEND_FAILED
    assert sent(client) == []


@pytest.mark.parametrize(
    "method",
    [
        "notifications/initialized",
        "notifications/roots/list_changed",
        "notifications/elicitation/complete",
        "notifications/tasks/status",
    ],
)
def test_notification_of_another_revision_is_reported(method: str) -> None:
    """In this revision it has no meaning, or another direction."""
    client = modern_client()
    assert broken(receive(client, note(method))) == ["OWN-020"]


def test_log_messages_and_foreign_notifications_are_told() -> None:
    """They have no tag of a request, and must be delivered all the same."""
    client = modern_client()
    log = note("notifications/message", {"level": "info", "data": {"a": 1}})
    told = of(NotificationReceived, receive(client, log, note("x/extension", {"b": 2})))
    assert [(event.method, event.params, event.subscription) for event in told] == [
        ("notifications/message", {"level": "info", "data": {"a": 1}}, None),
        ("x/extension", {"b": 2}, None),
    ]


@pytest.mark.parametrize(
    "method", ["notifications/roots/list_changed", "notifications/initialized"]
)
def test_client_has_nothing_of_a_handshake_to_tell(method: str) -> None:
    """Notifications of the handshake mean nothing to a modern server."""
    client = modern_client()
    with pytest.raises(LocalProtocolError):
        client.send_notification(method)
    assert sent(client) == []
