"""Sessions of the legacy revisions on a client, and the stream of GET."""

from typing import Any

import pytest

from sansmcp import (
    CloseCause,
    Config,
    ConnectionClosed,
    ConnectionFailed,
    ErrorReceived,
    FailureCause,
    FailureReason,
    JSONObject,
    ListingEnd,
    ListingEnded,
    LocalProtocolError,
    NotificationReceived,
    OutgoingRequest,
    PingEnded,
    ProgressReceived,
    ProtocolViolation,
    Ready,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    State,
)
from sansmcp.http import (
    AuthorizationRequired,
    ClientEndpoint,
    ClientExchange,
    ExchangePurpose,
    SessionLost,
    StreamUnavailable,
)
from tests.support.http.client_endpoint import (
    SESSION,
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
    only,
    opened,
    respond,
    stream,
    take,
)
from tests.support.http.server_endpoint import LEGACY, STREAMABLE
from tests.support.modern import MODERN
from tests.support.wire import call as request
from tests.support.wire import error, note, result

BOM = b"\xef\xbb\xbf"
CHANGED = note("notifications/tools/list_changed")


def listening(client: ClientEndpoint, *pieces: bytes) -> None:
    """The stream of GET is open, and has brought these."""
    stream(take(client), *pieces)


# ------------------------------------------------------------------------------------- opening


def test_nothing_is_sent_before_the_server_knows_that_the_client_is_ready() -> None:
    """Requests and their order are the server's own; HTTP alone keeps none (LIFE-004)."""
    client = begun(LEGACY)
    respond(take(client), body=initialized(1), more={"mcp-session-id": SESSION})
    only(Ready, events_of(client))
    call = client.send_request("tools/call", {"name": "t"})
    ready = take(client)
    assert message_of(ready)["method"] == "notifications/initialized"
    assert client.next_exchange() is None
    head(ready, 202)
    assert [one.method for one in exchanges_of(client)] == ["GET", "POST"]
    assert client.pending_requests == (call,)


@pytest.mark.parametrize("how", ["refused", "lost", "encoded"])
def test_requests_follow_also_where_that_has_failed(how: str) -> None:
    """The server may serve them all the same; if not, each of them says so."""
    client = begun(LEGACY, get_stream=False)
    respond(take(client), body=initialized(1))
    ready = take(client)
    if how == "refused":
        respond(ready, 400)
    elif how == "encoded":
        head(ready, 202, more={"content-encoding": "gzip"})
    else:
        ready.receive_failure("reset")
    client.send_request("tools/list")
    assert len(exchanges_of(client)) == 1


@pytest.mark.parametrize(
    "session", ["", "a b", "caf\xe9", "x" * 4097, "a\x7f"], ids=lambda text: ascii(text)[:10]
)
def test_a_session_id_that_could_not_be_sent_is_not_kept(session: str) -> None:
    """It is visible ASCII (SESS-003); anything else would break the head of every request."""
    client = begun(LEGACY, get_stream=False)
    respond(take(client), body=initialized(1), more={"Mcp-Session-Id": session})
    events = events_of(client)
    assert kinds(events) == [ProtocolViolation, Ready]
    assert only(ProtocolViolation, events).rule == "SESS-003"
    assert "mcp-session-id" not in fields_of(take(client))


def test_a_session_may_be_opened_on_a_stream() -> None:
    """The id stands in the head, whatever the body is."""
    client = begun(LEGACY, get_stream=False)
    first = take(client)
    head(first, 200, "text/event-stream", {"MCP-Session-Id": "~!"})
    first.receive_data(event(initialized(1)))
    only(Ready, events_of(client))
    assert fields_of(take(client))["mcp-session-id"] == "~!"


def test_an_answer_to_initialize_in_vain_opens_no_session() -> None:
    """What failed to start is not used; the server is told so."""
    client = begun(LEGACY, requires=["tasks"])
    respond(take(client), body=initialized(1), more={"mcp-session-id": SESSION})
    assert only(ConnectionFailed, events_of(client)[:1]).cause is FailureCause.MISSING_CAPABILITY
    goodbye = take(client)
    assert goodbye.purpose is ExchangePurpose.DELETE
    assert fields_of(goodbye)["mcp-session-id"] == SESSION


def test_a_session_of_a_refused_initialize_is_none() -> None:
    """An error opens nothing."""
    client = begun(LEGACY)
    respond(take(client), body=error(1, -32602), more={"mcp-session-id": SESSION})
    assert only(ConnectionFailed, events_of(client)[:1]).cause is FailureCause.REFUSED
    assert exchanges_of(client) == []


# -------------------------------------------------------------------------------------- the end


@pytest.mark.parametrize("status", [200, 204, 401, 404, 405, 500])
def test_the_server_is_told_of_the_end(status: int) -> None:
    """What it says to that changes nothing (SESS-010, SESS-011)."""
    client = opened(authorize=True)
    call, exchange = ask(client)
    client.close()
    assert kinds(events_of(client)) == [RequestFailed, ConnectionClosed]
    assert client.aborts() == [exchange]
    goodbye = take(client)
    fields = fields_of(goodbye)
    assert (goodbye.method, goodbye.body, goodbye.request) == ("DELETE", b"", None)
    assert (fields["mcp-session-id"], fields["mcp-protocol-version"]) == (SESSION, LEGACY)
    respond(goodbye, status, b"x", {"content-encoding": "gzip", "www-authenticate": "Bearer"})
    assert events_of(client) == []
    assert client.exchanges == ()
    client.close()
    assert exchanges_of(client) == []
    assert not call.open


def test_the_end_may_not_reach_the_server() -> None:
    """The session expires there."""
    client = opened()
    client.close()
    take(client).receive_failure("reset")
    assert kinds(events_of(client)) == [ConnectionClosed]
    assert (client.exchanges, client.state) == ((), State.CLOSED)


def test_without_a_session_there_is_nothing_to_end() -> None:
    """Nothing was opened on the server."""
    client = opened(session=None, get=True)
    listening(client)
    client.close()
    assert len(client.aborts()) == 1
    assert exchanges_of(client) == []


def test_what_waits_when_it_ends_is_not_sent() -> None:
    """Neither a message nor the resumption of a stream is sent after the end."""
    client = opened(get=True)
    stream(take(client), ends=True)
    client.send_notification("notifications/roots/list_changed")
    client.close()
    assert [one.method for one in exchanges_of(client)] == ["DELETE"]
    assert client.next_timeout() is None
    assert client.unsent_bytes == 0


# ----------------------------------------------------------------------------- a session is lost


