"""Bodies of requests: their size, their chunks, and those that are no message."""

import time
import tracemalloc
from typing import Any

import pytest

from sansmcp import MODERN_REVISIONS, Config
from sansmcp.http import ServerExchange
from tests.support.http.server_endpoint import (
    JSON,
    POST,
    answer,
    asked,
    body_of,
    broken,
    client,
    drain,
    modern_headers,
    modern_tool_call,
    new_endpoint,
    post,
    post_modern,
)
from tests.support.modern import modern
from tests.support.wire import call, initialize

# ----------------------------------------------------------------------------------------- size


def test_a_body_that_is_announced_too_long_is_refused_unread() -> None:
    """Content-Length must refuse a hundred megabytes before they are read."""
    endpoint = new_endpoint(config=Config(max_message_bytes=100))
    for length, status in (
        ("101", 413),
        ("9" * 30, 413),
        ("100", None),
        ("099", None),
        ("x99", None),
    ):
        exchange = endpoint.exchange("POST", "/mcp", {**POST, "content-length": length}.items())
        assert exchange.refused is (status == 413)
    drain(endpoint)


def test_a_body_that_grows_too_long_is_refused_where_it_does() -> None:
    """A body without a length must be refused when it crosses the limit."""
    endpoint = new_endpoint(config=Config(max_message_bytes=100))
    exchange = endpoint.exchange("POST", "/mcp", POST.items())
    exchange.receive_data(b"x" * 60)
    exchange.receive_data(b"x" * 41)
    exchange.receive_data(b"x" * 41)
    exchange.receive_end()

    assert answer(exchange).status == 413
    assert broken(endpoint) == ["OWN-001"]


def test_an_exchange_tells_what_it_holds() -> None:
    """A server of many clients needs the memory of received bodies and unsent output."""
    endpoint = new_endpoint(config=Config(max_message_bytes=1000))
    whole, broken_off = (endpoint.exchange("POST", "/mcp", POST.items()) for _ in range(2))
    held = [whole.held_bytes]
    whole.receive_data(b"{" + b" " * 9)
    held.append(whole.held_bytes)
    whole.receive_end()
    held.append(whole.held_bytes)
    size = len(answer(whole).body)
    broken_off.receive_data(b"x" * 900)
    broken_off.receive_disconnect()

    assert held == [0, 10, size]
    assert (whole.held_bytes, broken_off.held_bytes) == (0, 0)
    drain(endpoint)


def receive_one_by_one(exchange: ServerExchange, size: int) -> None:
    for _ in range(size):
        exchange.receive_data(b" ")


def test_a_body_in_chunks_of_one_byte_takes_no_more_room_than_its_bytes() -> None:
    """A list of chunks takes eight times as much, which would defeat the limit on bodies."""
    size = 2**17
    exchange = new_endpoint().exchange("POST", "/mcp", POST.items())
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        receive_one_by_one(exchange, size)
        held, peak = (value - before for value in tracemalloc.get_traced_memory())
    finally:
        tracemalloc.stop()

    assert not exchange.refused
    assert size <= held < 3 * size  # the judge of the tests keeps the body, too
    assert peak < 4 * size


def test_a_body_in_chunks_of_one_byte_costs_as_much_as_it_has_bytes() -> None:
    """Copying the body for each chunk would let a client use up the server's time."""

    def spent(size: int) -> float:
        exchange = new_endpoint().exchange("POST", "/mcp", POST.items())
        start = time.process_time()
        receive_one_by_one(exchange, size)
        return time.process_time() - start

    small = min(spent(2**16) for _ in range(3))
    large = min(spent(2**18) for _ in range(3))

    assert large < 8 * small


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_chunks_of_any_kind_are_taken(kind: Any) -> None:
    """Adapters give bytes, bytearrays or memoryviews."""
    endpoint = new_endpoint()
    exchange = endpoint.exchange("POST", "/mcp", POST.items())
    body = body_of(initialize(1, "2025-11-25"))
    for at in range(0, len(body), 7):
        exchange.receive_data(kind(body[at : at + 7]))
    exchange.receive_end()

    assert answer(exchange).status == 200


# ---------------------------------------------------------------------------------------- bytes


