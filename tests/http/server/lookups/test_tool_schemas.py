"""The schema of a tool is asked for by an event, before its mirrored headers are judged."""

from typing import Any

import pytest

from sansmcp import Config, LocalProtocolError, RequestReceived
from sansmcp.http import (
    CredentialsReceived,
    LookupEnd,
    ServerEndpoint,
    ServerExchange,
    ToolSchemaWanted,
)
from tests.support.http.lookups import ends, is_empty, one
from tests.support.http.server_endpoint import (
    answer,
    asked,
    broken,
    drain,
    modern_tool_call,
    new_endpoint,
    of,
    post_modern,
)
from tests.support.modern import modern

SCHEMA = {"properties": {"x": {"x-mcp-header": "X"}}}


def called(
    endpoint: ServerEndpoint, message: Any = None, **fields: str
) -> tuple[ServerExchange, ToolSchemaWanted]:
    exchange = post_modern(endpoint, message or modern_tool_call(7, "t", x="a"), fields)
    return exchange, one(ToolSchemaWanted, endpoint)


def endpoint_of(**settings: Any) -> ServerEndpoint:
    return new_endpoint(tool_schema="ask", **settings)


@pytest.mark.parametrize("schema", [SCHEMA, None])
def test_a_call_is_served_when_its_schema_is_there(schema: Any) -> None:
    """A call must wait for the schema, and be served if its headers agree."""
    endpoint = endpoint_of()
    exchange, question = called(endpoint, **{"mcp-param-x": "a"})
    assert question.name == "t"
    assert endpoint.held_bytes > 0
    assert endpoint.provide_tool_schema(question, schema)

    call = asked(endpoint)
    assert (call.id, call.params["arguments"]) == (7, {"x": "a"})
    endpoint.send_result(call, {"content": []})
    assert answer(exchange).json["id"] == 7
    assert is_empty(endpoint)


def test_a_header_that_contradicts_the_schema_is_refused() -> None:
    """A proxy would have read another argument than the handler."""
    endpoint = endpoint_of()
    exchange, question = called(endpoint, **{"mcp-param-x": "b"})
    endpoint.provide_tool_schema(question, SCHEMA)

    response = answer(exchange)
    assert (response.status, response.json["id"]) == (400, 7)
    assert broken(endpoint) == ["HDR-032"]
    assert is_empty(endpoint)


def test_a_failed_lookup_names_the_request() -> None:
    """The error must have the id of the call."""
    endpoint = endpoint_of()
    exchange, question = called(endpoint)
    assert endpoint.fail_lookup(question)

    response = answer(exchange)
    assert (response.status, response.json["id"]) == (500, 7)
    assert response.json["error"]["code"] == -32603
    assert ends(endpoint) == [LookupEnd.FAILED]


def test_the_application_may_refuse_the_call() -> None:
    """The application may hide a tool from this client."""
    endpoint = endpoint_of()
    exchange, question = called(endpoint)
    assert exchange.refuse(403, "not for you")

    response = answer(exchange)
    assert (response.status, response.json["id"]) == (403, 7)
    assert not endpoint.provide_tool_schema(question, SCHEMA)


def test_only_calls_of_tools_are_asked_about() -> None:
    """Other methods have no mirrored parameters, so they need no lookup."""
    endpoint = endpoint_of()
    post_modern(endpoint, modern(1, "tools/list"))
    post_modern(endpoint, modern(2, "tools/call", {}))
    message = modern_tool_call(3)
    del message["id"]
    post_modern(endpoint, message)
    wrong = {"mcp-name": "u"}
    assert answer(post_modern(endpoint, modern_tool_call(4), wrong)).status == 400

    assert not of(ToolSchemaWanted, drain(endpoint))


def test_a_schema_is_an_object() -> None:
    """An answer that cannot be a schema must raise, and change nothing."""
    endpoint = endpoint_of()
    _, question = called(endpoint)
    wrong: Any = []
    with pytest.raises(ValueError, match="schema"):
        endpoint.provide_tool_schema(question, wrong)

    assert endpoint.provide_tool_schema(question, None)
    with pytest.raises(LocalProtocolError, match="answered already"):
        endpoint.provide_tool_schema(question, None)


def test_credentials_come_before_the_schema() -> None:
    """One request may wait for its principal, and then for a schema."""
    endpoint = endpoint_of(credentials="ask")
    message = modern_tool_call()
    exchange = post_modern(endpoint, message)
    first = one(CredentialsReceived, endpoint)
    endpoint.admit(first, "user")
    second = one(ToolSchemaWanted, endpoint)
    with pytest.raises(LocalProtocolError, match="answered already"):
        endpoint.admit(first, "user")
    endpoint.provide_tool_schema(second, None)

    assert asked(endpoint).principal == "user"
    exchange.receive_disconnect()
    assert is_empty(endpoint)


def test_a_call_that_waits_counts_with_what_it_takes() -> None:
    """Decoded lists take more memory than their text."""
    endpoint = endpoint_of(config=Config(max_held_bytes=400_000))
    message = modern_tool_call(x=[[[]]] * 2_000)
    exchanges = [post_modern(endpoint, message) for _ in range(4)]

    assert 3 > len(endpoint.open_questions) > 0
    assert answer(exchanges[-1]).status == 503
    endpoint.close()
    assert is_empty(endpoint)


def test_a_call_is_held_while_it_is_served() -> None:
    """The memory of the request must be counted from the question to the end of the request."""
    endpoint = endpoint_of()
    _, question = called(endpoint)
    waiting = endpoint.held_bytes
    endpoint.provide_tool_schema(question, None)
    (event,) = of(RequestReceived, drain(endpoint))

    assert endpoint.held_bytes == waiting
    endpoint.send_result(event.request, {"content": []})
    assert is_empty(endpoint)
