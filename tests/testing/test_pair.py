"""`Pair`: its wire does exactly what a test orders, and records everything."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from sansmcp import (
    ALL_REVISIONS,
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    ClientConnection,
    Config,
    ConnectionClosed,
    Phase,
    PingEnded,
    ProtocolViolation,
    Ready,
    RequestAnswered,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    Side,
    State,
)
from sansmcp.testing import CLIENT_INFO, SERVER_INFO, Pair, canonical, drain, plain

CALL = {"name": "echo"}
RESULT: dict[str, Any] = {"content": []}


def test_a_pair_is_connected_and_quiet() -> None:
    """A test should begin after the handshake, without events."""
    pair = Pair()

    assert pair.client.phase is pair.server.phase is Phase.OPERATING
    assert pair.events == ([], [])
    assert pair.to_server.messages == pair.to_client.messages == []
    assert [side for side, _ in pair.transcript] == [Side.CLIENT, Side.SERVER, Side.CLIENT]


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
def test_both_sides_speak_the_given_revision(revision: str) -> None:
    """A test of one revision must not run in another one."""
    pair = Pair(revision=revision)

    assert pair.client.revision == pair.server.revision == revision


def test_a_pair_without_a_handshake() -> None:
    """In 2026-07-28 the server knows the client from each request only."""
    pair = Pair(revision=MODERN_REVISIONS[-1])

    assert pair.client.revision == MODERN_REVISIONS[-1]
    assert pair.server.revision is None
    pair.client.send_request("tools/list")
    pair.deliver()
    received = pair.server_events[-1]
    assert isinstance(received, RequestReceived)
    assert received.request.revision == MODERN_REVISIONS[-1]


@pytest.mark.parametrize(
    ("client", "server", "agreed"),
    [
        (ALL_REVISIONS, ALL_REVISIONS, MODERN_REVISIONS[-1]),
        (ALL_REVISIONS, LEGACY_REVISIONS, LEGACY_REVISIONS[-1]),
        (LEGACY_REVISIONS, ALL_REVISIONS, LEGACY_REVISIONS[-1]),
        (MODERN_REVISIONS, ALL_REVISIONS, MODERN_REVISIONS[-1]),
        (ALL_REVISIONS, ("2024-11-05",), "2024-11-05"),
    ],
)
def test_a_pair_may_speak_several_revisions(
    client: Sequence[str], server: Sequence[str], agreed: str
) -> None:
    """Tests of both eras need two sides with different revisions."""
    pair = Pair(client_revisions=client, server_revisions=server)

    assert pair.client.revision == agreed
    assert pair.events == ([], [])
    call = pair.client.send_request("tools/call", CALL)
    request = pair.deliver_one(RequestReceived).request
    assert request.revision == agreed
    assert pair.server.send_result(request, RESULT)
    assert pair.deliver_one(ResponseReceived).request is call


def test_one_side_may_speak_one_revision_by_name() -> None:
    """The other side must speak `revision`."""
    pair = Pair(revision="2025-06-18", client_revisions=ALL_REVISIONS)

    assert pair.client.revision == pair.server.revision == "2025-06-18"


def test_connections_of_ones_own_are_used() -> None:
    """A test may need capabilities or settings of its own."""
    client = ClientConnection(info=CLIENT_INFO)
    server = ServerConnection(info=SERVER_INFO, instructions="be brief")
    pair = Pair(client, server)

    assert pair.client is client
    assert pair.server is server
    assert client.peer.instructions == "be brief"


def test_settings_reach_their_side() -> None:
    """A limit is tested on one side, and must not apply to the other."""
    pair = Pair(client_config=Config(max_requests=1), server_config=Config(max_message_bytes=1_000))
    pair.client.send_request("ping")
    pair.to_server.drop()
    pair.to_server.put(b"x" * 1_001 + b"\n")

    pair.deliver()

    assert pair.deliver_one(ProtocolViolation, Side.SERVER).rule == "OWN-001"
    with pytest.raises(Exception, match="OWN-005"):
        pair.client.send_request("ping")


def test_connecting_by_hand_leaves_the_events() -> None:
    """Some tests are about the handshake itself."""
    pair = Pair(connected=False)
    assert pair.client.phase is pair.server.phase is Phase.NEW
    assert pair.transcript == []

    pair.connect()

    assert [type(event) for event in pair.client_events] == [Ready]
    assert [type(event) for event in pair.server_events] == [RequestAnswered, Ready]


def test_a_handshake_that_fails_is_told() -> None:
    """A pair that is silently not connected would let a test pass for the wrong reason."""
    client = ClientConnection(info=CLIENT_INFO, requires=["tools"])

    with pytest.raises(AssertionError, match="MISSING_CAPABILITY"):
        Pair(client, ServerConnection(info=SERVER_INFO))


def test_answer_after_cancel_is_dropped() -> None:
    """A handler that finishes late must not put a second ending on the wire."""
    pair = Pair()
    call = pair.client.send_request("tools/call", CALL)
    received = pair.deliver_one(RequestReceived).request
    pair.client.cancel(call, reason="user changed their mind")
    pair.deliver()

    assert pair.server.send_result(received, RESULT) is False
    assert pair.server.data_to_send() == b""


def test_the_two_directions_are_apart() -> None:
    """Races need one direction delivered before the other."""
    pair = Pair()
    call = pair.client.send_request("tools/call", CALL)
    request = pair.deliver_one(RequestReceived).request
    pair.client.cancel(call)
    pair.server.send_result(request, RESULT)

    assert pair.deliver_to_client() is True
    assert [type(event).__name__ for event in pair.client_events] == [
        "RequestFailed",
        "MessageIgnored",
    ]
    assert pair.server_events == []
    assert pair.deliver_to_server() is True
    assert [type(event).__name__ for event in pair.server_events] == ["MessageIgnored"]
    assert pair.deliver_to_client() is pair.deliver_to_server() is False


def test_a_held_direction_is_passed_over_until_it_is_released() -> None:
    """Some tests need one slow direction while everything else goes on."""
    pair = Pair()
    pair.to_client.held = True
    pair.client.ping()
    pair.deliver()

    assert pair.client_events == []
    assert pair.to_client.messages == [b'{"jsonrpc":"2.0","id":2,"result":{}}']

    pair.to_client.held = False
    pair.deliver()

    assert [type(event) for event in pair.client_events] == [PingEnded]


def test_bytes_and_messages_are_delivered_by_number() -> None:
    """A test must be able to cut a message at a chosen byte."""
    pair = Pair()
    pair.client.ping()
    pair.client.ping()

    pair.deliver_to_server(10)
    assert pair.server_events == []
    pair.deliver_message_to_server()  # the rest of the first one
    assert len(pair.server_events) == 1
    pair.deliver_message_to_server()
    assert len(pair.server_events) == 2
    assert pair.deliver_message_to_server() is False
    pair.deliver_message_to_client()
    assert len(pair.client_events) == 1
    assert len(pair.to_client.messages) == 1


def test_small_chunks_arrive_whole() -> None:
    """The slowest pipe delivers one byte at a time."""
    whole, cut = Pair(), Pair()
    for pair, chunk_bytes in ((whole, None), (cut, 1)):
        pair.client.send_request("tools/call", CALL, progress=True)
        pair.client.ping()
        pair.deliver(chunk_bytes=chunk_bytes)

    assert plain(cut.server_events) == plain(whole.server_events)
    assert plain(cut.client_events) == plain(whole.client_events)


def test_what_is_dropped_never_arrives() -> None:
    """Timeouts are tested with lost messages."""
    pair = Pair()
    first, second = pair.client.ping(), pair.client.ping()

    assert pair.to_server.drop_message() == b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n'
    pair.deliver()
    assert first.open
    assert not second.open

    pair.client.ping()
    assert pair.to_server.drop(5) == b'{"jso'
    assert pair.to_server.drop().endswith(b'"method":"ping"}\n')
    assert pair.deliver_to_server() is False


def test_noise_can_be_put_on_the_wire() -> None:
    """Other programs send bytes that our connections never send."""
    pair = Pair()
    pair.to_client.put(b"Listening on port 8080\n")

    violation = pair.deliver_one(ProtocolViolation)

    assert violation.excerpt == b"Listening on port 8080"
    assert len(pair.transcript) == 3  # nobody sent it


def test_a_stream_ends_behind_what_is_in_flight() -> None:
    """The end must come once, behind all bytes, and later output be lost."""
    pair = Pair()
    pair.client.ping()
    pair.to_server.end()
    pair.client.ping()

    assert pair.deliver_to_server() is True
    assert pair.server.state is State.OPEN
    assert pair.deliver_to_server() is True
    assert pair.deliver_to_server() is False
    assert [type(event) for event in pair.server_events] == [RequestAnswered, ConnectionClosed]
    assert pair.to_server.messages == []
    assert pair.transcript[-1][1] == b'{"jsonrpc":"2.0","id":3,"method":"ping"}'


def test_deliver_goes_on_to_the_end_of_the_stream() -> None:
    """A test that ends a stream should not have to count deliveries."""
    pair = Pair()
    pair.client.send_request("tools/call", CALL)
    pair.to_server.end()

    pair.deliver()

    assert [type(event) for event in pair.server_events] == [
        RequestReceived,
        RequestCancelled,
        ConnectionClosed,
    ]


def test_time_is_a_number_that_both_sides_are_told() -> None:
    """Timeouts must fire when the test orders it, and at no other time."""
    pair = Pair()
    pair.client.send_request("tools/call", CALL, timeout=10)
    pair.server.send_request("roots/list", timeout=5)
    assert pair.next_timeout() == 5

    pair.advance(4.5)
    assert pair.events == ([], [])
    pair.advance(0.5)
    assert pair.now == 5
    assert [type(event) for event in pair.server_events] == [RequestFailed]
    assert pair.client_events == []
    pair.advance(5)
    assert [type(event) for event in pair.client_events] == [RequestFailed]
    assert pair.next_timeout() is None


def test_a_long_time_passes_every_deadline_on_its_way() -> None:
    """A real loop wakes at each deadline; skipping them would show fewer pings."""
    pair = Pair(client_config=Config(ping_interval=10, ping_timeout=10, max_failed_pings=3))

    pair.advance(60)

    assert len(pair.to_server.messages) == 2 * 3  # each ping, and its cancellation
    assert pair.client.state is State.CLOSED


def test_without_a_clock_no_time_is_told() -> None:
    """A caller without timeouts gives no time."""
    pair = Pair(now=None)
    with pytest.raises(Exception, match="OWN-023"):
        pair.client.ping(timeout=1)

    pair.advance(2)

    assert pair.now == 2
    pair.client.ping(timeout=1)
    assert pair.next_timeout() == 3


def test_one_event_is_taken_out_and_the_others_stay() -> None:
    """Other events must stay for the next check of the test."""
    pair = Pair()
    pair.client.ping()
    pair.client.send_request("tools/call", CALL)

    pair.deliver_one(RequestReceived)

    assert [type(event) for event in pair.server_events] == [RequestAnswered]
    assert [type(event) for event in pair.client_events] == [PingEnded]


def test_one_event_means_one() -> None:
    """A second event of the kind is a fault that a test must not miss."""
    pair = Pair()
    pair.client.ping()
    pair.server.ping()

    with pytest.raises(AssertionError, match="0 events of the type ResponseReceived"):
        pair.deliver_one(ResponseReceived)
    with pytest.raises(AssertionError, match="2 events of the type PingEnded"):
        pair.deliver_one(PingEnded)
    assert pair.deliver_one(PingEnded, Side.SERVER).failure is None
    assert pair.deliver_one(PingEnded, Side.CLIENT).failure is None


def test_events_can_be_cleared_and_drained() -> None:
    """Events may be taken from the pair or from the connection."""
    pair = Pair()
    pair.client.ping()
    pair.deliver()
    pair.clear_events()
    assert pair.events == ([], [])

    pair.client.ping()
    pair.deliver()
    assert [type(event) for event in drain(pair.client)] == [PingEnded]
    assert pair.client_events == []


def test_a_copy_goes_its_own_way() -> None:
    """Trying both outcomes of a race needs two copies of one state."""
    pair = Pair()
    pair.client.send_request("tools/call", CALL, timeout=10)
    pair.to_client.put(b"noi")
    twin = copy.deepcopy(pair)
    assert canonical(twin) == canonical(pair)

    twin.advance(10)
    twin.deliver()

    assert len(twin.client_events) == 1
    assert pair.client_events == []
    assert pair.now == 0
    assert pair.to_client.messages == [b"noi"]
    assert pair.deliver_one(RequestReceived).request.open
