"""Credentials are looked up by an event, whose answer may take its time."""

import copy
from typing import Any

import pytest

from sansmcp import Config, LocalProtocolError, RequestReceived
from sansmcp.http import (
    CredentialsReceived,
    LookupEnd,
    ServerEndpoint,
    ServerExchange,
)
from tests.support.http.lookups import ends, is_empty, one
from tests.support.http.server_endpoint import (
    POST,
    answer,
    asked,
    body_of,
    broken,
    drain,
    modern_headers,
    modern_tool_call,
    new_endpoint,
    of,
    post_modern,
    request,
)


def endpoint_of(**settings: Any) -> ServerEndpoint:
    return new_endpoint(credentials="ask", **settings)


def posted(endpoint: ServerEndpoint, **fields: str) -> tuple[ServerExchange, CredentialsReceived]:
    """A whole call, and the event that asks for its principal."""
    exchange = post_modern(endpoint, modern_tool_call(), fields)
    return exchange, one(CredentialsReceived, endpoint)


def test_a_request_waits_until_its_sender_is_known() -> None:
    """No handler must see a request whose credentials are not checked."""
    endpoint = endpoint_of()
    exchange, question = posted(endpoint, authorization="Bearer abc")

    assert question.exchange is exchange
    assert question.headers["authorization"] == "Bearer abc"
    assert "abc" not in repr(question)
    assert endpoint.open_questions == (question,)
    assert endpoint.held_bytes > 0
    assert exchange.held_bytes > 0
    assert exchange.next_output() is None
    assert endpoint.admit(question, "user", "u1")
    call = asked(endpoint)
    assert (call.principal, call.principal_key) == ("user", "u1")
    assert exchange.held_bytes == 0
    endpoint.send_result(call, {"content": []})
    assert answer(exchange).status == 200
    assert is_empty(endpoint)


def test_the_body_may_come_after_the_answer() -> None:
    """The lookup must begin with the head, while the body is still being received."""
    endpoint = endpoint_of()
    message = modern_tool_call()
    exchange = endpoint.exchange("POST", "/", {**POST, **modern_headers(message)})
    question = one(CredentialsReceived, endpoint)
    exchange.receive_data(body_of(message)[:20])
    assert endpoint.admit(question, "user")
    exchange.receive_data(body_of(message)[20:])
    exchange.receive_end()

    assert asked(endpoint).principal == "user"


def test_a_refused_sender_gets_the_status_and_the_challenge() -> None:
    """The challenge must be sent whether the body is there or not."""
    endpoint = endpoint_of()
    exchange, question = posted(endpoint)
    challenge = {"WWW-Authenticate": "Bearer"}
    assert exchange.refuse(401, "who are you?", challenge)
    assert not exchange.refuse(401, "who are you?", challenge)
    early = endpoint.exchange("POST", "/", POST)
    assert early.refuse(403, "not you")

    response = answer(exchange)
    assert (response.status, response.headers["www-authenticate"]) == (401, "Bearer")
    assert answer(early).status == 403
    assert not endpoint.admit(question, "user"), "it came too late"
    assert is_empty(endpoint)


def test_an_answer_comes_once() -> None:
    """A second answer must raise, as a second response to a request does."""
    endpoint = endpoint_of()
    _, question = posted(endpoint)
    endpoint.admit(question, "user")
    with pytest.raises(LocalProtocolError, match="answered already") as raised:
        endpoint.admit(question, "other")

    assert raised.value.rule == "OWN-063"
    assert asked(endpoint).principal == "user"


def test_an_answer_for_another_endpoint_or_kind_raises() -> None:
    """A question belongs to one exchange of one endpoint."""
    endpoint, other = endpoint_of(), endpoint_of()
    exchange, question = posted(endpoint)
    wrong: Any = question
    number: Any = 7
    with pytest.raises(LocalProtocolError, match="not asked by this endpoint"):
        other.admit(question, "user")
    with pytest.raises(LocalProtocolError, match="is no ToolSchemaWanted"):
        endpoint.provide_tool_schema(wrong, None)
    invented = CredentialsReceived(exchange=exchange, headers={})
    with pytest.raises(LocalProtocolError, match="answered already"):
        endpoint.admit(invented, "user")
    with pytest.raises(ValueError, match="principal_key"):
        endpoint.admit(question, "user", number)

    assert endpoint.admit(question, "user")
    plain = request(new_endpoint(), "OPTIONS")
    with pytest.raises(LocalProtocolError, match="not asked by this endpoint"):
        endpoint.admit(CredentialsReceived(exchange=plain, headers={}), "user")


def test_a_client_that_leaves_is_not_served() -> None:
    """The lookup must be cancelled, and a late answer have no effect."""
    endpoint = endpoint_of()
    exchange, question = posted(endpoint)
    exchange.receive_disconnect()

    assert ends(endpoint) == [LookupEnd.DISCONNECTED]
    assert not endpoint.admit(question, "user")
    assert not endpoint.fail_lookup(question)
    assert not of(RequestReceived, drain(endpoint))
    assert is_empty(endpoint)


def test_a_closed_endpoint_serves_nobody() -> None:
    """All waiting requests must get a response."""
    endpoint = endpoint_of()
    exchange, question = posted(endpoint)
    half = endpoint.exchange("POST", "/", POST)
    endpoint.close()

    assert ends(endpoint)[-2:] == [LookupEnd.CLOSED, LookupEnd.CLOSED]
    assert answer(exchange).json["error"]["message"] == "the server is closing"
    assert answer(half).status == 503
    assert not endpoint.admit(question, "user")
    assert is_empty(endpoint)


