"""Limits of `Config`: the behaviour at each limit, and the values that are refused."""

import math
from typing import Any

import pytest

from sansmcp import (
    CancelCause,
    CloseCause,
    Config,
    ConnectionClosed,
    FailureReason,
    IncomingRequest,
    LimitReached,
    LocalProtocolError,
    MessageIgnored,
    NotificationReceived,
    ProtocolViolation,
    RequestAnswered,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ServerConnection,
    State,
)
from sansmcp.testing import drain
from tests.support.wire import (
    asked,
    call,
    note,
    of,
    ready_client,
    ready_server,
    receive,
    result,
    sent,
    wire,
)

REVISION = "2025-11-25"
NUMBERS = [name for name in dir(Config()) if name.startswith(("max_", "soft_"))]
SECONDS = ["ping_interval", "ping_timeout", "progress_interval"]


@pytest.mark.parametrize("name", [*NUMBERS, *SECONDS])
@pytest.mark.parametrize("value", [0, -1])
def test_a_limit_is_greater_than_zero(name: str, value: int) -> None:
    """With a limit of zero no message would pass, and reading it as "no limit" would be a trap."""
    assert len(NUMBERS) > 15
    make: Any = Config
    with pytest.raises(ValueError, match=f"{name} must be greater than zero"):
        make(**{name: value})


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [True, 1.5, math.nan, math.inf, "10", None])
def test_a_limit_is_an_integer(name: str, value: object) -> None:
    """`True` would be a limit of one, and other types would fail with the first message."""
    make: Any = Config
    with pytest.raises(ValueError, match=f"{name} must be greater than zero, and an integer"):
        make(**{name: value})


@pytest.mark.parametrize("name", [*SECONDS, "state_seconds"])
@pytest.mark.parametrize("value", [True, math.nan, -math.inf, 0.0, "10"])
def test_a_time_is_a_number_of_seconds(name: str, value: object) -> None:
    """Comparisons with NaN are always false, so such a time would never pass."""
    make: Any = Config
    with pytest.raises(ValueError, match=f"{name} must be greater than zero"):
        make(**{name: value})


@pytest.mark.parametrize("name", SECONDS)
def test_no_time_is_none(name: str) -> None:
    """Infinity would be a timer that an event loop cannot wait for; None means no limit."""
    make: Any = Config
    with pytest.raises(ValueError, match=f"{name} must be .* a finite number of seconds, not inf"):
        make(**{name: math.inf})
    assert getattr(make(**{name: None}), name) is None
    assert Config(state_seconds=math.inf).state_seconds == math.inf


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("check", "Shape", "check must be 'shape' or 'full' or 'none', not 'Shape'"),
        ("check", None, "'full' or 'none'"),
        (
            "unknown_methods",
            "Refuse",
            "unknown_methods must be 'refuse' or 'deliver', not 'Refuse'",
        ),
        ("cache_scope", "shared", "cache_scope must be 'public' or 'private', not 'shared'"),
        ("cache_scope", ["public"], "'public' or 'private'"),
        ("strict", "no", "strict must be True or False, not 'no'"),
        ("send_info", 0, "send_info must be True or False"),
        ("coalesce_progress", None, "coalesce_progress must be True or False"),
        ("cache_ttl_ms", True, "cache_ttl_ms must not be negative, and an integer"),
        ("cache_ttl_ms", 1.5, "an integer"),
        ("cache_ttl_ms", math.nan, "an integer"),
        ("state_keys", b"0123456789abcdef", "state_keys must be a list or a tuple of bytes"),
        ("state_keys", ("0123456789abcdef",), "state_keys must be a list or a tuple of bytes"),
        ("codec", "json", "codec must have the methods encode and decode"),
    ],
)
def test_what_is_accepted_is_in_the_message(name: str, value: object, text: str) -> None:
    """`unknown_methods="Refuse"` delivered unknown methods: a typing error chose the other
    setting."""
    make: Any = Config
    with pytest.raises(ValueError, match=text):
        make(**{name: value})


