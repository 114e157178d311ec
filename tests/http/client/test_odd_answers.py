"""Responses of servers that are unusual, or come at an unusual time."""

import tracemalloc
from typing import Any

import pytest

from sansmcp import (
    CloseCause,
    Config,
    ConnectionClosed,
    ConnectionFailed,
    FailureCause,
    FailureReason,
    Phase,
    ProtocolViolation,
    Ready,
    RequestFailed,
    ResponseReceived,
)
from sansmcp.http import (
    AuthorizationRequired,
    ClientEndpoint,
    ClientExchange,
    ExchangePurpose,
    MessageRefused,
    SessionLost,
    StreamUnavailable,
)
from tests.support.http.client_endpoint import (
    ERAS,
    OK,
    ask,
    begun,
    event,
    events_of,
    exchanges_of,
    head,
    initialized,
    kinds,
    message_of,
    new_client,
    only,
    opened,
    respond,
    stream,
    take,
)
from tests.support.http.server_endpoint import LEGACY
from tests.support.modern import MODERN, discovered
from tests.support.wire import result


def old_client(**settings: Any) -> tuple[ClientEndpoint, ClientExchange]:
    """A client that speaks HTTP+SSE, and the exchange of its stream."""
    client = begun("2024-11-05", 0.0, **settings)
    respond(take(client), 405)
    listening = take(client)
    stream(listening, b"event: endpoint\ndata: /messages\n\n")
    initialize = take(client)
    respond(initialize, 202)
    id = message_of(initialize)["id"]
    listening.receive_data(event(initialized(id, "2024-11-05")))
    respond(take(client), 202)
    events_of(client)
    return client, listening


# ------------------------------------------------------------------- streams that are taken up


@pytest.mark.parametrize("id", ["", "a\x01b", "x" * 9000])
def test_a_stream_whose_place_was_taken_back_is_lost(id: str) -> None:
    """After an empty event id, a resumed stream would repeat the request or open the wrong
    stream."""
    client = opened(now=0.0)
    call, exchange = ask(client)
    stream(exchange, b"id: a\ndata:\n\n", ends=True)
    client.handle_timeout(1.0)
    stream(take(client), f"id: {id}\n\n".encode(), ends=True)
    client.handle_timeout(100.0)
    assert exchanges_of(client) == []
    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)


@pytest.mark.parametrize("is_resumed", [False, True])
def test_a_stream_whose_answer_was_too_long_is_not_taken_up(is_resumed: bool) -> None:
    """The server has sent its response, so resuming would never bring it. An event that may be
    the response must end the call when it crosses the limit."""
    client = opened(now=0.0, config=Config(max_message_bytes=500))
    call, exchange = ask(client)
    if is_resumed:
        stream(exchange, b"id: a\ndata:\n\n", ends=True)
        client.handle_timeout(1.0)
        exchange = take(client)
    stream(exchange, b"id: b\ndata: %b" % (b"x" * 600))
    violation, failed = events_of(client)
    assert isinstance(violation, ProtocolViolation)
    assert (violation.rule, violation.request) == ("OWN-001", call)
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (call, FailureReason.INVALID_ANSWER)
    assert failed.text == (
        "the response to tools/call has more than 500 bytes; "
        "the limit of Config.max_message_bytes is 500"
    )
    assert client.aborts() == [exchange]
    assert client.next_timeout() is None


def test_an_answer_over_the_limit_on_the_one_stream_of_an_old_server_ends_its_call() -> None:
    """All responses come on this stream, so the start of the event must tell whose it is."""
    client, listening = old_client(config=Config(max_message_bytes=1000))
    one, posted = ask(client)
    two, _ = ask(client)
    respond(posted, 202)
    large = event(result(one.id, {"content": [{"type": "text", "text": "x" * 1000}]}))
    listening.receive_data(large[:-9])
    failed = only(RequestFailed, events_of(client)[1:])
    assert (failed.request, failed.reason) == (one, FailureReason.INVALID_ANSWER)
    listening.receive_data(large[-9:] + event(result(two.id, OK)))
    assert only(ResponseReceived, events_of(client)).request is two
    listening.receive_data(b"data: " + b"x" * 2000)
    assert kinds(events_of(client)) == [ProtocolViolation]


