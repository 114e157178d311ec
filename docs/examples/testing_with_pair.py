"""Tests with a wire in memory: the test decides which bytes arrive, when, and in which pieces."""

from sansmcp import (
    ALL_REVISIONS,
    LEGACY_REVISIONS,
    FailureReason,
    InputRequired,
    MessageIgnored,
    ProtocolViolation,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    Side,
)
from sansmcp.testing import Pair, plain


# -- race
def test_an_answer_that_crosses_a_cancellation_is_ignored() -> None:
    pair = Pair()
    call = pair.client.send_request("tools/call", {"name": "slow"})
    received = pair.deliver_one(RequestReceived).request

    pair.server.send_result(received, {"content": []})
    pair.client.cancel(call)
    pair.deliver()

    assert pair.deliver_one(RequestFailed).reason is FailureReason.CANCELLED
    assert pair.deliver_one(MessageIgnored, Side.CLIENT).rule == "CANC-011"
    assert pair.deliver_one(MessageIgnored, Side.SERVER).rule == "CANC-013"


# -- time
def test_a_server_that_is_silent_too_long_loses_the_request() -> None:
    pair = Pair()
    pair.client.send_request("tools/call", {"name": "slow"}, timeout=10, now=pair.now)
    pair.deliver()

    pair.advance(9)
    assert pair.client_events == []
    pair.advance(1)
    assert pair.deliver_one(RequestFailed).reason is FailureReason.TIMED_OUT


# -- damage
def test_noise_on_the_wire_hurts_nothing() -> None:
    pair = Pair()
    pair.client.send_request("tools/call", {"name": "work"})
    request = pair.deliver_one(RequestReceived).request

    pair.to_client.put(b"Listening on port 8080\n")
    pair.server.send_result(request, {"content": []})
    pair.deliver(chunk_bytes=1)

    assert pair.deliver_one(ProtocolViolation).excerpt == b"Listening on port 8080"
    assert pair.deliver_one(ResponseReceived).result == {"content": []}


# -- eras
ROOTS = {"where": {"method": "roots/list"}}


def test_a_handler_asks_clients_of_both_eras() -> None:
    modern = Pair(revision="2026-07-28")
    call = modern.client.send_request("tools/call", {"name": "ask"})
    modern.server.require_input(modern.deliver_one(RequestReceived).request, ROOTS)
    modern.deliver_one(InputRequired)
    modern.client.provide_input(call, {"where": {"roots": []}})

    mixed = Pair(client_revisions=LEGACY_REVISIONS, server_revisions=ALL_REVISIONS)
    mixed.client.send_request("tools/call", {"name": "ask"})
    mixed.server.require_input(mixed.deliver_one(RequestReceived, Side.SERVER).request, ROOTS)
    question = mixed.deliver_one(RequestReceived, Side.CLIENT).request
    mixed.client.send_result(question, {"roots": []})

    for pair in (modern, mixed):
        request = pair.deliver_one(RequestReceived, Side.SERVER).request
        assert request.input_responses == {"where": {"roots": []}}


# -- compare
def test_chunks_make_no_difference() -> None:
    events: list[list[str]] = []
    for chunk_bytes in (1, 7, None):
        pair = Pair()
        pair.client.send_request("tools/call", {"name": "work"}, progress=True)
        pair.deliver(chunk_bytes=chunk_bytes)
        events.append(plain(pair.server_events))

    assert events[0] == events[1] == events[2]


# -- end
if __name__ == "__main__":
    test_an_answer_that_crosses_a_cancellation_is_ignored()
    test_a_server_that_is_silent_too_long_loses_the_request()
    test_noise_on_the_wire_hurts_nothing()
    test_a_handler_asks_clients_of_both_eras()
    test_chunks_make_no_difference()
