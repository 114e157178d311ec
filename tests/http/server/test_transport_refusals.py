"""`refuse`: an adapter refuses a request for a reason of its own, such as a missing token."""

from typing import Any

import pytest

from sansmcp.http import ServerExchange
from tests.support.http.server_endpoint import POST, answer, body_of, new_endpoint, post, tool_call

CHALLENGE = ("WWW-Authenticate", 'Bearer realm="mcp"')


def begun(**settings: Any) -> ServerExchange:
    """A POST whose body has not come yet."""
    return new_endpoint(**settings).exchange("POST", "/mcp", list(POST.items()))


def test_a_refusal_carries_its_challenge() -> None:
    """Without `WWW-Authenticate` a client does not learn how to get a token."""
    exchange = begun()

    assert exchange.needs_principal
    assert exchange.refuse(401, "who are you?", [CHALLENGE], now=1.0)

    refusal = answer(exchange)
    assert refusal.status == 401
    assert refusal.headers["www-authenticate"] == CHALLENGE[1]
    assert b"who are you?" in refusal.body
    assert exchange.refused
    exchange.receive_data(body_of(tool_call()))
    exchange.receive_end()
    assert exchange.next_output() is None


@pytest.mark.parametrize(
    ("status", "code"), [(400, -32600), (401, -32600), (499, -32600), (500, -32603), (599, -32603)]
)
def test_a_refusal_says_whose_fault_it_is(status: int, code: int) -> None:
    """-32600 would blame the client also for a failure of the server."""
    exchange = begun()

    assert exchange.refuse(status, "no")
    assert answer(exchange).json["error"] == {"code": code, "message": "no"}


def test_the_fields_of_a_refusal_may_be_a_mapping() -> None:
    """A mapping must be accepted as for `headers` elsewhere."""
    exchange = begun()

    assert exchange.refuse(401, "who are you?", dict([CHALLENGE]), now=1.0)
    assert answer(exchange).headers["www-authenticate"] == CHALLENGE[1]


def test_a_page_can_read_a_refusal() -> None:
    """A browser hides responses without CORS headers from the page, which then cannot log in."""
    endpoint = new_endpoint(origins=["https://app.example"])
    fields = {**POST, "origin": "https://app.example"}
    exchange = endpoint.exchange("POST", "/mcp", list(fields.items()))

    assert exchange.refuse(403, "not you")
    assert answer(exchange).headers["access-control-allow-origin"] == "https://app.example"


def test_a_refusal_can_be_too_late() -> None:
    """Two responses to one request would be read as responses to two."""
    endpoint = new_endpoint()
    refused = endpoint.exchange("PUT", "/mcp", list(POST.items()))

    assert not refused.needs_principal
    assert not refused.refuse(401, "who are you?")
    assert answer(refused).status == 405
    assert not post(endpoint, tool_call()).refuse(401, "who are you?")


def test_preflights_need_nobody() -> None:
    """A browser sends no credentials with a preflight, and gives up at a 401."""
    assert not new_endpoint().exchange("OPTIONS", "/mcp", []).needs_principal


@pytest.mark.parametrize(
    ("status", "field"),
    [
        (200, ("a", "b")),
        (401, ("a", "b\r\nc: d")),
        (401, ("a\n", "b")),
        (401, ("a b: c", "d")),
        (401, ("", "b")),
        (401, ("Content-Length", "99")),
        (401, ("transfer-encoding", "chunked")),
        (600, ("a", "b")),
    ],
)
def test_what_no_response_can_have_is_refused(status: int, field: tuple[str, str]) -> None:
    """A line break in a value would begin further headers."""
    exchange = begun()

    with pytest.raises(ValueError, match="no response can have"):
        exchange.refuse(status, "no", [field])
    assert exchange.next_output() is None
