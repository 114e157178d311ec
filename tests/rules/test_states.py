"""Every state of a connection with every action that could change it."""

import copy
from collections.abc import Callable

import pytest

from sansmcp import (
    CancelCause,
    CloseCause,
    ConnectionClosed,
    LocalProtocolError,
    PingEnded,
    RequestCancelled,
    RequestFailed,
    ServerConnection,
    State,
)
from sansmcp.testing import Pair, canonical, drain
from tests.support.wire import call, of, ready_server, receive, sent

REVISION = "2025-11-25"

REACH: dict[State, Callable[[ServerConnection], object]] = {
    State.OPEN: lambda server: None,
    State.DRAINING: lambda server: server.receive_eof(drain=5),
    State.SEND_CLOSED: lambda server: server.send_failed(),
    State.CLOSED: lambda server: server.close(),
}
TRIGGERS: dict[str, Callable[[ServerConnection], object]] = {
    "eof": lambda server: server.receive_eof(),
    "eof with drain": lambda server: server.receive_eof(drain=5),
    "send failed": lambda server: server.send_failed(),
    "close": lambda server: server.close(),
    "time": lambda server: server.handle_timeout(5),
    "last answer": lambda server: answer_all(server),
}
# Where a pair is missing, the state stays as it is.
MOVES: dict[tuple[State, str], tuple[State, CloseCause | None]] = {
    (State.OPEN, "eof"): (State.CLOSED, CloseCause.EOF),
    (State.OPEN, "eof with drain"): (State.DRAINING, None),
    (State.OPEN, "send failed"): (State.SEND_CLOSED, None),
    (State.OPEN, "close"): (State.CLOSED, CloseCause.CLOSED),
    (State.DRAINING, "send failed"): (State.CLOSED, CloseCause.EOF),
    (State.DRAINING, "close"): (State.CLOSED, CloseCause.CLOSED),
    (State.DRAINING, "time"): (State.CLOSED, CloseCause.EOF),
    (State.DRAINING, "last answer"): (State.CLOSED, CloseCause.EOF),
    (State.SEND_CLOSED, "eof"): (State.CLOSED, CloseCause.SEND_FAILED),
    (State.SEND_CLOSED, "eof with drain"): (State.CLOSED, CloseCause.SEND_FAILED),
    (State.SEND_CLOSED, "close"): (State.CLOSED, CloseCause.CLOSED),
}


def answer_all(server: ServerConnection) -> None:
    for request in server.open_requests:
        server.send_result(request, {"tools": []})


def server_in(state: State) -> ServerConnection:
    """A server in this state, which it entered while it was handling a request."""
    server = ready_server(REVISION)
    receive(server, call(1, "tools/list"), now=0)
    REACH[state](server)
    drain(server)
    assert server.state is state
    return server


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("trigger", TRIGGERS)
def test_every_state_and_trigger(state: State, trigger: str) -> None:
    """An allowed pair must move the state, and every other one change nothing."""
    server = server_in(state)
    TRIGGERS[trigger](server)
    after, cause = MOVES.get((state, trigger), (state, None))

    assert server.state is after
    closed = of(ConnectionClosed, drain(server))
    assert closed == ([] if cause is None else [ConnectionClosed(cause=cause)])
    if after is State.CLOSED:
        assert server.next_timeout() is None
        assert server.open_requests == ()


Verbs = dict[str, Callable[[ServerConnection], object]]
ASKING: Verbs = {
    "ping": lambda server: server.ping(),
    "send_request": lambda server: server.send_request("roots/list"),
    "send_paginated": lambda server: server.send_paginated("tasks/list"),
}
TELLING: Verbs = {"send_notification": lambda server: server.send_notification("notifications/x")}


@pytest.mark.parametrize("state", [State.DRAINING, State.SEND_CLOSED, State.CLOSED])
@pytest.mark.parametrize("verb", [*ASKING, *TELLING])
def test_what_cannot_be_sent_raises_and_names_the_state(state: State, verb: str) -> None:
    """Requests would get no response; while draining the peer still reads notifications."""
    server = server_in(state)
    before = canonical(server)
    if verb in TELLING and state is State.DRAINING:
        TELLING[verb](server)
        return

    with pytest.raises(LocalProtocolError, match=f"while {state.name}") as caught:
        (ASKING | TELLING)[verb](server)
    assert caught.value.rule == "OWN-021"
    assert canonical(server) == before


@pytest.mark.parametrize("state", [State.DRAINING, State.CLOSED])
def test_input_after_its_end_means_nothing(state: State) -> None:
    """Input that an adapter gives after the end must be ignored."""
    server = server_in(state)
    for data in (b"{}\n", b"noise\n", b'{"jsonrpc":"2.0","id":5,"method":"ping"}\n'):
        server.receive_data(data)
        server.receive_message(data)

    assert drain(server) == []
    assert sent(server) == []


