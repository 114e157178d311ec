"""Streams and time: keep-alive comments, and requests of the server without a response."""

import pytest

from sansmcp import (
    FailureReason,
    LocalProtocolError,
    RequestFailed,
    ToolsListChanged,
)
from sansmcp.http import MessageUndelivered, SessionEnded
from tests.support.http.server_endpoint import (
    LEGACY,
    answer,
    client,
    connect,
    drain,
    more,
    new_endpoint,
    of,
    sessions,
)
from tests.support.wire import INITIALIZED

# ------------------------------------------------------------------------------------ keep-alive


def test_a_silent_stream_gets_comments() -> None:
    """SSE-038: proxies close connections that are silent for long."""
    one = connect(new_endpoint(keep_alive=15.0), now=0.0)
    exchange = one.get(now=0.0)
    before = answer(exchange)
    assert one.endpoint.next_timeout() == 15.0
    one.endpoint.publish(ToolsListChanged(), now=10.0)
    before = more(exchange, before)
    one.endpoint.handle_timeout(15.0)
    assert more(exchange, before).body == b""
    assert one.endpoint.next_timeout() == 25.0
    one.endpoint.handle_timeout(25.0)
    assert more(exchange, before).body == b":\n\n"
    assert one.endpoint.ready() == [exchange]
    one.endpoint.handle_timeout(40.0)
    one.endpoint.handle_timeout(55.0)
    assert more(exchange, before).body == b":\n\n"  # who does not read needs no more of them

    exchange.receive_disconnect()
    assert one.endpoint.next_timeout() == 3655.0


def test_comments_can_be_switched_off() -> None:
    """Without a proxy no comments are needed."""
    one = connect(new_endpoint(keep_alive=None), now=0.0)
    one.get(now=0.0)

    assert one.endpoint.next_timeout() == 3600.0


# -------------------------------------------------------------------------------------- timeouts


def test_requests_time_out() -> None:
    """The timers of all sessions are in one table."""
    endpoint = new_endpoint(keep_alive=None)
    one, other = connect(endpoint, now=0.0), connect(endpoint, now=0.0)
    first, second = answer(one.get()), answer(other.get())
    slow = endpoint.send_request("roots/list", session=one.session, timeout=30.0)
    endpoint.send_request("roots/list", session=other.session, timeout=50.0, now=1.0)
    assert endpoint.next_timeout() == 30.0
    endpoint.handle_timeout(30.0)

    (failed,) = of(RequestFailed, drain(endpoint))
    assert (failed.request, failed.reason) == (slow, FailureReason.TIMED_OUT)
    assert endpoint.next_timeout() == 51.0
    assert not first.ended
    assert not second.ended


def test_a_timeout_without_a_stream_says_nothing_to_nobody() -> None:
    """Without a stream the cancellation must be dropped."""
    one = client(sessions=sessions(event_log=None), keep_alive=None)
    exchange = one.get(now=0.0)
    slow = one.endpoint.send_request("roots/list", session=one.session, timeout=30.0)
    exchange.receive_disconnect()
    one.endpoint.handle_timeout(30.0)

    failed, lost = sorted(drain(one.endpoint), key=lambda event: type(event).__name__, reverse=True)
    assert isinstance(failed, RequestFailed)
    assert failed.request is slow
    assert isinstance(lost, MessageUndelivered)


# ---------------------------------------------------------------------------------- early requests


def test_nothing_is_asked_before_the_session_is_open() -> None:
    """LIFE-006: the states of a session are those of a connection."""
    from tests.support.http.server_endpoint import post
    from tests.support.wire import initialize

    endpoint = new_endpoint()
    post(endpoint, initialize(0, LEGACY))
    (session,) = endpoint.sessions
    with pytest.raises(LocalProtocolError, match="LIFE-006"):
        endpoint.send_request("roots/list", session=session)
    post(endpoint, INITIALIZED, {"mcp-session-id": session.id})

    assert endpoint.send_request("roots/list", session=session).open


def test_an_ended_session_can_be_asked_nothing() -> None:
    """A request to an ended session must raise."""
    one = client()
    one.endpoint.end_session(one.session)
    with pytest.raises(LocalProtocolError, match="OWN-021"):
        one.endpoint.send_request("roots/list", session=one.session)

    assert of(SessionEnded, drain(one.endpoint))
