"""Values of capabilities with a wrong type: what they declare, and where they are reported."""

from typing import Any, Final

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    ClientConnection,
    Config,
    JSONObject,
    LocalProtocolError,
    ProtocolViolation,
    Ready,
    RequestReceived,
    ServerConnection,
)
from tests.support.http import server_endpoint as http_support
from tests.support.modern import (
    MODERN,
    discovered,
    envelope,
    modern,
    modern_server,
)
from tests.support.watching import C, S, accused, agreement, observe
from tests.support.wire import (
    INITIALIZED,
    SERVER_INFO,
    asked,
    broken,
    call,
    initialize,
    initialized_by,
    new_client,
    new_server,
    of,
    ready_client,
    ready_server,
    receive,
    result,
    sent,
)

NEWEST: Final = LEGACY_REVISIONS[-1]
ODD: Final[list[Any]] = [[], [1], "yes", 5, True]


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
@pytest.mark.parametrize("odd", ODD)
def test_a_key_that_is_there_declares_whatever_its_value_is(revision: str, odd: object) -> None:
    """Case c289: PHP writes an empty object as an empty list, so its servers seemed to have no
    tools."""
    client = new_client()
    client.start()
    sent(client)
    events = receive(client, result(1, initialized_by(revision, {"tools": odd})))
    violation, ready = events
    assert isinstance(violation, ProtocolViolation)
    assert (violation.rule, violation.tolerated) == ("OWN-047", True)
    assert "tools" in violation.text
    assert isinstance(ready, Ready)
    assert ready.peer.capabilities == {"tools": odd}
    sent(client)
    client.send_request("tools/list")
    assert [message["method"] for message in sent(client)] == ["tools/list"]


@pytest.mark.parametrize(("value", "rule"), [(None, "OWN-015"), (False, "OWN-047")])
def test_null_and_false_declare_nothing(value: object, rule: str) -> None:
    """null and false mean "no capability", in a form that the specification does not have."""
    client = new_client()
    client.start()
    events = receive(client, result(1, initialized_by(NEWEST, {"tools": value, "prompts": {}})))
    assert broken(events) == [rule]
    with pytest.raises(LocalProtocolError, match="tools"):
        client.send_request("tools/list")
    expected: JSONObject = {"prompts": {}} if value is None else {"tools": False, "prompts": {}}
    assert client.peer.capabilities == expected
    client.send_request("prompts/list")


def test_inner_keys_are_read_in_the_same_way() -> None:
    """A flag with a wrong type must count as true."""
    odd: JSONObject = {
        "resources": {"subscribe": [], "listChanged": None, "x": 5},
        "tools": {"listChanged": 1},
        "experimental": {"a": []},
        "own": 5,
    }
    client = new_client()
    client.start()
    sent(client)
    events = receive(client, result(1, initialized_by(NEWEST, odd)))
    assert broken(events) == ["OWN-047", "OWN-015", "OWN-047", "OWN-047"]
    assert client.peer.capabilities["resources"] == {"subscribe": [], "x": 5}
    client.send_request("resources/subscribe", {"uri": "file:///a"})
    no_objects = ready_client(NEWEST, server={"tools": {}}, capabilities={"roots": {}})
    assert no_objects.peer.capabilities == {"tools": {}}


@pytest.mark.parametrize("odd", ODD)
def test_a_discovered_server_is_read_in_the_same_way(odd: object) -> None:
    """Neighbour of case c289: the rule must hold in the revision without a handshake."""
    client = new_client(revisions=(MODERN,))
    client.start()
    sent(client)
    capabilities = {"tools": odd, "extensions": {"a/b": odd}, "prompts": None}
    events = receive(client, result(1, discovered(capabilities)))
    assert broken(events) == ["OWN-047", "OWN-015", "OWN-047"]
    assert len(of(Ready, events)) == 1
    client.send_request("tools/list")


