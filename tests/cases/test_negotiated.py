"""Failure class 5, lifecycle: both sides use only what they negotiated."""

from typing import Any

import pytest

from sansmcp import (
    MISSING,
    ErrorReceived,
    LocalProtocolError,
    Phase,
    ProtocolViolation,
    Ready,
    RequestAnswered,
    State,
)
from tests.support.wire import (
    CLIENT_INFO,
    SAMPLING,
    SERVER_INFO,
    asked,
    assert_usable,
    call,
    error,
    initialize,
    new_server,
    note,
    of,
    only,
    ready_client,
    ready_server,
    receive,
    result,
    sent,
)

# What a client might send, with the first revision that has it.
LATER: dict[str, tuple[str, dict[str, Any]]] = {
    "tasks/list": ("2025-11-25", {}),
    "tasks/get": ("2025-11-25", {"taskId": "t"}),
    "tasks/cancel": ("2025-11-25", {"taskId": "t"}),
    "tasks/result": ("2025-11-25", {"taskId": "t"}),
}
FORM: dict[str, Any] = {
    "message": "?",
    "requestedSchema": {"type": "object", "properties": {}},
}
TASKS: dict[str, Any] = {"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}


@pytest.mark.parametrize("method", LATER)
def test_a_client_sends_no_request_of_a_later_revision(revision: str, method: str) -> None:
    """Case c080: agreed on an old revision, the client used what came with newer ones."""
    since, params = LATER[method]
    client = ready_client(revision, server=TASKS)
    if revision >= since:
        client.send_request(method, params)
        assert [message["method"] for message in sent(client)] == [method]
        return
    with pytest.raises(LocalProtocolError) as caught:
        client.send_request(method, params)
    assert caught.value.rule == "OWN-020"
    assert_usable(client)


def test_a_server_sends_no_request_of_a_later_revision(revision: str) -> None:
    """Case c080 from the other side: elicitation came with 2025-06-18."""
    server = ready_server(revision)
    if revision >= "2025-06-18":
        server.send_request("elicitation/create", FORM)
        assert [message["method"] for message in sent(server)] == ["elicitation/create"]
        return
    with pytest.raises(LocalProtocolError) as caught:
        server.send_request("elicitation/create", FORM)
    assert caught.value.rule == "OWN-020"
    assert_usable(server)


def test_progress_has_no_message_in_the_oldest_revision(revision: str) -> None:
    """Case c080: a member that came with 2025-03-26 went out at 2024-11-05."""
    client = ready_client(revision)
    meta = {"progressToken": 7}
    request = asked(client, call(1, "sampling/createMessage", {**SAMPLING, "_meta": meta}))
    assert client.send_progress(request, 1, total=2, message="thinking")
    (message,) = sent(client)
    more = {} if revision == "2024-11-05" else {"message": "thinking"}
    assert message["params"] == {"progressToken": 7, "progress": 1, "total": 2, **more}


# Requests of the client with the capability of the server that each needs.
NEEDS: dict[str, tuple[str, dict[str, Any]]] = {
    "tools/list": ("tools", {}),
    "tools/call": ("tools", {"name": "t"}),
    "resources/list": ("resources", {}),
    "resources/templates/list": ("resources", {}),
    "resources/read": ("resources", {"uri": "file:///a"}),
    "resources/subscribe": ("resources.subscribe", {"uri": "file:///a"}),
    "resources/unsubscribe": ("resources.subscribe", {"uri": "file:///a"}),
    "prompts/list": ("prompts", {}),
    "prompts/get": ("prompts", {"name": "p"}),
    "logging/setLevel": ("logging", {"level": "info"}),
    "completion/complete": (
        "completions",
        {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}},
    ),
}

# Objects that do not declare a capability although its name occurs.
NOT_DECLARING: list[dict[str, Any]] = [
    {},
    {"tools": None, "resources": None, "prompts": None, "logging": None, "completions": None},
    {"resources": {"subscribe": False}},
    {"resources": {"subscribe": None}},
    {"experimental": {"tools": {}, "prompts": {}}},
]


