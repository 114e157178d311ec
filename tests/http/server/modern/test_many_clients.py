"""Many clients of 2026-07-28 share one endpoint: their notifications, ids and disconnects."""

from typing import Any

import pytest

from sansmcp import (
    CancelCause,
    JSONObject,
    MessageIgnored,
    NotificationReceived,
    RequestCancelled,
    RequestReceived,
)
from sansmcp.http import OldPaths
from tests.support.http.server_endpoint import (
    GET,
    JSON,
    LEGACY,
    POST,
    answer,
    asked,
    body_of,
    broken,
    connect,
    drain,
    modern_tool_call,
    new_endpoint,
    of,
    post,
    post_modern,
    refused,
    request,
)
from tests.support.modern import MODERN, VERSION, envelope, modern
from tests.support.wire import INITIALIZED, initialize, note, result

# ----------------------------------------------------------------------------- notifications


def test_a_cancellation_that_is_posted_cancels_nothing() -> None:
    """Clients use the same ids, so it would cancel the request of another client."""
    endpoint = new_endpoint()
    running = post_modern(endpoint, modern_tool_call(4))
    request = asked(endpoint)
    exchange = post_modern(endpoint, note("notifications/cancelled", {"requestId": 4}))

    response = answer(exchange)
    assert (response.status, response.body) == (202, b"")
    (event,) = of(MessageIgnored, drain(endpoint))
    assert event.rule == "OWN-034"
    assert request.open
    assert endpoint.send_result(request, {"content": []})
    assert answer(running).status == 200


def test_a_notification_is_accepted_without_a_body() -> None:
    """HTTP-015; the revision does not say which headers a notification needs."""
    endpoint = new_endpoint()
    for fields in ({}, {"mcp-method": "notifications/x"}):
        exchange = post(
            endpoint, note("notifications/x"), {"mcp-protocol-version": MODERN, **fields}
        )
        response = answer(exchange)
        assert (response.status, response.body) == (202, b"")
        assert of(NotificationReceived, drain(endpoint))[0].method == "notifications/x"


@pytest.mark.parametrize("era", ["modern", "session", "stateless", "old"])
def test_a_notification_says_who_sent_it(era: str) -> None:
    """Many clients share one endpoint, so the event must have the principal and the peer."""
    paths = OldPaths(stream="/sse", post="/messages") if era == "old" else None
    endpoint = new_endpoint(stateless=era == "stateless", old_paths=paths)
    fields: dict[str, str] = {"mcp-protocol-version": MODERN} if era == "modern" else {}
    target, revision = "/mcp", {"modern": MODERN, "stateless": "2025-03-26"}.get(era, LEGACY)
    if era == "session":
        fields = connect(endpoint, principal="ann").headers
    elif era == "old":
        stream = request(endpoint, "GET", GET, target="/sse", principal="ann")
        target, revision = answer(stream).events[0].data.decode(), "2024-11-05"
        opening = initialize(1, revision)
        for message in (opening, INITIALIZED):
            request(endpoint, "POST", POST, body_of(message), target=target, principal="ann")
        drain(endpoint)
    body = body_of(note("notifications/x"))
    for context in ("here", "there"):
        about: Any = {"principal": "ann", "context": context, "target": target}
        request(endpoint, "POST", {**POST, **fields}, body, **about)

    told = drain(endpoint)
    assert [type(event) for event in told] == [NotificationReceived] * 2
    for event, context in zip(of(NotificationReceived, told), ("here", "there"), strict=True):
        assert event.peer is not None
        assert (event.peer.principal, event.peer.revision) == ("ann", revision)
        assert event.context == context


@pytest.mark.parametrize(
    ("message", "fields", "code"),
    [
        (note("notifications/x", 7), {}, -32602),
        ({"method": "notifications/x"}, {}, -32600),
        (note("notifications/roots/list_changed"), {}, -32600),
        (note("notifications/x"), {"mcp-method": "notifications/y"}, -32020),
        (note("notifications/x", {"_meta": {VERSION: "v999"}}), {}, -32020),
    ],
)
def test_a_notification_that_cannot_be_accepted_gets_400(
    message: JSONObject, fields: dict[str, str], code: int
) -> None:
    """HTTP-016: the error must have no id."""
    endpoint = new_endpoint()
    status, found = refused(endpoint, message, {"mcp-protocol-version": MODERN, **fields})

    assert (status, found) == (400, code)


def test_an_answer_is_refused() -> None:
    """HTTP-013: a modern server sends no requests that could be answered."""
    endpoint = new_endpoint()
    response = answer(post(endpoint, result(1, {}), {"mcp-protocol-version": MODERN}))

    assert (response.status, response.json["id"]) == (400, 1)
    assert broken(endpoint) == ["HTTP-013"]


# ------------------------------------------------------------------------------ many clients


def test_clients_share_ids_and_tokens() -> None:
    """Each client counts from 1, so a request must be known by its exchange."""
    endpoint = new_endpoint()
    meta = envelope(progressToken=1)
    exchanges = [post_modern(endpoint, modern(1, "tools/call", {"name": "t"}, meta)) for _ in "ab"]
    first, second = (event.request for event in of(RequestReceived, drain(endpoint)))

    assert endpoint.send_progress(second, 1)
    endpoint.send_result(first, {"content": []})
    endpoint.send_result(second, {"content": [], "second": True})
    assert answer(exchanges[0]).json["result"].get("second") is None
    assert answer(exchanges[1]).messages[1]["result"]["second"]


def test_equal_envelopes_may_come_from_different_people() -> None:
    """The client info in a request is no proof of who sends it."""
    endpoint = new_endpoint()
    for name in ("a", "b"):
        post_modern(endpoint, modern_tool_call(), principal=name)
    one, other = (event.request for event in of(RequestReceived, drain(endpoint)))

    assert (one.principal, other.principal) == ("a", "b")
    assert one.peer.session is None


# --------------------------------------------------------------------------------- disconnects


def test_a_client_that_is_gone_has_cancelled() -> None:
    """SSE-010 to SSE-012: a disconnect is the only way to cancel."""
    endpoint = new_endpoint()
    exchange = post_modern(endpoint, modern_tool_call(4))
    request = asked(endpoint)
    endpoint.start_stream(request)
    exchange.receive_disconnect()
    exchange.receive_disconnect()

    (event,) = drain(endpoint)
    assert event == RequestCancelled(request=request, cause=CancelCause.PEER)
    assert not endpoint.send_result(request, {"content": []})
    assert not endpoint.send_progress(request, 1)
    assert exchange.next_output() is None
    assert exchange.response() is None
    assert exchange.ended
    assert endpoint.ready() == []


def test_a_client_may_be_gone_at_any_time() -> None:
    """A disconnect before the body, in it, or after the response must cancel nothing else."""
    endpoint = new_endpoint()
    early = endpoint.exchange("POST", "/", {"content-type": JSON}.items())
    early.receive_disconnect()
    early.receive_data(b"{}")
    early.receive_end()
    late = post_modern(endpoint, modern(1, "server/discover"))
    late.receive_disconnect()

    assert early.next_output() is None
    assert early.ended
    assert of(RequestCancelled, drain(endpoint)) == []