@pytest.mark.parametrize("odd", ODD)
def test_a_server_reads_its_clients_in_the_same_way(odd: object) -> None:
    """The rule must hold for the capabilities of clients too."""
    server = new_server(revisions=LEGACY_REVISIONS)
    declared = {"roots": odd, "sampling": {"tools": odd}}
    assert broken(receive(server, initialize(1, NEWEST, declared))) == ["OWN-047", "OWN-047"]
    receive(server, INITIALIZED)
    sent(server)
    server.send_request("roots/list")
    tools: JSONObject = {"messages": [], "maxTokens": 1, "tools": []}
    server.send_request("sampling/createMessage", tools)
    assert len(sent(server)) == 2


@pytest.mark.parametrize("odd", ODD)
def test_a_request_that_declares_for_itself_is_read_in_the_same_way(odd: object) -> None:
    """A modern client declares in each envelope; an equal one must not be judged again."""
    server = modern_server()
    for id, rules in ((1, ["OWN-047"]), (2, [])):
        message = modern(id, "tools/call", {"name": "t"}, envelope({"roots": odd, "sampling": {}}))
        events = receive(server, message)
        assert broken(events) == rules
        (event,) = of(RequestReceived, events)
        assert server.require_input(event.request, {"r": {"method": "roots/list"}})


def test_the_observer_reports_them_on_both_sides() -> None:
    """The observer must report the wrong type, and treat the capability as declared."""
    opening = initialize("i", NEWEST, {"roots": [], "sampling": None})
    answer = result("i", agreement(NEWEST, {"tools": [], "resources": {"subscribe": []}}))
    listing = [(C, call(1, "tools/list")), (S, call(1, "roots/list"))]
    events = observe((C, opening), (S, answer), (C, INITIALIZED), *listing)
    assert accused(events) == [(C, "OWN-047"), (C, "OWN-015"), (S, "OWN-047"), (S, "OWN-047")]


def test_the_observer_reports_them_where_each_request_declares() -> None:
    """The same in the revision without a handshake."""
    first = modern(1, "server/discover", meta=envelope({"roots": []}))
    answer = result(1, discovered({"tools": []}))
    events = observe((C, first), (S, answer))
    assert accused(events) == [(C, "OWN-047"), (S, "OWN-047")]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    ("side", "capability"), [(ClientConnection, "roots"), (ServerConnection, "tools")]
)
def test_our_own_callers_capabilities_have_the_right_types(
    side: Any, capability: str, odd: object
) -> None:
    """Capabilities with wrong types would be invalid in every revision."""
    with pytest.raises(LocalProtocolError, match=rf"{capability} .*OWN-047"):
        side(info=SERVER_INFO, capabilities={capability: odd})
    with pytest.raises(LocalProtocolError, match="OWN-047"):
        side(info=SERVER_INFO, capabilities={capability: {"listChanged": "yes"}})


def test_our_own_callers_nulls_are_left_out() -> None:
    """Capabilities that are dumped from a model have null for each one that is missing."""
    client = new_client(capabilities={"roots": {"listChanged": None}, "sampling": None, "x": None})
    client.start()
    server = ready_server(NEWEST, capabilities={"tools": None, "prompts": {}})
    (first,) = sent(client)
    assert first["params"]["capabilities"] == {"roots": {}, "x": None}
    assert broken(receive(server, call(1, "tools/list"))) != []
    assert asked(server, call(2, "prompts/list")).open


DUMPED: Final[list[tuple[JSONObject, JSONObject]]] = [
    ({"experimental": None, "tools": {}}, {"tools": {}}),
    ({"extensions": None, "tools": {"listChanged": None}}, {"tools": {}}),
    ({"sampling": {"context": None, "tools": None}}, {"sampling": {}}),
    ({"experimental": {"x": {"y": None}}}, {"experimental": {"x": {"y": None}}}),
]
"""What models of others give, and what goes out."""