def test_a_failed_lookup_is_answered_and_reported() -> None:
    """A client must not wait for ever for a database that does not answer."""
    endpoint = endpoint_of()
    exchange, question = posted(endpoint)
    with pytest.raises(ValueError, match="500 to 599"):
        endpoint.fail_lookup(question, status=600)
    with pytest.raises(ValueError, match="status"):
        endpoint.fail_lookup(question, status=404)
    with pytest.raises(ValueError, match="retry_after"):
        endpoint.fail_lookup(question, retry_after=-1)
    assert endpoint.fail_lookup(question, "the directory is away", status=503, retry_after=7)

    response = answer(exchange)
    assert (response.status, response.headers["retry-after"]) == (503, "7")
    assert response.json["error"] == {"code": -32603, "message": "the directory is away"}
    assert ends(endpoint) == [LookupEnd.FAILED]
    with pytest.raises(LocalProtocolError, match="answered already"):
        endpoint.fail_lookup(question)


def test_a_failed_lookup_of_half_a_request_is_answered() -> None:
    """The response must not wait for the rest of the body."""
    endpoint = endpoint_of()
    exchange = endpoint.exchange("POST", "/", POST)
    exchange.receive_data(b"{")
    assert endpoint.fail_lookup(one(CredentialsReceived, endpoint))
    exchange.receive_data(b"}")
    exchange.receive_end()

    assert exchange.refused
    assert answer(exchange).status == 500


def test_nobody_is_asked_where_no_principal_counts() -> None:
    """A preflight, a refused head and a given principal need no lookup."""
    endpoint = endpoint_of()
    request(endpoint, "OPTIONS")
    request(endpoint, "PUT")
    post_modern(endpoint, modern_tool_call(), principal="user")

    assert not of(CredentialsReceived, drain(endpoint))


def test_credentials_that_come_twice_are_refused() -> None:
    """A proxy may have checked the other header."""
    endpoint = endpoint_of()
    fields = [*POST.items(), ("authorization", "Bearer a"), ("authorization", "Bearer b")]
    exchange = endpoint.exchange("POST", "/", fields)

    assert answer(exchange).status == 400
    assert broken(endpoint) == ["OWN-037"]


def test_no_more_requests_wait_than_the_limit_on_requests() -> None:
    """A directory that hangs must not fill the memory with waiting requests."""
    endpoint = endpoint_of(config=Config(max_requests=2))
    for _ in range(2):
        endpoint.exchange("POST", "/", POST)
    late = endpoint.exchange("POST", "/", POST)

    response = answer(late)
    assert (response.status, response.headers["retry-after"]) == (503, "5")
    assert [getattr(event, "rule", None) for event in drain(endpoint)] == [None, None, "OWN-061"]
    assert len(endpoint.open_questions) == 2


def test_bodies_that_wait_count_as_held() -> None:
    """Bodies of waiting requests take memory like those of open requests."""
    endpoint = endpoint_of(config=Config(max_held_bytes=10_000))
    message = modern_tool_call(text="x" * 5_000)
    exchanges = [post_modern(endpoint, message) for _ in range(3)]

    statuses = [one.response() for one in exchanges]
    assert [status[0] if status else None for status in statuses] == [None, 503, 503]
    assert ends(endpoint) == [LookupEnd.REFUSED, LookupEnd.REFUSED]
    assert 5_000 < endpoint.held_bytes < 10_000
    exchanges[0].receive_disconnect()
    assert is_empty(endpoint)


def test_a_body_that_is_too_long_ends_the_question() -> None:
    """The lookup must be cancelled when the request is refused."""
    endpoint = endpoint_of(config=Config(max_message_bytes=10))
    exchange = endpoint.exchange("POST", "/", POST)
    question = one(CredentialsReceived, endpoint)
    exchange.receive_data(b" " * 20)

    assert answer(exchange).status == 413
    assert ends(endpoint) == [LookupEnd.REFUSED]
    assert not endpoint.admit(question, "user")


def test_a_principal_without_a_key_is_not_served_where_states_are_sealed() -> None:
    """The rule is the same as for a principal that is given with the request."""
    endpoint = endpoint_of(config=Config(state_keys=(b"k" * 32,)))
    exchange, question = posted(endpoint)
    with pytest.raises(LocalProtocolError, match="principal_key"):
        endpoint.admit(question, "user")

    assert answer(exchange).status == 500
    assert is_empty(endpoint)


def test_a_copy_of_an_endpoint_waits_as_well() -> None:
    """All state is plain data, so a copy must wait for an answer too."""
    endpoint = endpoint_of()
    exchange, question = posted(endpoint)
    other, question_there, exchange_there = copy.deepcopy((endpoint, question, exchange))
    assert other.admit(question_there, "user")
    assert asked(other).principal == "user"

    assert endpoint.open_questions == (question,)
    assert exchange_there.next_output() is None
    exchange.receive_disconnect()
    assert is_empty(endpoint)


def test_the_time_of_an_answer_counts() -> None:
    """Each verb takes the time, so timers must count from it."""
    endpoint = endpoint_of()
    _, question = posted(endpoint)
    endpoint.admit(question, "user", now=5.0)
    endpoint.handle_timeout(4.0)

    assert asked(endpoint).principal == "user"