def reopen(client: ClientEndpoint, **times: Any) -> None:
    """The server opens another session."""
    initialize = take(client)
    opening = initialized(message_of(initialize)["id"])
    respond(initialize, body=opening, more={"mcp-session-id": "S-2"}, **times)
    exchanges = exchanges_of(client)
    assert message_of(exchanges[0])["method"] == "notifications/initialized"
    respond(exchanges[0], 202)


def test_all_that_was_open_in_a_lost_session_ends() -> None:
    """Calls, listings and pings that were being answered, what the server has asked, the stream."""
    client = opened(get=True, now=0.0)
    listening(client, event(request(1, "roots/list")))
    asked = only(RequestReceived, events_of(client)).request
    call, _ = ask(client, timeout=9.0)
    client.send_paginated("tools/list")
    client.ping()
    exchanges_of(client)
    for exchange in client.exchanges:
        if exchange.method == "POST":
            stream(exchange)
    client.send_notification("notifications/roots/list_changed")
    respond(take(client), 404)
    events = events_of(client)

    assert kinds(events) == [SessionLost, RequestCancelled, RequestFailed, ListingEnded, PingEnded]
    failed, listed = only(RequestFailed, events), only(ListingEnded, events)
    assert failed.request is call
    assert listed.reason is ListingEnd.LOST
    for text in (failed.text, listed.text, only(PingEnded, events).text):
        assert "does not know the session" in text
        assert "workers" in text
    assert len(client.aborts()) == 5
    assert not client.send_result(asked, {"roots": []})
    reopen(client, now=1.0)
    assert take(client).purpose is ExchangePurpose.GET
    assert client.next_timeout() is None


@pytest.mark.parametrize("purpose", [ExchangePurpose.GET, ExchangePurpose.RESUME])
def test_the_stream_may_learn_of_it_first(purpose: ExchangePurpose) -> None:
    """404 says so on every request that names a session (SESS-009)."""
    client = opened(get=True)
    if purpose is ExchangePurpose.RESUME:
        stream(take(client), b"id: 1\ndata:\n\n", ends=True)
        client.handle_timeout(1.0)
    exchange = take(client)
    assert exchange.purpose is purpose
    respond(exchange, 404)
    assert kinds(events_of(client)) == [SessionLost]
    assert message_of(take(client))["method"] == "initialize"


def test_a_session_that_is_lost_again_at_once_is_opened_when_it_is_asked_for() -> None:
    """Otherwise a server without memory would be asked for a session for ever."""
    client = opened()
    call, exchange = ask(client)
    respond(exchange, 404)
    initialize = take(client)
    opening = initialized(message_of(initialize)["id"])
    respond(initialize, body=opening, more={"mcp-session-id": "S-2"})
    events_of(client)
    respond(take(client), 404)
    lost, failed = events_of(client)
    assert lost == SessionLost(start=None)
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)
    assert "workers" in failed.text
    assert exchanges_of(client) == []
    assert client.exchanges == ()
    assert client.next_timeout() is None
    with pytest.raises(LocalProtocolError):
        client.send_request("tools/list")

    start = client.reopen(now=5.0)
    with pytest.raises(LocalProtocolError):
        client.reopen()
    reopen(client)
    assert only(Ready, events_of(client)).start is start
    call, exchange = ask(client)
    respond(exchange, body=answer(client, call))
    assert only(ResponseReceived, events_of(client)).request is call


def test_there_must_be_a_lost_session_to_open_one_again() -> None:
    """What is open, or not begun, or over, is not opened again."""
    client = opened()
    with pytest.raises(LocalProtocolError, match="LIFE-001"):
        client.reopen()
    client.close()
    with pytest.raises(LocalProtocolError):
        client.reopen()


def test_a_conversation_without_a_session_may_be_closed() -> None:
    """Nothing is left to be told to the server."""
    client = opened()
    client.send_notification("notifications/roots/list_changed")
    respond(take(client), 404)
    take(client).receive_failure("connection refused")
    events_of(client)
    client.close()
    assert events_of(client) == [ConnectionClosed(cause=CloseCause.CLOSED)]
    assert exchanges_of(client) == []
    with pytest.raises(LocalProtocolError):
        client.reopen()


def test_a_session_that_is_lost_before_it_is_open_is_a_start_that_fails() -> None:
    """The caller has one start under way, and it has one ending."""
    client = begun(LEGACY, now=0.0)
    first = take(client)
    head(first, 200, "text/event-stream", {"mcp-session-id": "s"})
    first.receive_data(b"id: 1\ndata:\n\n")
    first.receive_end()
    client.handle_timeout(1.0)
    respond(take(client), 404)
    failed, closed = events_of(client)
    assert isinstance(failed, ConnectionFailed)
    assert failed.cause is FailureCause.LOST
    assert closed == ConnectionClosed(cause=CloseCause.SESSION_LOST)
    assert exchanges_of(client) == []


def test_a_session_that_has_served_a_request_may_be_lost_too() -> None:
    """A server that is started again every hour loses one every hour."""
    client = opened()
    for _ in range(3):
        call, exchange = ask(client)
        respond(exchange, body=answer(client, call))
        client.send_notification("notifications/roots/list_changed")
        respond(take(client), 404)
        reopen(client)
        assert only(Ready, events_of(client)[-1:]).revision == LEGACY


def test_a_new_session_may_fail() -> None:
    """Its start has an ending, as every other."""
    client = opened()
    call, exchange = ask(client)
    respond(exchange, 404)
    lost = only(SessionLost, events_of(client))
    take(client).receive_failure("connection refused")
    failed, again, ended = events_of(client)
    assert isinstance(failed, ConnectionFailed)
    assert (failed.start, failed.cause) == (lost.start, FailureCause.LOST)
    assert again == SessionLost(start=None)
    assert isinstance(ended, RequestFailed)
    assert (ended.request, ended.reason) == (call, FailureReason.LOST)
    assert "does not know the session" in ended.text
    assert failed.text in ended.text
    client.reopen()
    reopen(client)
    assert kinds(events_of(client)) == [Ready]


