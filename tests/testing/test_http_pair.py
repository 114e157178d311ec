"""`HTTPPair`, as authors of adapters and proxies use it."""

from __future__ import annotations

import copy

import pytest

from sansmcp import (
    ALL_REVISIONS,
    MODERN_REVISIONS,
    FailureReason,
    OutgoingRequest,
    PingEnded,
    ProtocolViolation,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
)
from sansmcp.http import (
    ClientEndpoint,
    CredentialsReceived,
    LookupEnded,
    ServerEndpoint,
    SessionLost,
    ToolSchemaWanted,
)
from sansmcp.testing import CLIENT_INFO, SERVER_INFO, HTTPPair, plain

MODERN = MODERN_REVISIONS[-1]
OK = {"content": [{"type": "text", "text": "ok"}]}
BOTH_ERAS = pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25", MODERN])


def called(pair: HTTPPair, name: str = "t") -> OutgoingRequest:
    return pair.client.send_request("tools/call", {"name": name}, now=pair.now)


def answer(pair: HTTPPair) -> None:
    """Answer the one request that has arrived."""
    request = pair.deliver_one(RequestReceived).request
    assert pair.server.send_result(request, OK, now=pair.now)


@BOTH_ERAS
@pytest.mark.parametrize("chunk_bytes", [None, 1, 7])
def test_a_call_is_answered(revision: str, chunk_bytes: int | None) -> None:
    """A call must be answered however the network cuts the bodies."""
    pair = HTTPPair(revision=revision)
    assert (pair.client_events, pair.server_events) == ([], [])
    call = called(pair)
    pair.deliver(chunk_bytes=chunk_bytes)
    answer(pair)
    pair.deliver(chunk_bytes=chunk_bytes)

    assert pair.deliver_one(ResponseReceived).request is call
    assert all(exchange.client.method == "GET" for exchange in pair.exchanges)


def test_both_eras_can_meet() -> None:
    """A client of both eras must be able to probe the server."""
    pair = HTTPPair(client_revisions=ALL_REVISIONS, server_revisions=("2025-06-18",))

    assert pair.client.revision == "2025-06-18"
    assert len(pair.server.sessions) == 1


def test_an_opening_that_fails_says_what_happened() -> None:
    """Otherwise a later step fails and hides the cause."""
    with pytest.raises(AssertionError, match=r"the opening failed: .*ConnectionFailed"):
        HTTPPair(client_revisions=(MODERN,), server_revisions=("2025-06-18",))


def test_endpoints_of_ones_own_can_be_used() -> None:
    """An application tests with its own settings."""
    client = ClientEndpoint("http://127.0.0.1:8000/x", info=CLIENT_INFO)
    server = ServerEndpoint(info=SERVER_INFO)
    pair = HTTPPair(client, server, connected=False, now=5.0)
    assert pair.client_events == []
    pair.connect()

    assert (pair.client, pair.server, pair.now) == (client, server, 5.0)


def test_the_server_is_told_who_the_client_is() -> None:
    """A real server finds the principal by a token."""
    pair = HTTPPair(connected=False)
    pair.principal, pair.principal_key = "Ada", "ada"
    pair.connect()
    called(pair)
    assert pair.deliver_one(RequestReceived).request.principal == "Ada"


@BOTH_ERAS
def test_requests_arrive_in_another_order(revision: str) -> None:
    """A network keeps no order between exchanges."""
    pair = HTTPPair(revision=revision)
    called(pair, "first")
    called(pair, "second")
    pair.exchanges.reverse()
    pair.deliver()

    names = [
        event.request.params["name"]
        for event in pair.server_events
        if isinstance(event, RequestReceived)
    ]
    assert names == ["second", "first"]