def test_a_stream_is_not_taken_up_without_any_pause() -> None:
    """A server with `retry: 0` that ends each stream at once would keep both sides busy for
    ever."""
    client = opened(now=0.0, get=True)
    stream(take(client), b"retry: 0\n\n", ends=True)
    client.handle_timeout(0.05)
    assert exchanges_of(client) == []
    client.handle_timeout(0.1)
    assert take(client).purpose is ExchangePurpose.GET


# ------------------------------------------------------------------------- answers that cross


def test_a_post_may_be_refused_after_its_answer_came() -> None:
    """On HTTP+SSE a response and the status of its POST come separately, and the response
    decides."""
    client, listening = old_client()
    call, exchange = ask(client)
    head(exchange, 500, "text/plain")
    listening.receive_data(event(result(call.id, OK)))
    exchange.receive_data(b"oops")
    exchange.receive_end()
    (answered,) = events_of(client)
    assert isinstance(answered, ResponseReceived)
    assert client.exchanges == (listening,)


def test_the_end_of_one_that_waits_for_authorization_may_be_the_end_of_all() -> None:
    """The other waiting requests were ended twice, which raised."""
    config = Config(ping_interval=10.0, max_failed_pings=1)
    client = opened(now=0.0, authorize=True, config=config)
    client.handle_timeout(10.0)
    respond(take(client), 401)
    call, exchange = ask(client)
    respond(exchange, 401)
    events_of(client)
    assert client.give_up() == 2
    events = events_of(client)
    assert only(ConnectionClosed, events).cause is CloseCause.UNRESPONSIVE
    assert only(RequestFailed, events).request is call
    assert client.give_up() == 0


def test_an_answer_whose_id_is_refused_is_none() -> None:
    """With strict ids, a call must end instead of waiting for ever."""
    client = opened(config=Config(strict=True))
    call, exchange = ask(client)
    respond(exchange, body=result(str(call.id), OK))
    failed = only(RequestFailed, events_of(client)[1:])
    assert (failed.request, failed.reason) == (call, FailureReason.INVALID_ANSWER)


# ---------------------------------------------------------------------------- lost sessions


def test_a_session_is_opened_again_as_it_was_at_first() -> None:
    """A reopened session must use the first settings and time limit, or it might never end."""
    client = new_client(revisions=(LEGACY,), get_stream=False)
    client.start(meta={"example.com/a": 1}, timeout=30.0, now=0.0)
    first = take(client)
    respond(first, body=initialized(message_of(first)["id"]), more={"Mcp-Session-Id": "s"})
    respond(take(client), 202)
    _, exchange = ask(client)
    respond(exchange, 404, now=100.0)
    again = take(client)
    assert message_of(again)["params"] == message_of(first)["params"]
    events_of(client)
    client.handle_timeout(130.0)
    failed, lost, _ = events_of(client)
    assert isinstance(failed, ConnectionFailed)
    assert failed.cause is FailureCause.TIMED_OUT
    assert lost == SessionLost(start=None)
    client.reopen(now=200.0)
    assert message_of(take(client))["params"] == message_of(first)["params"]
    assert client.next_timeout() == 230.0


def test_a_server_that_knows_no_get_is_not_given_up() -> None:
    """A server that answers GET with 404 instead of 405 seemed to lose each session."""
    client = opened(get=True)
    respond(take(client), 404)
    initialize = take(client)
    id = message_of(initialize)["id"]
    respond(initialize, body=initialized(id), more={"Mcp-Session-Id": "s"})
    respond(take(client), 202)
    respond(take(client), 404)
    lost_session, ready, unavailable = events_of(client)
    assert isinstance(lost_session, SessionLost)
    assert isinstance(ready, Ready)
    assert isinstance(unavailable, StreamUnavailable)
    assert unavailable.status == 404
    call, exchange = ask(client)
    respond(exchange, body=result(call.id, OK))
    assert only(ResponseReceived, events_of(client)).request is call


def test_a_session_in_which_nothing_was_asked_may_be_lost_again() -> None:
    """A client that only listens was closed at the second restart of its server."""
    client = opened(now=0.0, get=True)
    for number in range(1, 4):
        now = 100.0 * number
        client.handle_timeout(now)
        listening = take(client)
        stream(listening, b"id: a\ndata:\n\n", ends=True)
        client.handle_timeout(now + 20.0)
        respond(take(client), 404)
        initialize = take(client)
        id = message_of(initialize)["id"]
        respond(initialize, body=initialized(id), more={"Mcp-Session-Id": "s"})
        respond(take(client), 202)
        assert [type(one) for one in events_of(client)] == [SessionLost, Ready]