def test_heads_may_come_as_bytes_in_any_case() -> None:
    """HTTP libraries give names and values as str or bytes, in various cases."""
    endpoint = new_endpoint()
    message = modern_tool_call()
    fields = [
        (name.upper().encode(), value.encode())
        for name, value in {**POST, **modern_headers(message)}.items()
    ]
    exchange = endpoint.exchange(b"POST", b"/mcp?x=1", fields)
    exchange.receive_data(body_of(message))
    exchange.receive_end()

    endpoint.send_result(asked(endpoint), {"content": []})
    assert answer(exchange).status == 200


def test_lists_may_come_on_several_lines() -> None:
    """HTTP allows a list such as Accept on several header lines."""
    endpoint = new_endpoint()
    fields = [("content-type", JSON), ("accept", "text/html"), ("Accept", JSON)]
    exchange = endpoint.exchange("POST", "/mcp", fields)

    assert not exchange.refused


# ------------------------------------------------------------------------------ no message


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff{}", -32700),
        ('{"a":1}'.encode("utf-16"), -32700),
        (b"[" * 300 + b"]" * 300, -32700),
        (b'{"a":NaN}', -32700),
        (b"1", -32600),
        (b'"x"', -32600),
        (b"null", -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b"[]", -32600),
    ],
)
@pytest.mark.parametrize("era", ["legacy", "modern", "stateless"])
def test_a_body_that_is_no_message_gets_400(body: bytes, code: int, era: str) -> None:
    """A 2xx status would make a client wait for ever for a response."""
    if era == "legacy":
        one = client("2025-06-18")
        endpoint, exchange = one.endpoint, one.post(body)
    else:
        modern_only = era == "modern"
        endpoint = (
            new_endpoint(revisions=MODERN_REVISIONS)
            if modern_only
            else new_endpoint(stateless=True)
        )
        fields = {"mcp-protocol-version": "2026-07-28", "mcp-method": "ping"} if modern_only else {}
        exchange = post(endpoint, body, fields)
    response = answer(exchange)

    assert response.status == 400
    error = response.json["error"]
    assert error["code"] == code or (era == "modern" and error["code"] in (-32601, -32602))
    assert broken(endpoint)


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"ping","id":2}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","m\\u0065thod":"x"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name" :"b"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":":","x":1}}}',
        b'[{"jsonrpc":"2.0","id":1,"method":"ping","id":1}]',
    ],
)
def test_a_member_named_twice_is_refused(body: bytes) -> None:
    """A gateway in front may use the other value of a duplicate member."""
    one = client("2025-03-26")
    response = answer(one.post(body))

    assert response.status == 400
    assert response.json["error"]["code"] == -32600
    assert broken(one.endpoint) == ["OWN-035"]


@pytest.mark.parametrize(
    "text", [":", '"a":', '\\"a\\":1', "x: y", "http://[::1]:80/", "\\u003a", "\\\\"]
)
def test_colons_and_quotes_in_texts_are_no_members(text: str) -> None:
    """Members are counted in the text, so text that looks like a member must not count."""
    one = client("2025-11-25")
    quoted = text if "\\" in text else text.replace('"', '\\"')
    arguments = '{"x":"' + quoted + '", "k" :[{}, {"y":":"}]}'
    params = '{"name":"a","arguments":' + arguments + "}"
    body = '{"jsonrpc" : "2.0","id":1,"method":"tools/call","params":' + params + "}"
    exchange = one.post(body.encode())

    assert one.endpoint.send_result(asked(one.endpoint), {"content": []})
    assert answer(exchange).status == 200


def test_a_body_too_deep_to_follow_is_refused() -> None:
    """A depth limit beyond the interpreter's stack must not end in an exception."""
    endpoint = new_endpoint(config=Config(max_json_depth=10**6), stateless=True)
    deep = b'{"a":' * 40_000 + b"1" + b"}" * 40_000

    assert answer(post(endpoint, deep)).status == 400
    assert answer(post(endpoint, call(1, "ping"))).status == 200


def test_discovery_needs_no_session() -> None:
    """A client of both eras sends `server/discover` first."""
    assert answer(post_modern(new_endpoint(), modern(1, "server/discover"))).status == 200