def test_manual_names_methods_that_the_core_answers() -> None:
    """A mistyped method must raise; methods that the core does not answer are delivered anyway."""
    assert Config(manual=["ping"]).manual == {"ping"}
    with pytest.raises(ValueError, match=r"manual may name initialize, .*, not tools/list"):
        Config(manual={"ping", "tools/list"})


@pytest.mark.parametrize("name", ["max_requests", "strict", "codec"])
def test_a_config_does_not_change(name: str) -> None:
    """Several connections may share one `Config`."""
    with pytest.raises(AttributeError):
        setattr(Config(), name, 1)


# ------------------------------------------------------------------------------------- requests


def test_a_request_over_the_limit_is_refused_and_reported() -> None:
    """Reading must go on, because the responses and cancellations that make room come on the
    same stream."""
    server = ready_server(REVISION, config=Config(max_requests=2))
    first = asked(server, call(1, "tools/list"))
    asked(server, call(2, "tools/list"))
    events = receive(server, call(3, "tools/list"), call(4, "ping"))
    assert [event.rule for event in of(LimitReached, events)] == ["OWN-004"]
    assert of(RequestReceived, events) == []
    refusal, alive = sent(server)
    assert refusal["error"]["code"] == -32603
    assert "2 requests" in refusal["error"]["data"]["reason"]
    assert alive == result(4, {})

    assert server.send_result(first, {"tools": []})
    assert asked(server, call(5, "tools/list")).open


def test_pings_that_the_application_answers_are_limited_like_other_requests() -> None:
    """Only pings that the core answers take no room in the table."""
    server = ready_server(REVISION, config=Config(max_requests=2, manual={"ping"}))
    receive(server, *[call(id, "ping") for id in range(5)])

    assert len(server.open_requests) == 2


def test_a_request_of_ours_over_the_limit_raises() -> None:
    """The verb must raise at once, and a response make room again."""
    client = ready_client(REVISION, config=Config(max_requests=2))
    ours = client.send_request("tools/list")
    client.send_paginated("tools/list")
    for verb, arguments in (
        ("send_request", ["tools/list"]),
        ("send_paginated", ["tools/list"]),
        ("ping", []),
    ):
        with pytest.raises(LocalProtocolError) as caught:
            getattr(client, verb)(*arguments)
        assert caught.value.rule == "OWN-005"
    receive(client, result(ours.id, {"tools": []}))

    assert client.ping().open


def test_ended_requests_are_remembered_up_to_the_limit() -> None:
    """The oldest ended request must be forgotten, counted, and reported once."""
    client = ready_client(REVISION, config=Config(max_late_answers=2))
    calls = [client.send_request("tools/list") for _ in range(4)]
    sent(client)
    for one in calls:
        client.cancel(one)
    assert [event.rule for event in of(LimitReached, drain(client))] == ["OWN-008"]
    assert client.forgotten_answers == 2
    events = receive(client, *[result(one.id, {"tools": []}) for one in calls])

    ignored = [event.rule for event in of(MessageIgnored, events)]
    assert ignored == ["JSON-004", "JSON-004", "CANC-011", "CANC-011"]


# --------------------------------------------------------------------------------------- events


def test_paused_is_advice_and_refuses_nothing() -> None:
    """Cancellations must be read even if the application is behind with its events."""
    server = ready_server(REVISION, config=Config(max_events=2))
    server.receive_data(b'{"jsonrpc":"2.0","method":"notifications/x"}\n' * 2)
    assert server.paused is False
    server.receive_data(b'{"jsonrpc":"2.0","method":"notifications/x"}\n' * 3)
    assert server.paused is True
    assert server.next_event() is not None
    assert server.paused is True

    assert len(drain(server)) == 4
    assert server.paused is False


