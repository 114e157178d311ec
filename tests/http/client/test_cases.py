"""Faults that users of HTTP clients have reported, each tested as the right behaviour.

The numbers are those of the shared file of cases, which says where each was reported.
"""

import base64
import json
from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest

from sansmcp import (
    Config,
    ConnectionFailed,
    ErrorReceived,
    FailureReason,
    JSONObject,
    NotificationReceived,
    ProtocolViolation,
    Ready,
    RequestFailed,
    ResponseReceived,
    SubscriptionEnd,
    SubscriptionEnded,
)
from sansmcp.http import (
    ClientEndpoint,
    ClientHTTPEvent,
    ExchangePurpose,
    MessageRefused,
    SessionLost,
    StreamUnavailable,
)
from tests.support.data import cases, cases_of_http
from tests.support.http.client_endpoint import (
    SESSION,
    answer,
    ask,
    begun,
    chunks,
    event,
    events_of,
    exchanges_of,
    fields_of,
    head,
    initialized,
    kinds,
    message_of,
    only,
    opened,
    respond,
    stream,
    take,
)
from tests.support.http.server_endpoint import SSE, STREAMABLE
from tests.support.modern import BOTH, MODERN, SUBSCRIPTION, acknowledged, complete
from tests.support.wire import call as request
from tests.support.wire import error, note, result

FIELDED: Final = STREAMABLE[1:]
"""The legacy revisions that have a field for the revision."""

found: dict[str, Callable[..., None]] = {}


