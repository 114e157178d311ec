"""The responses of servers to a POST in every form, and how each of them ends the request."""

import json
from typing import Any

import pytest

from sansmcp import (
    Config,
    ConnectionClosed,
    ErrorReceived,
    ErrorWithoutIdReceived,
    FailureReason,
    InputRequired,
    JSONObject,
    ListingEnd,
    ListingEnded,
    LocalProtocolError,
    MessageIgnored,
    NotificationReceived,
    PingEnded,
    ProgressReceived,
    ProtocolViolation,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    SubscriptionEnd,
    SubscriptionEnded,
)
from sansmcp.http import ClientExchange, ExchangePurpose, MessageRefused, MessageUndelivered
from tests.support.http.client_endpoint import (
    OK,
    answer,
    ask,
    event,
    events_of,
    exchanges_of,
    fields_of,
    head,
    kinds,
    message_of,
    only,
    opened,
    refusal,
    respond,
    stream,
    take,
)
from tests.support.http.server_endpoint import CHANGED, LEGACY, SSE, progressing
from tests.support.modern import FORM, MODERN, input_required
from tests.support.wire import call as request
from tests.support.wire import error, note, result

ERAS = pytest.mark.parametrize("revision", [LEGACY, MODERN])


def failure(client: Any) -> tuple[FailureReason, list[str]]:
    """The failure of the one call, and the rules that were broken."""
    events = events_of(client)
    rules = [one.rule for one in events if isinstance(one, ProtocolViolation)]
    return only(RequestFailed, events).reason, rules


# --------------------------------------------------------------------------------- good answers


@ERAS
def test_every_post_takes_both_forms(revision: str) -> None:
    """A server chooses the form for each request, so Accept must name both (HTTP-009)."""
    client = opened(revision)
    call, exchange = ask(client)
    fields = fields_of(exchange)

    assert (exchange.method, exchange.purpose) == ("POST", ExchangePurpose.POST)
    assert (exchange.url, exchange.target) == ("http://localhost/mcp", "/mcp")
    assert (exchange.authority, exchange.origin.port) == ("localhost", 80)
    assert exchange.request is call
    assert fields["accept"] == "application/json, text/event-stream"
    assert fields["content-type"] == "application/json"
    assert fields["accept-encoding"] == "identity"
    assert message_of(exchange)["method"] == "tools/call"
    assert client.exchanges == (exchange,)
    assert client.unsent_bytes == 0


@ERAS
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_body_may_come_in_any_pieces(revision: str, size: int) -> None:
    """The network may cut the body anywhere."""
    client = opened(revision)
    call, exchange = ask(client)
    body = json.dumps(answer(client, call)).encode()
    head(exchange, 200, "application/json")
    for at in range(0, len(body), size):
        exchange.receive_data(memoryview(body)[at : at + size])
    assert events_of(client) == []
    exchange.receive_end()
    assert only(ResponseReceived, events_of(client)).request is call
    assert exchange.over
    assert not exchange.is_stream

    call, exchange = ask(client)
    body = event(answer(client, call))
    head(exchange, 200, SSE)
    assert exchange.is_stream
    for at in range(0, len(body), size):
        exchange.receive_data(bytearray(body[at : at + size]))
    assert only(ResponseReceived, events_of(client)).request is call


def test_a_stream_brings_what_comes_before_the_answer() -> None:
    """Progress and questions of the server come before the response; each answer to a question
    is a POST of its own."""
    client = opened(LEGACY)
    call, exchange = ask(client, progress=True)
    stream(exchange, event(note("notifications/progress", {"progressToken": 2, "progress": 1})))
    stream_asks = event(request(1, "roots/list"))
    exchange.receive_data(stream_asks)
    progress, asked = events_of(client)
    assert isinstance(progress, ProgressReceived)
    assert isinstance(asked, RequestReceived)
    assert len(client.open_requests) == 1

    assert client.send_result(asked.request, {"roots": []})
    posted = take(client)
    assert message_of(posted) == result(1, {"roots": []})
    respond(posted, 202)
    exchange.receive_data(event(answer(client, call)))
    assert kinds(events_of(client)) == [ResponseReceived]
    assert not client.open_requests


def test_a_request_of_the_server_may_be_answered_with_an_error_or_progress() -> None:
    """Each error or progress notification must be a POST of its own."""
    client = opened(LEGACY)
    _, exchange = ask(client)
    stream(exchange, event(request(1, "roots/list", {"_meta": {"progressToken": "p"}})))
    asked = only(RequestReceived, events_of(client)).request
    assert client.send_progress(asked, 1)
    assert message_of(take(client))["method"] == "notifications/progress"
    assert client.send_error(asked, -1, "no")
    assert message_of(take(client))["error"]["code"] == -1


