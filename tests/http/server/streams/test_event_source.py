"""The behaviour of an endpoint towards a browser's EventSource, by the vendors' own tests.

Those are the tests of web-platform-tests, folder eventsource, that are about requests and
responses, by name; those for the format are in tests/http/test_sse.py. Tests of the interface for
pages (`eventsource-constructor-*`, `-prototype`, `-eventtarget`, `-onmessage`, `-readyState`,
workers) have no counterpart here, and tests of a client's reaction to a response (`format-mime-*`,
`request-redirect`, `request-status-error`) are made from the other end: no such response is given.
"""

from typing import Any

import pytest

from sansmcp import ToolsListChanged
from sansmcp.http import ServerExchange
from tests.support.http.server_endpoint import (
    GET,
    POST,
    Client,
    Response,
    answer,
    asked,
    client,
    connect,
    drain,
    more,
    new_endpoint,
    open_stream,
    progressing,
    request,
    resumed,
    sessions,
)

APP = "https://app.example"


def is_read(response: Response) -> bool:
    """Whether an EventSource takes this response for its stream; otherwise it gives up for good."""
    return response.status == 200 and response.headers.get("content-type") == "text/event-stream"


def published(one: Client, exchange: ServerExchange, response: Response) -> Response:
    """The events of a stream after one more notification."""
    one.endpoint.publish(ToolsListChanged())
    return more(exchange, response)


@pytest.mark.parametrize("accept", ["text/event-stream", "TEXT/Event-Stream", "text/event-stream,"])
def test_a_stream_opens_for_what_browsers_ask_for(accept: str) -> None:
    """request-accept, accept-header-include-text-event-stream: browsers accept nothing else."""
    _, response = open_stream(client(), accept=accept)

    assert is_read(response)


def test_every_stream_has_exactly_the_type_of_streams() -> None:
    """format-mime-*: a browser gives up if the media type is another one or malformed.

    No charset is named (format-utf-8): these streams are always UTF-8.
    """
    one = client(answers="sse")
    exchange = one.post(progressing())
    asked(one.endpoint)
    _, listening = open_stream(one)
    _, again = resumed(one, listening.ids[0])

    assert all(is_read(response) for response in (answer(exchange), listening, again))


@pytest.mark.parametrize("field", ["no-store", "no-cache", "max-age=9"])
def test_no_stream_is_stored_on_the_way(field: str) -> None:
    """request-cache-control: browsers say `no-store`; a cache must not answer for the server."""
    _, response = open_stream(client(), **{"cache-control": field, "pragma": "no-cache"})

    assert is_read(response)
    assert "no-cache" in response.headers["cache-control"]


@pytest.mark.parametrize("origin", [APP, "http://localhost:3000"])
def test_only_pages_that_are_named_may_read_a_stream_across_origins(origin: str) -> None:
    """eventsource-cross-origin: a browser gives a stream only to a page whose origin the head
    allows."""
    one = client(origins=[APP])
    response = answer(one.get({"origin": origin}))

    assert (response.headers.get("access-control-allow-origin") == origin) == (origin == APP)
    assert is_read(response) == (origin == APP)


def test_no_page_may_read_a_stream_with_cookies() -> None:
    """request-credentials: an endpoint does not authenticate by cookies, so it must not allow
    them."""
    _, response = open_stream(client(origins=["*"]), origin=APP, cookie="a=b")

    assert "access-control-allow-credentials" not in response.headers


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_preflight_allows_what_a_page_needs_to_come_back(method: str) -> None:
    """eventsource-cross-origin-preflight: a browser asks before it sends a `Last-Event-ID` that
    is long, or has unsafe characters. This needs no session."""
    fields = {
        "origin": APP,
        "access-control-request-method": method,
        "access-control-request-headers": "last-event-id,mcp-session-id",
    }
    response = answer(request(new_endpoint(origins=[APP]), "OPTIONS", fields))

    assert response.status == 204
    assert response.headers["access-control-allow-origin"] == APP
    assert method in response.headers["access-control-allow-methods"].split(", ")
    assert response.headers["access-control-allow-headers"] == "last-event-id,mcp-session-id"


# --------------------------------------------------------------------------------- coming back


def test_a_client_that_reconnects_gets_a_stream_again() -> None:
    """eventsource-reconnect: a browser resumes by itself with the last event id, and must miss
    no event."""
    one = client()
    exchange, first = open_stream(one)
    exchange.receive_disconnect()
    one.endpoint.publish(ToolsListChanged())
    exchange, second = resumed(one, first.ids[-1])
    assert is_read(second)
    assert [message["method"] for message in second.messages] == [
        "notifications/tools/list_changed"
    ]

    exchange.receive_disconnect()
    exchange, third = resumed(one, second.ids[-1])
    assert is_read(third)
    assert third.events == []
    assert len(published(one, exchange, third).messages) == 1