# ------------------------------------------------------------------------------------ draining


def test_while_draining_what_was_read_is_finished() -> None:
    """`cat file | server` must print every response, and our own requests end at once."""
    server = ready_server(REVISION)
    receive(server, call(1, "tools/list"), call(2, "tools/list"), now=0)
    one, two = server.open_requests
    ours, ping = server.send_request("roots/list"), server.ping(timeout=9)
    sent(server)
    server.receive_eof(drain=5, now=1)
    lost, pinged = drain(server)
    assert isinstance(lost, RequestFailed)
    assert lost.request is ours
    assert isinstance(pinged, PingEnded)
    assert pinged.ping is ping
    assert server.next_timeout() == 6

    assert server.send_progress(one, 1) is False
    assert server.send_log("info", "still here")
    assert server.send_error(one, -32603, "no")
    assert server.state is State.DRAINING
    assert server.send_result(two, {"tools": []})
    assert drain(server) == [ConnectionClosed(cause=CloseCause.EOF)]
    assert [message.get("id") for message in sent(server)] == [None, 1, 2]


def test_without_requests_or_clock_there_is_nothing_to_drain() -> None:
    """Without open requests or a clock the connection must end at once."""
    idle = ready_server(REVISION)
    idle.receive_eof(drain=5, now=0)
    assert idle.state is State.CLOSED

    timeless = ready_server(REVISION)
    receive(timeless, call(1, "tools/list"))
    timeless.receive_eof(drain=5)
    assert timeless.state is State.CLOSED


def test_what_is_not_finished_in_time_is_cancelled() -> None:
    """A server must exit after its client has gone."""
    server = server_in(State.DRAINING)
    (request,) = server.open_requests
    server.handle_timeout(4.9)
    assert drain(server) == []
    server.handle_timeout(5)

    assert drain(server) == [
        RequestCancelled(request=request, cause=CancelCause.EOF),
        ConnectionClosed(cause=CloseCause.EOF),
    ]
    assert server.send_result(request, {"tools": []}) is False


def test_a_last_line_without_newline_is_served_while_draining() -> None:
    """The last line arrived before the end of the stream, so it is served."""
    server = ready_server(REVISION)
    receive(server, call(1, "tools/list"), now=0)
    server.receive_data(b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}')
    server.receive_eof(drain=5)

    assert [request.id for request in server.open_requests] == [1, 2]


# --------------------------------------------------------------------------------- send_failed


def test_after_sending_failed_only_what_was_handed_over_may_be_answered() -> None:
    """Requests that were never written must end as lost."""
    pair = Pair()
    out = pair.client.send_request("tools/list")
    assert pair.client.data_to_send()
    inside = pair.client.send_request("tools/list")
    pair.client.send_failed()
    (lost,) = drain(pair.client)
    assert isinstance(lost, RequestFailed)
    assert lost.request is inside
    assert pair.client.data_to_send() == b""
    assert pair.client.unsent_bytes == 0

    pair.client.receive_message(b'{"jsonrpc":"2.0","id":%d,"result":{"tools":[]}}' % int(out.id))
    assert not out.open
    assert not pair.client.pending_requests


def test_a_request_without_an_answer_ends_with_its_time_and_without_a_word() -> None:
    """The cancellation cannot be sent any more."""
    pair = Pair()
    ours = pair.client.send_request("tools/list", timeout=1)
    pair.client.data_to_send()
    pair.client.send_failed()
    pair.client.handle_timeout(1)

    assert [event.request for event in of(RequestFailed, drain(pair.client))] == [ours]
    assert pair.client.data_to_send() == b""


def test_cancelling_after_sending_failed_ends_the_request() -> None:
    """The request must end although the cancellation cannot be sent."""
    pair = Pair()
    ours = pair.client.send_request("tools/list")
    pair.client.data_to_send()
    pair.client.send_failed()

    assert pair.client.cancel(ours)
    assert len(of(RequestFailed, drain(pair.client))) == 1
    assert pair.client.data_to_send() == b""


# --------------------------------------------------------------------------------------- copies


def test_a_connection_and_its_handles_can_be_copied() -> None:
    """All state is plain data, so explorers and proxies can copy a conversation."""
    pair = Pair()
    ours = pair.client.send_request("tools/call", {"name": "echo"}, progress=True, timeout=5)
    twin, handle = copy.deepcopy((pair.client, ours))
    assert canonical(twin) == canonical(pair.client)
    assert twin.cancel(handle)

    assert ours.open
    assert not handle.open
    assert [event.request for event in of(RequestFailed, drain(twin))] == [handle]
    assert drain(pair.client) == []