@BOTH_ERAS
def test_an_exchange_can_be_held(revision: str) -> None:
    """A test must be able to hold a request or a response."""
    pair = HTTPPair(revision=revision)
    pair.held = True
    call = called(pair)
    pair.deliver()
    assert pair.server_events == []

    exchange = pair.exchange_of(call)
    exchange.request_held, exchange.response_held = False, True
    answer(pair)
    pair.deliver()
    assert pair.client_events == []

    exchange.response_held = False
    assert pair.deliver_one(ResponseReceived).request is call
    with pytest.raises(LookupError, match="no exchange carries"):
        pair.exchange_of(call)


@BOTH_ERAS
def test_bytes_arrive_as_the_test_says(revision: str) -> None:
    """A test must be able to deliver heads and single bytes, and see the rest in flight."""
    pair = HTTPPair(revision=revision)
    call = called(pair)
    exchange = pair.exchange_of(call)
    body = bytes(exchange.request)
    assert exchange.server is None
    assert exchange.deliver_request(0)
    assert exchange.server is not None
    assert bytes(exchange.request) == body
    assert exchange.deliver_request(len(body) - 1)
    assert pair.server_events == []
    assert exchange.deliver_request()
    assert not exchange.deliver_request()
    assert not exchange.deliver_response()

    request = next(e.request for e in pair.server_events if isinstance(e, RequestReceived))
    pair.server.send_result(request, OK, now=pair.now)
    exchange.collect()
    assert b'"result"' in exchange.response
    assert exchange.deliver_response(0)
    while exchange.response:
        assert pair.client_events == []
        assert exchange.deliver_response(1)
    assert exchange.over
    assert not exchange.deliver_response()
    assert pair.deliver_one(ResponseReceived).request is call


@BOTH_ERAS
def test_bytes_in_flight_can_be_changed(revision: str) -> None:
    """A proxy between the two sides may change any byte."""
    pair = HTTPPair(revision=revision)
    call = called(pair)
    pair.exchange_of(call).response_held = True
    answer(pair)
    exchange = pair.exchange_of(call)
    exchange.collect()
    exchange.response[:] = exchange.response.replace(b"ok", b"no")
    exchange.response_held = False

    assert pair.deliver_one(ResponseReceived).result["content"][0]["text"] == "no"


def test_a_cut_is_seen_by_both_sides() -> None:
    """In 2026-07-28 a cut must cancel the request, and lose the response."""
    pair = HTTPPair(revision=MODERN)
    call = called(pair)
    request = pair.deliver_one(RequestReceived).request
    exchange = pair.exchange_of(call)
    exchange.cut("the cable broke")

    assert pair.deliver_one(RequestCancelled).request is request
    failed = pair.deliver_one(RequestFailed)
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)
    assert "the cable broke" in failed.text
    assert exchange.over
    assert pair.exchanges == []
    exchange.cut()
    pair.deliver()
    assert (pair.client_events, pair.server_events) == ([], [])


def test_a_cut_may_be_seen_by_one_side_first() -> None:
    """The other side may notice when it writes, when it reads, or never."""
    pair = HTTPPair(revision=MODERN)
    call = called(pair)
    request = pair.deliver_one(RequestReceived).request
    exchange = pair.exchange_of(call)
    exchange.cut(server=False)
    assert pair.deliver_one(RequestFailed).request is call
    assert pair.server.send_result(request, OK, now=pair.now)
    assert not exchange.over
    exchange.cut(client=False)
    assert exchange.over

    other = called(pair)
    pair.deliver_one(RequestReceived)
    exchange = pair.exchange_of(other)
    exchange.cut(client=False)
    pair.deliver_one(RequestCancelled)
    pair.deliver()
    assert pair.client.pending_requests == (other,)
    exchange.cut(server=False)
    assert pair.deliver_one(RequestFailed).request is other


def test_a_request_that_never_arrives() -> None:
    """The server must get no cancellation of a request that it never got."""
    pair = HTTPPair(revision=MODERN)
    call = called(pair)
    exchange = pair.exchange_of(call)
    exchange.cut()

    assert pair.deliver_one(RequestFailed).request is call
    assert exchange.server is None
    assert not exchange.deliver_request()
    assert pair.server_events == []


