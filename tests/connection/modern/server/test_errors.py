"""Error codes and ids of 2026-07-28 on a server."""

from typing import Any

import pytest

from sansmcp import (
    Config,
    LimitReached,
    LocalProtocolError,
    RequestCancelled,
    RequestReceived,
)
from tests.support.modern import BOTH, complete, modern, modern_server, requested
from tests.support.wire import (
    INITIALIZED,
    broken,
    call,
    error,
    initialize,
    note,
    of,
    only,
    ready_server,
    receive,
    refusals,
    sent,
)

CALL: dict[str, Any] = {"name": "t"}


# ------------------------------------------------------------------------------------- codes


def test_resource_not_found_is_an_invalid_param() -> None:
    """One handler serves both eras, and its -32002 must not be sent in this one."""
    server = modern_server()
    request = requested(server, modern(1, "resources/read", {"uri": "file:///a"}))
    assert server.send_error(request, -32002, "Resource not found", {"uri": "file:///a"})
    assert sent(server) == [error(1, -32602, "Resource not found", {"uri": "file:///a"})]

    mixed = modern_server(revisions=BOTH)
    receive(mixed, initialize(1, "2025-11-25"), INITIALIZED)
    old = requested(mixed, call(2, "resources/read", {"uri": "file:///a"}))
    new = requested(mixed, modern(3, "resources/read", {"uri": "file:///a"}))
    sent(mixed)
    assert mixed.send_error(old, -32002, "no")
    assert mixed.send_error(new, -32002, "no")
    assert sent(mixed) == [error(2, -32002), error(3, -32602)]


@pytest.mark.parametrize("code", [-32019, -32001, -32000, -32100, -32603, -1, 0, 7, 10**30])
def test_other_codes_are_the_applications_own(code: int) -> None:
    """Only the codes that this revision reserves may be changed or refused."""
    server = modern_server()
    request = requested(server, modern(1, "tools/call", CALL))
    assert server.send_error(request, code, "no", None)
    assert sent(server) == [error(1, code, "no", None)]


@pytest.mark.parametrize("code", [-32023, -32042, -32050, -32099])
def test_reserved_codes_without_a_meaning_raise(code: int) -> None:
    """-32042 of 2025-11-25 is one of them: here `require_input` asks for a URL."""
    server = modern_server()
    request = requested(server, modern(1, "tools/call", CALL))
    with pytest.raises(LocalProtocolError, match="ERR-006"):
        server.send_error(request, code, "no")
    assert request.open
    assert sent(server) == []
    old = ready_server("2025-11-25")
    request = requested(old, call(1, "tools/call", CALL))
    data: Any = {"elicitations": []} if code == -32042 else None
    assert old.send_error(request, code, "no", data)


@pytest.mark.parametrize(
    ("code", "data", "rule"),
    [
        (-32021, None, "CAP-007"),
        (-32021, ["sampling"], "CAP-007"),
        (-32021, {"requiredCapabilities": ["sampling"]}, "CAP-007"),
        (-32021, {}, "CAP-007"),
        (-32022, None, "VER-008"),
        (-32022, {"supported": ["2026-07-28"]}, "VER-008"),
        (-32022, {"supported": "2026-07-28", "requested": "1"}, "VER-008"),
        (-32022, {"supported": [1], "requested": "1"}, "VER-008"),
        (-32022, {"supported": [], "requested": None}, "VER-008"),
    ],
)
def test_defined_codes_have_their_data(code: int, data: Any, rule: str) -> None:
    """Clients act on the data: they declare a capability, or retry with another version."""
    server = modern_server()
    request = requested(server, modern(1, "tools/call", CALL))
    with pytest.raises(LocalProtocolError, match=rule):
        server.send_error(request, code, "no", data)
    assert request.open
    assert sent(server) == []


@pytest.mark.parametrize(
    ("code", "data"),
    [
        (-32020, {"header": "Mcp-Name"}),
        (-32021, {"requiredCapabilities": {"sampling": {"tools": {}}}, "more": 1}),
        (-32022, {"supported": ["2026-07-28"], "requested": "2025-11-25"}),
    ],
)
def test_defined_codes_may_be_sent(code: int, data: Any) -> None:
    """A handler that needs a capability must be able to name it."""
    server = modern_server()
    request = requested(server, modern(1, "tools/call", CALL))
    assert server.send_error(request, code, "no", data)
    assert sent(server) == [error(1, code, "no", data)]