@pytest.mark.parametrize(
    ("status", "error", "seconds"),
    [(401, None, None), (500, None, None), (429, None, 7.0), (429, "busy", 7.0), (307, None, None)],
)
def test_a_new_session_may_be_refused(
    status: int, error: str | None, seconds: float | None
) -> None:
    """What was lost with the old session said nothing of the status, which only the start had."""
    client = opened()
    call, exchange = ask(client)
    respond(exchange, 404)
    texts: list[str] = []
    lost: list[RequestFailed] = []
    events_of(client)
    for _ in range(2):
        opening = take(client)
        body: object = b"no"
        if error is not None:
            said: JSONObject = {"code": -32000, "message": error}
            body = {"jsonrpc": "2.0", "id": message_of(opening)["id"], "error": said}
        more = {} if seconds is None else {"retry-after": f"{seconds:.0f}"}
        respond(opening, status, body, more)
        events = events_of(client)
        failed = only(ConnectionFailed, events)
        lost += [one for one in events if isinstance(one, RequestFailed)]
        texts.append(failed.text)
        assert (failed.cause, failed.status) == (FailureCause.REFUSED, status)
        assert (failed.message, failed.retry_after) == (error, seconds)
        client.reopen()
    (ended,) = lost
    assert ended.request is call
    assert "does not know the session" in ended.text
    assert ended.text.endswith(f"no new session could be opened: {texts[0]}")
    reopen(client)
    assert kinds(events_of(client)) == [Ready]


@pytest.mark.parametrize("how", ["changed", "read once"])
def test_a_new_session_has_the_revisions_that_were_given_first(how: str) -> None:
    """What the caller does with the list afterwards is of no importance."""
    given = [LEGACY]
    revisions: Any = given if how == "changed" else iter(given)
    client = opened(revisions=revisions)
    given.clear()
    _, exchange = ask(client)
    respond(exchange, 404)
    reopen(client)
    assert kinds(events_of(client)) == [SessionLost, Ready]


def test_without_a_session_404_is_a_refusal_like_any_other() -> None:
    """Nothing was lost."""
    client = opened(session=None)
    _, exchange = ask(client)
    respond(exchange, 404)
    assert only(RequestFailed, events_of(client)[1:]).reason is FailureReason.REFUSED
    assert exchanges_of(client) == []


def test_a_lost_session_needs_no_clock() -> None:
    """Nothing of it is timed."""
    client = opened(now=None)
    call, exchange = ask(client)
    respond(exchange, 404)
    assert kinds(events_of(client)) == [SessionLost]
    reopen(client)
    assert kinds(events_of(client)) == [Ready]
    assert client.pending_requests == (call,)


# ---------------------------------------------------- what the server has not run is sent again


def refused(
    client: ClientEndpoint, **how: Any
) -> tuple[OutgoingRequest, ClientExchange, ClientExchange]:
    """A call that was refused for its session, and was sent in the next: it, first and again."""
    call, exchange = ask(client, **how)
    respond(exchange, 404)
    events_of(client)
    initialize = take(client)
    opening = initialized(message_of(initialize)["id"])
    respond(initialize, body=opening, more={"mcp-session-id": "S-2"})
    respond(take(client), 202)
    assert kinds(events_of(client)) == [Ready]
    return call, exchange, take(client)


def test_a_call_that_was_refused_for_its_session_is_sent_in_the_next() -> None:
    """The server has not run it, and the caller need not know that it was started again."""
    client = opened()
    call, first, again = refused(client)
    assert again.body == first.body
    assert fields_of(again)["mcp-session-id"] == "S-2"
    respond(again, body=answer(client, call))
    assert only(ResponseReceived, events_of(client)).request is call


def again_in_the_next(client: ClientEndpoint, exchange: ClientExchange) -> ClientExchange:
    """A request was refused for its session: how it is sent in the next."""
    respond(exchange, 404)
    reopen(client)
    assert kinds(events_of(client)) == [SessionLost, Ready]
    again = take(client)
    assert again.body == exchange.body
    return again


@pytest.mark.parametrize("auto", [True, False])
def test_so_is_a_listing_that_has_begun(auto: bool) -> None:
    """Most conversations go on with one, also after the server was started again."""
    client = opened()
    listing = client.send_paginated("tools/list", auto=auto)
    again = again_in_the_next(client, take(client))
    respond(again, body=result(message_of(again)["id"], {"tools": [], "nextCursor": "2"}))
    if not auto:
        assert client.next_page(listing)
    last = take(client)
    assert message_of(last)["params"] == {"cursor": "2"}
    respond(last, body=result(message_of(last)["id"], {"tools": []}))
    ended = events_of(client)[-1]
    assert isinstance(ended, ListingEnded)
    assert (ended.listing, ended.reason, ended.stale) == (listing, ListingEnd.COMPLETE, False)


def test_so_is_a_ping() -> None:
    """It asks whether the server is alive, and it is."""
    client = opened()
    ping = client.ping()
    again = again_in_the_next(client, take(client))
    respond(again, body=result(message_of(again)["id"], {}))
    ended = only(PingEnded, events_of(client))
    assert (ended.ping, ended.failure) == (ping, None)


def test_a_listing_that_has_come_further_is_lost() -> None:
    """Its cursor may mean something else in another session."""
    client = opened()
    client.send_paginated("tools/list")
    exchange = take(client)
    respond(exchange, body=result(message_of(exchange)["id"], {"tools": [], "nextCursor": "2"}))
    respond(take(client), 404)
    assert only(ListingEnded, events_of(client)[2:]).reason is ListingEnd.LOST


def test_it_keeps_its_progress_and_its_time() -> None:
    """What was agreed on for it goes on, and runs out."""
    client = opened(now=0.0)
    call, _, again = refused(client, progress=True, timeout=10.0)
    told = note("notifications/progress", {"progressToken": call.id, "progress": 1})
    stream(again, event(told), now=8.0)
    assert kinds(events_of(client)) == [ProgressReceived]
    assert client.next_timeout() == 18.0
    client.handle_timeout(18.0)
    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.reason) == (call, FailureReason.TIMED_OUT)
    assert message_of(exchanges_of(client)[-1])["method"] == "notifications/cancelled"


def test_it_has_the_rest_of_its_time_where_that_stood_still() -> None:
    """A question of the server was open when the time ran out: it counts from the next session."""
    client = opened(now=0.0, capabilities={"roots": {}})
    _, asking = ask(client)
    call, exchange = ask(client, timeout=5.0)
    stream(asking, event(request(7, "roots/list")), now=1.0)
    only(RequestReceived, events_of(client))
    client.handle_timeout(5.0)
    assert call.open
    respond(exchange, 404, now=6.0)
    events_of(client)
    reopen(client, now=6.0)
    assert kinds(events_of(client))[-1] is Ready
    take(client)
    assert client.next_timeout() == 10.0
    client.handle_timeout(10.0)
    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.reason) == (call, FailureReason.TIMED_OUT)


def test_it_is_sent_once_more_and_not_again() -> None:
    """Several workers that each know their own sessions refuse most of what they are sent."""
    client = opened()
    call, _, again = refused(client)
    respond(again, 404)
    ended = [one for one in events_of(client) if isinstance(one, RequestFailed)]
    assert [(one.request, one.reason) for one in ended] == [(call, FailureReason.LOST)]
    assert "workers" in ended[0].text


