"""Cancellation, and every race that it can lose."""

from typing import Any

import pytest

from sansmcp import (
    CancelCause,
    ConnectionClosed,
    FailureReason,
    ListingEnd,
    ListingEnded,
    LocalProtocolError,
    MessageIgnored,
    PingEnded,
    ProtocolViolation,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    Side,
)
from sansmcp.testing import Pair, canonical, drain
from tests.support.wire import (
    asked,
    broken,
    call,
    note,
    of,
    only,
    ready_client,
    ready_server,
    receive,
    result,
    sent,
)

REVISION = "2025-11-25"
ECHO: dict[str, Any] = {"name": "echo"}


@pytest.mark.parametrize("reason", [None, "", "user changed their mind"])
def test_a_cancellation_ends_the_request_on_both_sides(reason: str | None) -> None:
    """Each side must see the end at once, and a late result must not be sent."""
    pair = Pair()
    ours = pair.client.send_request("tools/call", ECHO)
    theirs = pair.deliver_one(RequestReceived).request
    assert pair.client.cancel(ours, reason=reason, now=1)
    failed = pair.deliver_one(RequestFailed)
    cancelled = pair.deliver_one(RequestCancelled)

    assert (failed.request, failed.reason) == (ours, FailureReason.CANCELLED)
    assert failed.text == (reason or "cancelled")
    assert (cancelled.request, cancelled.cause, cancelled.reason) == (
        theirs,
        CancelCause.PEER,
        reason,
    )
    assert not ours.open
    assert not theirs.open
    assert pair.server.send_result(theirs, {"content": []}) is False
    assert pair.server.send_error(theirs, 1, "no") is False
    assert pair.server.send_progress(theirs, 1) is False
    assert pair.server.data_to_send() == b""


def test_cancelling_what_is_over_changes_nothing() -> None:
    """A lost race is no mistake of the caller."""
    pair = Pair()
    answered = pair.client.send_request("ping")
    pair.deliver_one(ResponseReceived)
    cancelled = pair.client.send_request("tools/list")
    pair.client.cancel(cancelled)
    drain(pair.client)
    before = canonical(pair.client)

    assert pair.client.cancel(answered) is False
    assert pair.client.cancel(cancelled) is False
    assert canonical(pair.client) == before


def test_an_answer_that_crosses_the_cancellation_is_ignored() -> None:
    """Neither side has made a mistake, so no breach may be reported."""
    pair = Pair()
    ours = pair.client.send_request("tools/call", ECHO)
    theirs = pair.deliver_one(RequestReceived).request
    pair.server.send_result(theirs, {"content": []})
    pair.client.cancel(ours)
    pair.deliver()

    (failed, late) = pair.client_events
    assert isinstance(failed, RequestFailed)
    assert isinstance(late, MessageIgnored)
    assert (late.rule, late.method, late.id) == ("CANC-011", None, ours.id)
    (ignored,) = pair.server_events
    assert isinstance(ignored, MessageIgnored)
    assert (ignored.rule, ignored.method, ignored.id) == (
        "CANC-013",
        "notifications/cancelled",
        ours.id,
    )


def test_progress_that_crosses_the_cancellation_is_ignored() -> None:
    """The token no longer belongs to a request."""
    pair = Pair()
    ours = pair.client.send_request("tools/call", ECHO, progress=True)
    theirs = pair.deliver_one(RequestReceived).request
    pair.server.send_progress(theirs, 1)
    pair.client.cancel(ours)
    pair.deliver_to_client()

    assert [event.rule for event in of(MessageIgnored, pair.client_events)] == ["PROG-006"]


def test_an_id_whose_late_answer_came_is_not_remembered_for_ever() -> None:
    """After the late response, a second one matches no request."""
    client = ready_client(REVISION)
    ours = client.send_request("tools/list")
    client.cancel(ours)
    sent(client)
    drain(client)
    answer = result(ours.id, {"tools": []})

    events = receive(client, answer, answer)
    assert [event.rule for event in of(MessageIgnored, events)] == ["CANC-011", "JSON-004"]


