"""The memory of unfinished bodies and open requests is bounded over all clients."""

import gc
import json
import tracemalloc
from collections.abc import Callable
from typing import Any, Final

import pytest

from sansmcp import Config, IncomingRequest, JSONObject, LimitReached, RequestReceived
from sansmcp.http import OldPaths, ServerEndpoint, ServerExchange
from tests.support.http.server_endpoint import (
    GET,
    LEGACY,
    POST,
    Client,
    answer,
    asked,
    body_of,
    broken,
    client,
    connect,
    drain,
    modern_tool_call,
    new_endpoint,
    of,
    post,
    post_modern,
    request,
    take,
    tool_call,
)
from tests.support.modern import LISTEN, MODERN, VERSION, listen
from tests.support.wire import call, initialize, note, result

KIB: Final = 1024
MIB: Final = 1024 * KIB
OK: Final[JSONObject] = {"content": []}
MODERN_CALL: Final = {
    **POST,
    "mcp-protocol-version": MODERN,
    "mcp-method": "tools/call",
    "mcp-name": "t",
}


def holding(limit: int, **settings: Any) -> ServerEndpoint:
    return new_endpoint(config=Config(max_held_bytes=limit), **settings)


def limits(endpoint: ServerEndpoint) -> list[str]:
    return [event.rule for event in of(LimitReached, drain(endpoint))]


# ------------------------------------------------------------------------------- given back


def answered(one: Client, handle: IncomingRequest) -> None:
    assert one.endpoint.send_result(handle, OK)


def refused(one: Client, handle: IncomingRequest) -> None:
    assert one.endpoint.send_error(handle, -32000, "no")


def cancelled(one: Client, handle: IncomingRequest) -> None:
    one.post(note("notifications/cancelled", {"requestId": handle.id}))


def deleted(one: Client, handle: IncomingRequest) -> None:
    one.delete()


def ended(one: Client, handle: IncomingRequest) -> None:
    one.endpoint.end_session(one.session)


def closed(one: Client, handle: IncomingRequest) -> None:
    one.endpoint.close()


ENDINGS = [answered, refused, cancelled, deleted, ended, closed]


@pytest.mark.parametrize("end", ENDINGS)
def test_a_request_gives_back_what_it_held(end: Callable[[Client, Any], None]) -> None:
    """Memory that is counted for ever would refuse all clients in the end."""
    one = client()
    before = one.endpoint.held_bytes
    _, handle = one.asked(tool_call(1, text="x" * 5000))
    assert one.endpoint.held_bytes > before + 5000
    end(one, handle)

    assert one.endpoint.held_bytes == (before if one.session.open else 0)


def test_a_request_that_has_asked_gives_back_when_it_is_answered() -> None:
    """The memory must be freed with the first handle, as the next round has another one."""
    one = client()
    before = one.endpoint.held_bytes
    exchange, handle = one.asked(tool_call(1, text="x" * 5000))
    assert one.endpoint.require_input(handle, {"r": {"method": "roots/list"}})
    question = answer(exchange).messages[-1]
    one.post(result(question["id"], {"roots": []}))
    renewed = asked(one.endpoint)
    assert one.endpoint.held_bytes > before + 5000
    one.endpoint.send_result(renewed, OK)

    assert one.endpoint.held_bytes == before


def test_a_request_of_the_modern_revision_gives_back_when_its_client_is_gone() -> None:
    """The disconnect cancels the request, and frees what it holds."""
    endpoint = new_endpoint()
    exchange = post_modern(endpoint, modern_tool_call(1, text="x" * 5000))
    assert endpoint.held_bytes > 5000
    exchange.receive_disconnect()

    assert endpoint.held_bytes == 0


def test_requests_of_a_batch_give_back_one_by_one() -> None:
    """Each request of a batch must free its own part."""
    one = client("2025-03-26")
    before = one.endpoint.held_bytes
    one.post([tool_call(1, text="x" * 5000), tool_call(2), call(3, "ping")])
    first, second = [event.request for event in of(RequestReceived, drain(one.endpoint))]
    whole = one.endpoint.held_bytes - before
    one.endpoint.send_result(first, OK)
    assert whole // 3 < one.endpoint.held_bytes - before < whole
    one.endpoint.send_result(second, OK)

    assert one.endpoint.held_bytes == before