def test_what_was_not_sent_yet_is_sent_in_the_next_session() -> None:
    """It waited for its turn, and does so again."""
    client = opened()
    _, exchange = ask(client)
    second = client.send_request("tools/list")
    respond(exchange, 404)
    assert kinds(events_of(client)) == [SessionLost]
    reopen(client)
    third = client.send_request("prompts/list")
    methods = [message_of(one)["method"] for one in exchanges_of(client)]
    assert methods == ["tools/call", "tools/list", "prompts/list"]
    assert third.id not in (second.id, exchange)
    assert len({call.id for call in client.pending_requests}) == 3


@pytest.mark.parametrize("how", ["cancel", "timeout", "close"])
def test_it_may_end_while_the_next_session_is_opened(how: str) -> None:
    """Then it is not sent, and the server is told nothing of it."""
    client = opened(now=0.0)
    call, exchange = ask(client, timeout=5.0)
    respond(exchange, 404)
    events_of(client)
    if how == "close":
        client.close()
    elif how == "cancel":
        assert client.cancel(call)
    else:
        client.handle_timeout(5.0)
    assert [one.request for one in events_of(client) if isinstance(one, RequestFailed)] == [call]
    if how != "close":
        reopen(client)
    assert exchanges_of(client) == []


UNKNOWN = (
    error(None, -32000, "Bad Request: No valid session ID provided"),
    error(None, -32000, "Bad Request: Server not initialized"),
    error("server-error", -32600, "Missing or invalid session ID"),
    error(None, -32001, "Session not found"),
    error(None, -32000, "Invalid or missing Mcp-Session-Id header"),
    b"Invalid session ID",
    b'{"error": "unknown session"}',
    b"session has expired",
    b"Session S-1 does not exist",
)


@pytest.mark.parametrize("body", UNKNOWN)
def test_a_session_may_be_unknown_with_400(body: object) -> None:
    """Some servers say it so: the client had to be started again after each of their restarts."""
    client = opened()
    call, exchange = ask(client, "tools/list", {})
    respond(exchange, 400, body, form="application/json")
    violation, lost = events_of(client)
    assert isinstance(violation, ProtocolViolation)
    assert (violation.rule, violation.tolerated) == ("SESS-008", True)
    assert isinstance(lost, SessionLost)
    reopen(client)
    again = take(client)
    assert again.body == exchange.body
    respond(again, body=answer(client, call, {"tools": []}))
    assert only(ResponseReceived, events_of(client)[1:]).request is call


@pytest.mark.parametrize("body", UNKNOWN)
def test_a_call_that_may_have_run_is_not_sent_again_after_400(body: object) -> None:
    """Only 404 says for sure that the server does not know the session."""
    client = opened()
    call, exchange = ask(client)
    respond(exchange, 400, body, form="application/json")
    failed = events_of(client)[-1]
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)
    reopen(client)
    assert exchanges_of(client) == []


NO_LOSS = (
    "database session was rolled back",
    "session budget of the user is exhausted",
    "the tool's session cookie has expired",
    "invalid session key",
    "the camera is not initialized",
)


@pytest.mark.parametrize("text", NO_LOSS)
@pytest.mark.parametrize("form", ["error", "text"])
def test_400_that_speaks_of_another_session_loses_none(text: str, form: str) -> None:
    """The call was sent twice, and a good session was thrown away."""
    client = opened()
    _, exchange = ask(client)
    respond(exchange, 400, error(None, -32603, text) if form == "error" else text.encode())
    assert SessionLost not in kinds(events_of(client))
    assert exchanges_of(client) == []


@pytest.mark.parametrize("text", [*NO_LOSS, "Session not found", "No valid session ID provided"])
def test_an_error_with_the_id_of_the_call_is_its_answer(text: str) -> None:
    """Whatever it says: the server has read the call, and may have run it."""
    client = opened()
    call, exchange = ask(client)
    respond(exchange, 400, error(call.id, -32000, text))
    events = events_of(client)
    assert SessionLost not in kinds(events)
    assert only(ErrorReceived, events).message == text
    assert exchanges_of(client) == []


@pytest.mark.parametrize("kept", [1, 2])
def test_a_call_kept_for_authorization_is_sent_in_the_next_session(kept: int) -> None:
    """The server refused it, so it has not run it; it ended as lost."""
    client = opened(authorize=True)
    calls: list[OutgoingRequest] = []
    for _ in range(kept):
        call, exchange = ask(client)
        respond(exchange, 401)
        calls.append(call)
    client.send_notification("notifications/roots/list_changed")
    respond(take(client), 404)
    assert kinds(events_of(client)) == [AuthorizationRequired] * kept + [SessionLost]
    initialize = take(client)
    assert client.authorize({"Authorization": "Bearer b"}) == 0
    opening = initialized(message_of(initialize)["id"])
    respond(initialize, body=opening, more={"mcp-session-id": "S-2"})
    respond(take(client), 202)
    again = exchanges_of(client)
    assert [message_of(one)["id"] for one in again] == [call.id for call in calls]
    assert all(fields_of(one)["authorization"] == "Bearer b" for one in again)


def test_a_notification_may_learn_of_it_first() -> None:
    """It is lost; what comes after it is sent in the next session."""
    client = opened()
    client.send_notification("notifications/roots/list_changed")
    respond(take(client), 400, b"session expired", form="text/plain")
    assert kinds(events_of(client)) == [ProtocolViolation, SessionLost]
    reopen(client)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error(None, -32602, "session must be a string")),
        (400, error(None, -32600, "Invalid Request")),
        (409, b"session busy"),
    ],
)
def test_other_faults_of_a_request_lose_no_session(status: int, body: object) -> None:
    """All that is open would be lost with it."""
    client = opened()
    _, exchange = ask(client)
    respond(exchange, status, body)
    assert SessionLost not in kinds(events_of(client))
    assert exchanges_of(client) == []


def test_without_a_session_none_is_lost() -> None:
    """400 is what it says."""
    client = opened(session=None)
    _, exchange = ask(client)
    respond(exchange, 400, b"no session", form="text/plain")
    assert SessionLost not in kinds(events_of(client))


def test_a_call_that_has_run_is_not_sent_again() -> None:
    """The rest of its answer was asked for, and the session was gone."""
    client = opened(now=0.0)
    call, exchange = ask(client)
    stream(exchange, b"id: 1\ndata:\n\n", ends=True, now=0.0)
    client.handle_timeout(1.0)
    respond(take(client), 404)
    lost, failed = events_of(client)
    assert isinstance(lost, SessionLost)
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)


