"""Rules of the transports that concern a whole endpoint, tested as a client sees them."""

from typing import Any

import pytest

from sansmcp import JSONObject, LocalProtocolError, RequestReceived
from sansmcp.http import OldPaths
from tests.support.http.server_endpoint import (
    GET,
    JSON,
    POST,
    SSE,
    STREAMABLE,
    answer,
    asked,
    body_of,
    client,
    connect,
    drain,
    modern_headers,
    modern_tool_call,
    more,
    new_endpoint,
    of,
    open_stream,
    post,
    post_modern,
    progressing,
    request,
    sessions,
    tool_call,
)
from tests.support.wire import INITIALIZED, initialize

REVISIONS = pytest.mark.parametrize("revision", STREAMABLE)


@REVISIONS
def test_one_path_is_posted_to_and_listened_on(revision: str) -> None:
    """HTTP-006, HTTP-007: one path must serve POST and GET, and modern POSTs too."""
    endpoint = new_endpoint()
    one = connect(endpoint, revision, target="/any/path")
    listening = answer(one.get(target="/any/path"))
    assert (listening.status, listening.is_stream) == (200, True)
    exchange = post_modern(endpoint, modern_tool_call(), target="/any/path")
    endpoint.send_result(asked(endpoint), {"content": []})

    assert answer(exchange).status == 200


@pytest.mark.parametrize("settings", [{}, {"stateless": True}, {"sessions": sessions()}])
def test_get_is_answered_with_a_stream_or_with_405(settings: dict[str, Any]) -> None:
    """HTTP-022: a GET of a valid session must get a stream or 405, and nothing else."""
    endpoint = new_endpoint(**settings)
    fields = dict(GET)
    if not settings.get("stateless"):
        fields |= connect(endpoint).headers
    response = answer(request(endpoint, "GET", fields))

    assert (response.status, response.is_stream) in {(200, True), (405, False)}
    assert response.is_stream is not bool(settings.get("stateless"))


@pytest.mark.parametrize("has_news", [False, True])
@pytest.mark.parametrize("is_modern", [False, True])
def test_an_answer_is_one_object_or_a_stream(has_news: bool, is_modern: bool) -> None:
    """HTTP-018: the form may differ from request to request."""
    endpoint = new_endpoint()
    if is_modern:
        message = modern_tool_call()
        message["params"]["_meta"]["progressToken"] = 1
        exchange = post_modern(endpoint, message)
    else:
        exchange = connect(endpoint).post(progressing())
    handle = asked(endpoint)
    if has_news:
        endpoint.send_progress(handle, 1)
    endpoint.send_result(handle, {"content": []})

    response = answer(exchange)
    assert response.headers["content-type"] == (SSE if has_news else JSON)
    assert response.last["id"] == 1


def test_nobody_is_known_from_the_request_before() -> None:
    """HTTP-027: a request must not inherit the principal of an earlier one."""
    endpoint = new_endpoint()
    for id, principal in enumerate(("ann", None, "bob")):
        post_modern(endpoint, modern_tool_call(id), principal=principal)

    found = [event.request.principal for event in of(RequestReceived, drain(endpoint))]
    assert found == ["ann", None, "bob"]


def test_clients_of_today_are_asked_nothing_by_requests() -> None:
    """SSE-005: no request may be sent to a modern client on any stream."""
    endpoint = new_endpoint()
    exchange = post_modern(endpoint, modern_tool_call())
    handle = asked(endpoint)
    endpoint.start_stream(handle)
    for method in ("ping", "roots/list", "x/own"):
        with pytest.raises(LocalProtocolError, match="STATE-006"):
            endpoint.send_request(method, request=handle)

    assert answer(exchange).body == b""


@REVISIONS
def test_no_two_events_of_a_session_have_one_id(revision: str) -> None:
    """SSE-030: event ids must differ between streams, and between sessions."""
    endpoint = new_endpoint(sessions=sessions(max_streams=2))
    ids: list[str] = []
    for _ in range(2):
        one = connect(endpoint, revision)
        for number in range(4):
            exchange, before = open_stream(one)
            endpoint.send_notification("x/y", session=one.session)
            ids += [*before.ids, *more(exchange, before).ids]
            exchange, handle = one.asked(progressing(number))
            endpoint.send_progress(handle, 1)
            endpoint.send_result(handle, {"content": []})
            ids += answer(exchange).ids

    assert len(ids) >= 2 * 4 * 3
    assert len(set(ids)) == len(ids)


def test_each_message_comes_on_one_stream() -> None:
    """SSE-028: a message must be sent once, however many streams the client has open."""
    one = client()
    streams = [open_stream(one) for _ in range(3)]
    exchange, handle = one.asked(progressing())
    one.endpoint.send_progress(handle, 1)
    one.endpoint.send_notification("x/y", session=one.session)
    one.endpoint.send_result(handle, {"content": []})

    found = [*answer(exchange).messages]
    for stream, before in streams:
        found += more(stream, before).messages
    assert sorted(message.get("method", "") for message in found) == [
        "",
        "notifications/progress",
        "x/y",
    ]


def test_an_old_client_has_two_paths() -> None:
    """HSSE-001: a client reads one path, and POSTs to the other that the first one names."""
    endpoint = new_endpoint(old_paths=OldPaths(stream="/sse", post="/messages"))
    stream = request(endpoint, "GET", GET, target="/sse")
    before = answer(stream)
    target = before.events[0].data.decode()
    assert target.startswith("/messages?")
    for message in (initialize(1, "2024-11-05"), INITIALIZED, tool_call(2)):
        exchange = request(endpoint, "POST", POST, body_of(message), target=target)
        assert (answer(exchange).status, exchange.is_stream) == (202, False)

    endpoint.send_result(asked(endpoint), {"content": []})
    assert [message["id"] for message in more(stream, before).messages] == [1, 2]


@pytest.mark.parametrize("change", [str.upper, str.title, str.swapcase])
def test_names_of_fields_have_no_case_and_values_have(change: Any) -> None:
    """HDR-036: header names must match in any case, and their values in one."""
    message = modern_tool_call()
    fields = modern_headers(message)
    endpoint = new_endpoint()
    named = {change(name): value for name, value in {**POST, **fields}.items()}
    request(endpoint, "POST", named, body_of(message))
    assert asked(endpoint).method == "tools/call"

    said = {**fields, "mcp-method": change(fields["mcp-method"])}
    assert answer(post(endpoint, message, said)).status == 400


def test_a_mirrored_parameter_is_judged_by_its_value() -> None:
    """HDR-024, HDR-033, HDR-042: null needs no header, any other value needs one, and a
    difference is refused with its status. Headers that no tool has named are ignored."""
    region: JSONObject = {"type": ["string", "null"], "x-mcp-header": "Region"}

    def schema(_name: str) -> JSONObject:
        return {"properties": {"region": region}}

    endpoint = new_endpoint(tool_schema=schema)
    statuses: list[int | None] = []
    for value, field in ((None, {}), ("eu", {}), ("eu", {"mcp-param-region": "eu"})):
        message = modern_tool_call(1, region=value)
        exchange = post_modern(endpoint, message, {**field, "mcp-param-unknown": "1"})
        for event in of(RequestReceived, drain(endpoint)):
            endpoint.send_result(event.request, {"content": []})
        statuses.append(answer(exchange).status)

    assert statuses == [200, 400, 200]