def test_paused_is_advice_where_few_events_hold_much() -> None:
    """Ten thousand events may hold as many messages of the largest size, and none may be lost."""
    large = wire(note("notifications/x", {"text": "x" * 1_000}))
    server = ready_server(REVISION, config=Config(max_event_bytes=len(large) * 2))
    server.receive_data(wire(call(1, "ping")) * 100)
    drain(server)
    server.data_to_send()
    server.receive_data(large + large[:-1])
    assert server.paused is False
    server.receive_data(large[-1:])
    assert server.paused is False
    server.receive_data(wire(call(2, "ping")))
    assert server.paused is True
    server.receive_message(large[:-1])
    assert server.paused is True

    assert [type(event) for event in drain(server)] == [
        *[NotificationReceived] * 2,
        RequestAnswered,
        NotificationReceived,
    ]
    assert server.paused is False
    server.receive_data(large + large)
    assert server.paused is False


# --------------------------------------------------------------------------------------- output


def test_output_that_nobody_takes_ends_the_connection() -> None:
    """There must be one fatal event and an ending for each request, and queued output must stay."""
    server = ready_server(REVISION, config=Config(max_unsent_bytes=400))
    request = asked(server, call(1, "tools/list"))
    ours = server.send_request("roots/list")
    text = {"text": "x" * 200}
    server.send_notification("notifications/x", text)
    assert 250 < server.unsent_bytes < 400
    server.send_notification("notifications/x", text)
    broken, cancelled, lost, closed = drain(server)

    assert isinstance(broken, ProtocolViolation)
    assert (broken.rule, broken.fatal) == ("OWN-012", True)
    assert cancelled == RequestCancelled(request=request, cause=CancelCause.FAILED)
    assert isinstance(lost, RequestFailed)
    assert (lost.request, lost.reason) == (ours, FailureReason.LOST)
    assert closed == ConnectionClosed(cause=CloseCause.OVERFLOW)
    assert server.state is State.CLOSED
    assert len(sent(server)) == 2


FILL = {"text": "x" * 330}


def overflow(server: ServerConnection, request: IncomingRequest, by: str) -> None:
    """Queue more output than the limit allows."""
    match by:
        case "a result":
            server.send_result(request, {"tools": [], "_meta": FILL})
        case "an error":
            server.send_error(request, -32603, "text", FILL)
        case "a request":
            server.send_request("x/y", FILL)
        case "a ping":
            server.ping()
        case "an automatic answer":
            server.receive_data(b'{"jsonrpc":"2.0","id":7,"method":"ping"}\n')
        case "an automatic refusal":
            server.receive_data(b"[" * 50 + b"\n")
        case _:
            raise AssertionError(by)


@pytest.mark.parametrize(
    "by",
    [
        *("a result", "an error", "a request", "a ping"),
        *("an automatic answer", "an automatic refusal"),
    ],
)
def test_whatever_makes_it_overflow_everything_ends_once(by: str) -> None:
    """The limit must hold for responses, requests and automatic responses."""
    server = ready_server(REVISION, config=Config(max_unsent_bytes=420, max_json_depth=20))
    request = asked(server, call(1, "tools/list"))
    server.send_request("roots/list")
    server.send_notification("notifications/x", {"text": "x" * 275})
    overflow(server, request, by)
    events = drain(server)

    assert events[-1] == ConnectionClosed(cause=CloseCause.OVERFLOW)
    assert len(of(ConnectionClosed, events)) == 1
    assert all(not event.request.open for event in of(RequestFailed, events))
    assert not server.open_requests
    assert not server.pending_requests
    assert server.next_timeout() is None


@pytest.mark.parametrize("take", ["data_to_send", "buffers_to_send", "messages_to_send"])
def test_taking_output_makes_room_again(take: str) -> None:
    """Only output that was not taken yet must count."""
    server = ready_server(REVISION, config=Config(max_unsent_bytes=400))
    for _ in range(10):
        server.send_notification("notifications/x", {"text": "x" * 200})
        getattr(server, take)()
        assert server.unsent_bytes == 0

    assert server.state is State.OPEN
