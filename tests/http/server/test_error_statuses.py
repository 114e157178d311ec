"""Errors of the application with a status and headers of its own, such as 403 with a challenge."""

from typing import Any

import pytest

from sansmcp import LocalProtocolError
from sansmcp.http import ServerEndpoint
from tests.support.http.server_endpoint import (
    LEGACY,
    answer,
    asked,
    client,
    modern_tool_call,
    more,
    new_endpoint,
    post,
    post_modern,
    progressing,
    tool_call,
)

CHALLENGE = 'Bearer error="insufficient_scope", scope="write"'


def forbid(endpoint: ServerEndpoint, call: Any, **settings: Any) -> bool:
    settings = {"status": 403, "headers": {"WWW-Authenticate": CHALLENGE}, **settings}
    return endpoint.send_error(call, -32600, "the token lacks a scope", **settings)


def test_a_modern_request_is_refused_with_a_challenge() -> None:
    """A client learns from status and challenge which scopes to ask for (AUTH-012, AUTH-062)."""
    endpoint = new_endpoint()
    exchange = post_modern(endpoint, modern_tool_call(7))
    assert forbid(endpoint, asked(endpoint))
    response = answer(exchange)
    assert response.status == 403
    assert response.headers["www-authenticate"] == CHALLENGE
    assert response.json["id"] == 7
    assert response.json["error"]["code"] == -32600


def test_a_request_in_a_session_is_refused_with_a_challenge() -> None:
    """The session goes on: the client comes back with another token (AUTH-062)."""
    one = client()
    exchange, call = one.asked(tool_call(5))
    assert forbid(one.endpoint, call)
    response = answer(exchange)
    assert (response.status, response.json["id"]) == (403, 5)
    assert response.headers["www-authenticate"] == CHALLENGE

    exchange, call = one.asked(tool_call(6))
    assert one.endpoint.send_result(call, {"content": []})
    assert "www-authenticate" not in answer(exchange).headers


def test_a_legacy_request_without_a_session_is_refused_with_a_challenge() -> None:
    """It has a response of its own (AUTH-062)."""
    endpoint = new_endpoint(stateless=True)
    exchange = post(endpoint, tool_call(1), {"mcp-protocol-version": LEGACY})
    assert forbid(endpoint, asked(endpoint))
    response = answer(exchange)
    assert (response.status, response.headers["www-authenticate"]) == (403, CHALLENGE)


def test_a_stream_that_has_begun_ends_with_the_error() -> None:
    """Its head is sent, so no status can follow; the client still gets its one ending."""
    one = client()
    exchange, call = one.asked(progressing(5))
    assert one.endpoint.send_progress(call, 1)
    begun = answer(exchange)
    assert forbid(one.endpoint, call)
    response = more(exchange, begun)
    assert response.status == 200
    assert "www-authenticate" not in response.headers
    assert response.last["error"]["message"] == "the token lacks a scope"


def test_a_batch_has_one_status_for_all() -> None:
    """The other requests of it must not be refused along with this one."""
    one = client("2025-03-26")
    exchange = one.post([tool_call(1), tool_call(2)])
    first, second = one.endpoint.open_requests
    assert forbid(one.endpoint, first)
    assert one.endpoint.send_result(second, {"content": []})
    response = answer(exchange)
    assert response.status == 200
    assert "www-authenticate" not in response.headers


@pytest.mark.parametrize(
    "settings",
    [
        {"status": 200},
        {"status": 399},
        {"status": 600},
        {"headers": {"content-length": "0"}},
        {"headers": [("x", "a\r\nb")]},
    ],
)
def test_a_status_of_no_error_changes_nothing(settings: dict[str, Any]) -> None:
    """A mistake of the caller must not lose the request."""
    endpoint = new_endpoint()
    exchange = post_modern(endpoint, modern_tool_call())
    call = asked(endpoint)
    with pytest.raises(ValueError, match="no response can have status"):
        forbid(endpoint, call, **settings)
    assert call.open
    assert endpoint.send_result(call, {"content": []})
    assert answer(exchange).status == 200


def test_an_error_that_cannot_be_encoded_leaves_no_status_behind() -> None:
    """The result that follows is one (AUTH-062)."""
    endpoint = new_endpoint()
    exchange = post_modern(endpoint, modern_tool_call())
    call = asked(endpoint)
    with pytest.raises(LocalProtocolError):
        forbid(endpoint, call, data=object())
    assert endpoint.send_result(call, {"content": []})
    response = answer(exchange)
    assert response.status == 200
    assert "www-authenticate" not in response.headers


def test_headers_need_a_status() -> None:
    """Without one the error is an ordinary response."""
    endpoint = new_endpoint()
    exchange = post_modern(endpoint, modern_tool_call())
    assert forbid(endpoint, asked(endpoint), status=None)
    response = answer(exchange)
    assert response.status == 400
    assert "www-authenticate" not in response.headers
