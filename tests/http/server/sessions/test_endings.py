"""The endings of sessions: by the client, time, the server or a limit; handles stay valid."""

import copy
from typing import Any

import pytest

from sansmcp import (
    CancelCause,
    Config,
    FailureReason,
    IncomingRequest,
    JSONObject,
    LocalProtocolError,
    ProtocolViolation,
    RequestCancelled,
    RequestFailed,
)
from sansmcp.http import (
    MemoryEventLog,
    MessageUndelivered,
    ServerEndpoint,
    SessionEnd,
    SessionEnded,
    Sessions,
)
from tests.support.http.server_endpoint import (
    JSON,
    LEGACY,
    Client,
    answer,
    asked,
    client,
    connect,
    drain,
    modern_tool_call,
    more,
    new_endpoint,
    of,
    post,
    post_modern,
    sessions,
    take,
    tool_call,
)
from tests.support.wire import call, initialize, result

# --------------------------------------------------------------------------------------- ending


def test_delete_ends_a_session() -> None:
    """SESS-010: open requests must get their ending, and the session be unknown afterwards."""
    one = client()
    exchange, handle = one.asked(tool_call(1))
    question = one.endpoint.send_request("roots/list", request=handle)
    stream = one.get()
    first, listening = answer(exchange), answer(stream)
    response = answer(one.delete())

    assert (response.status, response.body) == (204, b"")
    cancelled, failed, ended = drain(one.endpoint)
    assert cancelled == RequestCancelled(request=handle, cause=CancelCause.CLOSED)
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (question, FailureReason.LOST)
    assert ended == SessionEnded(session=one.session, cause=SessionEnd.DELETED)
    assert more(exchange, first).ended
    assert more(stream, listening).ended
    assert not one.session.open
    assert one.endpoint.sessions == ()
    assert not one.endpoint.send_result(handle, {"content": []})
    for late in (one.post(call(2, "ping")), one.get(), one.delete()):
        assert answer(late).status == 404
    assert one.endpoint.next_timeout() is None


def test_requests_of_a_session_that_its_client_deletes_end_as_cancelled_ones_do() -> None:
    """Clients cancel their calls and delete the session; 503 would look like a broken server."""
    one = client()
    call, _ = one.asked(tool_call(1))
    no_stream, _ = one.asked(tool_call(2), {"accept": JSON})
    batches = client("2025-03-26")
    batch = batches.post([tool_call(3), tool_call(4)])
    one.delete()
    batches.delete()

    for exchange in (call, batch):
        response = answer(exchange)
        assert (response.status, response.body, response.ended) == (200, b"", True)
        assert response.is_stream
    assert answer(no_stream).status == 204


def test_a_request_whose_session_the_server_ends_gets_503_with_its_id() -> None:
    """The error code must not blame the request for the end of its session."""
    one = client()
    call, _ = one.asked(tool_call(1.0))
    one.endpoint.end_session(one.session)
    batches = client("2025-03-26")
    batch = batches.post([tool_call(3), tool_call(4)])
    batches.endpoint.close()

    response = answer(call)
    assert (response.status, response.json["id"]) == (503, 1.0)
    assert b'"id":1.0' in response.body
    assert response.json["error"]["code"] == -32603
    response = answer(batch)  # no single request of it is meant
    assert (response.status, "id" in response.json) == (503, False)
    assert response.json["error"]["code"] == -32603


def test_delete_can_be_switched_off() -> None:
    """SESS-011: a server may refuse DELETE with 405."""
    one = connect(new_endpoint(sessions=sessions(allow_delete=False)))
    response = answer(one.delete())

    assert (response.status, response.headers["allow"]) == (405, "GET, POST, OPTIONS")
    assert one.session.open


def test_the_server_may_end_a_session() -> None:
    """SESS-007: after that, the session must be unknown."""
    one = client()
    assert one.endpoint.end_session(one.session)
    assert not one.endpoint.end_session(one.session)

    assert drain(one.endpoint) == [SessionEnded(session=one.session, cause=SessionEnd.CLOSED)]
    assert answer(one.post(call(1, "ping"))).status == 404


def idle(**settings: Any) -> Client:
    endpoint = new_endpoint(sessions=sessions(idle=100.0, **settings), keep_alive=None)
    return connect(endpoint, now=1000.0)


def test_a_silent_session_expires() -> None:
    """Clients leave without DELETE, so idle sessions must expire by the caller's clock."""
    one = idle()
    assert one.endpoint.next_timeout() == 1100.0
    one.endpoint.handle_timeout(1099.0)
    assert one.session.open
    one.endpoint.handle_timeout(1100.0)

    assert drain(one.endpoint) == [SessionEnded(session=one.session, cause=SessionEnd.EXPIRED)]
    assert one.endpoint.next_timeout() is None
    assert answer(one.post(call(1, "ping"))).status == 404