def test_a_batch_of_the_server_is_answered_with_one() -> None:
    """In 2025-03-26 a batch of the server must be answered with one batch (HTTP-010)."""
    client = opened("2025-03-26")
    _, exchange = ask(client)
    stream(exchange, event([request(1, "ping"), request(2, "roots/list"), CHANGED]))
    asked = only(RequestReceived, events_of(client)).request
    assert exchanges_of(client) == []
    client.send_result(asked, {"roots": []})
    posted = take(client)
    assert message_of(posted) == [result(1, {}), result(2, {"roots": []})]
    posted.receive_failure("reset")
    assert events_of(client) == [MessageUndelivered(session=None, is_answer=True)]


def test_an_answer_names_the_exchange_that_waits_for_it() -> None:
    """Who has few connections can tell which calls end only when a message is sent."""
    client = opened(LEGACY, get=True)
    listening = take(client)
    stream(listening, event(request(1, "roots/list")))
    _, exchange = ask(client)
    wanting_progress = request(2, "roots/list", {"_meta": {"progressToken": "p"}})
    stream(exchange, event(wanting_progress), event(request(3, "roots/list")))
    requests = [one for one in events_of(client) if isinstance(one, RequestReceived)]
    beside, first, second = [one.request for one in requests]
    client.send_progress(first, 1)
    assert take(client).asker is None  # the server does not wait for it
    client.send_result(first, {"roots": []})
    assert take(client).asker is exchange
    client.send_result(beside, {"roots": []})
    assert take(client).asker is None
    client.send_notification("notifications/roots/list_changed")
    assert take(client).asker is None
    exchange.receive_failure("reset")
    client.send_result(second, {"roots": []})
    assert take(client).asker is None
    assert (exchange.asker, listening.asker) == (None, None)


def test_a_stream_that_is_resumed_can_be_told_from_others() -> None:
    """Who has few connections can close it, and nothing is lost."""
    client = opened(LEGACY, get=True, config=Config(max_reconnects=1))
    listening = take(client)
    assert listening.is_resumable
    _, exchange = ask(client)
    assert not exchange.is_resumable
    stream(exchange, event(CHANGED))
    assert not exchange.is_resumable  # after which event?
    exchange.receive_data(event(CHANGED, id="1"))
    assert exchange.is_resumable
    exchange.receive_failure("reset")
    assert not exchange.is_resumable  # is over
    client.handle_timeout(2)
    resumed = take(client)
    assert resumed.is_resumable
    stream(resumed)
    assert not resumed.is_resumable  # for the last time, unless it brings something
    resumed.receive_data(event(CHANGED, id="2"))
    assert resumed.is_resumable
    listening.receive_end()
    assert not listening.is_resumable
    client.close()
    (deleting,) = [one for one in exchanges_of(client) if one.method == "DELETE"]
    assert not deleting.is_resumable


def test_a_modern_stream_is_not_resumed() -> None:
    """Its events have no ids that count."""
    client = opened(MODERN)
    _, exchange = ask(client)
    stream(exchange, event(note("notifications/message"), id="1"))
    assert not exchange.is_resumable


def test_what_the_server_asks_is_answered_while_the_limit_is_reached() -> None:
    """The call waits for the answer, so the limit on exchanges must not hold it back."""
    client = opened(config=Config(max_requests=1), get=True)
    listening = take(client)
    call, exchange = ask(client)
    stream(listening)
    stream(exchange, event(request(1, "roots/list")))
    client.send_result(only(RequestReceived, events_of(client)).request, {"roots": []})
    respond(take(client), 202)
    exchange.receive_data(event(answer(client, call)))
    assert kinds(events_of(client)) == [ResponseReceived]


def test_a_server_may_take_its_time_to_end_a_stream() -> None:
    """A stream must be closed some time after its response, or it would keep a connection."""
    client = opened(LEGACY, now=0.0)
    call, exchange = ask(client)
    stream(exchange, event(answer(client, call)), now=1.0)
    assert only(ResponseReceived, events_of(client)).request is call
    assert not exchange.over
    assert client.next_timeout() == 6.0
    client.handle_timeout(6.0)
    assert exchange.aborted
    assert client.aborts() == [exchange]
    assert client.aborts() == []
    assert client.exchanges == ()


def test_without_a_clock_such_a_stream_is_left_alone() -> None:
    """Without a clock, the age of the stream is unknown."""
    client = opened(LEGACY, now=None)
    call, exchange = ask(client)
    stream(exchange, event(answer(client, call)))
    assert client.next_timeout() is None
    exchange.receive_end()
    assert client.exchanges == ()


@ERAS
def test_an_answer_on_another_stream_ends_the_exchange(revision: str) -> None:
    """The response may arrive on any stream, and ends the wait for it."""
    client = opened(revision)
    first, exchange = ask(client)
    second, other = ask(client)
    stream(exchange, event(answer(client, second)))

    assert only(ResponseReceived, events_of(client)).request is second
    assert other.aborted
    exchange.receive_data(event(answer(client, first)))
    assert only(ResponseReceived, events_of(client)).request is first


def test_an_answer_names_its_request_in_another_type() -> None:
    """A response whose id has another type must be matched, and reported."""
    client = opened(MODERN)
    call, exchange = ask(client)
    respond(exchange, body={**answer(client, call), "id": str(call.id)})
    events = events_of(client)
    assert only(ProtocolViolation, events).rule == "OWN-019"
    assert only(ResponseReceived, events).request is call