def test_what_the_client_aborts_disconnects() -> None:
    """In 2026-07-28 a client cancels by closing the connection of the request."""
    pair = HTTPPair(revision=MODERN)
    call = called(pair)
    request = pair.deliver_one(RequestReceived).request
    assert pair.client.cancel(call, now=pair.now)

    assert pair.deliver_one(RequestCancelled).request is request
    assert pair.exchanges == []


def test_time_passes_on_both_sides() -> None:
    """Deadlines must pass in order, and no message be delivered meanwhile."""
    pair = HTTPPair(now=100.0)
    call = pair.client.send_request("tools/call", {"name": "t"}, timeout=3, now=pair.now)
    assert pair.next_timeout() == 103.0
    pair.advance(5)

    assert pair.now == 105.0
    failed = pair.deliver_one(RequestFailed)
    assert (failed.request, failed.reason) == (call, FailureReason.TIMED_OUT)


def test_a_server_is_started_again() -> None:
    """The client must learn that its session is lost, and open another one."""
    pair = HTTPPair()
    (session,) = pair.server.sessions
    assert session.id == "session-1"
    pair.server = HTTPPair(connected=False).server
    call = called(pair)
    answer(pair)

    pair.deliver_one(SessionLost)
    assert pair.deliver_one(ResponseReceived).request is call
    assert len(pair.server.sessions) == 1


@pytest.mark.parametrize("n_calls", [0, 2])
def test_an_event_that_is_not_the_only_one_is_told(n_calls: int) -> None:
    """The failure must list the events that came instead."""
    pair = HTTPPair()
    for _ in range(n_calls):
        called(pair)

    with pytest.raises(AssertionError, match=f"{n_calls} events of the type RequestReceived"):
        pair.deliver_one(RequestReceived)


@BOTH_ERAS
def test_a_copy_goes_its_own_way(revision: str) -> None:
    """A test may try several continuations of one state."""
    pair = HTTPPair(revision=revision)
    call = called(pair)
    pair.deliver_one(RequestReceived)
    other, copied = copy.deepcopy((pair, call))
    other.exchange_of(copied).cut()

    assert pair.client.pending_requests == (call,)
    assert pair.exchange_of(call) in pair.exchanges
    assert plain(pair.client_events) == []


def test_a_ping_of_the_server_goes_by_the_stream() -> None:
    """A ping must wait for the GET stream, since it belongs to no request of the client."""
    pair = HTTPPair()
    (session,) = pair.server.sessions
    pair.server.ping(session, now=pair.now)

    pair.deliver_one(PingEnded)
    assert not [e for e in pair.client_events if isinstance(e, ProtocolViolation)]


def test_repr_names_the_request() -> None:
    """A failed test shows the repr."""
    pair = HTTPPair()

    assert repr(pair.exchange_of(called(pair))) == "<HTTPExchange POST /mcp>"


def test_a_pair_waits_for_what_the_application_looks_up() -> None:
    """Questions to the application are events, and must be in a copy of the pair too."""
    server = ServerEndpoint(
        info=SERVER_INFO,
        capabilities={"tools": {}},
        revisions=(MODERN,),
        tool_schema="ask",
        credentials="ask",
    )
    pair = HTTPPair(server=server, revision=MODERN, connected=False)
    pair.principal = "user"  # given with each request: nobody is asked
    pair.connect()
    pair.principal = None
    call = called(pair)
    asked = pair.deliver_one(CredentialsReceived)
    copied, question = copy.deepcopy((pair, asked))
    assert pair.server.admit(asked, "user")
    wanted = pair.deliver_one(ToolSchemaWanted)
    assert plain([wanted]) == [
        "ToolSchemaWanted(exchange=<ServerExchange POST /mcp open>, name='t')"
    ]
    assert pair.server.provide_tool_schema(wanted, None)
    answer(pair)
    assert pair.deliver_one(ResponseReceived).request is call

    assert copied.server.fail_lookup(question)
    assert copied.deliver_one(LookupEnded).exchange is question.exchange
    assert copied.server.open_questions == ()
