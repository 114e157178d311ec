"""Pings that the application asks for."""

from sansmcp import FailureReason, PingEnded, RequestFailed, RequestReceived
from sansmcp.testing import Pair
from tests.support.wire import error, of, ready_client, receive, sent

REVISION = "2025-11-25"


def test_a_ping_says_how_long_it_took() -> None:
    """Where there is a clock; an error counts as a sign of life."""
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
    """One `PingEnded` each, and no event of the request inside."""
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
