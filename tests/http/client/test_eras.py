"""How a client finds out the era of a server over HTTP."""

from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    CloseCause,
    Config,
    ConnectionClosed,
    ConnectionFailed,
    FailureCause,
    LocalProtocolError,
    NotificationReceived,
    ProtocolViolation,
    Ready,
    RequestFailed,
    ResponseReceived,
)
from sansmcp.http import (
    ClientEndpoint,
    ClientExchange,
    ExchangePurpose,
    MessageRefused,
)
from tests.support.http.client_endpoint import (
    answer,
    ask,
    begun,
    event,
    events_of,
    exchanges_of,
    fields_of,
    head,
    initialized,
    kinds,
    message_of,
    new_client,
    only,
    respond,
    stream,
    take,
)
from tests.support.http.server_endpoint import LEGACY
from tests.support.modern import BOTH, MODERN, discovered
from tests.support.wire import error, note, result

OLD = "2024-11-05"


def probed(now: float | None = None, **settings: Any) -> tuple[ClientEndpoint, ClientExchange]:
    """A client of both eras, and the exchange of its probe."""
    settings.setdefault("revisions", BOTH)
    client = begun(now=now, **settings)
    return client, take(client)


def failed(client: ClientEndpoint) -> ConnectionFailed:
    """The reason of the failed start; asserts that nothing more is sent."""
    assert exchanges_of(client) == []
    assert client.exchanges == ()
    found = [one for one in events_of(client) if isinstance(one, ConnectionFailed)]
    (one,) = found
    return one


# ----------------------------------------------------------------------------------- the probe


def test_the_probe_is_a_modern_request() -> None:
    """The probe must have everything that a modern request needs (COMPAT-004)."""
    client, probe = probed()
    fields = fields_of(probe)
    assert message_of(probe)["method"] == "server/discover"
    assert (fields["mcp-method"], fields["mcp-protocol-version"]) == ("server/discover", MODERN)
    assert "mcp-name" not in fields
    respond(probe, body=result(1, discovered()))
    assert only(Ready, events_of(client)).revision == MODERN


def test_the_answer_to_the_probe_may_be_a_stream() -> None:
    """The response to the probe may be JSON or a stream."""
    client, probe = probed()
    stream(probe, event(result(1, discovered())))
    assert only(Ready, events_of(client)).revision == MODERN


@pytest.mark.parametrize("status", [200, 400, 404])
def test_a_server_that_does_not_know_the_probe_is_legacy(status: int) -> None:
    """Every modern server must have `server/discover`."""
    client, probe = probed()
    respond(probe, status, error(1, -32601))
    assert message_of(take(client))["method"] == "initialize"


@pytest.mark.parametrize("status", [400, 404, 405, 406, 415, 422, 500, 501])
@pytest.mark.parametrize("body", [b"", b"<html>", b'{"error":"no session"}'])
def test_a_refusal_that_is_no_modern_error_means_a_handshake(status: int, body: bytes) -> None:
    """Legacy servers refuse unknown methods in many ways (COMPAT-006)."""
    client, probe = probed()
    respond(probe, status, body, form="text/plain")
    again = take(client)
    assert message_of(again)["method"] == "initialize"
    respond(again, body=initialized(2), more={"mcp-session-id": "s"})
    assert only(Ready, events_of(client)).revision == LEGACY
    fields = fields_of(take(client))
    assert (fields["mcp-session-id"], fields["mcp-protocol-version"]) == ("s", LEGACY)
    assert "mcp-method" not in fields


@pytest.mark.parametrize("code", [-32000, -32001, -32600, -32602, -32004])
def test_any_other_error_means_a_handshake(code: int) -> None:
    """No other error code tells the era of a server (COMPAT-002)."""
    client, probe = probed()
    respond(probe, 400, error(None, code))
    assert message_of(take(client))["method"] == "initialize"


@pytest.mark.parametrize("code", [-32020, -32021, -32022])
def test_a_modern_error_is_no_reason_to_fall_back(code: int) -> None:
    """A modern error shows that the server is modern (COMPAT-003, COMPAT-005)."""
    client, probe = probed()
    respond(probe, 400, error(1, code))
    assert failed(client).code == code