def case(*ids: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a test with the numbers of its cases."""

    def mark(test: Callable[..., None]) -> Callable[..., None]:
        found.update(dict.fromkeys(ids, test))
        return test

    return mark


def at(*revisions: str) -> pytest.MarkDecorator:
    """Run the test at each of these revisions."""
    return pytest.mark.parametrize("revision", revisions)


def test_every_case_has_a_test() -> None:
    """A case without a test could come back unnoticed."""
    ids = cases_of_http("client")

    assert len(ids) > 30
    assert ids == found.keys()


def violations(events: Iterable[ClientHTTPEvent]) -> list[str]:
    """The rules that were reported as broken."""
    return [one.rule for one in events if isinstance(one, ProtocolViolation)]


def still_works(client: ClientEndpoint) -> bool:
    """Whether a further request gets its response."""
    call, exchange = ask(client)
    respond(exchange, body=answer(client, call))
    return only(ResponseReceived, events_of(client)).request is call


# ------------------------------------------------------------------------------- one JSON body


@case("c117")
@at(*FIELDED, MODERN)
def test_an_array_is_no_answer(revision: str) -> None:
    """Only 2025-03-26 has batches, so an array must end the call elsewhere."""
    client = opened(revision)
    call, exchange = ask(client, "tools/list", {})
    respond(exchange, body=[answer(client, call, {"tools": []})])
    events = events_of(client)

    failed = only(RequestFailed, events)
    assert (failed.request, failed.reason) == (call, FailureReason.INVALID_ANSWER)
    assert violations(events)
    assert still_works(client)


@case("c117")
def test_an_array_is_an_answer_where_there_are_batches() -> None:
    """The same body must be accepted in 2025-03-26."""
    client = opened("2025-03-26")
    call, exchange = ask(client, "tools/list", {})
    respond(exchange, body=[answer(client, call, {"tools": []})])

    assert kinds(events_of(client)) == [ResponseReceived]


@case("c147")
@at(*STREAMABLE, MODERN)
def test_forms_may_have_parameters(revision: str) -> None:
    """Many servers add a charset to the media type."""
    client = opened(revision)
    call, exchange = ask(client)
    body = json.dumps(answer(client, call)).encode()
    respond(exchange, body=body, form="application/json; charset=UTF-8")
    assert only(ResponseReceived, events_of(client)).request is call

    call, exchange = ask(client)
    head(exchange, 200, "text/event-stream;charset=utf-8")
    exchange.receive_data(event(answer(client, call)))
    assert only(ResponseReceived, events_of(client)).request is call


@case("c165")
@at(*STREAMABLE)
def test_a_notification_may_be_refused(revision: str) -> None:
    """A notification has no ending, so its refusal must be an event and change nothing else."""
    client = opened(revision)
    call, _ = ask(client)
    client.send_notification("notifications/roots/list_changed")
    respond(take(client), 400, {"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}})

    refused = only(MessageRefused, events_of(client))
    assert (refused.status, refused.code, refused.request) == (400, -32600, None)
    assert client.pending_requests == (call,)
    assert still_works(client)


# ------------------------------------------------------------------------------------ sessions


@case("c152")
@at(*STREAMABLE)
def test_a_lost_session_is_followed_by_a_new_one(revision: str) -> None:
    """A call that was refused for its session was not run, and must be sent in the new session.

    Another call in flight may have run: it must not be repeated unless it is refused in the same
    way.
    """
    client = opened(revision)
    fourth, exchange = ask(client)
    fifth, other = ask(client)
    respond(exchange, 404, error(None, -32001, "Session not found"))
    events = events_of(client)

    assert kinds(events) == [SessionLost]
    assert client.aborts() == [exchange]
    again = take(client)
    assert message_of(again)["method"] == "initialize"
    assert "mcp-session-id" not in fields_of(again)
    opening = initialized(message_of(again)["id"], revision)
    respond(again, body=opening, more={"Mcp-Session-Id": "S-2"})
    ready = only(Ready, events_of(client))
    assert ready.start is only(SessionLost, events).start
    respond(take(client), 202)
    repeated = take(client)
    assert repeated.body == exchange.body
    assert fields_of(repeated)["mcp-session-id"] == "S-2"
    respond(repeated, body=answer(client, fourth))
    assert only(ResponseReceived, events_of(client)).request is fourth
    other.receive_failure("the server has closed the connection")
    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.reason) == (fifth, FailureReason.LOST)
    call, exchange = ask(client)
    assert fields_of(exchange)["mcp-session-id"] == "S-2"
    assert client.pending_requests == (call,)


@case("c154")
@at(*STREAMABLE)
def test_every_request_names_the_session_and_the_revision(revision: str) -> None:
    """Both are known only after the response to `initialize`, so GET must wait for it."""
    client = begun(revision)
    first = take(client)
    assert not {"mcp-session-id", "mcp-protocol-version"} & fields_of(first).keys()
    respond(first, body=initialized(1, revision), more={"Mcp-Session-Id": SESSION})
    exchanges = [take(client)]
    respond(exchanges[0], 202)
    exchanges += exchanges_of(client)
    client.send_request("tools/list")
    exchanges += exchanges_of(client)
    client.close()
    exchanges += exchanges_of(client)

    assert [one.method for one in exchanges] == ["POST", "GET", "POST", "DELETE"]
    for one in exchanges:
        fields = fields_of(one)
        assert fields["mcp-session-id"] == SESSION
        expected = None if revision == "2025-03-26" else revision
        assert fields.get("mcp-protocol-version") == expected


@case("c166")
@at(*STREAMABLE)
def test_a_server_need_not_give_a_stream(revision: str) -> None:
    """405 to GET means that there is no stream: no fault, and no reason to retry."""
    client = opened(revision, get=True)
    respond(take(client), 405)

    assert events_of(client) == []
    assert client.next_timeout() is None
    assert still_works(client)


@case("c169")
@at(*STREAMABLE)
def test_a_stream_that_is_refused_when_it_is_taken_up_again(revision: str) -> None:
    """A refused GET stream must not end the session or the calls in flight."""
    client = opened(revision, get=True)
    listening = take(client)
    stream(listening, ends=True)
    call, _ = ask(client)
    client.handle_timeout(1.0)
    respond(take(client), 409)

    unavailable = only(StreamUnavailable, events_of(client))
    assert unavailable.status == 409
    assert client.pending_requests == (call,)
    assert still_works(client)


# ------------------------------------------------------------------------------------- streams


@case("c173", "c174", "c175", "c176", "c177", "c179")
@at(*STREAMABLE, MODERN)
@pytest.mark.parametrize("name", ["c173", "c174", "c175", "c176", "c177", "c179"])
def test_streams_are_read_as_their_standard_says(revision: str, name: str) -> None:
    """All three line ends, cuts anywhere, data of several lines and split characters must be
    read."""
    client = opened(revision)
    # The pieces are those that the reports have, with the id of the call that is in flight.
    call, exchange = ask(client, id=None)
    pieces = chunks(*chunks_of(name))
    head(exchange, 200, SSE)
    for piece in pieces:
        exchange.receive_data(renumbered(piece, call.id))
    if name == "c174":  # a line feed might still come, and would belong to the line before
        exchange.receive_data(b":")
    answered = only(ResponseReceived, events_of(client))

    assert answered.request is call
    if name == "c179":
        assert answered.result["content"][0]["text"] == "\u5317\u4eac\U0001f30d"


def chunks_of(name: str) -> list[str]:
    found: list[str] = cases()[name]["input"][0]["http"]["chunks_b64"]
    return found


def renumbered(piece: bytes, id: object) -> bytes:
    return piece.replace(b'"id": 1,', f'"id": {id},'.encode())


@case("c184")
@at(*STREAMABLE, MODERN)
def test_events_of_other_names_mean_nothing(revision: str) -> None:
    """Servers send signs of life as events of other names."""
    client = opened(revision)
    call, exchange = ask(client)
    stream(
        exchange,
        b"event: ping\ndata: 2026-01-01T00:00:00\n\nevent: keepalive\ndata: {}\n\n",
        event(answer(client, call)),
    )

    assert kinds(events_of(client)) == [ResponseReceived]


@case("c185")
@at(*STREAMABLE)
def test_events_that_are_no_messages_are_reported(revision: str) -> None:
    """Good events around an invalid one must be delivered."""
    client = opened(revision)
    call, exchange = ask(client)
    stream(exchange, b'data: {"type":"heartbeat"}\n\ndata: not json\n\n')
    exchange.receive_data(event(answer(client, call)))
    events = events_of(client)

    assert kinds(events) == [ProtocolViolation, ProtocolViolation, ResponseReceived]
    assert [one.excerpt for one in events if isinstance(one, ProtocolViolation)] == [
        b'{"type":"heartbeat"}',
        b"not json",
    ]


@case("c276")
@at(*STREAMABLE, MODERN)
@pytest.mark.parametrize("cut", [80, 1_000_000, 3_200_017])
def test_an_event_over_the_limit_fails_its_stream_and_no_other(revision: str, cut: int) -> None:
    """The call ended only when the long event did, if ever, and as lost."""
    client = opened(revision, config=Config(max_message_bytes=2**20))
    one, broken = ask(client)
    two, whole = ask(client)
    flood = b'data: {"x":"' + b"y" * 3_200_000
    stream(broken, flood[:12])
    stream(whole)
    for start in range(12, len(flood), cut):
        broken.receive_data(flood[start : start + cut])
        if broken.aborted:
            break
    whole.receive_data(event(answer(client, two)))
    whole.receive_end()
    broken.receive_data(b'"}\n\n' + event(answer(client, one)))
    broken.receive_end()
    violation, failed, response = events_of(client)

    assert isinstance(violation, ProtocolViolation)
    assert (violation.rule, violation.request) == ("OWN-001", one)
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (one, FailureReason.INVALID_ANSWER)
    assert f"more than {2**20} bytes" in failed.text
    assert isinstance(response, ResponseReceived)
    assert response.request is two
    assert client.aborts() == [broken]


@case("c186")
@at(*STREAMABLE, MODERN)
def test_an_event_without_its_end_is_none(revision: str) -> None:
    """An event that was cut off may be incomplete, and must not be delivered."""
    client = opened(revision)
    call, exchange = ask(client)
    stream(exchange, event(answer(client, call)).rstrip(b"\n"), ends=True)

    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)
    assert exchanges_of(client) == []


@case("c188")
def test_a_stream_is_taken_up_again_when_the_server_says() -> None:
    """A server that ends the connection names the time after which to resume in `retry`."""
    client = opened("2025-11-25", now=10.0)
    call, exchange = ask(client)
    stream(exchange, b"id: a-1\ndata:\n\nretry: 1500\n\n", ends=True, now=10.0)

    assert client.pending_requests == (call,)
    assert client.next_timeout() == 11.5
    client.handle_timeout(11.5)
    again = take(client)
    fields = fields_of(again)
    assert (again.method, again.purpose) == ("GET", ExchangePurpose.RESUME)
    assert fields["last-event-id"] == "a-1"
    assert fields["mcp-session-id"] == SESSION
    assert fields["mcp-protocol-version"] == "2025-11-25"
    assert fields["accept"] == SSE
    stream(again, event(answer(client, call), "a-2"), ends=True)
    assert only(ResponseReceived, events_of(client)).request is call


@case("c190")
@at(*STREAMABLE)
def test_a_stream_may_end_after_its_answer(revision: str) -> None:
    """A stream that ends after its response must not be resumed."""
    client = opened(revision)
    call, exchange = ask(client)
    stream(exchange, event(answer(client, call), "a-1"), ends=True, now=1.0)

    assert only(ResponseReceived, events_of(client)).request is call
    assert client.next_timeout() is None
    client.handle_timeout(61.0)
    assert exchanges_of(client) == []
    client.close()
    assert [one.method for one in exchanges_of(client)] == ["DELETE"]
    assert client.next_timeout() is None


# ---------------------------------------------------------------------------------- 2026-07-28


@case("c195")
def test_a_modern_stream_is_not_taken_up_again() -> None:
    """In 2026-07-28 the request is lost, and only the caller may repeat it."""
    client = opened(MODERN)
    call, exchange = ask(client)
    log = note("notifications/message", {"level": "info", "data": "a"})
    stream(exchange, event(log, "x"), ends=True)
    events = events_of(client)

    assert kinds(events) == [NotificationReceived, RequestFailed]
    assert only(RequestFailed, events).reason is FailureReason.LOST
    assert only(RequestFailed, events).request is call
    assert client.next_timeout() is None
    assert exchanges_of(client) == []


@case("c196")
def test_a_modern_server_sends_no_requests() -> None:
    """A request of the server on a modern stream could not be answered."""
    client = opened(MODERN)
    call, exchange = ask(client)
    asked = request(9, "sampling/createMessage", {"messages": [], "maxTokens": 1})
    stream(exchange, event(asked) + event(answer(client, call)))
    events = events_of(client)

    assert violations(events) == ["STATE-006"]
    assert only(ResponseReceived, events).request is call
    assert exchanges_of(client) == []


@case("c202")
@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("tools/call", {"name": "=?base64?eA==?="}, "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ("tools/call", {"name": " padded "}, "=?base64?IHBhZGRlZCA=?="),
        ("tools/call", {"name": "plain-1"}, "plain-1"),
        (
            "resources/read",
            {"uri": "file:///Za\u0142\u0105czniki/r.pdf"},
            "=?base64?ZmlsZTovLy9aYcWCxIVjem5pa2kvci5wZGY=?=",
        ),
    ],
)
def test_names_that_would_not_arrive_are_encoded(
    method: str, params: JSONObject, expected: str
) -> None:
    """The decoded header must equal the name in the body."""
    client = opened(MODERN)
    _, exchange = ask(client, method, params)
    name = fields_of(exchange)["mcp-name"]

    assert name == expected
    if name.startswith("=?"):
        decoded = base64.b64decode(name.removeprefix("=?base64?").removesuffix("?=")).decode()
        assert decoded == next(iter(params.values()))


@case("c210")
def test_tools_with_marks_that_break_a_rule_are_left_out() -> None:
    """One invalid tool must not hide the others, whose marked parameters go into headers."""
    client = opened(MODERN)
    call, exchange = ask(client, "tools/list", {})
    good = tool("q", region={"type": "string", "x-mcp-header": "Region"})
    good["inputSchema"]["properties"]["n"] = {"type": "integer", "x-mcp-header": "N"}
    bad = tool("bad", a={"type": "string", "x-mcp-header": "A B"})
    listed = {"tools": [good, bad], "ttlMs": 0, "cacheScope": "private"}
    respond(exchange, body=complete(call.id, listed))
    events = events_of(client)

    assert only(ResponseReceived, events).result["tools"] == [good]
    violation = only(ProtocolViolation, events)
    assert violation.rule == "HDR-014"
    assert "'bad'" in violation.text
    _, exchange = ask(client, "tools/call", {"name": "q", "arguments": {"region": "eu", "n": 7}})
    fields = fields_of(exchange)
    assert (fields["mcp-param-region"], fields["mcp-param-n"]) == ("eu", "7")


def tool(name: str, **properties: JSONObject) -> JSONObject:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


@case("c231")
def test_a_refusal_in_no_modern_form_means_a_handshake() -> None:
    """A legacy server may refuse the probe in any form."""
    client = begun(revisions=BOTH)
    probe = take(client)
    assert fields_of(probe)["mcp-protocol-version"] == MODERN
    respond(probe, 400, b"Bad Request", form="text/plain")
    again = take(client)

    assert message_of(again)["method"] == "initialize"
    assert again.url == probe.url
    assert "mcp-method" not in fields_of(again)
    assert "mcp-protocol-version" not in fields_of(again)


@case("c232")
def test_a_refusal_in_a_modern_form_means_a_modern_server() -> None:
    """A modern error means that a handshake would not help."""
    client = begun(revisions=BOTH)
    probe = take(client)
    needed: JSONObject = {"requiredCapabilities": {"elicitation": {}}}
    respond(probe, 400, error(message_of(probe)["id"], -32021, "Missing capability", needed))

    failed = only(ConnectionFailed, events_of(client))
    assert (failed.code, failed.data) == (-32021, needed)
    assert exchanges_of(client) == []


@case("c232")
def test_a_request_may_be_refused_in_a_modern_form() -> None:
    """A modern error must be delivered to its caller, once the era is known."""
    client = opened(MODERN)
    call, exchange = ask(client)
    needed: JSONObject = {"requiredCapabilities": {"elicitation": {}}}
    respond(exchange, 400, error(call.id, -32021, "Missing capability", needed))

    refused = only(ErrorReceived, events_of(client))
    assert (refused.request, refused.code, refused.data) == (call, -32021, needed)


@case("c273")
@at(STREAMABLE[-1], MODERN)
def test_an_error_that_names_no_request_belongs_to_its_exchange(revision: str) -> None:
    """An error without an id answers the request of its POST, and no other."""
    client = opened(revision)
    first, refused = ask(client)
    second, answered = ask(client)
    nameless = error(None, -32600, "Invalid Request")
    del nameless["id"]
    respond(refused, 400, nameless)
    said = only(ErrorReceived, events_of(client))
    assert (said.request, said.code, said.status) == (first, -32600, 400)
    assert said.message == "Invalid Request"
    respond(answered, body=answer(client, second))
    assert only(ResponseReceived, events_of(client)).request is second
    assert exchanges_of(client) == []
    assert still_works(client)


@case("c283")
@at(*STREAMABLE)
@pytest.mark.parametrize("piece", [b"", b"id: 1\ndata:\n\n"])
def test_an_answer_is_fetched_less_and_less_from_streams_that_bring_nothing(
    revision: str, piece: bytes
) -> None:
    """A resumed stream without a message or a new id must count as a failure, with growing
    pauses."""
    client = opened(revision, now=0.0)
    call, exchange = ask(client)
    stream(exchange, b"retry: 200\nid: 1\ndata:\n\n", ends=True, now=0.0)
    waits: list[float] = []
    now = 0.0
    while (when := client.next_timeout()) is not None and len(waits) < 100:
        waits.append(round(when - now, 3))
        now = when
        client.handle_timeout(now)
        stream(take(client), piece, ends=True, now=now)
    assert waits == [0.2, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]
    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)
    assert "10 attempts" in failed.text


@case("c283")
@at(*STREAMABLE)
def test_an_answer_is_polled_for_as_long_as_the_server_names_new_ids(revision: str) -> None:
    """A server may end the stream after an event with a new id, to be polled later (SSE-018)."""
    client = opened(revision, now=0.0)
    call, exchange = ask(client)
    now = 0.0
    for number in range(50):
        stream(exchange, b"retry: 250\nid: %d\ndata:\n\n" % number, ends=True, now=now)
        now += 0.25
        assert client.next_timeout() == now
        client.handle_timeout(now)
        exchange = take(client)
    stream(exchange, event(answer(client, call)), ends=True, now=now)
    assert only(ResponseReceived, events_of(client)).request is call


@case("c287")
@at(*STREAMABLE, MODERN)
def test_a_server_that_answers_with_an_error_may_say_when_to_come_again(revision: str) -> None:
    """The caller must get the time of Retry-After beside the error, and nothing is repeated by
    itself."""
    client = opened(revision)
    call, exchange = ask(client)
    respond(exchange, 429, error(call.id, -32000, "rate limited"), {"Retry-After": "7"})
    said = [one for one in events_of(client) if isinstance(one, ErrorReceived)]
    assert [(one.request, one.code, one.status, one.retry_after) for one in said] == [
        (call, -32000, 429, 7.0)
    ]
    client.handle_timeout(100.0)
    assert exchanges_of(client) == []


@case("c281")
def test_credentials_that_the_probe_is_refused_for_may_be_good() -> None:
    """Some servers answer 401 to everything except `initialize`, so that request decides."""
    client = begun(revisions=BOTH, headers=[("Authorization", "Bearer token")])
    probe = take(client)
    assert message_of(probe)["method"] == "server/discover"
    respond(probe, 401, {"error": {"code": 401, "message": "MCP Failure"}})
    again = take(client)
    assert message_of(again)["method"] == "initialize"
    respond(again, body=initialized(2))
    assert only(Ready, events_of(client)).revision == STREAMABLE[-1]


def listening(client: ClientEndpoint) -> tuple[Any, Any]:
    subscription = client.listen({"toolsListChanged": True})
    exchange = take(client)
    return subscription, exchange


@case("c262")
def test_a_subscription_ends_with_its_result() -> None:
    """A subscription that the server has ended must not be resumed."""
    client = opened(MODERN)
    subscription, exchange = listening(client)
    id = message_of(exchange)["id"]
    ending = result(id, {"resultType": "complete", "_meta": {SUBSCRIPTION: id}})
    stream(exchange, event(acknowledged(id, {"toolsListChanged": True})), event(ending), ends=True)

    ended = only(SubscriptionEnded, events_of(client))
    assert (ended.subscription, ended.reason) == (subscription, SubscriptionEnd.ENDED)
    assert exchanges_of(client) == []


@case("c263")
def test_a_subscription_is_lost_with_its_stream() -> None:
    """Changes are not replayed, so the caller must subscribe anew and read the lists again."""
    client = opened(MODERN)
    subscription, exchange = listening(client)
    id = message_of(exchange)["id"]
    stream(exchange, event(acknowledged(id, {"toolsListChanged": True})) + b": k\n\n", ends=True)

    ended = only(SubscriptionEnded, events_of(client))
    assert (ended.subscription, ended.reason) == (subscription, SubscriptionEnd.LOST)
    assert client.next_timeout() is None
    assert exchanges_of(client) == []
    assert listening(client)[0].open
