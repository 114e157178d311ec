"""Progress and logs that a server of 2026-07-28 sends before its response."""

import pytest

from sansmcp import (
    LOG_LEVELS,
    Config,
    IncomingRequest,
    JSONObject,
    LocalProtocolError,
    MessageIgnored,
    ServerConnection,
)
from tests.support.modern import (
    BOTH,
    complete,
    envelope,
    modern,
    modern_server,
    requested,
)
from tests.support.wire import (
    INITIALIZED,
    broken,
    call,
    initialize,
    note,
    only,
    receive,
    refusals,
    sent,
)

CALL: JSONObject = {"name": "t"}
LISTEN: JSONObject = {"notifications": {"toolsListChanged": True}}


def a_call(server: ServerConnection, id: object = 1, **meta: object) -> IncomingRequest:
    return requested(server, modern(id, "tools/call", CALL, envelope(**meta)))


def log(level: str, data: object, **more: object) -> JSONObject:
    return note("notifications/message", {"level": level, "data": data, **more})


def progress(token: object, value: float, **more: object) -> JSONObject:
    return note("notifications/progress", {"progressToken": token, "progress": value, **more})


# ---------------------------------------------------------------------------------- progress


@pytest.mark.parametrize("token", [0, "", 7, "a"])
def test_progress_goes_to_who_asked_for_it(token: object) -> None:
    """The progress must have the token of its request, also 0 or an empty string."""
    server = modern_server()
    request = a_call(server, progressToken=token)
    other = a_call(server, 2)
    assert server.send_progress(request, 1, total=2, message="half", meta={"a": 1})
    assert server.send_progress(other, 1) is False
    assert server.send_result(request, {"content": []})
    assert server.send_progress(request, 2) is False
    assert sent(server) == [
        progress(token, 1, total=2, message="half", _meta={"a": 1}),
        complete(1, {"content": []}),
    ]


def test_progress_ends_with_the_request() -> None:
    """No progress may follow a cancellation, or the questions that end a round."""
    server = modern_server()
    cancelled, asking = a_call(server, progressToken=1), a_call(server, 2, progressToken=2)
    receive(server, note("notifications/cancelled", {"requestId": 1}))
    assert server.require_input(asking, state="s")
    sent(server)
    for request in (cancelled, asking):
        assert server.send_progress(request, 1) is False
    assert sent(server) == []


def test_progress_increases() -> None:
    """Each value must be larger than the last, as in all revisions."""
    server = modern_server()
    request = a_call(server, progressToken="t")
    server.send_progress(request, 1)
    with pytest.raises(LocalProtocolError, match="PROG-003"):
        server.send_progress(request, 1)


def test_a_token_in_use_is_reported() -> None:
    """Progress with this token would belong to two requests, so the later one must get none."""
    server = modern_server()
    a_call(server, progressToken="t")
    events = receive(server, modern(2, "tools/call", CALL, envelope(progressToken="t")))
    assert broken(events) == ["PROG-002"]
    assert server.open_requests[1].progress_token is None
    assert server.send_progress(server.open_requests[1], 1) is False


def test_a_token_is_free_again_after_the_answer() -> None:
    """Tokens must be unique among requests in flight only."""
    server = modern_server()
    for id in range(3):
        request = a_call(server, id, progressToken="t")
        assert server.send_progress(request, 1)
        assert server.send_error(request, -32603, "no")


def test_clients_send_no_progress() -> None:
    """A server sends no requests, so progress of a client must be reported."""
    server = modern_server()
    request = a_call(server, progressToken=1)
    only(MessageIgnored, receive(server, progress(1, 1)))
    assert request.open
    assert sent(server) == []


# -------------------------------------------------------------------------------------- logs


@pytest.mark.parametrize("wanted", LOG_LEVELS)
def test_logs_are_sent_from_the_level_that_the_request_wants(wanted: str) -> None:
    """The level in a request must hold for that request alone."""
    server = modern_server()
    request = a_call(server, level=wanted)
    passed = [level for level in LOG_LEVELS if server.send_log(level, {"n": 1}, request=request)]
    assert passed == list(LOG_LEVELS)[LOG_LEVELS[wanted] :]
    assert sent(server) == [log(level, {"n": 1}) for level in passed]


