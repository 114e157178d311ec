"""Progress: each token belongs to one request, and each value is larger than the last one."""

import math
from typing import Any

import pytest

from sansmcp import (
    Config,
    IncomingRequest,
    LocalProtocolError,
    MessageIgnored,
    ProgressReceived,
    ProtocolViolation,
    RequestReceived,
    ServerConnection,
)
from sansmcp.testing import Pair, canonical, drain
from tests.support.wire import (
    asked,
    call,
    note,
    of,
    only,
    ready_client,
    ready_server,
    receive,
    sent,
)

REVISION = "2025-11-25"
ECHO: dict[str, Any] = {"name": "echo"}


def server_with(config: Config | None = None) -> tuple[ServerConnection, IncomingRequest]:
    server = ready_server(REVISION, config=config)
    return server, asked(server, call(1, "tools/call", {**ECHO, "_meta": {"progressToken": "t"}}))


def sent_progress(server: ServerConnection) -> list[Any]:
    return [message["params"]["progress"] for message in sent(server)]


def test_progress_reaches_the_request_it_is_for() -> None:
    """Numbers must arrive as they were sent, and the request stay open."""
    pair = Pair()
    ours = pair.client.send_request("tools/call", ECHO, progress=True)
    theirs = pair.deliver_one(RequestReceived).request
    assert theirs.progress_token == ours.progress_token == ours.id
    assert pair.server.send_progress(theirs, 0)
    assert pair.server.send_progress(theirs, 0.5, total=2, message="half", meta={"a": 1}, now=1)
    assert pair.server.send_progress(theirs, 3, total=2)
    pair.deliver()

    assert pair.client_events == [
        ProgressReceived(request=ours, progress=0),
        ProgressReceived(request=ours, progress=0.5, total=2, message="half", meta={"a": 1}),
        ProgressReceived(request=ours, progress=3, total=2),
    ]
    assert ours.open


def test_both_sides_send_and_receive_it() -> None:
    """A server must be able to follow its own sampling request."""
    pair = Pair()
    ours = pair.server.send_request(
        "sampling/createMessage", {"messages": [], "maxTokens": 1}, progress=True
    )
    theirs = pair.deliver_one(RequestReceived).request
    assert pair.client.send_progress(theirs, 1)

    assert pair.deliver_one(ProgressReceived).request is ours


def test_the_oldest_revision_has_no_message_in_it() -> None:
    """A strict client of 2024-11-05 would refuse the notification."""
    pair = Pair(revision="2024-11-05")
    pair.client.send_request("tools/call", ECHO, progress=True)
    theirs = pair.deliver_one(RequestReceived).request
    pair.server.send_progress(theirs, 1, message="text")

    assert pair.deliver_one(ProgressReceived).message is None


@pytest.mark.parametrize(
    "arguments",
    [
        (math.nan,),
        (math.inf,),
        (1, -math.inf),
        (1, math.nan),
        (True,),
        ("1",),
        (1, "2"),
        (None,),
        (1 + 0j,),
    ],
)
def test_what_is_no_finite_number_raises(arguments: tuple[Any, ...]) -> None:
    """JSON has no form for such a number."""
    server, request = server_with()
    before = canonical(server)
    progress, *total = arguments

    with pytest.raises(LocalProtocolError) as caught:
        server.send_progress(request, progress, total=total[0] if total else None)
    assert caught.value.rule == "OWN-024"
    assert canonical(server) == before


@pytest.mark.parametrize(("message", "meta"), [(b"x", None), (None, {"a": {1}})])
def test_a_message_without_a_json_form_raises(message: Any, meta: Any) -> None:
    """The refused progress must not count as the last value."""
    server, request = server_with()

    with pytest.raises(LocalProtocolError):
        server.send_progress(request, 1, message=message, meta=meta)
    assert server.send_progress(request, 1)
    assert sent_progress(server) == [1]