def test_every_request_is_a_sign_of_life() -> None:
    """A refused request must keep its session alive too."""
    one = idle()
    one.post(call(1, "ping"), now=1050.0)
    one.endpoint.handle_timeout(1100.0)
    assert one.session.open

    assert one.endpoint.next_timeout() == 1150.0


def test_what_is_under_way_keeps_a_session() -> None:
    """An open stream, or a request in progress, must keep its session alive."""
    one = idle()
    stream = one.get(now=1010.0)
    one.endpoint.handle_timeout(1200.0)
    assert one.session.open
    stream.receive_disconnect(now=1210.0)
    _, handle = one.asked(tool_call(1))
    one.endpoint.handle_timeout(1310.0)
    assert one.session.open
    one.endpoint.send_result(handle, {"content": []}, now=1320.0)
    one.endpoint.handle_timeout(1500.0)

    assert not one.session.open


def test_without_a_clock_no_session_expires_until_there_is_one() -> None:
    """Time must count from the first request that has a time."""
    one = client(sessions=sessions(idle=10.0))
    assert one.endpoint.next_timeout() is None
    one.post(call(1, "ping"), now=5.0)

    assert one.endpoint.next_timeout() == 15.0


@pytest.mark.parametrize("now", [float("nan"), 1.0])
def test_a_clock_that_goes_back_or_is_none_changes_nothing(now: float) -> None:
    """The largest time that was given is the time."""
    one = idle()
    one.endpoint.handle_timeout(now)
    one.post(call(1, "ping"), now=now)

    assert one.endpoint.next_timeout() == 1100.0
    fresh = new_endpoint()
    fresh.handle_timeout(float("nan"))
    assert fresh.next_timeout() is None


def test_a_client_that_never_reads_ends_its_session_alone() -> None:
    """The limit on unsent output holds for each session separately."""
    endpoint = new_endpoint(config=Config(soft_unsent_bytes=10**6, max_unsent_bytes=2000))
    one, other = connect(endpoint), connect(endpoint)
    stuck = one.post({**tool_call(1), "params": {"name": "t", "_meta": {"progressToken": 1}}})
    handle = asked(endpoint)
    for number in range(100):
        if not endpoint.send_progress(handle, number):
            break

    events = drain(endpoint)
    assert of(ProtocolViolation, events)[0].rule == "OWN-012"
    assert events[-1] == SessionEnded(session=one.session, cause=SessionEnd.OVERFLOW)
    response = answer(stuck)
    assert (response.body, response.ended) == (b"", True)
    assert answer(other.post(call(1, "ping"))).status == 200


def test_progress_waits_for_nobody() -> None:
    """Above the soft limit progress must be dropped, as on a connection."""
    one = connect(new_endpoint(config=Config(soft_unsent_bytes=300)))
    exchange = one.post({**tool_call(1), "params": {"name": "t", "_meta": {"progressToken": 1}}})
    handle = asked(one.endpoint)
    sent = [one.endpoint.send_progress(handle, number) for number in range(20)]
    assert True in sent
    assert not sent[-1]
    response = answer(exchange)

    assert one.endpoint.send_progress(handle, 50)
    assert more(exchange, response).messages[0]["params"]["progress"] == 50


# ---------------------------------------------------------------------------------------- close


def test_close_ends_everything() -> None:
    """Streams must end properly, requests get their ending, and later requests be refused."""
    endpoint = new_endpoint()
    one = connect(endpoint)
    stream = one.get()
    listening = answer(stream)
    running, _ = one.asked(tool_call(1))
    modern = post_modern(endpoint, modern_tool_call())
    half = endpoint.exchange("POST", "/", {"content-type": JSON}.items())
    drain(endpoint)
    endpoint.close()
    endpoint.close()
    half.receive_data(b"{}")
    half.receive_end()

    events = drain(endpoint)
    assert [event.cause for event in of(RequestCancelled, events)] == [CancelCause.CLOSED] * 2
    assert events.count(SessionEnded(session=one.session, cause=SessionEnd.CLOSED)) == 1
    assert more(stream, listening).ended
    for exchange in (running, modern, half, post(endpoint, initialize(0, LEGACY)), one.get()):
        response = answer(exchange)
        assert (response.status, response.json["error"]["code"]) == (503, -32603)


# --------------------------------------------------------------------------------------- handles


def foreign() -> tuple[ServerEndpoint, Client, IncomingRequest]:
    one = client()
    _, handle = one.asked(tool_call(1))
    return new_endpoint(), one, handle


def test_handles_of_another_endpoint_raise() -> None:
    """With ids instead of handles, the response would go to a request of another client."""
    endpoint, one, handle = foreign()
    for use in (
        lambda: endpoint.send_result(handle, {"content": []}),
        lambda: endpoint.send_error(handle, -32000, "no"),
        lambda: endpoint.send_progress(handle, 1),
        lambda: endpoint.send_log("info", "x", session=one.session),
        lambda: endpoint.send_request("roots/list", request=handle),
        lambda: endpoint.end_session(one.session),
        lambda: endpoint.ping(one.session),
        lambda: endpoint.close_stream(handle),
        lambda: endpoint.cancel(one.endpoint.send_request("roots/list", request=handle)),
    ):
        with pytest.raises(LocalProtocolError, match="OWN-022"):
            use()
    assert handle.open