def test_questions_are_answered_with_the_same_fields() -> None:
    """The second round must have the headers of the first one."""
    client = opened(MODERN, capabilities={"elicitation": {}})
    call, exchange = ask(client)
    respond(exchange, body=input_required(call.id, {"q": FORM}, "state"))
    asked = only(InputRequired, events_of(client))
    renewed = client.provide_input(asked.request, {"q": {"action": "decline"}})
    again = take(client)
    assert fields_of(again) == fields_of(exchange)
    assert message_of(again)["params"]["requestState"] == "state"
    respond(again, body=answer(client, renewed))
    assert only(ResponseReceived, events_of(client)).request is renewed
    with pytest.raises(LocalProtocolError, match="nothing is asked"):
        client.provide_input(renewed, {})


@pytest.mark.parametrize("is_stream", [True, False])
def test_a_request_that_is_to_be_sent_again_is(is_stream: bool) -> None:
    """A round without questions must repeat the call, and the old stream is closed."""
    client = opened(MODERN, now=0.0)
    call, exchange = ask(client)
    again = input_required(call.id, None, "state")
    if is_stream:
        stream(exchange, event(again))
    else:
        respond(exchange, body=again)
    second = take(client)
    assert fields_of(second) == fields_of(exchange)
    assert message_of(second)["params"]["requestState"] == "state"
    assert second.request is call
    assert client.next_timeout() == (5.0 if is_stream else None)
    respond(second, body=answer(client, call))
    assert only(ResponseReceived, events_of(client)).request is call
    if is_stream:
        client.handle_timeout(5.0)
        assert client.aborts() == [exchange]
    assert client.exchanges == ()


def test_listings_pings_and_pages_go_the_same_way() -> None:
    """Each exchange must name its purpose, and a refusal must end the right request."""
    client = opened(LEGACY, now=0.0)
    listing = client.send_paginated("tools/list", auto=False)
    exchange = take(client)
    assert exchange.request is listing
    respond(exchange, body=result(2, {"tools": [], "nextCursor": "c"}))
    assert client.next_page(listing)
    respond(take(client), 500)
    _, refused, ended = events_of(client)
    assert isinstance(refused, MessageRefused)
    assert (refused.request, refused.status) == (listing, 500)
    assert isinstance(ended, ListingEnded)
    assert (ended.reason, ended.code) == (ListingEnd.REFUSED, None)
    ping = client.ping(timeout=3.0, now=1.0)
    respond(take(client), body=result(4, {}), now=2.0)
    assert only(PingEnded, events_of(client)) == PingEnded(ping=ping, seconds=1.0)


# ------------------------------------------------------------------------------------ no answers


@ERAS
@pytest.mark.parametrize(
    ("form", "body"),
    [
        ("text/html", b"<html>"),
        (None, b""),
        ("application/jsonx", b"{}"),
    ],
)
def test_an_answer_in_another_form_is_none(revision: str, form: str | None, body: bytes) -> None:
    """A login page is no response, and must not be read."""
    client = opened(revision)
    _, exchange = ask(client)
    respond(exchange, 200, body, form=form)
    assert failure(client) == (FailureReason.INVALID_ANSWER, ["HTTP-018"])
    assert client.aborts() == [exchange]


@ERAS
def test_a_request_is_not_answered_with_accepted(revision: str) -> None:
    """202 promises no response, so a request would wait for ever."""
    client = opened(revision)
    _, exchange = ask(client)
    respond(exchange, 202)
    assert failure(client) == (FailureReason.INVALID_ANSWER, ["HTTP-018"])


@ERAS
@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[]", b"7", b'{"jsonrpc":"2.0"}'])
def test_a_body_that_holds_no_answer_ends_the_call(revision: str, body: bytes) -> None:
    """No response can come after a body without one."""
    client = opened(revision)
    _, exchange = ask(client)
    respond(exchange, 200, body, form="application/json")
    reason, rules = failure(client)
    assert reason is FailureReason.INVALID_ANSWER
    assert rules


@ERAS
def test_a_body_that_answers_another_request_ends_the_call(revision: str) -> None:
    """A response with another id must not be taken for the response to this call."""
    client = opened(revision)
    _, exchange = ask(client)
    respond(exchange, body=result(77, OK))
    assert failure(client)[0] is FailureReason.INVALID_ANSWER


def test_an_error_that_names_no_request_ends_the_call() -> None:
    """An error without an id must be reported as it came, and the call must end."""
    client = opened(LEGACY)
    _, exchange = ask(client)
    respond(exchange, body={"jsonrpc": "2.0", "error": {"code": -32700, "message": "no"}})
    assert kinds(events_of(client)) == [ErrorWithoutIdReceived, RequestFailed]