def test_a_modern_server_may_speak_another_revision() -> None:
    """If the error names a revision with a handshake, that revision must be used."""
    client, probe = probed()
    respond(probe, 400, error(1, -32022, "no", {"supported": ["2025-06-18"], "requested": MODERN}))
    again = take(client)
    assert message_of(again)["params"]["protocolVersion"] == "2025-06-18"


@pytest.mark.parametrize("status", [402, 403, 407, 408, 413, 421, 429, 431])
@pytest.mark.parametrize("body", [b"", b"<html>", b'{"error":{"code":413,"message":"no"}}'])
def test_every_4xx_means_a_handshake(status: int, body: bytes) -> None:
    """Legacy servers and gateways answer an unknown method with any 4xx status, and still accept
    `initialize`."""
    client, probe = probed()
    respond(probe, status, body, form="application/json")
    again = take(client)
    assert message_of(again)["method"] == "initialize"
    assert events_of(client) == []
    respond(again, body=initialized(2))
    assert only(Ready, events_of(client)).revision == LEGACY


@pytest.mark.parametrize("status", [413, 429])
def test_where_the_handshake_gets_the_same_that_is_said(status: int) -> None:
    """The failure must have the status, whichever of the two requests got it."""
    client, probe = probed()
    respond(probe, status, b"no")
    respond(take(client), status, b"no")
    refused, one, _ = events_of(client)
    assert isinstance(refused, MessageRefused)
    assert refused.status == status
    assert isinstance(one, ConnectionFailed)
    assert (one.cause, str(status) in one.text) == (FailureCause.REFUSED, True)


@pytest.mark.parametrize("status", [413, 429, 503])
@pytest.mark.parametrize("body", [b"", b'{"error":{"code":-32000,"message":"slow down"}}'])
def test_a_server_that_says_when_to_come_again_is_not_asked_before(
    status: int, body: bytes
) -> None:
    """An `initialize` before the time of Retry-After is what the server asked not to get."""
    client, probe = probed()
    respond(probe, status, body, {"Retry-After": "7"})
    refused, one, _ = events_of(client)
    assert isinstance(refused, MessageRefused)
    assert (refused.status, refused.retry_after) == (status, 7.0)
    assert isinstance(one, ConnectionFailed)
    assert one.cause is FailureCause.REFUSED
    assert one.message == ("slow down" if body else None)
    assert "7 s" in one.text
    assert exchanges_of(client) == []


def test_a_server_that_may_be_asked_at_once_is() -> None:
    """A Retry-After of zero seconds needs no wait."""
    client, probe = probed()
    respond(probe, 429, b"", {"Retry-After": "0"})
    assert message_of(take(client))["method"] == "initialize"
    assert events_of(client) == []


def test_a_client_of_one_era_is_not_told_of_the_other_by_a_status_that_says_little() -> None:
    """The hint would make the user change a setting that is right."""
    client = begun(MODERN)
    respond(take(client), 429, b"no")
    assert "handshake" not in failed(client).text


@pytest.mark.parametrize("status", [401, 502, 503])
def test_a_status_that_says_nothing_of_the_server_ends_the_start(status: int) -> None:
    """A status such as 503 would be the same for a handshake."""
    client, probe = probed()
    respond(probe, status, b"no")
    one = failed(client)
    assert one.cause is FailureCause.REFUSED
    assert str(status) in one.text


def test_a_server_that_cannot_be_reached_ends_the_start() -> None:
    """A handshake would not reach it either."""
    client, probe = probed()
    probe.receive_failure("connection refused")
    one = failed(client)
    assert one.cause is FailureCause.LOST
    assert "connection refused" in one.text


@pytest.mark.parametrize("how", ["html", "nothing", "stream", "broken", "encoded"])
def test_no_answer_to_the_probe_means_a_handshake(how: str) -> None:
    """A server that responds without an error or result is there, and may accept a handshake."""
    client, probe = probed()
    if how == "html":
        respond(probe, 200, b"<html>", form="text/html")
    elif how == "nothing":
        respond(probe, 202)
    elif how == "encoded":
        respond(probe, 200, b"x", {"content-encoding": "gzip"}, "application/json")
    else:
        stream(probe, b": hello\n\n")
        if how == "broken":
            probe.receive_failure("reset")
        else:
            probe.receive_end()
    assert message_of(take(client))["method"] == "initialize"