# ------------------------------------------------------------------------------------- pings


def test_a_server_that_cannot_be_reached_is_pinged_until_it_is_given_up() -> None:
    """After the first lost ping no further one was sent, so the failure was never noticed."""
    config = Config(ping_interval=10.0, max_failed_pings=3)
    client = opened(now=0.0, config=config)
    for number in range(1, 4):
        assert events_of(client) == []
        client.handle_timeout(10.0 * number)
        take(client).receive_failure("refused")
    assert only(ConnectionClosed, events_of(client)).cause is CloseCause.UNRESPONSIVE


# ----------------------------------------------------------------------------- the era, and 401


@pytest.mark.parametrize("timeout", [None, 600.0])
def test_the_era_is_not_found_by_how_long_a_user_takes(timeout: float | None) -> None:
    """The time in which a user enters a token must not count towards the deadline of the probe."""
    client = new_client(authorize=True)
    client.start(timeout=timeout, probe_timeout=5.0, now=0.0)
    respond(take(client), 401)
    client.handle_timeout(500.0)
    assert client.authorize([("Authorization", "token")]) == 1
    probe = take(client)
    assert message_of(probe)["method"] == "server/discover"
    client.handle_timeout(504.0)
    assert exchanges_of(client) == []
    client.handle_timeout(505.0)
    assert message_of(take(client))["method"] == "initialize"
    assert client.next_timeout() == (None if timeout is None else timeout + 500.0)


def test_a_start_ends_when_the_server_has_used_up_its_time() -> None:
    """The time of a user, however long and often, must not count, but that of the server must."""
    client = new_client(authorize=True)
    client.start(timeout=10.0, probe_timeout=5.0, now=0.0)
    respond(take(client), 401, now=1.0)
    client.authorize([("Authorization", "token")], now=8.0)
    respond(take(client), 401)  # which an old server may say to a probe
    respond(take(client), 401, now=9.0)
    client.handle_timeout(100.0)
    client.authorize([("Authorization", "other")], now=109.0)
    take(client)
    client.handle_timeout(114.0)
    assert message_of(take(client))["method"] == "initialize"
    client.handle_timeout(116.5)
    assert client.phase is Phase.NEGOTIATING
    client.handle_timeout(117.0)
    failed = only(ConnectionFailed, events_of(client))
    assert failed.cause is FailureCause.TIMED_OUT


def test_without_a_time_for_the_probe_there_is_none_to_stop() -> None:
    """A probe without a deadline must end with its response."""
    client = new_client(authorize=True)
    client.start(now=0.0)
    respond(take(client), 401)
    client.authorize([("Authorization", "token")], now=8.0)
    probe = take(client)
    assert client.next_timeout() is None
    respond(probe, body=result(message_of(probe)["id"], discovered()))
    assert client.revision == MODERN


@pytest.mark.parametrize("revision", ERAS)
def test_what_is_shown_in_vain_is_shown_five_times(revision: str) -> None:
    """An application with one fixed token would repeat the request for ever."""
    client = opened(revision, authorize=True)
    call, exchange = ask(client)
    for _ in range(5):
        respond(exchange, 401)
        assert only(AuthorizationRequired, events_of(client)).kept
        client.authorize([("Authorization", "token")])
        exchange = take(client)
    respond(exchange, 401)
    required, failed = events_of(client)
    assert isinstance(required, AuthorizationRequired)
    assert not required.kept
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (call, FailureReason.REFUSED)


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("status", [403, 429, 503])
def test_a_start_that_is_refused_says_with_what_status(revision: str, status: int) -> None:
    """The failure claimed that the server speaks another revision, which the status does not
    say."""
    client = new_client(revisions=(revision,))
    start = client.start()
    respond(take(client), status, b"no")
    refused, failed, _ = events_of(client)
    assert refused == MessageRefused(status=status, request=start, excerpt=b"no")
    assert isinstance(failed, ConnectionFailed)
    assert failed.cause is FailureCause.REFUSED


# ---------------------------------------------------------------- responses that have no end