@ERAS
def test_a_body_over_the_limit_is_not_kept(revision: str) -> None:
    """A body must be given up when it crosses the limit, since it may never end."""
    client = opened(revision, config=Config(max_message_bytes=1000))
    _, exchange = ask(client)
    head(exchange, 200, "application/json")
    exchange.receive_data(b" " * 999)
    assert events_of(client) == []
    exchange.receive_data(b"xx")
    exchange.receive_data(b"more")
    assert failure(client) == (FailureReason.INVALID_ANSWER, ["OWN-001"])
    assert client.aborts() == [exchange]


@ERAS
def test_a_body_over_the_limit_is_told_with_its_size_where_the_head_tells_it(revision: str) -> None:
    """A user who raises the limit needs the size, although the head may be wrong."""
    for said, size in ((b"2000", "2000"), (b"900", "more than 1000"), (b"no", "more than 1000")):
        client = opened(revision, config=Config(max_message_bytes=1000))
        _, exchange = ask(client)
        exchange.receive_head(
            200, [(b"Content-Type", b"application/json"), (b"Content-Length", said)]
        )
        exchange.receive_data(b" " * 1001)
        failed = only(RequestFailed, events_of(client)[1:])
        assert failed.text == (
            f"tools/call: the body has {size} bytes; the limit of Config.max_message_bytes is 1000"
        )


def test_a_body_may_be_over_the_limit_at_once() -> None:
    """The report must show how the body begins, also if it comes in one piece."""
    client = opened(LEGACY, config=Config(max_message_bytes=1000))
    client.send_notification("notifications/roots/list_changed")
    exchange = take(client)
    head(exchange, 400, "text/plain")
    exchange.receive_data(b"x" * 1001)
    violation, refused = events_of(client)
    assert isinstance(violation, ProtocolViolation)
    assert violation.excerpt == b"x" * 120 + b" ... (cut: more than 1000 bytes in all)"
    assert refused == MessageRefused(status=400)


def test_a_notification_over_the_limit_is_passed_over() -> None:
    """A long event that is known to be no response must not end the call."""
    client = opened(MODERN, config=Config(max_message_bytes=1000))
    call, exchange = ask(client)
    stream(exchange, event(note("notifications/x", {"y": "z" * 1000})), event(answer(client, call)))
    events = events_of(client)
    assert only(ProtocolViolation, events).rule == "OWN-001"
    assert only(ResponseReceived, events).request is call


def test_a_stream_of_comments_only_ends_with_the_timeout() -> None:
    """Comments must not restart the timeout, because they are no progress."""
    client = opened(MODERN, now=0.0)
    call, exchange = ask(client, timeout=5.0, now=0.0)
    stream(exchange)
    for second in range(1, 5):
        exchange.receive_data(b": still here\n\n", now=float(second))
    client.handle_timeout(5.0)
    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.reason) == (call, FailureReason.TIMED_OUT)
    assert client.aborts() == [exchange]
    exchange.receive_data(event(answer(client, call)))
    exchange.receive_end()
    exchange.receive_failure("late")
    head(exchange, 200)
    assert events_of(client) == []


@ERAS
@pytest.mark.parametrize("coding", ["gzip", "BR", "identity, gzip"])
def test_a_coding_that_was_not_asked_for_is_not_read(revision: str, coding: str) -> None:
    """A compressed body may be of any size once it is unpacked, and the client asked for none."""
    client = opened(revision)
    _, exchange = ask(client)
    respond(exchange, body=b"\x1f\x8b", form="application/json", more={"content-encoding": coding})
    assert failure(client) == (FailureReason.INVALID_ANSWER, ["OWN-042"])
    assert client.aborts() == [exchange]


def test_the_coding_that_is_none_is_read() -> None:
    """`identity` means that the body is not encoded."""
    client = opened(MODERN)
    call, exchange = ask(client)
    more = {"Content-Encoding": "Identity", "Server": "x", "X-Odd": "y", "Mcp-Session-Id": "no"}
    respond(exchange, body=answer(client, call), more=more)
    assert kinds(events_of(client)) == [ResponseReceived]


# --------------------------------------------------------------------------------- the network


@ERAS
def test_a_connection_that_fails_loses_the_call(revision: str) -> None:
    """The server may have run the call, so it must not be sent twice."""
    client = opened(revision)
    call, exchange = ask(client)
    exchange.receive_failure("connection refused")
    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)
    assert "connection refused" in failed.text
    assert exchanges_of(client) == []
    assert client.exchanges == ()


@ERAS
def test_an_answer_that_breaks_off_loses_the_call(revision: str) -> None:
    """An incomplete body must not be taken for a response."""
    client = opened(revision)
    _, exchange = ask(client)
    head(exchange, 200, "application/json")
    exchange.receive_data(b"{")
    exchange.receive_failure("connection reset")
    assert failure(client) == (FailureReason.LOST, [])


@ERAS
def test_a_response_without_a_head_is_a_broken_one(revision: str) -> None:
    """Servers close connections that were idle for long."""
    client = opened(revision)
    _, exchange = ask(client)
    exchange.receive_end()
    assert failure(client) == (FailureReason.LOST, [])


