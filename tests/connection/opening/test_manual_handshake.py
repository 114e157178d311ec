"""`Config.manual`: the application answers `initialize` itself."""

import pytest

from sansmcp import (
    Config,
    IncomingRequest,
    JSONObject,
    LocalProtocolError,
    MessageIgnored,
    Phase,
    ProtocolViolation,
    Ready,
    RequestCancelled,
    RequestReceived,
    ServerConnection,
)
from sansmcp.testing import canonical, drain
from tests.support.wire import (
    INITIALIZED,
    SERVER_CAPABILITIES,
    asked,
    call,
    initialize,
    initialized_by,
    new_server,
    note,
    of,
    only,
    receive,
    refusals,
    sent,
)

REVISION = "2025-11-25"


def manual_server() -> tuple[ServerConnection, IncomingRequest]:
    server = new_server(config=Config(manual={"initialize"}))
    return server, asked(server, initialize("hello", REVISION))


def test_the_application_may_answer_initialize_itself() -> None:
    """A gateway must be able to answer with the capabilities of the server behind it."""
    server, request = manual_server()
    assert sent(server) == []
    assert server.send_result(request, initialized_by("2025-06-18", {"prompts": {}}))
    assert sent(server)[0]["result"]["capabilities"] == {"prompts": {}}
    assert server.revision == "2025-06-18"
    only(Ready, receive(server, INITIALIZED))

    assert isinstance(asked(server, call(1, "prompts/list")), IncomingRequest)
    receive(server, call(2, "tools/list"))
    assert refusals(sent(server)) == [(2, -32601)]


@pytest.mark.parametrize("revision", ["1999-01-01", "2026-07-28"])
def test_a_revision_that_the_server_does_not_speak_is_no_answer(revision: str) -> None:
    """The server could not continue a conversation at that revision."""
    server, request = manual_server()
    before = canonical(server)

    with pytest.raises(LocalProtocolError) as caught:
        server.send_result(request, initialized_by(revision))
    assert caught.value.rule == "VER-004"
    assert canonical(server) == before
    assert request.open


def test_an_answer_without_its_members_is_no_answer() -> None:
    """The client would end the connection, and its user look for the fault on that side."""
    server, request = manual_server()

    with pytest.raises(LocalProtocolError) as caught:
        server.send_result(request, {"protocolVersion": REVISION, "capabilities": {}})
    assert caught.value.rule == "LIFE-003"
    assert request.open


def test_after_an_error_the_client_may_try_again() -> None:
    """An error must set the phase back."""
    server, request = manual_server()
    assert server.send_error(request, -32602, "not this version")
    assert server.phase is Phase.NEW
    assert refusals(sent(server)) == [("hello", -32602)]

    again = asked(server, initialize("again", REVISION))
    assert server.send_result(again, initialized_by(REVISION, SERVER_CAPABILITIES))


def test_a_cancellation_of_initialize_is_ignored() -> None:
    """A client must not send it, and a server that obeyed would have no agreement."""
    server, request = manual_server()
    ignored = only(
        MessageIgnored, receive(server, note("notifications/cancelled", {"requestId": "hello"}))
    )

    assert ignored.rule == "CANC-004"
    assert server.send_result(request, initialized_by(REVISION))


def test_initialize_ends_with_its_connection() -> None:
    """The handle of `initialize` must have its ending like that of any request."""
    server, request = manual_server()
    server.receive_eof()
    cancelled, _ = drain(server)

    assert isinstance(cancelled, RequestCancelled)
    assert cancelled.request is request


@pytest.mark.parametrize("params", [{}, {"protocolVersion": 5, "capabilities": 1, "clientInfo": 2}])
def test_without_the_check_of_shapes_an_odd_initialize_is_answered(params: JSONObject) -> None:
    """Members that cannot be used must count as absent."""
    server = new_server(config=Config(check="none"))
    events = receive(server, call(1, "initialize", params))

    assert of(ProtocolViolation, events) == []
    assert of(RequestReceived, events) == []
    assert sent(server)[0]["result"]["protocolVersion"] == REVISION
    assert (server.peer.info, server.peer.capabilities) == (None, {})
