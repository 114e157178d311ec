"""Tests of both sides of HTTP, with a network in memory that cuts, holds and reorders."""

from sansmcp import (
    FailureReason,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
)
from sansmcp.testing import HTTPPair


# -- call
def test_a_response_arrives_in_pieces() -> None:
    pair = HTTPPair()
    call = pair.client.send_request("tools/call", {"name": "slow"})
    received = pair.deliver_one(RequestReceived).request
    pair.server.send_result(received, {"content": []})

    exchange = pair.exchange_of(call)
    exchange.deliver_response(10)  # the head, and ten bytes of the body
    assert pair.client_events == []

    pair.deliver(chunk_bytes=1)
    assert pair.deliver_one(ResponseReceived).request is call


# -- order
def test_the_second_request_arrives_first() -> None:
    pair = HTTPPair()
    for name in ("first", "second"):
        pair.client.send_request("tools/call", {"name": name})
    pair.exchanges.reverse()
    pair.deliver()

    requests = [event.request for event in pair.server_events if isinstance(event, RequestReceived)]
    assert [request.params["name"] for request in requests] == ["second", "first"]


# -- cut
def test_a_request_that_is_cut_off_ends_on_both_sides() -> None:
    pair = HTTPPair(revision="2026-07-28")
    call = pair.client.send_request("tools/call", {"name": "slow"})
    received = pair.deliver_one(RequestReceived).request

    pair.exchange_of(call).cut("the connection was reset")

    assert pair.deliver_one(RequestFailed).reason is FailureReason.LOST
    assert pair.deliver_one(RequestCancelled).request is received


# -- end
if __name__ == "__main__":
    test_a_response_arrives_in_pieces()
    test_the_second_request_arrives_first()
    test_a_request_that_is_cut_off_ends_on_both_sides()