def test_a_head_may_be_announced() -> None:
    """Informational (1xx) responses come before the response itself."""
    client = opened(MODERN)
    call, exchange = ask(client)
    head(exchange, 100)
    head(exchange, 103)
    respond(exchange, body=answer(client, call))
    assert kinds(events_of(client)) == [ResponseReceived]


def test_a_second_head_changes_nothing() -> None:
    """An adapter that reports a head twice must not break the exchange."""
    client = opened(MODERN)
    call, exchange = ask(client)
    head(exchange, 200, "application/json")
    head(exchange, 404)
    exchange.receive_data(json.dumps(answer(client, call)).encode())
    exchange.receive_end()
    assert kinds(events_of(client)) == [ResponseReceived]


@pytest.mark.parametrize("is_answer", [True, False])
def test_what_has_no_answer_may_be_lost(is_answer: bool) -> None:
    """A notification has no ending, so its loss must be an event."""
    client = opened(LEGACY)
    if is_answer:
        _, exchange = ask(client)
        stream(exchange, event(request(1, "roots/list")))
        client.send_result(only(RequestReceived, events_of(client)).request, {"roots": []})
    else:
        client.send_notification("notifications/roots/list_changed")
    take(client).receive_failure("connection refused")
    assert events_of(client) == [MessageUndelivered(session=None, is_answer=is_answer)]


def test_a_subscription_may_be_refused_or_lost() -> None:
    """The handle of a subscription must end with the right reason in each case."""
    client = opened(MODERN)
    subscription = client.listen({"toolsListChanged": True})
    respond(take(client), 500)
    ended = only(SubscriptionEnded, events_of(client)[1:])
    assert (ended.subscription, ended.reason) == (subscription, SubscriptionEnd.REFUSED)
    client.listen({"toolsListChanged": True})
    take(client).receive_failure("reset")
    assert only(SubscriptionEnded, events_of(client)).reason is SubscriptionEnd.LOST


# ------------------------------------------------------------------------------------ refusals


@ERAS
@pytest.mark.parametrize("status", [400, 404, 500])
@pytest.mark.parametrize("id", ["right", None, "missing"])
def test_an_error_in_a_refusal_is_the_answer(revision: str, status: int, id: str | None) -> None:
    """Many servers leave out the id of an error; the exchange tells which request it answers."""
    client = opened(revision, session=None)
    call, exchange = ask(client)
    body: JSONObject = refusal(call, -32601, {"x": 1})
    if id is None:
        body["id"] = None
    elif id == "missing":
        del body["id"]
    respond(exchange, status, body)
    received = only(ErrorReceived, events_of(client))
    assert (received.request, received.code, received.data) == (call, -32601, {"x": 1})


def test_an_error_in_a_refusal_with_another_id_is_the_answer_too() -> None:
    """The error can only answer this request; its wrong id must be reported."""
    client = opened(MODERN)
    call, exchange = ask(client)
    respond(exchange, 400, error(99, -32602))
    violation, received = events_of(client)
    assert isinstance(violation, ProtocolViolation)
    assert (violation.rule, violation.tolerated) == ("OWN-019", True)
    assert isinstance(received, ErrorReceived)
    assert received.request is call


@ERAS
@pytest.mark.parametrize(
    "body", [b"", b"gone", b'{"error":"x"}', b'{"error":{"code":"1"}}', b'{"result":{}}', b"[1]"]
)
def test_a_refusal_without_an_error_is_told_by_its_status(revision: str, body: bytes) -> None:
    """A status alone must not look like a JSON-RPC error of the server."""
    client = opened(revision)
    call, exchange = ask(client)
    respond(exchange, 500, body, form="text/plain")
    refused, failed = events_of(client)
    assert refused == MessageRefused(status=500, request=call, excerpt=body)
    assert isinstance(failed, RequestFailed)
    assert failed.reason is FailureReason.REFUSED
    assert "500" in failed.text