@pytest.mark.parametrize(
    ("params", "rule"),
    [
        ({}, "CANC-006"),
        ({"requestId": None}, "JSON-002"),
        ({"requestId": True}, "JSON-002"),
        ({"requestId": [1]}, "JSON-002"),
    ],
)
def test_a_cancellation_of_nothing_nameable_is_reported(params: dict[str, Any], rule: str) -> None:
    """Without a valid id, the cancelled request is unknown."""
    server = ready_server(REVISION)
    request = asked(server, call(1, "tools/call", ECHO))

    assert (
        only(ProtocolViolation, receive(server, note("notifications/cancelled", params))).rule
        == rule
    )
    assert request.open


def test_a_reason_that_is_no_string_is_left_out() -> None:
    """The cancellation itself is valid, so it must take effect."""
    server = ready_server(REVISION)
    asked(server, call("a", "tools/call", ECHO))
    events = receive(server, note("notifications/cancelled", {"requestId": "a", "reason": 5}))

    assert broken(events) == ["OWN-014"]
    assert of(RequestCancelled, events)[0].reason is None


def test_initialize_is_not_cancelled() -> None:
    """A client must not send such a cancellation, and a server ignore it."""
    pair = Pair(connected=False)
    start = pair.client.start()
    with pytest.raises(LocalProtocolError) as caught:
        pair.client.cancel(start)
    assert caught.value.rule == "CANC-004"
    assert start.open


def test_a_listing_and_a_ping_are_cancelled_like_a_request() -> None:
    """Each must end in its own event, without an event of its inner request."""
    pair = Pair()
    listing = pair.client.send_paginated("tools/list")
    ping = pair.client.ping()
    assert pair.client.cancel(listing)
    assert pair.client.cancel(ping, reason="enough")
    ended, pinged = drain(pair.client)

    assert isinstance(ended, ListingEnded)
    assert (ended.listing, ended.reason) == (listing, ListingEnd.CANCELLED)
    assert pinged == PingEnded(ping=ping, failure=FailureReason.CANCELLED, text="enough")
    assert pair.client.cancel(listing) is False
    assert pair.client.cancel(ping) is False


def test_a_handle_of_another_connection_is_not_cancelled() -> None:
    """Its id names another request on this connection."""
    mine, other = ready_client(REVISION), ready_client(REVISION)
    mine.send_request("tools/list")
    call_ = other.send_request("tools/list")

    with pytest.raises(LocalProtocolError) as caught:
        mine.cancel(call_)
    assert caught.value.rule == "OWN-022"


@pytest.mark.parametrize("reason", [5, b"x", ["x"], "\ud800"])
def test_a_reason_without_a_form_raises_and_cancels_nothing(reason: Any) -> None:
    """A lone surrogate has a JSON form, and must be sent escaped."""
    client = ready_client(REVISION)
    ours = client.send_request("tools/list")
    sent(client)
    if reason == "\ud800":
        assert client.cancel(ours, reason=reason)
        assert client.data_to_send().count(b"\\ud800") == 1
        return
    before = canonical(client)

    with pytest.raises(LocalProtocolError) as caught:
        client.cancel(ours, reason=reason)
    assert caught.value.rule == "OWN-014"
    assert canonical(client) == before


# ---------------------------------------------------------- what the end of a connection cancels


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        ("close", CancelCause.CLOSED),
        ("receive_eof", CancelCause.EOF),
        ("send_failed", CancelCause.SEND_FAILED),
    ],
)
@pytest.mark.parametrize("side", Side)
def test_requests_in_flight_end_with_their_connection(
    side: Side, end: str, cause: CancelCause
) -> None:
    """Handlers must stop and callers not hang, however the connection ends."""
    pair = Pair()
    conn, peer = pair.side(side), pair.side(side.other)
    method = {Side.CLIENT: "roots/list", Side.SERVER: "tools/list"}
    peer.send_request(method[side])
    peer.send_request("ping")
    ours = [conn.send_request(method[side.other]), conn.send_request("ping")]
    pair.deliver_to(side)
    (request,) = conn.open_requests
    drain(conn)
    getattr(conn, end)()
    events = drain(conn)

    (cancelled,) = of(RequestCancelled, events)
    assert (cancelled.request, cancelled.cause) == (request, cause)
    lost = of(RequestFailed, events)
    assert [(event.request, event.reason) for event in lost] == [
        (call, FailureReason.LOST) for call in ours
    ]
    assert conn.send_result(request, {}) is False
    assert isinstance(events[-1], ConnectionClosed) is (end != "send_failed")
    assert conn.cancel(ours[0]) is False