def test_a_session_holds_what_its_client_said_of_itself() -> None:
    """Client info and capabilities are kept, and must count, as long as the session lasts."""
    endpoint = new_endpoint(old_paths=OldPaths(stream="/sse", post="/messages"))
    large = {"experimental": {"x": {"text": "x" * 5000}}}
    one = connect(endpoint, LEGACY, large)
    assert endpoint.held_bytes > 5000
    stream = request(endpoint, "GET", GET, target="/sse")
    fields = {"content-type": "application/json"}
    for message in (call(0, "ping"), initialize(1, "2024-11-05", large), call(2, "ping")):
        request(endpoint, "POST", fields, body_of(message), target="/messages?session_id=s2")
    assert endpoint.held_bytes > 10_000
    stream.receive_disconnect()
    assert 5000 < endpoint.held_bytes < 10_000
    one.delete()

    assert endpoint.held_bytes == 0
    post(endpoint, call(3, "initialize", {"x": "x" * 5000}))  # which comes to nothing
    assert endpoint.held_bytes == 0


def test_a_subscription_holds_only_what_is_kept_of_it() -> None:
    """A subscription may last for days, so only the kept part of its request may count."""
    endpoint = new_endpoint()
    message = listen(9, {"toolsListChanged": True})
    message["params"]["_meta"]["x"] = "x" * 5000
    exchange = post_modern(endpoint, message)
    assert 0 < endpoint.held_bytes < 1000
    exchange.receive_disconnect()
    assert endpoint.held_bytes == 0

    manual = new_endpoint(config=Config(manual=frozenset({LISTEN})))
    post_modern(manual, message)
    assert manual.held_bytes > 5000


# --------------------------------------------------------------------------------- over it


@pytest.mark.parametrize("era", ["legacy", "modern", "batch"])
def test_a_request_over_the_limit_is_told_to_come_again(era: str) -> None:
    """The refusal must have the id, and the request be served when there is room."""
    endpoint = holding(26_000)
    one = connect(endpoint, "2025-03-26" if era == "batch" else LEGACY)

    def send(id: int, text: str = "x" * 8000) -> Any:
        if era == "modern":
            return post_modern(endpoint, modern_tool_call(id, text=text))
        message = tool_call(id, text=text)
        return one.post([message, call(99, "ping")] if era == "batch" else message)

    send(1)
    first = asked(endpoint)
    send(2)
    second = asked(endpoint)
    response = answer(send(3))
    assert (response.status, response.headers["retry-after"]) == (503, "5")
    assert response.json["error"]["code"] == -32603
    assert response.json.get("id") == (None if era == "batch" else 3)
    assert limits(endpoint) == ["OWN-053"]
    endpoint.send_result(first, OK)
    send(4)
    assert asked(endpoint).id == 4
    assert second.open


def test_responses_and_small_notifications_are_taken_however_much_is_held() -> None:
    """A response or a notification may be what ends an open request."""
    endpoint = holding(20_000)
    one = connect(endpoint)
    _, handle = one.asked(tool_call(1, text="x" * 15_000))
    question = endpoint.send_request("roots/list", request=handle)
    assert answer(one.post(tool_call(2, text="x" * 15_000))).status == 503
    roots = [{"uri": "file:///" + "x" * 8000}]
    assert answer(one.post(result(question.id, {"roots": roots}))).status == 202
    assert not question.open
    assert answer(one.post(note("notifications/cancelled", {"requestId": 1}))).status == 202
    assert not handle.open


def test_a_message_that_never_fits_is_too_large() -> None:
    """The status must not invite a retry, which could not succeed."""
    endpoint = holding(20_000)
    response = answer(post_modern(endpoint, modern_tool_call(1, x=[[] for _ in range(2000)])))
    assert (response.status, response.json["id"]) == (413, 1)
    assert "retry-after" not in response.headers
    assert "20000 bytes" in response.json["error"]["message"]
    assert broken(endpoint) == ["OWN-053"]
    assert endpoint.held_bytes == 0