# ----------------------------------------- what the server may have run, when a session is lost


def in_doubt(
    purpose: ExchangePurpose = ExchangePurpose.GET, config: Config | None = None, **how: Any
) -> tuple[ClientEndpoint, OutgoingRequest, ClientExchange]:
    """A call is under way without a response, and another exchange has found the session gone."""
    client = opened(get=True, now=0.0, config=config)
    gone = take(client)
    call, exchange = ask(client, **how)
    if purpose is not ExchangePurpose.GET:
        stream(gone)
        _, gone = ask(client)
    respond(gone, 404)
    assert kinds(events_of(client)) == [SessionLost]
    assert not exchange.over
    return client, call, exchange


@pytest.mark.parametrize("purpose", [ExchangePurpose.GET, ExchangePurpose.POST])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_call_that_is_refused_after_its_session_was_lost_is_sent_in_the_next(
    purpose: ExchangePurpose, is_late: bool
) -> None:
    """Its own 404 says that it was not run, whatever has found that the session is gone before."""
    client, call, exchange = in_doubt(purpose)
    if not is_late:
        respond(exchange, 404)
        assert exchange.aborted
    reopen(client)
    if is_late:
        respond(exchange, 404)
    assert SessionLost not in kinds(events_of(client))
    posts = [one for one in exchanges_of(client) if one.method == "POST"]
    (again,) = (one for one in posts if message_of(one)["id"] == call.id)
    assert again.body == exchange.body
    assert fields_of(again)["mcp-session-id"] == "S-2"
    respond(again, body=answer(client, call))
    assert only(ResponseReceived, events_of(client)).request is call


@pytest.mark.parametrize("status", [307, 401])
def test_so_is_one_that_is_sent_elsewhere_or_must_be_authorized(status: int) -> None:
    """It was not run. What it needs besides is found out in the session that is sent next."""
    client, call, exchange = in_doubt()
    respond(exchange, status, more={"location": "/elsewhere"})
    reopen(client)
    assert kinds(events_of(client)) == [Ready]
    _, again = exchanges_of(client)
    assert again.body == exchange.body
    assert client.pending_requests == (call,)


def test_a_call_is_sent_in_two_sessions_at_most() -> None:
    """It was sent again once. That its second session was lost too ends it, when it is refused."""
    client, call, exchange = in_doubt()
    reopen(client)
    respond(exchange, 404)
    stream_of_get, again = exchanges_of(client)
    served, other = ask(client)
    respond(other, body=answer(client, served))
    events_of(client)
    respond(stream_of_get, 404)
    assert kinds(events_of(client)) == [SessionLost]
    respond(again, 404)
    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)
    assert "workers" in failed.text


@pytest.mark.parametrize("is_opened", [False, True])
@pytest.mark.parametrize("form", ["json", "stream"])
def test_a_call_that_was_run_after_all_is_answered(form: str, is_opened: bool) -> None:
    """One worker knows the session and another one does not. The answer counts."""
    client, call, exchange = in_doubt(progress=True)
    if is_opened:
        reopen(client)
    events_of(client)
    if form == "json":
        respond(exchange, body=answer(client, call))
    else:
        pieces = (event(request(9, "roots/list")), event(CHANGED))
        stream(exchange, *pieces, event(answer(client, call)))
    answered = only(ResponseReceived, events_of(client))
    assert answered.request is call
    if not is_opened:
        reopen(client)
        assert kinds(events_of(client)) == [Ready]
    assert [one.method for one in exchanges_of(client)] == ["GET"]


def told(token: object, progress: object, **more: object) -> JSONObject:
    """A notification of progress."""
    return note("notifications/progress", {"progressToken": token, "progress": progress, **more})


@pytest.mark.parametrize("is_opened", [False, True])
def test_progress_of_a_call_that_is_still_running_counts(is_opened: bool) -> None:
    """The call ran out of time, although its server had shown all the while that it works."""
    client, call, exchange = in_doubt(progress=True, timeout=10.0)
    if is_opened:
        reopen(client)
        events_of(client)
    stream(exchange, event(told(call.id, 1)), now=8.0)
    came = only(ProgressReceived, events_of(client))
    assert (came.request, came.progress) == (call, 1)
    client.handle_timeout(17.0)
    marked = event(told(call.id, 2, total=3)).replace(b"data: ", b"data: " + BOM)
    stream(exchange, marked, now=17.0)
    late = [one for one in events_of(client) if isinstance(one, ProgressReceived)]
    assert [(one.request, one.progress, one.total) for one in late] == [(call, 2, 3)]
    client.handle_timeout(26.0)
    assert call.open
    stream(exchange, event(answer(client, call)), now=26.0)
    assert only(ResponseReceived, events_of(client)).request is call
    stream(exchange, event(told(call.id, 3)), now=26.0)
    assert events_of(client) == []


@pytest.mark.parametrize(
    "what",
    [
        "another call",
        "no call",
        "no token",
        "no params",
        "a request",
        "another method",
        "no JSON",
        "too large",
    ],
)
def test_nothing_else_that_is_told_in_a_lost_session_counts(what: str) -> None:
    """It speaks of a session that is over; the call has had no sign of life by it."""
    config = Config(max_message_bytes=400)
    client, call, exchange = in_doubt(config=config, progress=True, timeout=10.0)
    reopen(client)
    events_of(client)
    other = client.send_request("tools/call", {"name": "t"}, progress=True)
    good: JSONObject = {"progressToken": call.id, "progress": 1}
    data: JSONObject = {
        "another call": told(other.id, 1),
        "no call": told(77, 1),
        "no token": told([], 1),
        "no params": note("notifications/progress"),
        "a request": request(9, "notifications/progress", good),
        "another method": note("notifications/other", good),
        "no JSON": told(call.id, 1),
        "too large": told(call.id, 1, message="x" * 500),
    }[what]
    piece = event(data)
    if what == "no JSON":
        piece = piece.replace(b"}\n", b"\n")
    stream(exchange, piece, now=8.0)
    assert events_of(client) == []
    client.handle_timeout(10.0)
    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.reason) == (call, FailureReason.TIMED_OUT)


def test_an_answer_from_a_lost_session_does_not_make_the_next_one_useful() -> None:
    """Otherwise a server without memory would be asked for a session for ever."""
    client, call, exchange = in_doubt()
    respond(exchange, body=answer(client, call))
    reopen(client)
    client.send_notification("notifications/roots/list_changed")
    respond(exchanges_of(client)[-1], 404)
    assert only(SessionLost, events_of(client)[-1:]).start is None