@pytest.mark.parametrize("method", NEEDS)
@pytest.mark.parametrize("capabilities", NOT_DECLARING, ids=repr)
def test_a_client_asks_only_for_what_the_server_declared(
    revision: str, method: str, capabilities: dict[str, Any]
) -> None:
    """Case c083: a server without prompts was asked for them, and some of them hung up."""
    needed, params = NEEDS[method]
    client = ready_client(revision, server=capabilities)
    declared = needed == "resources" and isinstance(capabilities.get("resources"), dict)
    free = revision == "2024-11-05" and method == "completion/complete"
    if declared or free:
        client.send_request(method, params)
        assert [message["method"] for message in sent(client)] == [method]
        return
    with pytest.raises(LocalProtocolError) as caught:
        client.send_request(method, params)
    assert caught.value.rule == ("CAP-001" if revision < "2025-06-18" else "CAP-002")
    assert client.pending_requests == ()
    assert_usable(client)


@pytest.mark.parametrize("method", NEEDS)
def test_an_empty_object_declares_a_capability(revision: str, method: str) -> None:
    """Neighbour of case c083: `{}` is falsy in Python, and was taken for absent."""
    client = ready_client(
        revision,
        server={
            "tools": {},
            "resources": {"subscribe": True},
            "prompts": {},
            "logging": {},
            "completions": {},
        },
    )
    client.send_request(method, NEEDS[method][1])
    assert [message["method"] for message in sent(client)] == [method]


def test_an_error_ends_its_request_only(revision: str) -> None:
    """Case c085: -32601 for one optional method ended the session."""
    client = ready_client(revision, server={"resources": {}})
    other = client.send_request("resources/list")
    request = client.send_request("resources/templates/list")
    sent(client)
    event, answered = receive(
        client, error(request.id, -32601, "Method not found"), call(1, "ping")
    )
    assert isinstance(event, ErrorReceived)
    assert (event.request, event.code, event.message) == (request, -32601, "Method not found")
    assert isinstance(answered, RequestAnswered)
    assert sent(client) == [result(1, {})]
    assert client.pending_requests == (other,)
    assert (client.state, client.phase) == (State.OPEN, Phase.OPERATING)
    # The method is not given up for good either: that is for the application to decide.
    client.send_request("resources/templates/list")


@pytest.mark.parametrize(
    ("method", "params", "since"),
    [
        ("sampling/createMessage", SAMPLING, "2024-11-05"),
        ("roots/list", {}, "2024-11-05"),
        (
            "elicitation/create",
            FORM,
            "2025-06-18",
        ),
    ],
)
@pytest.mark.parametrize("capabilities", [{}, {"experimental": {"sampling": {}}}], ids=repr)
def test_a_server_asks_only_for_what_the_client_declared(
    revision: str, method: str, params: dict[str, Any], since: str, capabilities: dict[str, Any]
) -> None:
    """Case c086: a client without sampling was asked to sample, and the call hung."""
    server = ready_server(revision, client=capabilities)
    with pytest.raises(LocalProtocolError) as caught:
        server.send_request(method, params)
    undeclared = "CAP-001" if revision < "2025-06-18" else "CAP-002"
    assert caught.value.rule == (undeclared if revision >= since else "OWN-020")
    assert server.pending_requests == ()
    assert_usable(server)


@pytest.mark.parametrize(
    ("params", "reported"), [(MISSING, 0), ({}, 0), ({"_meta": {"a": 1}}, 0), (None, 1)], ids=repr
)
def test_initialized_needs_no_params(revision: str, params: Any, reported: int) -> None:
    """Case c088: the notification without params was refused, and the session never began."""
    server = new_server()
    receive(server, initialize(1, revision))
    sent(server)
    events = receive(server, note("notifications/initialized", params))
    assert len(of(ProtocolViolation, events)) == reported
    assert only(Ready, events[reported:]).revision == revision
    assert server.peer.info == CLIENT_INFO
    assert_usable(server)


def test_a_ready_client_knows_its_server(revision: str) -> None:
    """Neighbour of case c080: both sides must have the agreement in their properties."""
    client = ready_client(revision, server={"tools": {}, "x": {"y": 1}})
    assert client.peer.info == SERVER_INFO
    assert client.peer.capabilities == {"tools": {}, "x": {"y": 1}}
    assert client.peer.revision == revision