@pytest.mark.parametrize("era", ["legacy", "modern", "batch"])
def test_a_large_notification_is_refused_like_a_request(era: str) -> None:
    """Its handler holds the params of a notification."""
    endpoint = holding(40_000)
    one = connect(endpoint, "2025-03-26" if era == "batch" else LEGACY)

    def send(text: Any) -> Any:
        method = "notifications/x"
        if era == "modern":
            fields = {**POST, "mcp-protocol-version": MODERN, "mcp-method": method}
            message = note(method, {"_meta": {VERSION: MODERN}, "x": text})
            return answer(request(endpoint, "POST", fields, body_of(message)))
        message = note(method, {"x": text})
        return answer(one.post([message, note(method)] if era == "batch" else message))

    response = send([[] for _ in range(2000)])
    assert (response.status, response.headers.get("retry-after")) == (413, None)
    assert send("x" * 8000).status == 202
    drain(endpoint)
    post_modern(endpoint, modern_tool_call(1, text="x" * 30_000))
    response = send("x" * 8000)
    assert (response.status, response.headers["retry-after"]) == (503, "5")
    assert "id" not in response.json
    assert limits(endpoint) == ["OWN-053"]
    assert send("x" * 500).status == 202


def test_a_short_request_is_measured_before_it_is_refused() -> None:
    """The quick estimate is far too high for short requests: 500 bytes were refused."""
    endpoint = holding(20_000)
    post_modern(endpoint, modern_tool_call(1, text="x" * 12_000))
    asked(endpoint)
    post_modern(endpoint, modern_tool_call(2, text="x" * 300))
    assert asked(endpoint).id == 2


def large_client(size: int) -> JSONObject:
    return {"experimental": {"x": {"text": "x" * size}}}


def test_idle_sessions_do_not_keep_requests_from_being_served() -> None:
    """Sessions may last for an hour, so they have a quarter of the limit for themselves."""
    endpoint = holding(100_000)
    sessions = [connect(endpoint, LEGACY, large_client(10_000)) for _ in range(2)]
    response = answer(post(endpoint, initialize(1, LEGACY, large_client(10_000))))
    assert (response.status, response.headers["retry-after"]) == (503, "5")
    assert response.json["id"] == 1
    [event] = of(LimitReached, drain(endpoint))
    assert (event.rule, "sessions hold" in event.text) == ("OWN-053", True)
    assert "the limit is 25000" in event.text

    _, handle = sessions[0].asked(tool_call(2, text="x" * 80_000))
    assert handle.open
    sessions[1].delete()
    connect(endpoint, LEGACY, large_client(10_000))


def test_a_session_that_alone_takes_too_much_is_refused() -> None:
    """The status must not invite a retry, which could not succeed."""
    endpoint = holding(100_000)
    response = answer(post(endpoint, initialize(1, LEGACY, large_client(30_000))))
    assert (response.status, response.json["id"]) == (413, 1)
    assert "25000 bytes" in response.json["error"]["message"]
    assert broken(endpoint) == ["OWN-053"]
    assert (endpoint.held_bytes, endpoint.open_requests) == (0, ())


def test_a_session_of_http_sse_that_holds_too_much_is_refused() -> None:
    """The response to the POST must say so; the client may send less about itself."""
    paths = OldPaths(stream="/sse", post="/messages")
    endpoint = holding(100_000, old_paths=paths)
    request(endpoint, "GET", GET, target="/sse")

    def send(size: int) -> int:
        fields = {"content-type": "application/json"}
        body = body_of(initialize(1, "2024-11-05", large_client(size)))
        target = "/messages?session_id=s1"
        return answer(request(endpoint, "POST", fields, body, target=target)).status

    assert send(30_000) == 413
    assert endpoint.held_bytes == 0
    connect(endpoint, LEGACY, large_client(10_000))
    assert send(20_000) == 503
    assert send(5_000) == 202
    assert 15_000 < endpoint.held_bytes < 20_000


# ------------------------------------------------------------------------------- the estimate


def pieces(shape: Any, times: int) -> Any:
    return [json.loads(json.dumps(shape)) for _ in range(times)]