@pytest.mark.parametrize("how", ["failure", "stream", "400", "overlong", "large request"])
def test_a_call_that_may_have_been_run_in_a_lost_session_is_not_sent_again(how: str) -> None:
    """The caller has to know that: what it does may have been done."""
    client, call, exchange = in_doubt(config=Config(max_message_bytes=400))
    reopen(client)
    events_of(client)
    if how == "failure":
        exchange.receive_failure("the connection was reset")
    elif how == "stream":
        stream(exchange, b"id: 1\ndata:\n\n", ends=True)
    elif how == "overlong":
        stream(exchange, event(answer(client, call, {"content": ["x" * 500]})))
    elif how == "large request":
        stream(exchange, event(request(9, "roots/list", {"x": "x" * 500})), ends=True)
    else:
        respond(exchange, 400, UNKNOWN[0])
    events = events_of(client)
    assert SessionLost not in kinds(events)
    ended = events[-1]
    if how == "400":
        assert isinstance(ended, ErrorReceived)
    else:
        assert isinstance(ended, RequestFailed)
        is_lost = how != "overlong"
        assert ended.reason is (FailureReason.LOST if is_lost else FailureReason.INVALID_ANSWER)
        assert ("did not know its session" in ended.text) == is_lost
    assert ended.request is call
    assert client.next_timeout() is None
    assert [one.method for one in exchanges_of(client)] == ["GET"]


@pytest.mark.parametrize("how", ["cancel", "timeout", "close"])
def test_a_call_of_a_lost_session_may_end_before_it_is_decided(how: str) -> None:
    """Its exchange ends with it, and nobody is told: the next session knows nothing of it."""
    client, call, exchange = in_doubt(timeout=5.0)
    reopen(client)
    exchanges_of(client)
    events_of(client)
    if how == "close":
        client.close()
    elif how == "cancel":
        assert client.cancel(call)
    else:
        client.handle_timeout(5.0)
    assert only(RequestFailed, events_of(client)[:1]).request is call
    assert exchange.aborted
    left = [one.method for one in exchanges_of(client)]
    assert left == (["DELETE"] if how == "close" else [])


def test_it_is_lost_with_the_next_session_if_that_cannot_be_opened() -> None:
    """There is nothing left in which its answer could mean something."""
    client, call, exchange = in_doubt()
    take(client).receive_failure("connection refused")
    failed = only(RequestFailed, events_of(client)[-1:])
    assert (failed.request, failed.not_run) == (call, False)
    assert exchange.aborted


@pytest.mark.parametrize(
    ("what", "is_not_run"),
    [
        ("refused with 404", True),
        ("not sent yet", True),
        ("kept", True),
        ("redirected", True),
        ("under way", False),
        ("under way, then 404", True),
        ("under way, then 401", True),
        ("answered in part", False),
        ("under way, to be repeated", False),
        ("repeated", False),
        ("refused with 400", False),
    ],
)
@pytest.mark.parametrize("end", ["refused", "failed", "cancelled", "timed out"])
def test_a_request_says_whether_it_was_certainly_not_run(
    what: str, is_not_run: bool, end: str
) -> None:
    """A caller that asks again, as a refusal with `Retry-After` invites to, would run it twice."""
    client = opened(get=True, now=0.0, authorize=True)
    gone = take(client)
    method = "tools/list" if what in ("repeated", "refused with 400") else "tools/call"
    if what == "under way, to be repeated":
        method = "resources/read"
    params: JSONObject = {"name": "t", "uri": "file:///a"}
    call = client.send_request(method, params, timeout=9.0, now=0.0)
    if what == "not sent yet":
        respond(gone, 404)
    else:
        exchange = take(client)
        if what == "refused with 404":
            respond(exchange, 404)
        elif what == "refused with 400":
            respond(exchange, 400, UNKNOWN[0])
        else:
            if what in ("kept", "redirected"):
                respond(exchange, {"kept": 401}.get(what, 307), more={"location": "/elsewhere"})
            elif what == "answered in part":
                stream(exchange)
            elif what == "repeated":
                exchange.receive_failure("the connection was closed", kept=True)
            respond(gone, 404)
            if what.startswith("under way, then"):
                respond(exchange, int(what[-3:]))
    is_open = what != "answered in part"  # that ends with the old session
    assert client.pending_requests == ((call,) if is_open else ())
    if end == "refused":
        respond(take(client), 429, b"no", {"retry-after": "1"})
    elif end == "failed":
        take(client).receive_failure("connection refused")
    elif end == "cancelled":
        assert client.cancel(call) == is_open
    else:
        client.handle_timeout(9.0)
    failed = [one for one in events_of(client) if isinstance(one, RequestFailed)]
    assert [(one.request, one.not_run) for one in failed] == [(call, is_not_run)]


def test_a_request_that_was_sent_in_the_next_session_may_have_been_run() -> None:
    """That the one before had refused it says nothing any more."""
    client = opened()
    call, _, again = refused(client)
    again.receive_failure("the connection was reset")
    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.not_run) == (call, False)


@pytest.mark.parametrize("verb", ["list", "read", "ping"])
def test_what_has_the_same_effect_twice_is_sent_again_at_once(verb: str) -> None:
    """To wait for what becomes of it in the lost session is of no use."""
    client = opened(get=True, now=0.0)
    gone = take(client)
    if verb == "list":
        client.send_paginated("tools/list")
    elif verb == "read":
        client.send_request("resources/read", {"uri": "file:///a"})
    else:
        client.ping()
    exchange = take(client)
    respond(gone, 404)
    assert exchange.aborted
    reopen(client)
    assert kinds(events_of(client)) == [SessionLost, Ready]
    _, again = exchanges_of(client)
    assert again.body == exchange.body
    assert fields_of(again)["mcp-session-id"] == "S-2"


def test_a_silent_session_is_pinged_until_it_is_given_up() -> None:
    """Keep-alive is a POST like any other, and one that is refused has failed."""
    client = opened(config=Config(ping_interval=10.0, max_failed_pings=2), now=0.0)
    for now in (10.0, 20.0):
        client.handle_timeout(now)
        respond(take(client), 500, now=now)
    closed = events_of(client)[-1]
    assert closed == ConnectionClosed(cause=CloseCause.UNRESPONSIVE)


# ------------------------------------------------------------------------- the stream of a GET