def test_without_a_level_nothing_is_logged() -> None:
    """A client that asked for no log messages must get none, whatever their level."""
    server = modern_server()
    asking, silent = a_call(server, level="debug"), a_call(server, 2)
    assert server.send_log("emergency", "x", request=silent) is False
    assert server.send_log("emergency", "x") is False
    assert sent(server) == []
    assert server.send_log("debug", "x", request=asking, logger="l", meta={"a": 1})
    assert sent(server) == [log("debug", "x", logger="l", _meta={"a": 1})]


def test_logs_end_with_the_request() -> None:
    """No log message of a request may follow its response."""
    server = modern_server()
    for id, end in enumerate(("answered", "cancelled", "asking")):
        request = a_call(server, id, level="debug")
        if end == "answered":
            server.send_result(request, {"content": []})
        elif end == "cancelled":
            receive(server, note("notifications/cancelled", {"requestId": id}))
        else:
            server.require_input(request, state="s")
        sent(server)
        assert server.send_log("error", "x", request=request) is False
        assert sent(server) == []


def test_logging_is_declared_and_levels_are_known() -> None:
    """The checks must be those of the older revisions."""
    server = modern_server(capabilities={"tools": {}})
    request = a_call(server, level="debug")
    with pytest.raises(LocalProtocolError, match="LOG-001"):
        server.send_log("error", "x", request=request)
    with pytest.raises(LocalProtocolError, match="LOG-002"):
        server.send_log("loud", "x", request=request)
    declaring = modern_server()
    request = a_call(declaring, level="debug")
    with pytest.raises(LocalProtocolError, match="OWN-024"):
        declaring.send_log("error", object(), request=request)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # untyped callers
    assert sent(declaring) == []


def test_logging_set_level_does_not_reach_modern_requests() -> None:
    """The level of the legacy conversation and `logLevel` of a request must be independent."""
    server = modern_server(revisions=BOTH)
    silent = a_call(server, 1)
    asking = a_call(server, 2, level="error")
    assert server.send_log("emergency", "x") is False
    receive(server, initialize(3, "2025-11-25"), INITIALIZED)
    receive(server, call(4, "logging/setLevel", {"level": "warning"}))
    old = requested(server, call(5, "tools/call", CALL))
    sent(server)
    assert server.send_log("error", 1, request=silent) is False
    assert server.send_log("warning", 2, request=asking) is False
    assert server.send_log("error", 3, request=asking)
    assert server.send_log("info", 4, request=old) is False
    assert server.send_log("warning", 5, request=old)
    assert server.send_log("warning", 6)
    assert sent(server) == [log("error", 3), log("warning", 5), log("warning", 6)]


def test_logs_and_progress_are_dropped_while_nobody_reads() -> None:
    """The soft limit on output must hold in both eras."""
    server = modern_server(config=Config(soft_unsent_bytes=10))
    request = a_call(server, level="debug", progressToken=1)
    assert server.send_log("error", "x", request=request)
    assert server.send_log("error", "y", request=request) is False
    assert server.send_progress(request, 1) is False
    assert sent(server) == [log("error", "x")]


def test_nothing_of_a_request_is_sent_on_a_subscription() -> None:
    """A subscription must carry changes only, even if its request has a level and a token."""
    server = modern_server()
    meta = envelope(level="debug", progressToken=1)
    receive(server, modern(1, "subscriptions/listen", LISTEN, meta))
    sent(server)
    (listener,) = server.listeners
    assert server.send_log("emergency", "x", request=listener.request) is False
    assert server.send_progress(listener.request, 1) is False
    assert sent(server) == []


def test_a_bad_level_does_not_reach_the_application() -> None:
    """A request with an invalid level must be refused, and not be served without logs."""
    server = modern_server()
    receive(server, modern(1, "tools/call", CALL, envelope(level="verbose")))
    assert refusals(sent(server)) == [(1, -32602)]