@pytest.mark.parametrize(
    ("fields", "at", "wait"),
    [
        ({"retry-after": "7"}, None, 7.0),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, 946_684_789.0, 10.0),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, 946_684_800.0, 0.0),
        (
            {
                "retry-after": "Tue, 29 Feb 2000 00:00:01 GMT",
                "date": "Mon, 28 Feb 2000 23:59:59 GMT",
            },
            None,
            2.0,
        ),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, None, None),
        ({"retry-after": "soon"}, 0.0, None),
        ({"retry-after": "-1"}, 0.0, None),
        ({}, None, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_server_says_when_to_come_again(
    status: int, fields: dict[str, str], at: float | None, wait: float | None
) -> None:
    """Retry-After has seconds, or a date that needs the current time."""
    client = opened(MODERN)
    call, exchange = ask(client)
    respond(exchange, status, b"busy", fields, at=at)
    refused, failed = events_of(client)
    assert isinstance(refused, MessageRefused)
    assert (refused.status, refused.retry_after) == (status, wait)
    assert isinstance(failed, RequestFailed)
    assert (failed.request, "asked again" in failed.text) == (call, wait is not None)
    assert exchanges_of(client) == []


def test_an_error_may_come_with_a_time_to_wait() -> None:
    """The request must end with the error, and an event must have the time of Retry-After."""
    client = opened(MODERN)
    call, exchange = ask(client)
    respond(exchange, 503, refusal(call, -32603), {"Retry-After": "1"})
    refused, received = events_of(client)
    assert isinstance(refused, MessageRefused)
    assert (refused.code, refused.retry_after) == (-32603, 1.0)
    assert isinstance(received, ErrorReceived)


def test_a_refusal_that_breaks_off_loses_what_it_was_for() -> None:
    """An incomplete refusal must end its request as lost."""
    client = opened(MODERN)
    _, exchange = ask(client)
    head(exchange, 400, "application/json")
    exchange.receive_failure("reset")
    assert failure(client) == (FailureReason.LOST, [])
    client.send_notification("custom/note")
    exchange = take(client)
    head(exchange, 400, "application/json")
    exchange.receive_failure("reset")
    assert events_of(client) == [MessageRefused(status=400)]


@pytest.mark.parametrize(("status", "rules"), [(200, ["HTTP-014"]), (204, ["HTTP-014"]), (202, [])])
def test_a_notification_is_accepted_with_202(status: int, rules: list[str]) -> None:
    """Servers that accept a notification with another 2xx status must be understood."""
    client = opened(LEGACY)
    client.send_notification("notifications/roots/list_changed")
    exchange = take(client)
    head(exchange, status, "text/plain")
    exchange.receive_data(b"Accepted")
    exchange.receive_end()
    violations = [one for one in events_of(client) if isinstance(one, ProtocolViolation)]
    assert [(one.rule, one.tolerated) for one in violations] == [(rule, True) for rule in rules]
    assert client.exchanges == ()


def test_a_notification_is_not_answered_with_a_stream() -> None:
    """A stream that answers a notification must be closed, because it would never end."""
    client = opened(MODERN)
    client.send_notification("custom/note")
    exchange = take(client)
    stream(exchange)
    assert client.aborts() == [exchange]
    assert events_of(client) == []


def test_a_body_nobody_reads_may_break_off() -> None:
    """Only the status matters, so an incomplete body must not be a fault."""
    client = opened(LEGACY)
    client.send_notification("notifications/roots/list_changed")
    exchange = take(client)
    head(exchange, 202)
    exchange.receive_failure("reset")
    assert events_of(client) == []
    assert client.exchanges == ()


# -------------------------------------------------------------------------------- cancellation


def test_a_modern_request_is_cancelled_by_the_end_of_its_exchange() -> None:
    """The server sees the disconnect, and 2026-07-28 has no notification for it on HTTP
    (CANC-017)."""
    client = opened(MODERN)
    call, exchange = ask(client)
    assert client.cancel(call, reason="user")
    assert exchange.aborted
    assert client.aborts() == [exchange]
    assert only(RequestFailed, events_of(client)).reason is FailureReason.CANCELLED
    assert exchanges_of(client) == []
    assert not client.cancel(call)


def test_a_legacy_request_is_cancelled_by_a_notification() -> None:
    """In legacy revisions a disconnect does not cancel the request (SSE-013)."""
    client = opened(LEGACY)
    call, exchange = ask(client)
    assert client.cancel(call, reason="user")
    assert client.aborts() == [exchange]
    posted = take(client)
    assert posted.purpose is ExchangePurpose.CANCEL
    assert message_of(posted)["params"] == {"requestId": call.id, "reason": "user"}
    assert "mcp-session-id" in fields_of(posted)
    respond(posted, 202)
    assert only(RequestFailed, events_of(client)).reason is FailureReason.CANCELLED


@ERAS
def test_what_was_never_sent_is_taken_back(revision: str) -> None:
    """A request that was not sent yet must be dropped without a cancellation."""
    client = opened(revision)
    call = client.send_request("tools/call", {"name": "t"})
    assert client.unsent_bytes > 0
    assert client.cancel(call)
    assert client.unsent_bytes == 0
    assert exchanges_of(client) == []
    assert client.aborts() == []


def test_a_request_that_times_out_is_cancelled() -> None:
    """A timeout must cancel the request in the form of its era."""
    client = opened(LEGACY, now=0.0)
    _, exchange = ask(client, timeout=2.0)
    client.handle_timeout(2.0)
    assert client.aborts() == [exchange]
    assert take(client).purpose is ExchangePurpose.CANCEL


# ---------------------------------------------------------------------------------------- limits


def test_messages_without_an_answer_wait_while_too_many_are_under_way() -> None:
    """A server that does not respond must not make a client open connections without end."""
    client = opened(LEGACY, config=Config(max_requests=2))
    for _ in range(16):
        client.send_notification("notifications/roots/list_changed")
    under_way = exchanges_of(client)
    assert len(under_way) == 12
    assert client.next_exchange() is None
    waiting = client.unsent_bytes
    respond(under_way[0], 202)
    assert len(exchanges_of(client)) == 1
    assert client.unsent_bytes < waiting


def test_a_server_that_takes_nothing_ends_the_connection() -> None:
    """Unsent messages are bounded, as on any transport."""
    client = opened(LEGACY, config=Config(max_unsent_bytes=400))
    call = client.send_request("tools/call", {"name": "t"})
    client.send_notification("notifications/roots/list_changed", {"x": "y" * 300})
    events = events_of(client)
    assert [one.rule for one in events if isinstance(one, ProtocolViolation)] == ["OWN-012"]
    assert only(RequestFailed, events).request is call
    assert [one.method for one in exchanges_of(client)] == ["DELETE"]


def test_a_request_that_would_never_fit_raises() -> None:
    """A request over the limit must raise, and change nothing."""
    client = opened(LEGACY, config=Config(max_unsent_bytes=400), session=None)
    with pytest.raises(LocalProtocolError, match=r"has 467 bytes.* is 400") as caught:
        client.send_request("tools/call", {"name": "t" * 400})
    assert caught.value.rule == "OWN-044"
    assert events_of(client) == []
    assert exchanges_of(client) == []


def test_a_request_that_finds_no_room_ends_the_connection() -> None:
    """The request itself must have its ending too."""
    client = opened(LEGACY, config=Config(max_unsent_bytes=400), session=None)
    calls = [client.send_request("tools/call", {"name": "t" * 200}) for _ in range(2)]
    failed = [one for one in events_of(client) if isinstance(one, RequestFailed)]
    assert [one.request for one in failed] == calls
    assert exchanges_of(client) == []


def test_a_server_that_makes_the_client_talk_ends_the_connection() -> None:
    """Automatic responses of the library must count towards the limit."""
    client = opened(LEGACY, config=Config(max_unsent_bytes=400), session=None)
    _, exchange = ask(client)
    stream(exchange, event(request("y" * 400, "ping")))  # to it there is no answer that fits
    assert ConnectionClosed not in kinds(events_of(client))
    stream(exchange, *(event(request("x" * 200 + str(id), "ping")) for id in range(2)))
    assert ConnectionClosed in kinds(events_of(client))
    assert exchanges_of(client) == []


def test_events_that_nobody_takes_are_a_reason_to_pause() -> None:
    """`paused` is advice to stop reading: no message may be refused because of it."""
    client = opened(MODERN, config=Config(max_events=1))
    assert not client.paused
    _, exchange = ask(client)
    stream(exchange, event(progressing()) * 2)
    assert client.paused


def test_events_that_hold_much_are_a_reason_to_pause() -> None:
    """Each event of a stream must count with the size of its message."""
    client = opened(MODERN, config=Config(max_event_bytes=500))
    events_of(client)
    _, exchange = ask(client)
    stream(exchange, event(progressing()))
    assert not client.paused
    stream(exchange, event(note("notifications/message", {"level": "info", "data": "x" * 500})))
    assert client.paused
    events_of(client)
    assert not client.paused


def test_an_exchange_shows_no_secrets() -> None:
    """The repr shows neither headers nor the query of the URL: both may hold secrets."""
    client = opened(MODERN, url="https://host:8443/mcp?key=secret")
    exchange: ClientExchange
    _, exchange = ask(client)
    assert repr(exchange) == "<ClientExchange POST host:8443/mcp POST>"
    assert repr(client) == "<ClientEndpoint host:8443 OPEN>"
    assert client.url == exchange.url == "https://host:8443/mcp?key=secret"
    assert exchange.target == "/mcp?key=secret"


# ------------------------------------------------------------------ the answer to another request


@ERAS
def test_a_body_does_not_answer_another_request(revision: str) -> None:
    """The body was taken for the response to another request, and its own request had none."""
    client = opened(revision)
    first, crossed = ask(client)
    second, own = ask(client)
    respond(crossed, body=answer(client, second))
    violation, failed = events_of(client)
    assert isinstance(violation, ProtocolViolation)
    assert (violation.rule, violation.request) == ("HTTP-018", second)
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (first, FailureReason.INVALID_ANSWER)
    assert "another request" in failed.text
    assert client.pending_requests == (second,)
    respond(own, body=answer(client, second))
    assert only(ResponseReceived, events_of(client)).request is second


def test_an_array_does_not_answer_another_request() -> None:
    """In 2025-03-26 a body may hold several responses, but only to the requests of its POST."""
    client = opened("2025-03-26")
    first, crossed = ask(client)
    second, own = ask(client)
    respond(crossed, body=[answer(client, second), answer(client, first)])
    assert kinds(events_of(client)) == [ProtocolViolation, ResponseReceived]
    assert client.pending_requests == (second,)
    respond(own, body=answer(client, second))
    assert only(ResponseReceived, events_of(client)).request is second


# ------------------------------------------------------------- a connection that was kept is closed


@ERAS
def test_what_may_be_asked_twice_is_sent_again(revision: str) -> None:
    """The server may have closed an idle connection before the request arrived."""
    client = opened(revision)
    call, exchange = ask(client, "tools/list", {})
    exchange.receive_failure("reset", kept=True)
    again = take(client)
    assert (again.body, again.headers) == (exchange.body, exchange.headers)
    again.receive_failure("reset", kept=True)
    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)
    assert "It was sent again once" in failed.text