@pytest.mark.parametrize("again", [1, 1.0, 0, -1])
def test_progress_that_does_not_increase_is_not_sent(again: float) -> None:
    """It must raise, or be dropped if the configuration says so."""
    server, request = server_with()
    server.send_progress(request, 1)
    with pytest.raises(LocalProtocolError) as caught:
        server.send_progress(request, again)
    assert caught.value.rule == "PROG-003"
    assert sent_progress(server) == [1]

    lax, request = server_with(Config(coalesce_progress=True))
    assert lax.send_progress(request, 1)
    assert lax.send_progress(request, again) is False
    assert lax.send_progress(request, 2)
    assert sent_progress(lax) == [1, 2]


def test_progress_is_sent_as_often_as_the_interval_allows() -> None:
    """A loop that reports a million steps must not fill the pipe, and its last value must be
    sent."""
    server, request = server_with(Config(progress_interval=1))
    steps = [
        server.send_progress(request, step, total=5, now=when)
        for step, when in ((1, 0), (2, 0.5), (3, 1.0), (4, 1.9), (5, 1.95))
    ]

    assert steps == [True, False, True, False, True]
    assert sent_progress(server) == [1, 3, 5]


def test_without_a_clock_the_interval_drops_nothing() -> None:
    """Without a clock, the connection cannot tell how much time has passed."""
    server, request = server_with(Config(progress_interval=1))

    assert server.send_progress(request, 1)
    assert server.send_progress(request, 2)
    assert server.send_progress(request, 3, now=100)
    assert server.send_progress(request, 4, now=100.5) is False


def test_without_a_token_none_is_sent() -> None:
    """The request has no token, so progress for it is not sent."""
    server = ready_server(REVISION)
    request = asked(server, call(1, "tools/call", ECHO))

    assert server.send_progress(request, 1) is False
    assert sent(server) == []


# ------------------------------------------------------------------------------ the peer's


@pytest.mark.parametrize(
    ("params", "rule"),
    [
        ({"progress": 1}, "PROG-001"),
        ({"progressToken": True, "progress": 1}, "PROG-001"),
        ({"progressToken": 2}, "OWN-014"),
        ({"progressToken": 2, "progress": "1"}, "OWN-014"),
        ({"progressToken": 2, "progress": True}, "OWN-014"),
        ({"progressToken": 2, "progress": 5}, "PROG-003"),
        ({"progressToken": 2, "progress": 4.5}, "PROG-003"),
    ],
)
def test_bad_progress_is_reported_and_not_delivered(params: dict[str, Any], rule: str) -> None:
    """The request and the connection must go on."""
    client = ready_client(REVISION)
    ours = client.send_request("tools/call", ECHO, progress=True)
    receive(client, note("notifications/progress", {"progressToken": 2, "progress": 5}))

    broken = only(ProtocolViolation, receive(client, note("notifications/progress", params)))
    assert broken.rule == rule
    assert ours.open


def test_optional_members_of_the_wrong_type_are_left_out() -> None:
    """The progress value itself is valid."""
    client = ready_client(REVISION)
    ours = client.send_request("tools/call", ECHO, progress=True)
    params = {"progressToken": 2, "progress": 1, "total": "many", "message": 5}
    events = receive(client, note("notifications/progress", params))

    assert [event.rule for event in of(ProtocolViolation, events)] == ["OWN-014"] * 2
    assert of(ProgressReceived, events) == [ProgressReceived(request=ours, progress=1)]


@pytest.mark.parametrize("token", [7, "2", "x", 7.0])
def test_progress_for_nothing_is_ignored(token: Any) -> None:
    """Unknown and late tokens end the connection in other implementations."""
    client = ready_client(REVISION)
    client.send_request("tools/call", ECHO, progress=True)
    params = {"progressToken": token, "progress": 1}

    ignored = only(MessageIgnored, receive(client, note("notifications/progress", params)))
    assert (ignored.rule, ignored.id) == ("PROG-006", token)
    assert drain(client) == []