def test_a_handle_of_a_connection_raises() -> None:
    """A handle of a byte stream has no HTTP exchange."""
    from tests.support.wire import asked as asked_of
    from tests.support.wire import ready_server

    handle = asked_of(ready_server(LEGACY), tool_call(1))
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        new_endpoint().send_result(handle, {"content": []})


def test_what_belongs_to_nobody_in_particular_raises() -> None:
    """A message must be given exactly one request or peer to which it belongs."""
    one = client()
    _, handle = one.asked(tool_call(1))
    for where in ({}, {"request": handle, "session": one.session}):
        with pytest.raises(LocalProtocolError, match="OWN-038"):
            one.endpoint.send_notification("x", **where)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # both are handles


def test_copies_go_their_own_way() -> None:
    """All state is plain data: a copy with its handles must be independent."""
    one = client()
    exchange, handle = one.asked(tool_call(1))
    endpoint, copied, other = copy.deepcopy((one.endpoint, exchange, handle))
    assert endpoint.send_result(other, {"content": []})

    assert answer(copied).json == result(1, {"content": []})
    assert take(exchange) is None
    assert handle.open
    assert endpoint.sessions[0].id == one.session.id


@pytest.mark.parametrize(
    "settings",
    [
        {"max_sessions": 0},
        {"idle": 0},
        {"idle": float("nan")},
        {"max_streams": -1},
        {"max_sessions": True},
        {"max_sessions": float("inf")},
        {"idle": True},
        {"idle": "1 h"},
        {"max_streams": 1.0},
    ],
)
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    """A limit of zero sessions would refuse every client."""
    (name,) = settings
    with pytest.raises(ValueError, match=f"{name} must be greater than zero"):
        sessions(**settings)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"new_id": "s1"}, "new_id must be a callable"),
        ({"event_log": MemoryEventLog()}, "event_log must be a callable"),
        ({"retry_ms": -1}, "retry_ms must not be negative"),
        ({"retry_ms": 1.5}, "an integer"),
        ({"allow_delete": "no"}, "allow_delete must be True or False"),
    ],
)
def test_other_settings_are_checked_too(settings: dict[str, Any], text: str) -> None:
    """An invalid session store would fail with the first client, with a worse message."""
    make: Any = Sessions
    with pytest.raises(ValueError, match=text):
        make(**{"new_id": str, **settings})
    assert Sessions(new_id=str, idle=float("inf"), event_log=None, retry_ms=0).idle == float("inf")


@pytest.mark.parametrize("name", ["max_events", "max_bytes"])
@pytest.mark.parametrize("value", [0, -1, True, 1.5, float("nan")])
def test_an_event_log_checks_its_bounds(name: str, value: float) -> None:
    """With NaN the log would never drop an event."""
    make: Any = MemoryEventLog
    with pytest.raises(ValueError, match=f"{name} must be greater than zero"):
        make(**{name: value})


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"answers": "xml"}, "answers must be .auto. or .sse., not .xml."),
        ({"streams": 1}, "streams must be True or False"),
        ({"keep_alive": True}, "keep_alive must be greater than zero"),
        ({"keep_alive": float("inf")}, "finite number of seconds"),
        ({"keep_alive": 0}, "greater than zero"),
        ({"revisions": ("2026-07-28",), "sessions": sessions()}, "no sessions"),
        ({"revisions": ("1999",)}, "must be some of"),
    ],
)
def test_an_endpoint_checks_its_settings(settings: dict[str, Any], text: str) -> None:
    """Invalid settings must raise at once, and not with the first client."""
    with pytest.raises(ValueError, match=text):
        new_endpoint(**settings)


def test_the_capabilities_are_kept_as_they_were() -> None:
    """The caller may change its dict afterwards; later sessions must get the same capabilities."""
    capabilities: JSONObject = {"tools": {}}
    endpoint = new_endpoint(capabilities=capabilities)
    capabilities["prompts"] = {}

    response = answer(post(endpoint, initialize(0, LEGACY)))
    assert response.json["result"]["capabilities"] == {"tools": {}}
    assert not of(MessageUndelivered, drain(endpoint))


def test_sessions_that_are_over_make_room() -> None:
    """Expired sessions must make room also if `handle_timeout` is never called."""
    endpoint = new_endpoint(sessions=sessions(max_sessions=2, idle=10.0))
    one, other = connect(endpoint, now=0.0), connect(endpoint, now=5.0)
    connect(endpoint, now=12.0)

    assert (one.session.open, other.session.open) == (False, True)
    assert answer(post(endpoint, initialize(9, LEGACY), now=12.0)).status == 503
