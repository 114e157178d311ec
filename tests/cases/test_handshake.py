"""Failure class 5, lifecycle: the handshake in every order, and nothing before its time."""

from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    MISSING,
    ConnectionClosed,
    ConnectionFailed,
    FailureCause,
    Phase,
    ProtocolViolation,
    Ready,
    RequestAnswered,
    RequestReceived,
    State,
)
from tests.support.wire import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    INITIALIZED,
    assert_usable,
    broken,
    call,
    drain,
    initialize,
    initialized_by,
    new_client,
    new_server,
    of,
    only,
    receive,
    refusals,
    result,
    sent,
)


def finish_handshake(server: Any, revision: str) -> None:
    """The server takes a correct `initialize` now, and becomes operational."""
    only(RequestAnswered, receive(server, initialize("init", revision)))
    (answer,) = sent(server)
    assert (answer["id"], answer["result"]["protocolVersion"]) == ("init", revision)
    only(Ready, receive(server, INITIALIZED))
    assert server.phase is Phase.OPERATING


@pytest.mark.parametrize("params", [MISSING, {}, {"_meta": {}}], ids=repr)
def test_a_ping_before_initialize_is_answered(revision: str, params: Any) -> None:
    """Case c070: a client that looks for a live server pings first, and got an error."""
    server = new_server()
    only(RequestAnswered, receive(server, call(1, "ping", params)))
    assert sent(server) == [result(1, {})]
    assert server.phase is Phase.NEW
    finish_handshake(server, revision)


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "logging/setLevel", "no/such"])
def test_a_request_before_initialize_is_refused_and_initialize_still_served(
    revision: str, method: str
) -> None:
    """Case c071: the early request was served, or the server refused everything after it."""
    server = new_server(revisions=[revision])
    violation = only(ProtocolViolation, [receive(server, call(1, method))[0]])
    assert (violation.rule, violation.code) == ("LIFE-005", -32600)
    (refused,) = sent(server)
    assert refusals([refused]) == [(1, -32600)]
    assert "initialize" in refused["error"]["message"]
    assert not server.open_requests
    finish_handshake(server, revision)


def test_initialize_is_served_in_the_same_read_as_an_early_request(revision: str) -> None:
    """Case c071, as its bytes came."""
    server = new_server(revisions=[revision])
    receive(server, call(1, "tools/list"), initialize(2, revision))
    refused, answer = sent(server)
    assert refusals([refused]) == [(1, -32600)]
    assert (answer["id"], answer["result"]["protocolVersion"]) == (2, revision)


def test_requests_between_the_answer_and_initialized_are_served(revision: str) -> None:
    """Case c073: many clients do not wait, and were refused."""
    server = new_server()
    receive(server, initialize(1, revision))
    sent(server)
    receive(server, call(2, "logging/setLevel", {"level": "info"}), call(3, "ping"))
    assert sent(server) == [result(2, {}), result(3, {})]
    early = receive(server, call(4, "tools/list"))
    # It is reported all the same: the client broke a rule.
    assert broken(early) == ["LIFE-004"]
    (received,) = of(RequestReceived, early)
    only(Ready, receive(server, INITIALIZED))
    assert server.phase is Phase.OPERATING
    assert server.send_result(received.request, {"tools": []})
    assert sent(server) == [result(4, {"tools": []})]


@pytest.mark.parametrize(
    "wish", [*LEGACY_REVISIONS, "2026-07-28", "2030-01-01", "1.0", "", "2025-06-18 "], ids=repr
)
def test_a_server_names_a_revision_that_it_supports(revision: str, wish: str) -> None:
    """Case c077: the wish of the client was echoed by a server that does not speak it."""
    supported = LEGACY_REVISIONS[: LEGACY_REVISIONS.index(revision) + 1]
    server = new_server(revisions=supported)
    receive(server, initialize(1, wish))
    (answer,) = sent(server)
    assert answer["result"]["protocolVersion"] == (wish if wish in supported else revision)
    only(Ready, receive(server, INITIALIZED))
    assert server.revision == answer["result"]["protocolVersion"]