def test_errors_have_the_form_of_json_rpc() -> None:
    """The checks of older revisions must hold too."""
    server = modern_server()
    request = requested(server, modern(1, "tools/call", CALL))
    with pytest.raises(LocalProtocolError, match="JSON-008"):
        server.send_error(request, "no", "no")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # untyped callers
    assert server.send_error(request, -32603, "no")
    with pytest.raises(LocalProtocolError, match="OWN-026"):
        server.send_error(request, -32603, "no")


@pytest.mark.parametrize(
    ("method", "params"),
    [("tools/call", {}), ("resources/read", {"uri": 5}), ("subscriptions/listen", {})],
)
def test_params_are_judged_as_the_revision_defines_them(method: str, params: Any) -> None:
    """Invalid params must get -32602 before the application sees them."""
    server = modern_server()
    assert broken(receive(server, modern(1, method, params))) == ["OWN-014"]
    assert refusals(sent(server)) == [(1, -32602)]


def test_too_many_requests_are_refused() -> None:
    """The limit must hold for both eras together, and the connection go on."""
    server = modern_server(revisions=BOTH, config=Config(max_requests=2))
    receive(server, initialize("hello", "2025-11-25"), INITIALIZED)
    requested(server, call(1, "tools/call", CALL))
    first = requested(server, modern(2, "tools/call", CALL))
    sent(server)
    assert of(LimitReached, receive(server, modern(3, "tools/call", CALL)))
    (answer,) = sent(server)
    assert refusals([answer]) == [(3, -32603)]
    assert "reason" in answer["error"]["data"]
    server.send_error(first, -32603, "no")
    requested(server, modern(4, "tools/call", CALL))


# --------------------------------------------------------------------------------------- ids


def test_an_id_may_be_used_again_once_it_is_answered() -> None:
    """Only legacy sessions remember used ids."""
    server = modern_server()
    for _ in range(3):
        request = requested(server, modern(1, "tools/call", CALL))
        assert server.send_result(request, {"content": []})
        assert sent(server) == [complete(1, {"content": []})]
        assert broken(receive(server, modern(1, "server/discover"))) == []
        assert [message["id"] for message in sent(server)] == [1]


def test_a_refused_request_gives_its_id_free() -> None:
    """An error is a response, however invalid the request was."""
    server = modern_server()
    for malformed in ({**modern(1, "tools/list"), "jsonrpc": "1.0"}, call(1, "tools/list", [])):
        rules = broken(receive(server, malformed)) + broken(receive(server, malformed))
        assert not {"ID-001", "ID-002"} & set(rules)
        assert len(sent(server)) == 2
    only_one = receive(server, modern(1, "tools/list"))
    assert len(of(RequestReceived, only_one)) == 1


def test_an_id_in_flight_is_not_served_twice() -> None:
    """An error would answer the first request with that id, so no response may be sent."""
    server = modern_server()
    first = requested(server, modern(1, "tools/call", CALL))
    for copy in (modern(1, "tools/call", CALL), modern(1.0, "tools/list"), call(1, "ping")):
        assert broken(receive(server, copy)) == ["ID-002"]
    assert sent(server) == []
    assert server.open_requests == (first,)
    requested(server, modern("1", "tools/call", CALL))  # another id


def test_an_id_may_be_used_again_after_a_cancellation() -> None:
    """A result for the old handle must not answer the new request."""
    server = modern_server()
    old = requested(server, modern(1, "tools/call", CALL))
    only(RequestCancelled, receive(server, note("notifications/cancelled", {"requestId": 1})))
    new = requested(server, modern(1, "tools/call", CALL))
    assert server.send_result(old, {"content": []}) is False
    assert server.require_input(old, state="s") is False
    assert sent(server) == []
    assert new.open
    assert server.send_result(new, {"content": []})


def test_ids_of_the_two_eras_are_remembered_apart() -> None:
    """A modern request must not count as a use of its id in the legacy session."""
    server = modern_server(revisions=BOTH)
    receive(server, modern(1, "server/discover"), modern(1, "server/discover"))
    receive(server, initialize(1, "2025-11-25"), INITIALIZED)
    sent(server)
    assert broken(receive(server, modern(1, "server/discover"))) == []
    assert broken(receive(server, call(1, "ping"))) == ["ID-001"]
    assert [message["id"] for message in sent(server)] == [1, 1]


@pytest.mark.parametrize("id", [True, 1.5, [1], {"a": 1}])
def test_an_id_of_another_type_is_refused(id: object) -> None:
    """No response could name such an id."""
    server = modern_server()
    assert broken(receive(server, modern(id, "tools/list"))) == ["JSON-002"]
    (answer,) = sent(server)
    assert "id" not in answer
    assert answer["error"]["code"] == -32600