def unended(exchange: ClientExchange, status: int, **fields: str) -> None:
    """The head of a response, and at most half of its body."""
    more = {name.replace("_", "-"): value for name, value in fields.items()}
    head(exchange, status, "text/plain", more, now=0.0)
    exchange.receive_data(b"wait")


def test_nobody_waits_for_the_rest_of_what_is_of_no_use() -> None:
    """A response that never ends would hold its connection and its place among the requests."""
    client = opened(now=0.0, authorize=True, get=True)
    listening = take(client)
    unended(listening, 405)
    call, sent_elsewhere = ask(client)
    unended(sent_elsewhere, 307, location="/other")
    refused = take(client)
    unended(refused, 401)
    assert [sent_elsewhere.awaited, refused.awaited] == [False, False]
    assert client.authorize([("Authorization", "token")]) == 1
    respond(take(client), body=result(call.id, OK))
    client.send_notification("notifications/roots/list_changed")
    noted = take(client)
    unended(noted, 202)
    client.send_notification("notifications/roots/list_changed")
    not_noted = take(client)
    unended(not_noted, 400)
    events_of(client)
    client.handle_timeout(5.0)
    assert client.aborts() == [listening, sent_elsewhere, refused, noted, not_noted]
    assert events_of(client) == [MessageRefused(status=400)]
    assert (client.exchanges, client.next_timeout()) == ((), None)


def test_what_ends_in_time_is_left_alone() -> None:
    """The connection of a complete response can be used again."""
    client = opened(now=0.0, authorize=True)
    _, exchange = ask(client)
    unended(exchange, 401)
    exchange.receive_end(now=1.0)
    client.handle_timeout(5.0)
    assert client.aborts() == []
    client.close()
    goodbye = take(client)
    unended(goodbye, 200)
    client.handle_timeout(10.0)
    assert client.aborts() == [goodbye]


def test_a_post_of_http_sse_that_has_no_end_is_closed_after_its_answer() -> None:
    """The response comes on the stream, and the server may never end the POST."""
    client, listening = old_client()
    call, exchange = ask(client)
    listening.receive_data(event(result(call.id, OK)))
    assert (exchange.awaited, client.aborts()) == (False, [])
    client.handle_timeout(5.0)
    assert client.aborts() == [exchange]
    assert client.exchanges == (listening,)


def test_a_call_that_was_cancelled_before_it_was_sent_leaves_nothing() -> None:
    """A cancelled call must leave the queue, and its message the memory."""
    client = opened()
    client.send_request("tools/list")
    for _ in range(100):
        assert client.cancel(client.send_request("tools/call", {"name": "x" * 1000}))
    assert message_of(take(client))["method"] == "tools/list"
    assert client.unsent_bytes == 0


def test_what_was_said_in_vain_is_not_kept() -> None:
    """A thousand unanswered calls are remembered for late responses, but without their messages."""
    client = opened(config=Config(max_late_answers=1_000))
    tracemalloc.start()
    for _ in range(100):
        call, exchange = ask(client, params={"name": "t", "arguments": {"x": "y" * 100_000}})
        assert client.cancel(call)
        respond(take(client), 202)
        del exchange, call
    events_of(client)
    client.aborts()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1_000_000


# ------------------------------------------------------------------------- bodies of no interest


@pytest.mark.parametrize(
    ("status", "fields", "kind"),
    [
        (401, {"WWW-Authenticate": "Bearer"}, AuthorizationRequired),
        (404, {}, SessionLost),
    ],
)
def test_a_status_counts_in_whatever_form_its_body_is(
    status: int, fields: dict[str, str], kind: type
) -> None:
    """A proxy may compress its error pages, which are not read."""
    client = opened()
    _, exchange = ask(client)
    respond(exchange, status, b"\x1f\x8b", {"Content-Encoding": "gzip", **fields})
    assert isinstance(events_of(client)[0], kind)


def test_a_redirect_counts_in_whatever_form_its_body_is() -> None:
    """A redirect must be followed whatever the coding of its body is."""
    client = opened()
    _, exchange = ask(client)
    respond(exchange, 307, b"\x1f\x8b", {"Content-Encoding": "gzip", "Location": "/other"})
    again = take(client)
    assert (again.purpose, again.target) == (ExchangePurpose.POST, "/other")