COMPLETE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT_INFO}


@pytest.mark.parametrize("member", COMPLETE)
@pytest.mark.parametrize("value", [MISSING, None, 7, ["2025-11-25"], True], ids=repr)
def test_an_initialize_without_its_members_is_refused_and_may_be_sent_again(
    revision: str, member: str, value: Any
) -> None:
    """Case c078: the server crashed, or held the broken one for the handshake."""
    server = new_server()
    params: dict[str, Any] = {**COMPLETE, member: value}
    if value is MISSING:
        del params[member]
    violation, *_ = receive(server, call(1, "initialize", params))
    assert isinstance(violation, ProtocolViolation)
    assert violation.rule == "LIFE-002"
    assert member in violation.text
    assert refusals(sent(server)) == [(1, -32602)]
    assert (server.phase, server.revision) == (Phase.NEW, None)
    finish_handshake(server, revision)


def test_an_initialize_without_params_is_refused_and_may_be_sent_again(revision: str) -> None:
    """Neighbour of case c078: params may be missing, or be no object."""
    server = new_server()
    receive(server, call(1, "initialize"), call(2, "initialize", []), call(3, "initialize", {}))
    assert refusals(sent(server)) == [(1, -32602), (2, -32602), (3, -32602)]
    drain(server)
    finish_handshake(server, revision)


def test_a_second_initialize_is_refused_and_changes_nothing(revision: str) -> None:
    """Neighbour of case c073: it came early or late, and began the session anew."""
    server = new_server()
    receive(server, initialize(1, revision))
    sent(server)
    for id, initialized in ((2, True), (3, False)):
        assert broken(receive(server, initialize(id, "2024-11-05", {"x": {}}))) == ["LIFE-001"]
        assert refusals(sent(server)) == [(id, -32600)]
        assert (server.revision, server.peer.capabilities) == (revision, CLIENT_CAPABILITIES)
        if initialized:
            only(Ready, receive(server, INITIALIZED))
    assert server.phase is Phase.OPERATING
    assert_usable(server)


@pytest.mark.parametrize("answer", ["2030-01-01", "2025-03-26", "", "DRAFT"], ids=repr)
def test_a_client_ends_a_connection_at_a_revision_it_does_not_speak(answer: str) -> None:
    """Case c079: the client went on at a revision that it had never heard of, or said nothing."""
    client = new_client(revisions=["2024-11-05", "2025-06-18"])
    start = client.start()
    (first,) = sent(client)
    assert first["params"]["protocolVersion"] == "2025-06-18"
    failed, closed = receive(client, result(first["id"], initialized_by(answer)))
    assert isinstance(failed, ConnectionFailed)
    assert (failed.start, failed.cause) == (start, FailureCause.UNSUPPORTED_REVISION)
    assert isinstance(closed, ConnectionClosed)
    assert client.data_to_send() == b""
    assert client.state is State.CLOSED
    assert client.revision is None


@pytest.mark.parametrize("value", [None, 20251125, ["2025-11-25"], {}], ids=repr)
def test_a_client_ends_a_connection_whose_revision_is_no_string(value: Any) -> None:
    """Neighbour of case c079: a revision of another type must fail the start without an
    exception."""
    client = new_client()
    client.start()
    (first,) = sent(client)
    answer = {**initialized_by("2025-11-25"), "protocolVersion": value}
    events = receive(client, result(first["id"], answer))
    failed = of(ConnectionFailed, events)
    assert [event.cause for event in failed] == [FailureCause.INVALID_ANSWER]
    assert broken(events) == ["LIFE-003"]
    assert client.data_to_send() == b""


def test_a_client_accepts_an_older_revision_that_it_speaks(revision: str) -> None:
    """Case c080: a client insisted on the revision that it had offered."""
    client = new_client()
    client.start()
    (first,) = sent(client)
    assert first["params"]["protocolVersion"] == "2025-11-25"
    ready = only(Ready, receive(client, result(first["id"], initialized_by(revision))))
    assert (ready.revision, client.revision) == (revision, revision)
    assert sent(client) == [INITIALIZED]