@pytest.mark.parametrize(("given", "expected"), DUMPED)
def test_null_is_left_out_wherever_an_object_may_stand(
    given: JSONObject, expected: JSONObject
) -> None:
    """Models have members such as `experimental`, `extensions` and `sampling.context`."""
    for revisions in (LEGACY_REVISIONS, [MODERN]):
        client = new_client(capabilities=given, revisions=revisions)
        client.start()
        (first,) = sent(client)
        if revisions == [MODERN]:
            declared = first["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        else:
            declared = first["params"]["capabilities"]
        assert declared == expected
    server = new_server(capabilities=given, revisions=LEGACY_REVISIONS)
    receive(server, initialize(1, NEWEST))
    (answer,) = sent(server)
    assert answer["result"]["capabilities"] == expected
    modern_one = modern_server(capabilities=given)
    receive(modern_one, modern(1, "server/discover"))
    (answer,) = sent(modern_one)
    assert answer["result"]["capabilities"] == expected
    endpoint = http_support.new_endpoint(capabilities=given)
    response = http_support.answer(http_support.post(endpoint, initialize(1, NEWEST)))
    assert response.last["result"]["capabilities"] == expected


@pytest.mark.parametrize(("given", "expected"), DUMPED)
def test_null_is_left_out_of_an_answer_to_initialize(
    given: JSONObject, expected: JSONObject
) -> None:
    """The capabilities that are sent must be those that count."""
    server = new_server(revisions=LEGACY_REVISIONS, config=Config(manual={"initialize"}))
    request = asked(server, initialize(1, NEWEST))
    assert server.send_result(request, initialized_by(NEWEST, given))
    (answer,) = sent(server)
    assert answer["result"]["capabilities"] == expected


@pytest.mark.parametrize("member", ["experimental", "extensions"])
def test_a_null_of_the_peer_is_not_among_its_capabilities(member: str) -> None:
    """null must count as absent, and be reported if the revision knows the capability."""
    client = new_client(revisions=LEGACY_REVISIONS)
    client.start()
    (first,) = sent(client)
    events = receive(client, result(first["id"], initialized_by(NEWEST, {member: None})))
    assert broken(events) == (["OWN-015"] if member == "experimental" else [])
    assert client.peer.capabilities == {}
    server = modern_server()
    events = receive(server, modern(1, "tools/list", None, envelope({member: None})))
    assert broken(events) == ["OWN-015"]
    (event,) = of(RequestReceived, events)
    assert event.request.peer.capabilities == {}


def test_an_answer_to_initialize_of_our_own_caller_is_checked() -> None:
    """An application that answers `initialize` itself declares the capabilities."""
    server = new_server(revisions=LEGACY_REVISIONS, config=Config(manual={"initialize"}))
    request = asked(server, initialize(1, NEWEST))
    with pytest.raises(LocalProtocolError, match="OWN-047"):
        server.send_result(request, initialized_by(NEWEST, {"tools": []}))
    assert server.send_result(request, initialized_by(NEWEST, {"tools": {}}))


@pytest.mark.unjudged("what the application hands over is not checked here")
def test_an_unchecked_answer_to_initialize_may_lack_them() -> None:
    """With `check="none"` a missing member must mean that nothing is declared."""
    unchecked = Config(manual={"initialize"}, check="none")
    server = new_server(revisions=LEGACY_REVISIONS, config=unchecked)
    request = asked(server, initialize(1, NEWEST))
    assert server.send_result(request, {"protocolVersion": NEWEST})
    sent(server)


def test_an_http_endpoint_reports_its_clients_too() -> None:
    """An endpoint must judge the capabilities of each request as a connection does."""
    with pytest.raises(LocalProtocolError, match="OWN-047"):
        http_support.new_endpoint(capabilities={"tools": []})
    endpoint = http_support.new_endpoint()
    message = modern(1, "tools/call", {"name": "t"}, envelope({"roots": []}))
    http_support.post_modern(endpoint, message)
    request = http_support.asked(endpoint)
    assert request.peer.capabilities == {"roots": []}
    endpoint.require_input(request, {"r": {"method": "roots/list"}})
    initialized = initialize(1, NEWEST, {"roots": []})
    http_support.post(endpoint, initialized)
    assert http_support.broken(endpoint) == ["OWN-047"]
