"""Pings: those of the application, and keep-alive, which closes the connection to a silent peer."""

import pytest

from sansmcp import (
    ClientConnection,
    CloseCause,
    Config,
    ConnectionClosed,
    FailureReason,
    LocalProtocolError,
    PingEnded,
    ProtocolViolation,
    RequestFailed,
    RequestReceived,
    State,
)
from sansmcp.testing import Pair, drain
from tests.support.wire import (
    call,
    error,
    initialized_by,
    new_client,
    note,
    of,
    ready_client,
    ready_server,
    receive,
    result,
    sent,
)

REVISION = "2025-11-25"
CONFIG = Config(ping_interval=10, ping_timeout=3, max_failed_pings=2)


def kept_alive(config: Config = CONFIG) -> ClientConnection:
    """A client that became ready at the time 100."""
    client = new_client(config=config)
    client.start(now=100)
    sent(client)
    receive(client, result(1, initialized_by(REVISION)))
    sent(client)
    return client


def pings(client: ClientConnection, now: float) -> list[int]:
    """The ids of pings that are sent at this time; asserts that there is no event of them."""
    client.handle_timeout(now)
    assert drain(client) == []
    return [message["id"] for message in sent(client) if message["method"] == "ping"]


def test_silence_is_broken_by_a_ping() -> None:
    """A ping must be sent after the interval, and its response start the next wait."""
    client = kept_alive()
    assert client.next_timeout() == 110
    assert pings(client, 109) == []
    assert pings(client, 110) == [2]
    assert receive(client, result(2, {}), now=111) == []
    assert client.next_timeout() == 121


def test_whatever_the_peer_says_counts_as_life() -> None:
    """A busy connection needs no pings."""
    client = kept_alive()
    receive(client, note("notifications/x"), now=105)

    assert pings(client, 110) == []
    assert client.next_timeout() == 115
    assert pings(client, 115) == [2]


def test_an_error_is_an_answer() -> None:
    """A peer that does not know `ping` is alive."""
    client = kept_alive()
    (id,) = pings(client, 110)

    assert receive(client, error(id, -32601), now=111) == []
    assert client.next_timeout() == 121


def test_pings_in_a_row_without_an_answer_end_the_connection() -> None:
    """There must be one fatal event, and then the last event."""
    client = kept_alive()
    assert pings(client, 110) == [2]
    client.handle_timeout(113)
    assert drain(client) == []
    assert [message["method"] for message in sent(client)] == ["notifications/cancelled"]
    assert pings(client, 123) == [3]
    client.handle_timeout(126)
    broken, closed = drain(client)

    assert isinstance(broken, ProtocolViolation)
    assert (broken.rule, broken.fatal) == ("OWN-016", True)
    assert "2 pings in a row" in broken.text
    assert closed == ConnectionClosed(cause=CloseCause.UNRESPONSIVE)
    assert client.next_timeout() is None


def test_an_answer_forgives_the_pings_that_failed() -> None:
    """Only failed pings in a row count."""
    client = kept_alive()
    for _ in range(3):
        when = client.next_timeout()
        assert when is not None
        pings(client, when)
        client.handle_timeout(when + 3)
        (id,) = pings(client, when + 13)
        receive(client, result(id, {}), now=when + 13)
    assert client.state is State.OPEN


def test_without_a_time_of_its_own_a_ping_may_take_the_interval() -> None:
    """The default timeout of a ping is the interval."""
    client = kept_alive(Config(ping_interval=10, max_failed_pings=1))
    pings(client, 110)

    assert client.next_timeout() == 120


def test_a_server_keeps_alive_as_well_once_there_is_a_clock() -> None:
    """The first time that is given after the handshake must start the interval."""
    server = ready_server(REVISION, config=CONFIG)
    assert server.next_timeout() is None
    receive(server, call(1, "ping"), now=50)
    assert server.next_timeout() == 60
    receive(server, call(2, "ping"), now=55)
    assert server.next_timeout() == 60
    server.handle_timeout(65)

    assert [message.get("method") for message in sent(server)][-1] == "ping"


def test_before_the_handshake_is_done_nobody_is_pinged() -> None:
    """`start` has a time limit of its own."""
    client = new_client(config=CONFIG)
    with pytest.raises(LocalProtocolError, match="pass now="):
        client.start()
    client.start(now=0)

    assert client.next_timeout() is None


def test_it_stops_while_draining() -> None:
    """A peer that has ended its stream answers no pings."""
    server = ready_server(REVISION, config=CONFIG)
    receive(server, call(1, "tools/list"), now=0)
    server.receive_eof(drain=60)

    assert server.next_timeout() == 60


@pytest.mark.parametrize("end", ["close", "send_failed", "receive_eof"])
def test_it_stops_with_its_connection(end: str) -> None:
    """A closed connection must have no timer."""
    client = kept_alive()
    getattr(client, end)()

    assert client.next_timeout() is None


def test_a_ping_on_its_way_when_sending_fails_is_lost_quietly() -> None:
    """The ping is not the application's, so only the end may be reported."""
    client = kept_alive()
    pings(client, 110)
    client.send_failed()
    client.receive_eof()

    assert drain(client) == [ConnectionClosed(cause=CloseCause.SEND_FAILED)]


def test_both_sides_of_a_quiet_connection_stay_alive() -> None:
    """Pings alone must keep a connection open for an hour."""
    pair = Pair(client_config=CONFIG, server_config=CONFIG)
    for _ in range(360):
        pair.advance(10)
        pair.deliver()
    pair.clear_events()
    pair.client.ping()
    pair.deliver()

    assert (pair.client.state, pair.server.state) == (State.OPEN, State.OPEN)


def test_a_ping_says_how_long_it_took() -> None:
    """The duration needs a clock, and an error counts as a response."""
    pair = Pair()
    ping = pair.client.ping(data="mine")
    assert (ping.open, ping.data) == (True, "mine")
    pair.deliver_to_server()
    pair.advance(0.25)
    assert pair.deliver_one(PingEnded) == PingEnded(ping=ping, seconds=0.25)
    assert not ping.open

    client = ready_client(REVISION)
    ping = client.ping()
    (message,) = sent(client)
    assert receive(client, error(message["id"], -32601)) == [PingEnded(ping=ping)]


def test_a_ping_times_out_and_is_lost_like_a_request() -> None:
    """Each ping must have one `PingEnded`, without an event of its inner request."""
    pair = Pair()
    silent, lost = pair.client.ping(timeout=2), pair.client.ping()
    pair.advance(2)
    pair.client.close()
    events = pair.client_events

    assert of(PingEnded, events) == [
        PingEnded(
            ping=silent,
            failure=FailureReason.TIMED_OUT,
            text="no response to ping and no progress came for 2 s",
        ),
        PingEnded(
            ping=lost,
            failure=FailureReason.LOST,
            text="the connection ended before ping was answered",
        ),
    ]
    assert of(RequestFailed, events) == []
    assert of(RequestReceived, pair.server_events) == []