@ERAS
def test_a_call_is_not_sent_again(revision: str) -> None:
    """The server may have run it, and running it twice may do harm."""
    client = opened(revision)
    call, exchange = ask(client)
    exchange.receive_failure("reset", kept=True)
    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)
    assert "not sent again" in failed.text
    assert exchanges_of(client) == []


@ERAS
def test_what_has_begun_to_be_answered_is_not_sent_again(revision: str) -> None:
    """The server has the request, so it may have run it."""
    client = opened(revision)
    _, exchange = ask(client, "tools/list", {})
    head(exchange, 200, "application/json")
    exchange.receive_failure("reset", kept=True)
    assert kinds(events_of(client)) == [RequestFailed]
    assert exchanges_of(client) == []


@pytest.mark.parametrize(
    ("method", "is_sent"),
    [("notifications/roots/list_changed", True), ("notifications/example", False)],
)
def test_a_notification_is_sent_again_if_that_makes_no_difference(
    method: str, is_sent: bool
) -> None:
    """Notifications of the specification may be repeated; others may have an effect each time."""
    client = opened()
    client.send_notification(method)
    exchange = take(client)
    exchange.receive_failure("reset", kept=True)
    assert [one.body for one in exchanges_of(client)] == [exchange.body] * is_sent
    assert kinds(events_of(client)) == ([] if is_sent else [MessageUndelivered])