@pytest.mark.parametrize("revision", STREAMABLE)
def test_the_stream_brings_what_belongs_to_no_request(revision: str) -> None:
    """Notifications, and requests of the server (SSE-022)."""
    client = opened(revision, get=True)
    exchange = take(client)
    assert (exchange.method, exchange.body) == ("GET", b"")
    fields = fields_of(exchange)
    assert fields["accept"] == "text/event-stream"
    assert "last-event-id" not in fields
    assert "content-type" not in fields
    stream(exchange, event(CHANGED), event(request(1, "roots/list")))
    assert kinds(events_of(client)) == [NotificationReceived, RequestReceived]


def test_an_answer_on_that_stream_is_out_of_place() -> None:
    """It is taken all the same: the call is waiting for it (SSE-024)."""
    client = opened(get=True)
    exchange = take(client)
    call, _ = ask(client)
    stream(exchange, event(answer(client, call)))
    violation, received = events_of(client)
    assert isinstance(violation, ProtocolViolation)
    assert (violation.rule, violation.tolerated) == ("SSE-024", True)
    assert isinstance(received, ResponseReceived)


def test_the_stream_need_not_be_asked_for() -> None:
    """Some have no use for it, and each costs a connection."""
    client = opened(get=False)
    assert exchanges_of(client) == []


def test_a_modern_server_has_no_such_stream() -> None:
    """It is not even asked."""
    client = opened(MODERN, get=True)
    assert exchanges_of(client) == []


@pytest.mark.parametrize("id", [None, "7", "\xe4\u20ac"])
def test_a_stream_that_ends_is_asked_for_again(id: str | None) -> None:
    """From where it ended, where the server names its events."""
    client = opened(get=True, now=0.0)
    stream(take(client), event(CHANGED, id), ends=True, now=5.0)
    assert client.next_timeout() == 6.0
    client.handle_timeout(6.0)
    again = take(client)
    sent = dict(again.headers).get(b"last-event-id")
    assert sent == (None if id is None else id.encode())
    stream(again, event(CHANGED))
    assert kinds(events_of(client)) == [NotificationReceived] * 2


def test_an_event_may_take_the_id_back() -> None:
    """An empty one says that there is nowhere to go on from."""
    client = opened(get=True, now=0.0)
    stream(take(client), event(CHANGED, "7"), b"id:\n\n", ends=True)
    client.handle_timeout(1.0)
    assert b"last-event-id" not in dict(take(client).headers)


@pytest.mark.parametrize("id", ["a\x01b", "x" * 8193, " a", "a "])
def test_an_id_that_could_not_be_sent_is_not(id: str) -> None:
    """The stream is asked for from its start."""
    client = opened(get=True, now=0.0)
    stream(take(client), event(CHANGED, id), ends=True)
    client.handle_timeout(1.0)
    assert b"last-event-id" not in dict(take(client).headers)


@pytest.mark.parametrize("id", ["a", "a b", "\xe4"])
def test_an_id_may_have_all_that_fields_may(id: str) -> None:
    """Only space around it would not arrive."""
    client = opened(get=True, now=0.0)
    stream(take(client), event(CHANGED, id), ends=True)
    client.handle_timeout(1.0)
    assert dict(take(client).headers)[b"last-event-id"] == id.encode()


def test_an_id_that_the_server_has_forgotten_is_given_up() -> None:
    """What came meanwhile is gone; what will come is not."""
    client = opened(get=True, now=0.0)
    stream(take(client), event(CHANGED, "7"), ends=True)
    client.handle_timeout(1.0)
    respond(take(client), 400)
    again = take(client)
    assert again.purpose is ExchangePurpose.GET
    assert b"last-event-id" not in dict(again.headers)
    respond(again, 400)
    assert kinds(events_of(client)) == [NotificationReceived, StreamUnavailable]


@pytest.mark.parametrize("status", [400, 403, 406, 409, 501])
def test_a_stream_may_be_refused(status: int) -> None:
    """Requests go on without."""
    client = opened(get=True)
    respond(take(client), status)
    assert only(StreamUnavailable, events_of(client)).status == status
    assert client.next_timeout() is None


def test_a_stream_in_another_form_is_none() -> None:
    """It is not read."""
    client = opened(get=True)
    exchange = take(client)
    head(exchange, 200, "text/html")
    assert "text/html" in only(StreamUnavailable, events_of(client)).text
    assert client.aborts() == [exchange]


def test_a_stream_that_is_encoded_is_none() -> None:
    """As any other body."""
    client = opened(get=True)
    head(take(client), 200, "text/event-stream", {"content-encoding": "gzip"})
    assert kinds(events_of(client)) == [ProtocolViolation, StreamUnavailable]


def test_failures_in_a_row_take_longer_and_longer() -> None:
    """A server that comes up again is not met by all its clients at once, again and again."""
    client = opened(get=True, now=0.0, config=Config(max_reconnects=8))
    waits: list[float] = []
    now = 0.0
    for _ in range(8):
        take(client).receive_failure("connection refused", now=now)
        if (when := client.next_timeout()) is None:
            break
        waits.append(when - now)
        now = when
        client.handle_timeout(now)
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    unavailable = only(StreamUnavailable, events_of(client))
    assert unavailable.status is None
    assert "8 attempts" in unavailable.text


def test_failures_may_go_on_for_as_long_as_the_limit_says() -> None:
    """However large that is."""
    client = opened(get=True, now=0.0, config=Config(max_reconnects=2_000))
    now = 0.0
    for _ in range(1_999):
        take(client).receive_failure("refused", now=now)
        now = client.next_timeout() or 0.0
        client.handle_timeout(now)
    assert now > 50_000
    assert events_of(client) == []


def test_a_server_may_be_busy_for_a_while() -> None:
    """It says how long, and after a success failures count from one again."""
    client = opened(get=True, now=0.0)
    respond(take(client), 503, more={"Retry-After": "20"}, now=0.0)
    assert client.next_timeout() == 20.0
    client.handle_timeout(20.0)
    stream(take(client), b"retry: 3000\nid: 1\n\n", ends=True, now=20.0)
    assert client.next_timeout() == 23.0
    client.handle_timeout(23.0)
    respond(take(client), 502, now=23.0)
    assert client.next_timeout() == 26.0
    assert events_of(client) == []


def test_a_stream_may_be_taken_up_a_thousand_times() -> None:
    """Servers end idle streams every minute, for months."""
    client = opened(get=True, now=0.0)
    now = 0.0
    for number in range(1000):
        exchange = take(client)
        stream(exchange, event(CHANGED, str(number)), ends=True, now=now)
        now += 1.0
        client.handle_timeout(now)
    assert kinds(events_of(client)) == [NotificationReceived] * 1000
    assert client.exchanges == ()


