"""Capabilities gate both directions, by the registry of the agreed revision."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    ClientConnection,
    JSONObject,
    LocalProtocolError,
    NotificationReceived,
    ProtocolViolation,
)
from sansmcp.testing import Pair
from tests.support.wire import (
    SAMPLING,
    call,
    note,
    of,
    ready_client,
    ready_server,
    receive,
    refusals,
    sent,
)

NEWEST = "2025-11-25"

GATES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("tools/list", {}, {"tools": {}}),
    ("tools/call", {"name": "x"}, {"tools": {}}),
    ("resources/list", {}, {"resources": {}}),
    ("resources/templates/list", {}, {"resources": {}}),
    ("resources/read", {"uri": "file:///a"}, {"resources": {}}),
    ("resources/subscribe", {"uri": "file:///a"}, {"resources": {"subscribe": True}}),
    ("resources/unsubscribe", {"uri": "file:///a"}, {"resources": {"subscribe": True}}),
    ("prompts/list", {}, {"prompts": {}}),
    ("prompts/get", {"name": "x"}, {"prompts": {}}),
    ("logging/setLevel", {"level": "info"}, {"logging": {}}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}},
        {"completions": {}},
    ),
    ("tasks/get", {"taskId": "t"}, {"tasks": {}}),
    ("tasks/list", {}, {"tasks": {"list": {}}}),
    ("tasks/cancel", {"taskId": "t"}, {"tasks": {"cancel": {}}}),
]
NOT_ENOUGH: list[dict[str, Any]] = [
    {},
    {"resources": {"subscribe": False}, "tools": None, "prompts": False, "tasks": {"list": None}},
]


def server_declares(capabilities: dict[str, Any], revision: str = NEWEST) -> ClientConnection:
    return ready_client(revision, server=capabilities)


@pytest.mark.parametrize(("method", "params", "needed"), GATES)
def test_a_client_asks_for_what_the_server_declared_only(
    method: str, params: dict[str, Any], needed: dict[str, Any]
) -> None:
    """An undeclared request must raise in the client, and get -32601 from the server."""
    client, server = server_declares(needed), ready_server(NEWEST, capabilities=needed)
    client.send_request(method, params)
    assert of(ProtocolViolation, receive(server, call(1, method, params))) == []

    with pytest.raises(LocalProtocolError, match="needs the capability") as caught:
        server_declares({}).send_request(method, params)
    assert caught.value.rule == "CAP-002"
    bare = ready_server(NEWEST, capabilities={})
    receive(bare, call(1, method, params))
    assert refusals(sent(bare)) == [(1, -32601)]


@pytest.mark.parametrize("capabilities", NOT_ENOUGH)
@pytest.mark.parametrize("method", ["resources/subscribe", "tasks/list"])
def test_false_and_null_declare_nothing(method: str, capabilities: dict[str, Any]) -> None:
    """Only an empty object or `true` declares a capability."""
    params = {"uri": "file:///a"} if method == "resources/subscribe" else {}

    with pytest.raises(LocalProtocolError):
        server_declares(capabilities).send_request(method, params)


def test_the_oldest_revision_has_no_capability_for_completions() -> None:
    """In 2024-11-05 the method needs no capability."""
    params = {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}}
    server_declares({}, "2024-11-05").send_request("completion/complete", params)

    with pytest.raises(LocalProtocolError) as caught:
        server_declares({}, "2025-03-26").send_request("completion/complete", params)
    assert caught.value.rule == "CAP-001"


FORM: dict[str, Any] = {"message": "Name?", "requestedSchema": {"type": "object", "properties": {}}}
URL: dict[str, Any] = {
    "mode": "url",
    "message": "Log in",
    "url": "https://example.org",
    "elicitationId": "e",
}


PARTS: list[tuple[str, dict[str, Any], dict[str, Any], int | None]] = [
    ("roots/list", {}, {}, -32601),
    ("roots/list", {}, {"roots": {}}, None),
    ("sampling/createMessage", SAMPLING, {}, -32601),
    ("sampling/createMessage", SAMPLING, {"sampling": {}}, None),
    ("sampling/createMessage", {**SAMPLING, "tools": []}, {"sampling": {}}, -32602),
    ("sampling/createMessage", {**SAMPLING, "toolChoice": {}}, {"sampling": {}}, -32602),
    ("sampling/createMessage", {**SAMPLING, "tools": []}, {"sampling": {"tools": {}}}, None),
    ("elicitation/create", FORM, {}, -32601),
    ("elicitation/create", FORM, {"elicitation": {}}, None),
    ("elicitation/create", {**FORM, "mode": "form"}, {"elicitation": {"form": {}}}, None),
    ("elicitation/create", FORM, {"elicitation": {"url": {}}}, -32602),
    ("elicitation/create", URL, {"elicitation": {"url": {}}}, None),
    ("elicitation/create", URL, {"elicitation": {}}, -32602),
]


@pytest.mark.parametrize(("method", "params", "declared", "code"), PARTS)
def test_a_server_asks_for_what_the_client_declared_only(
    method: str, params: dict[str, Any], declared: dict[str, Any], code: int | None
) -> None:
    """Parts of a method can have a capability of their own; an empty `elicitation` means forms."""
    server = ready_server(NEWEST, client=declared)
    client = ready_client(NEWEST, capabilities=declared)
    events = receive(client, call(1, method, params))
    if code is None:
        server.send_request(method, params)
        assert of(ProtocolViolation, events) == []
    else:
        with pytest.raises(LocalProtocolError):
            server.send_request(method, params)
        assert refusals(sent(client)) == [(1, code)]


@pytest.mark.parametrize(
    ("params", "fault"),
    [
        ({**URL, "url": 5}, "url has the wrong type"),
        ({"mode": "url", "message": "m", "url": "u"}, "elicitationId is missing"),
        ({"mode": "form", "message": "m"}, "requestedSchema is missing"),
        ({"message": True, "requestedSchema": {}}, "message has the wrong type"),
    ],
)
def test_each_mode_has_members_of_its_own(params: dict[str, Any], fault: str) -> None:
    """The required members of another mode must not be demanded."""
    server = ready_server(NEWEST, client={"elicitation": {"form": {}, "url": {}}})

    with pytest.raises(LocalProtocolError, match=fault):
        server.send_request("elicitation/create", params)


@pytest.mark.parametrize("mode", ["voice", 5, ""])
def test_an_unknown_mode_is_refused(mode: Any) -> None:
    """No capability can be declared for an unknown mode."""
    client = ready_client(NEWEST)
    receive(client, call(1, "elicitation/create", {**FORM, "mode": mode}))

    assert refusals(sent(client)) == [(1, -32602)]


@pytest.mark.parametrize("tokens", [True, "100", None])
def test_a_boolean_is_no_number_and_a_subclass_is_its_kind(tokens: Any) -> None:
    """`True` is an integer in Python, but not in JSON."""

    class Tokens(int):
        pass

    server = ready_server(NEWEST)
    with pytest.raises(LocalProtocolError, match="maxTokens has the wrong type"):
        server.send_request("sampling/createMessage", {**SAMPLING, "maxTokens": tokens})
    params = {**SAMPLING, "maxTokens": Tokens(5)}
    server.send_request("sampling/createMessage", params)
    assert sent(server)[0]["params"]["maxTokens"] == 5


def test_notifications_are_gated_by_their_sender_or_their_receiver() -> None:
    """`roots/list_changed` needs a capability of its sender, the end of an elicitation one of
    its receiver."""
    bare = ready_client(NEWEST, capabilities={"roots": {}})
    with pytest.raises(LocalProtocolError) as caught:
        bare.send_notification("notifications/roots/list_changed")
    assert caught.value.rule == "CAP-002"

    done = note("notifications/elicitation/complete", {"elicitationId": "e"})
    events = receive(bare, done)
    assert [event.rule for event in of(ProtocolViolation, events)] == ["CAP-002"]
    assert len(of(NotificationReceived, events)) == 1
    with pytest.raises(LocalProtocolError):
        ready_server(NEWEST, client={}).send_notification(done["method"], done["params"])
    ready_server(NEWEST, client={"elicitation": {"url": {}}}).send_notification(
        done["method"], done["params"]
    )


CLIENT: JSONObject = {
    "roots": {"listChanged": True},
    "sampling": {"tools": {}},
    "elicitation": {"form": {}, "url": {}},
    "tasks": {"list": {}, "requests": {"sampling": {"createMessage": {}}}},
    "experimental": {"tools": {"tasks": 1}},
}
EXPECTED: dict[str, JSONObject] = {
    "2024-11-05": {"roots": {"listChanged": True}, "sampling": {}},
    "2025-03-26": {"roots": {"listChanged": True}, "sampling": {}},
    "2025-06-18": {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}},
    "2025-11-25": {name: value for name, value in CLIENT.items() if name != "experimental"},
}


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
def test_a_client_declares_only_what_the_offered_revision_has(revision: str) -> None:
    """A server that is told of a later feature may use it, and would be accused of it."""
    client = ClientConnection(
        info={"name": "c", "version": "1"}, capabilities=CLIENT, revisions=[revision]
    )
    client.start()
    params: Any = json.loads(client.data_to_send())["params"]

    extension = {"experimental": CLIENT["experimental"]}
    assert params["capabilities"] == {**EXPECTED[revision], **extension}


def test_a_server_declares_only_what_the_agreed_revision_has() -> None:
    """`completions` came in 2025-03-26, so a client of 2024-11-05 does not know it."""
    pair = Pair(revision="2024-11-05")

    assert "completions" not in pair.client.peer.capabilities
    assert "tools" in pair.client.peer.capabilities