def test_a_client_that_reconnects_without_an_id_gets_a_stream_too() -> None:
    """eventsource-reconnect: a stream that has not had an event has no id to name."""
    one = client("2025-03-26")
    exchange, first = open_stream(one)
    assert first.ids == []
    exchange.receive_disconnect()
    exchange, second = open_stream(one)

    assert is_read(second)
    (id,) = published(one, exchange, second).ids
    assert id


def test_an_empty_id_is_none() -> None:
    """format-field-id-3: a browser sends a reset id as no header, or as an empty one."""
    _, response = open_stream(client(), **{"last-event-id": ""})

    assert is_read(response)


@pytest.mark.parametrize(
    "last",
    [
        "…".encode(),
        "…",
        b"\xff",
        b"\0",
        '",:{}',
        "1" * 5000,
        "00000000-1-" + "9" * 30,
        "٣٣٣٣٣٣٣٣-1-1",
    ],
)
def test_ids_that_browsers_may_send_are_refused_if_they_are_not_ours(last: Any) -> None:
    """format-field-id-2, cors-unsafe-last-event-id: ids are any UTF-8 text. Resuming from an
    unknown id would skip or repeat events."""
    one = client()
    fields: list[Any] = [*GET.items(), *one.headers.items(), ("last-event-id", last)]
    exchange = one.endpoint.exchange("GET", "/mcp", fields)
    exchange.receive_end()

    response = answer(exchange)
    assert not is_read(response)
    assert response.status == 400


def test_our_own_ids_need_no_preflight() -> None:
    """cors-unsafe-last-event-id: a value is safe up to 128 bytes without quotes, brackets and
    colons, so event ids must use other characters."""
    one = client()
    for _ in range(3):
        _, response = open_stream(one)
        (id,) = response.ids
        assert len(id) < 64
        assert id.replace("-", "").isalnum()
        assert id.isascii()


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"mcp-session-id": "other"}, 404),
        ({"mcp-protocol-version": "1999-01-01"}, 400),
        ({"last-event-id": "other"}, 400),
        ({"accept": "application/json"}, 406),
        ({"origin": "https://evil.example"}, 403),
    ],
)
def test_a_refusal_is_never_taken_for_a_stream(fields: dict[str, str], status: int) -> None:
    """request-status-error, request-redirect, format-mime-bogus: a browser would resume a
    refusal that looks like a stream for ever. No redirect is sent either."""
    _, response = open_stream(client(), **fields)

    assert response.status == status
    assert response.ended
    assert response.headers["content-type"] == "application/json"
    assert "location" not in response.headers


# ------------------------------------------------------------------------------------- the end


def test_a_stream_that_its_client_closes_is_over() -> None:
    """eventsource-close, eventsource-request-cancellation: after a disconnect no event may be
    written, and no stream kept open."""
    one = client(sessions=sessions(event_log=None))
    exchange, _ = open_stream(one)
    exchange.receive_disconnect()
    exchange.receive_disconnect()
    one.endpoint.publish(ToolsListChanged())

    assert exchange.ended
    assert exchange.next_output() is None
    assert exchange not in one.endpoint.ready()


def test_no_client_comes_back_to_a_session_that_is_over() -> None:
    """eventsource-reconnect: a browser resumes after every end of a stream; only a refusal stops
    it."""
    one = client()
    exchange, response = open_stream(one)
    one.endpoint.end_session(one.session)
    drain(one.endpoint)

    assert more(exchange, response).ended
    _, response = resumed(one, response.ids[0])
    assert response.status == 404


def test_a_stream_of_one_client_says_nothing_of_another() -> None:
    """eventsource-constructor-url-multi-window: streams of one URL must be separate."""
    endpoint = new_endpoint()
    one, other = connect(endpoint), connect(endpoint)
    _, first = open_stream(one)
    exchange, second = open_stream(other)
    endpoint.send_log("error", "x", session=one.session)

    assert first.ids != second.ids
    assert more(exchange, second).body == b""


def test_a_browser_can_read_the_answer_to_a_post_as_a_stream() -> None:
    """eventsource-from-readable-stream: pages fetch such a stream and read it piece by piece."""
    one = client()
    exchange, handle = one.asked(progressing(), {**POST, "accept": "*/*"})
    one.endpoint.send_progress(handle, 1)
    first = answer(exchange)
    one.endpoint.send_result(handle, {"content": []})
    second = more(exchange, first)

    assert is_read(first)
    assert [len(first.messages), len(second.messages)] == [1, 1]
    assert second.ended