def test_an_answer_is_sent_again() -> None:
    """A server ignores a second response, but would wait for ever for a lost one."""
    client = opened(get=True)
    stream(take(client), event(request(7, "roots/list")))
    client.send_result(only(RequestReceived, events_of(client)).request, {"roots": []})
    exchange = take(client)
    exchange.receive_failure("reset", kept=True)
    assert take(client).body == exchange.body


def test_a_stream_and_the_end_of_a_session_are_asked_for_again_at_once() -> None:
    """GET and DELETE have the same effect twice."""
    client = opened(get=True)
    exchange = take(client)
    exchange.receive_failure("reset", kept=True)
    again = take(client)
    assert again.method == "GET"
    stream(again)
    client.close()
    farewell = take(client)
    assert farewell.method == "DELETE"
    farewell.receive_failure("reset", kept=True)
    assert take(client).method == "DELETE"


def test_what_nobody_waits_for_any_more_is_not_sent_again() -> None:
    """A request whose response came on another stream must not be repeated."""
    client = opened()
    call, exchange = ask(client, "tools/list", {})
    client.cancel(call)
    exchange.receive_failure("reset", kept=True)
    assert message_of(take(client))["method"] == "notifications/cancelled"


# --------------------------------------------------------- the stream of what was given up


@pytest.mark.parametrize("how", ["cancel", "timeout"])
def test_the_stream_of_a_call_that_was_given_up_is_read_a_little_longer(how: str) -> None:
    """Some gateways send the next notifications on this stream, and they were lost."""
    client = opened(LEGACY, now=0.0)
    call, exchange = ask(client, timeout=5.0)
    stream(exchange)
    now = 5.0
    if how == "timeout":
        client.handle_timeout(now)
    else:
        client.cancel(call, now=now)
    assert kinds(events_of(client)) == [RequestFailed]
    assert client.aborts() == []
    exchange.receive_data(event(CHANGED))
    assert kinds(events_of(client)) == [NotificationReceived]
    exchange.receive_data(event(answer(client, call)))
    assert kinds(events_of(client)) == [MessageIgnored]
    assert client.next_timeout() == now + 2.0
    client.handle_timeout(now + 2.0)
    assert client.aborts() == [exchange]
    assert events_of(client) == []


def test_such_a_stream_may_end_by_itself() -> None:
    """A stream that has ended must not be closed again."""
    client = opened(LEGACY, now=0.0)
    call, exchange = ask(client)
    stream(exchange)
    client.cancel(call)
    exchange.receive_end()
    assert client.next_timeout() is None
    assert client.aborts() == []
    assert kinds(events_of(client)) == [RequestFailed]


def test_not_many_such_streams_are_read() -> None:
    """Many cancelled calls must not keep a connection each."""
    client = opened(LEGACY, now=0.0)
    exchanges: list[ClientExchange] = []
    for _ in range(10):
        call, exchange = ask(client)
        stream(exchange)
        client.cancel(call)
        respond(take(client), 202)
        exchanges.append(exchange)
    assert client.aborts() == exchanges[:2]
    assert client.exchanges == tuple(exchanges[2:])
    client.close()
    assert client.aborts() == exchanges[2:]


def test_without_a_clock_such_a_stream_is_closed() -> None:
    """Without a clock the stream might be read for ever."""
    client = opened(LEGACY, now=None)
    call, exchange = ask(client)
    stream(exchange)
    client.cancel(call)
    assert client.aborts() == [exchange]