@pytest.mark.parametrize(
    "piece", [b"", b": hello\n\n", b"retry: 1000\n\n", b"data: {", b"event: a\ndata: 1\n\n"]
)
def test_a_stream_that_brings_nothing_is_asked_for_less_and_less(piece: bytes) -> None:
    """Some servers give a stream and end it at once: they were asked each second for ever."""
    client = opened(get=True, now=0.0, config=Config(max_reconnects=4))
    waits: list[float] = []
    now = 0.0
    for _ in range(4):
        stream(take(client), piece, ends=True, now=now)
        if (when := client.next_timeout()) is None:
            break
        waits.append(when - now)
        now = when
        client.handle_timeout(now)
    assert waits == [1.0, 2.0, 4.0]
    assert "4 attempts" in only(StreamUnavailable, events_of(client)).text


def test_a_stream_that_lasts_may_bring_nothing() -> None:
    """Proxies cut what is idle, and that is no reason to do without the stream."""
    client = opened(get=True, now=0.0, config=Config(max_reconnects=2))
    now = 0.0
    for _ in range(20):
        exchange = take(client)
        stream(exchange, now=now)
        now += 10.0
        exchange.receive_end(now=now)
        assert client.next_timeout() == now + 1.0
        now += 1.0
        client.handle_timeout(now)
    assert events_of(client) == []


def test_without_a_clock_a_stream_is_taken_up_at_once() -> None:
    """There is no time to wait for; failures are counted all the same."""
    client = opened(get=True, now=None, config=Config(max_reconnects=2))
    stream(take(client), event(CHANGED), ends=True)
    events_of(client)
    for _ in range(2):
        take(client).receive_failure("refused")
    assert kinds(events_of(client)) == [StreamUnavailable]
    assert exchanges_of(client) == []


# ------------------------------------------------------------ the stream of an answer is broken


@pytest.mark.parametrize("revision", STREAMABLE)
@pytest.mark.parametrize("breaks", [True, False])
def test_an_answer_is_fetched_where_it_broke_off(revision: str, breaks: bool) -> None:
    """Whether the server has ended the connection or the network (SSE-032, SSE-033)."""
    client = opened(revision, now=0.0)
    call, exchange = ask(client, progress=True)
    stream(exchange, b"id: a\ndata:\n\nid: cut", now=1.0)
    if breaks:
        exchange.receive_failure("reset", now=1.0)
    else:
        exchange.receive_end(now=1.0)
    assert events_of(client) == []
    client.handle_timeout(2.0)
    again = take(client)
    assert again.request is call
    assert fields_of(again)["last-event-id"] == "a"
    stream(again, b": hello\n\n", ends=True, now=3.0)
    client.handle_timeout(4.0)
    once_more = take(client)
    assert fields_of(once_more)["last-event-id"] == "a"
    stream(once_more, event(answer(client, call), "b"), ends=True)
    assert only(ResponseReceived, events_of(client)).request is call
    assert client.next_timeout() is None


def test_without_a_name_for_its_last_event_an_answer_is_lost() -> None:
    """There is nothing to ask for (SSE-032)."""
    client = opened(now=0.0)
    call, exchange = ask(client)
    stream(exchange, event(CHANGED), ends=True)
    failed = only(RequestFailed, events_of(client)[1:])
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)
    assert client.next_timeout() is None


@pytest.mark.parametrize("status", [400, 405, 409])
def test_a_server_may_not_know_how_to_go_on(status: int) -> None:
    """Then the answer is lost."""
    client = opened(now=0.0)
    call, exchange = ask(client)
    stream(exchange, b"id: a\ndata:\n\n", ends=True)
    client.handle_timeout(1.0)
    respond(take(client), status)
    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)
    assert str(status) in failed.text


def test_a_stream_is_taken_up_again_in_vain() -> None:
    """Failures in a row are bounded (OWN-041); a success between them is not counted."""
    client = opened(now=0.0, config=Config(max_reconnects=2))
    call, exchange = ask(client)
    stream(exchange, b"id: a\ndata:\n\nretry: 0\n\n", ends=True)
    now = 0.0
    for _ in range(2):
        now += 40.0
        client.handle_timeout(now)
        exchange = take(client)
        if now == 40.0:
            respond(exchange, 503, now=now)
        else:
            exchange.receive_failure("refused", now=now)
    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)
    assert exchanges_of(client) == []


def test_attempts_are_counted_long_after_the_last_stream() -> None:
    """A stream that was open for a while does not excuse the attempts after it (OWN-041)."""
    client = opened(now=0.0, config=Config(max_reconnects=2))
    call, exchange = ask(client)
    stream(exchange, b"id: a\ndata:\n\nretry: 0\n\n", ends=True)
    client.handle_timeout(1.0)
    exchange = take(client)
    stream(exchange, now=1.0)
    exchange.receive_end(now=15.0)
    for now in (40.0, 80.0):
        client.handle_timeout(now)
        take(client).receive_failure("refused", now=now)
    assert only(RequestFailed, events_of(client)).request is call
    assert exchanges_of(client) == []


def test_a_call_may_be_cancelled_while_its_stream_is_broken() -> None:
    """The client does not resume the stream of a cancelled call."""
    client = opened(now=0.0)
    call, exchange = ask(client)
    stream(exchange, b"id: a\ndata:\n\n", ends=True)
    assert client.cancel(call)
    assert take(client).purpose is ExchangePurpose.CANCEL
    assert client.next_timeout() is None
    assert client.aborts() == []


def test_a_call_may_time_out_while_its_stream_is_taken_up() -> None:
    """Its time is its own."""
    client = opened(now=0.0)
    call, exchange = ask(client, timeout=1.5)
    stream(exchange, b"id: a\ndata:\n\n", ends=True)
    client.handle_timeout(1.0)
    again = take(client)
    client.handle_timeout(1.5)
    assert client.aborts() == [again]
    assert only(RequestFailed, events_of(client)).request is call


def test_the_answer_may_come_on_another_stream_meanwhile() -> None:
    """The one that broke has no more to bring."""
    client = opened(now=0.0)
    call, exchange = ask(client)
    stream(exchange, b"id: a\ndata:\n\n", ends=True)
    _, other = ask(client)
    stream(other, event(answer(client, call)))
    assert only(ResponseReceived, events_of(client)).request is call
    assert client.next_timeout() is None


def test_the_end_of_a_conversation_ends_the_waiting() -> None:
    """Whatever was to be taken up."""
    client = opened(now=0.0)
    _, exchange = ask(client)
    stream(exchange, b"id: a\ndata:\n\n", ends=True)
    client.close()
    assert client.next_timeout() is None