@pytest.mark.unjudged("a judge keeps what was said")
@pytest.mark.parametrize(
    "value",
    [
        pieces([], 20_000),
        pieces([1], 10_000),
        pieces({}, 20_000),
        pieces({"a": 1}, 10_000),
        pieces({"name": "xy", "b": None, "c": [1.5]}, 5_000),
        {f"k{number}": number for number in range(10_000)},
        [1000 + number for number in range(20_000)],
        [f"text {number}" for number in range(10_000)],
        "x" * 100_000,
        "\U0001f600" + "x" * 100_000,
        json.loads("[" * 150 + "]" * 150),
    ],
    ids=[
        *("lists", "lists of one", "objects", "objects of one", "records", "names", "integers"),
        *("texts", "text", "wide text", "deep"),
    ],
)
def test_the_estimate_is_near_what_is_held(value: Any) -> None:
    """A low estimate would defeat the limit, and a high one refuse small requests."""
    endpoint = holding(10**9)
    body = body_of(modern_tool_call(1, x=value))
    request(endpoint, "POST", MODERN_CALL, body)
    endpoint.send_result(asked(endpoint), OK)
    gc.collect()
    tracemalloc.start()
    try:
        request(endpoint, "POST", MODERN_CALL, body)
        actual, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert 0.7 * actual < endpoint.held_bytes < 4 * actual


def test_text_is_not_taken_for_what_it_shows() -> None:
    """A string of source code has many brackets, and is still one string."""
    endpoint = holding(MIB)
    text = "[[{,:" * 100_000
    post_modern(endpoint, modern_tool_call(1, text=text))
    assert asked(endpoint).open
    assert len(text) <= endpoint.held_bytes < len(text) + 10_000


@pytest.mark.unjudged("there is too much of it")
def test_memory_is_bounded_whatever_is_sent() -> None:
    """Nested arguments take many times the memory of their text."""
    limit = 4 * MIB
    endpoint = holding(limit)
    body = body_of(modern_tool_call(1, x="%")).replace(b'"%"', b"[[]" + b",[]" * 25_000 + b"]")
    tracemalloc.start()
    try:
        exchanges = [request(endpoint, "POST", MODERN_CALL, body) for _ in range(8)]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    statuses = [None if (response := take(one)) is None else response.status for one in exchanges]
    assert statuses.count(503) >= 4
    assert None in statuses
    assert held < 1.5 * limit


# -------------------------------------------------------------------------------------- bodies


def test_of_bodies_that_do_not_end_the_longest_gives_way() -> None:
    """A client that sends a short body without pause must be served."""
    endpoint = holding(300 * KIB)
    fields = {**POST, "content-length": "1000000"}.items()
    long, longer, new = [endpoint.exchange("POST", "/", fields) for _ in range(3)]
    long.receive_data(b" " * 100 * KIB)
    longer.receive_data(b" " * 150 * KIB)
    assert endpoint.held_bytes == 250 * KIB
    for _ in range(3):
        new.receive_data(b" " * 30 * KIB)

    assert longer.refused
    response = answer(longer)
    assert (response.status, response.headers["retry-after"]) == (503, "5")
    assert limits(endpoint) == ["OWN-053"]
    assert not long.refused
    longer.receive_data(b" " * 100 * KIB)  # which is of no use any more
    longer.receive_end()
    assert endpoint.held_bytes == 190 * KIB
    long.receive_data(b" " * 250 * KIB)
    assert long.refused
    assert endpoint.held_bytes == 90 * KIB
    new.receive_disconnect()
    long.receive_disconnect()
    assert endpoint.held_bytes == 0


def test_bodies_give_back_when_they_are_complete_or_refused() -> None:
    """Afterwards only the memory of the message must count."""
    endpoint = new_endpoint()
    fields = {**POST, "content-length": "1000000"}.items()
    ends: list[Callable[[ServerExchange], object]] = [
        lambda one: one.receive_end(),
        lambda one: one.receive_disconnect(),
        lambda one: one.refuse(401, "who are you?"),
        lambda one: one.receive_data(b" " * 17 * MIB),
    ]
    for end in ends:
        exchange = endpoint.exchange("POST", "/", fields)
        exchange.receive_data(b" " * 100 * KIB)
        assert endpoint.held_bytes == 100 * KIB
        end(exchange)
        assert endpoint.held_bytes == 0