def test_an_error_without_an_id_means_a_handshake() -> None:
    """A server that could not read the probe is no modern one."""
    client, probe = probed()
    respond(probe, body={"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}})
    assert message_of(take(client))["method"] == "initialize"


def test_silence_means_a_handshake() -> None:
    """After the probe's own deadline its exchange must be closed and the handshake begin."""
    client = new_client()
    client.start(timeout=10.0, probe_timeout=2.0, now=0.0)
    probe = take(client)
    client.handle_timeout(2.0)
    assert client.aborts() == [probe]
    assert message_of(take(client))["method"] == "initialize"
    client.handle_timeout(10.0)
    assert only(ConnectionFailed, events_of(client)[:1]).cause is FailureCause.TIMED_OUT
    assert len(client.aborts()) == 1
    assert exchanges_of(client) == []


def test_a_hint_saves_the_probe() -> None:
    """A caller that knows the era of a server must be able to skip the probe."""
    client = new_client()
    client.start(hint=LEGACY)
    assert message_of(take(client))["method"] == "initialize"


def test_a_client_of_one_era_says_what_the_server_may_speak() -> None:
    """The failure must name the setting to change."""
    client = begun(MODERN)
    respond(take(client), 400, b"Bad Request", form="text/plain")
    one = failed(client)
    assert one.cause is FailureCause.REFUSED
    assert "handshake" in one.text


def test_a_server_may_be_modern_after_all() -> None:
    """A slow modern server refuses the handshake, and the client must go back to its era."""
    client, probe = probed()
    respond(probe, 404)
    again = take(client)
    data = {"supported": [MODERN], "requested": LEGACY}
    respond(again, 400, error(2, -32022, "no", data))
    third = take(client)
    assert message_of(third)["method"] == "server/discover"
    respond(third, body=result(3, discovered()))
    assert only(Ready, events_of(client)).revision == MODERN


def test_a_start_is_made_once() -> None:
    """A second `start` must raise, as on every transport."""
    client, _ = probed()
    with pytest.raises(LocalProtocolError):
        client.start()
    assert exchanges_of(client) == []


# ------------------------------------------------------------------------------------ HTTP+SSE


def old_stream(
    client: ClientEndpoint, status: int = 405, body: object = b""
) -> tuple[ClientExchange, ClientExchange]:
    """Refuse `initialize` with this status; returns it and the GET that follows."""
    first = take(client)
    assert message_of(first)["method"] == "initialize"
    respond(first, status, body)
    return first, take(client)


def old(
    url: str = "http://host/sse", now: float | None = 0.0
) -> tuple[ClientEndpoint, ClientExchange]:
    """A client that speaks HTTP+SSE with its server, and the exchange of the stream."""
    client = begun(revisions=LEGACY_REVISIONS, url=url, now=now)
    _, exchange = old_stream(client)
    stream(exchange, b"event: endpoint\ndata: /messages?id=1\n\n")
    again = take(client)
    assert again.url == "http://host/messages?id=1"
    respond(again, 202, b"Accepted", form="text/plain")
    exchange.receive_data(event(initialized(1, OLD)))
    only(Ready, events_of(client))
    respond(take(client), 202)
    return client, exchange


def test_a_server_of_http_sse_is_recognised() -> None:
    """Such a server refuses POST, and its stream names the address for it (COMPAT-008,
    HSSE-003)."""
    client = begun(revisions=LEGACY_REVISIONS, url="http://host/a/sse")
    first, exchange = old_stream(client)
    assert (exchange.method, exchange.purpose) == ("GET", ExchangePurpose.GET)
    assert exchange.url == "http://host/a/sse"
    assert fields_of(exchange)["accept"] == "text/event-stream"
    stream(exchange, b"event: endpoint\ndata: messages?session=1\n\n")
    again = take(client)
    assert again.url == "http://host/a/messages?session=1"
    assert again.body == first.body
    respond(again, 202, b"Accepted", form="text/plain")
    exchange.receive_data(event(initialized(1, OLD)))
    assert only(Ready, events_of(client)).revision == OLD
    ready = take(client)
    assert ready.url == again.url
    assert "mcp-protocol-version" not in fields_of(ready)
    respond(ready, 200, b"ok", form="text/plain")
    assert events_of(client) == []
    assert exchanges_of(client) == []


def test_all_that_the_server_says_comes_on_the_one_stream() -> None:
    """A response may come on the stream before or after its POST is accepted."""
    client, exchange = old()
    call, posted = ask(client)
    exchange.receive_data(event(answer(client, call)))
    assert only(ResponseReceived, events_of(client)).request is call
    assert not posted.aborted
    respond(posted, 202)
    call, posted = ask(client)
    respond(posted, 202)
    assert client.pending_requests == (call,)
    exchange.receive_data(event(note("notifications/tools/list_changed")))
    exchange.receive_data(event(answer(client, call)))
    assert kinds(events_of(client)) == [NotificationReceived, ResponseReceived]
    client.close()
    assert client.aborts() == [exchange]
    assert exchanges_of(client) == []


def test_a_post_may_be_refused_or_lost_there() -> None:
    """A failed POST must end its call, unless the response has come already."""
    client, exchange = old()
    call, posted = ask(client)
    respond(posted, 400)
    refused, failure = events_of(client)
    assert isinstance(refused, MessageRefused)
    assert isinstance(failure, RequestFailed)
    call, posted = ask(client)
    exchange.receive_data(event(answer(client, call)))
    respond(posted, 500)
    assert kinds(events_of(client)) == [ResponseReceived]
    _, posted = ask(client)
    posted.receive_failure("reset")
    assert kinds(events_of(client)) == [RequestFailed]
    call, posted = ask(client)
    exchange.receive_data(event(answer(client, call)))
    posted.receive_failure("reset")
    assert kinds(events_of(client)) == [ResponseReceived]


def test_a_post_is_not_answered_with_a_stream_there() -> None:
    """A stream that answers a POST of HTTP+SSE would never end."""
    client, _ = old()
    _, posted = ask(client)
    stream(posted)
    assert client.aborts() == [posted]
    assert events_of(client) == []


@pytest.mark.parametrize("breaks", [True, False])
def test_the_conversation_ends_with_its_stream(breaks: bool) -> None:
    """The stream of HTTP+SSE cannot be resumed."""
    client, exchange = old()
    call, _ = ask(client)
    if breaks:
        exchange.receive_failure("reset")
    else:
        exchange.receive_end()
    failure, closed = events_of(client)
    assert isinstance(failure, RequestFailed)
    assert failure.request is call
    assert closed == ConnectionClosed(cause=CloseCause.EOF)
    assert len(client.aborts()) == 1


@pytest.mark.parametrize(
    "endpoint",
    ["https://host/m", "http://evil/m", "//evil/m", "http://host:8080/m", "ftp://host/m"],
)
def test_an_endpoint_of_another_origin_is_refused(endpoint: str) -> None:
    """All messages and credentials would go to the other origin (OWN-040)."""
    client = begun(revisions=LEGACY_REVISIONS, url="http://host/sse")
    _, exchange = old_stream(client)
    stream(exchange, f"event: endpoint\ndata: {endpoint}\n\n".encode())
    assert client.aborts() == [exchange]
    assert exchanges_of(client) == []
    found = events_of(client)
    one = only(ConnectionFailed, found[-2:-1])
    assert one.cause is FailureCause.REFUSED
    assert "endpoint" in one.text


@pytest.mark.parametrize("data", [b"", b"caf\xc3\xa9", b"\xff", b"a b", b"x" * 9000, b"http://["])
def test_an_endpoint_that_is_no_uri_is_refused(data: bytes) -> None:
    """Such a text cannot be the target of a request."""
    client = begun(revisions=LEGACY_REVISIONS)
    _, exchange = old_stream(client)
    stream(exchange, b"event: endpoint\ndata:" + data + b"\n\n")
    assert failed(client).cause is FailureCause.REFUSED
    assert exchange.aborted


@pytest.mark.parametrize(
    "first", [b'data: {"jsonrpc":"2.0"}\n\n', b"data: " + b"x" * 2000 + b"\n\n"]
)
def test_the_first_event_names_the_endpoint(first: bytes) -> None:
    """A stream that begins with another event is no HTTP+SSE."""
    client = begun(revisions=LEGACY_REVISIONS, config=Config(max_message_bytes=1500))
    _, exchange = old_stream(client)
    stream(exchange, first)
    assert failed(client).cause is FailureCause.REFUSED
    assert exchange.aborted


@pytest.mark.parametrize("how", ["405", "html", "ends", "breaks", "refused", "401"])
def test_a_server_that_has_no_such_stream_has_refused_initialize(how: str) -> None:
    """The failure must have the refusal of `initialize`, since the GET was only a further
    attempt."""
    client = begun(revisions=LEGACY_REVISIONS)
    _, exchange = old_stream(client, 404, b"nothing here")
    if how == "html":
        head(exchange, 200, "text/html")
    elif how == "ends":
        stream(exchange, ends=True)
    elif how == "breaks":
        stream(exchange)
        exchange.receive_failure("reset")
    elif how == "refused":
        exchange.receive_failure("connection refused")
    else:
        respond(exchange, int(how))
    one = failed(client)
    assert one.cause is FailureCause.REFUSED
    assert "404" in one.text


def test_what_the_server_has_said_to_initialize_is_told() -> None:
    """The error of `initialize` must not be lost when HTTP+SSE is tried."""
    client = begun(revisions=LEGACY_REVISIONS)
    _, exchange = old_stream(client, 400, error(None, -32000, "no way", {"x": 1}))
    respond(exchange, 405)
    one = failed(client)
    assert (one.code, one.message, one.data) == (-32000, "no way", {"x": 1})


def test_a_start_may_time_out_on_the_way() -> None:
    """When the start times out, the stream that was asked for must be closed."""
    client = new_client(revisions=LEGACY_REVISIONS)
    client.start(timeout=5.0, now=0.0)
    _, exchange = old_stream(client)
    client.handle_timeout(5.0)
    assert client.aborts() == [exchange]
    assert failed(client).cause is FailureCause.TIMED_OUT


@pytest.mark.parametrize(
    ("revisions", "status", "tried"),
    [
        (LEGACY_REVISIONS[1:], 405, False),
        (LEGACY_REVISIONS, 405, True),
        (LEGACY_REVISIONS, 400, True),
        (LEGACY_REVISIONS, 406, False),
        (LEGACY_REVISIONS, 500, False),
        (LEGACY_REVISIONS[:3], 406, True),
        (LEGACY_REVISIONS[:2], 422, True),
        (LEGACY_REVISIONS[:3], 500, False),
        (LEGACY_REVISIONS[:1], 405, True),
    ],
)
def test_which_refusals_may_come_from_such_a_server(
    revisions: tuple[str, ...], status: int, tried: bool
) -> None:
    """Each revision defines these statuses (COMPAT-007, COMPAT-008); without 2024-11-05 there
    are none."""
    client = begun(revisions=revisions)
    respond(take(client), status)
    assert [one.method for one in exchanges_of(client)] == (["GET"] if tried else [])


def test_a_modern_error_comes_from_no_such_server() -> None:
    """A modern error must not lead to HTTP+SSE (COMPAT-009)."""
    client = begun(revisions=LEGACY_REVISIONS)
    respond(take(client), 400, error(1, -32022, "no", {"supported": [MODERN]}))
    assert failed(client).code == -32022


def test_initialize_is_refused_twice() -> None:
    """Once the transport is known, a refusal of `initialize` must end the start."""
    client = begun(revisions=LEGACY_REVISIONS)
    _, exchange = old_stream(client)
    stream(exchange, b"event: endpoint\ndata: /m\n\n")
    respond(take(client), 404)
    assert client.aborts() == [exchange]
    assert failed(client).cause is FailureCause.REFUSED


def test_from_the_probe_to_http_sse() -> None:
    """Probe, handshake and HTTP+SSE in a row are the longest start."""
    client, probe = probed()
    respond(probe, 405)
    _, exchange = old_stream(client)
    stream(exchange, b"event: endpoint\ndata: /m\n\n")
    respond(take(client), 202)
    exchange.receive_data(event(initialized(2, OLD)))
    assert only(Ready, events_of(client)).revision == OLD


def test_where_nothing_is_known_nothing_is_violated() -> None:
    """Finding out the era must not report breaches of the server."""
    client, probe = probed()
    respond(probe, 405)
    old_stream(client)
    assert not [one for one in events_of(client) if isinstance(one, ProtocolViolation)]
