"""The responses to requests of 2026-07-28 over HTTP, and their statuses."""

from typing import Any

import pytest

from sansmcp import (
    MODERN_REVISIONS,
    Config,
    JSONObject,
    LimitReached,
    LocalProtocolError,
    RequestAnswered,
    RequestReceived,
)
from sansmcp.http import MessageUndelivered
from tests.support.http.server_endpoint import (
    JSON,
    LEGACY,
    POST,
    SSE,
    answer,
    asked,
    body_of,
    broken,
    drain,
    modern_headers,
    modern_tool_call,
    more,
    new_endpoint,
    of,
    post,
    post_modern,
    refused,
    take,
    tool_call,
)
from tests.support.modern import BOTH, FORM, MODERN, complete, envelope, modern
from tests.support.wire import CLIENT_INFO, initialize

HOSTED = pytest.mark.parametrize("revisions", [MODERN_REVISIONS, BOTH], ids=["modern", "both"])


# ----------------------------------------------------------------------------------- answering


@HOSTED
def test_a_request_is_answered_with_one_object(revisions: tuple[str, ...]) -> None:
    """With `auto`, a response without earlier messages needs no stream."""
    endpoint = new_endpoint(revisions=revisions)
    exchange = post_modern(endpoint, modern_tool_call(7), principal="me", context="here")
    request = asked(endpoint)

    assert (request.revision, request.principal, request.context) == (MODERN, "me", "here")
    assert request.peer.principal == "me"
    assert take(exchange) is None
    assert endpoint.send_result(request, {"content": []})
    response = answer(exchange)
    assert (response.status, response.json) == (200, complete(7, {"content": []}))
    assert "mcp-session-id" not in response.headers
    assert exchange.ended
    assert endpoint.open_requests == ()


def test_what_comes_before_the_answer_turns_it_into_a_stream() -> None:
    """Progress and log messages need the stream of the response, which then ends it."""
    endpoint = new_endpoint()
    meta = envelope(level="info", progressToken="p")
    exchange = post_modern(endpoint, modern(1, "tools/call", {"name": "t"}, meta))
    request = asked(endpoint)

    assert endpoint.send_progress(request, 1, total=2)
    assert endpoint.send_log("info", "x", request=request)
    response = answer(exchange)
    assert response.is_stream
    assert not response.ended
    assert response.headers["x-accel-buffering"] == "no"
    assert response.headers["cache-control"] == "no-cache, no-transform"
    assert [one["method"] for one in response.messages] == [
        "notifications/progress",
        "notifications/message",
    ]
    assert response.ids == ["", ""]  # there is no way back into this stream

    endpoint.send_result(request, {"content": []})
    last = more(exchange, response)
    assert last.messages == [complete(1, {"content": []})]
    assert last.ended
    assert not endpoint.send_progress(request, 2)


def test_a_client_that_takes_no_stream_gets_none() -> None:
    """Without a stream the notifications must be left out, and the result sent."""
    endpoint = new_endpoint()
    meta = envelope(level="info", progressToken="p")
    message = modern(1, "tools/call", {"name": "t"}, meta)
    exchange = post_modern(endpoint, message, {"accept": JSON})
    request = asked(endpoint)

    assert not endpoint.send_progress(request, 1)
    assert not endpoint.send_log("info", "x", request=request)
    assert not endpoint.start_stream(request)
    assert endpoint.send_result(request, {"content": []})
    assert answer(exchange).json == complete(1, {"content": []})


def test_a_stream_can_be_started_before_there_is_anything_to_say() -> None:
    """An early head shows clients and proxies that the request is being served."""
    endpoint = new_endpoint()
    exchange = post_modern(endpoint, modern_tool_call())
    request = asked(endpoint)

    assert endpoint.start_stream(request)
    assert endpoint.start_stream(request)
    response = answer(exchange)
    assert (response.is_stream, response.body, response.ended) == (True, b"", False)
    endpoint.send_result(request, {"content": []})
    assert more(exchange, response).messages == [complete(1, {"content": []})]
    assert not endpoint.start_stream(request)


def test_streams_can_be_forced() -> None:
    """With `answers="sse"` the core's own responses must be streams too."""
    endpoint = new_endpoint(answers="sse")
    exchange = post_modern(endpoint, modern_tool_call())
    endpoint.send_result(asked(endpoint), {"content": []})
    assert answer(exchange).is_stream

    (found,) = answer(post_modern(endpoint, modern(2, "server/discover"))).messages
    assert found["id"] == 2
    only_json = post_modern(endpoint, modern(3, "server/discover"), {"accept": JSON})
    assert answer(only_json).json["id"] == 3
    assert answer(post_modern(endpoint, modern(4, "x"))).status == 404


def test_an_error_has_its_status_where_streams_are_forced() -> None:
    """HTTP-023: an error must have its status unless `start_stream` has sent the head."""
    endpoint = new_endpoint(answers="sse")
    exchange = post_modern(endpoint, modern_tool_call())
    endpoint.send_error(asked(endpoint), -32602, "no such tool")
    assert answer(exchange).status == 400

    begun = post_modern(endpoint, modern_tool_call())
    request = asked(endpoint)
    endpoint.start_stream(request)
    assert answer(begun).is_stream
    endpoint.send_error(request, -32602, "no such tool")
    assert begun.ended


def test_only_a_stream_is_taken() -> None:
    """A client that accepts only streams must get one."""
    endpoint = new_endpoint()
    exchange = post_modern(endpoint, modern(1, "server/discover"), {"accept": SSE})

    assert answer(exchange).messages[0]["id"] == 1


def test_questions_are_the_answer() -> None:
    """MRTR-032: a result with questions must end the exchange, and the client repeats its
    request."""
    endpoint = new_endpoint(config=Config(state_keys=(b"k" * 16,)))
    exchange = post_modern(endpoint, modern_tool_call(1), principal="me", principal_key="1")
    assert endpoint.require_input(asked(endpoint), {"name": FORM}, state="s", at=100.0)
    asking = answer(exchange).json["result"]
    assert asking["resultType"] == "input_required"

    responses: JSONObject = {"name": {"action": "accept", "content": {}}}
    params: JSONObject = {"name": "t", "arguments": {}, "inputResponses": responses}
    params["requestState"] = asking["requestState"]
    again = post_modern(
        endpoint, modern(2, "tools/call", params), principal="me", principal_key="1"
    )
    request = asked(endpoint)
    assert request.input_responses == responses
    assert endpoint.read_state(request, at=101.0) == "s"
    endpoint.send_result(request, {"content": []})
    assert answer(again).status == 200

    other = post_modern(
        endpoint, modern(3, "tools/call", params), principal="me", principal_key="2"
    )
    assert endpoint.read_state(asked(endpoint), at=101.0) is None
    assert answer(other).status == 400
    assert broken(endpoint) == ["MRTR-013"]


def test_a_principal_without_a_key_is_refused_where_states_are_sealed() -> None:
    """OWN-050: two principals may have the same text."""
    endpoint = new_endpoint(config=Config(state_keys=(b"k" * 16,)))
    message = modern_tool_call(1)
    exchange = endpoint.exchange("POST", "/mcp", {**POST, **modern_headers(message)}.items())
    exchange.receive_data(body_of(message))
    exchange.principal = "me"
    with pytest.raises(LocalProtocolError, match="principal_key"):
        exchange.receive_end()
    assert answer(exchange).status == 500
    assert drain(endpoint) == []


@HOSTED
def test_each_request_knows_its_own_principal(revisions: tuple[str, ...]) -> None:
    """A cached envelope must not carry the principal to a request of another client."""
    endpoint = new_endpoint(revisions=revisions)
    for id, principal in ((1, "a"), (2, "b"), (3, None)):
        post_modern(endpoint, modern_tool_call(id), principal=principal)
    requests = [one.request for one in of(RequestReceived, drain(endpoint))]
    assert [one.peer.principal for one in requests] == ["a", "b", None]
    assert [one.peer.info for one in requests] == [CLIENT_INFO] * 3
    assert requests[0].peer is requests[0].peer


def test_a_request_without_session_knows_its_principal() -> None:
    """Neighbour: legacy requests without a session, and `initialize`, must have their principal."""
    endpoint = new_endpoint(sessions=None)
    post(endpoint, tool_call(1), {"mcp-protocol-version": LEGACY}, principal="me")
    (received,) = of(RequestReceived, drain(endpoint))
    assert received.request.peer.principal == "me"
    post(endpoint, initialize(2, LEGACY), principal="me")
    (answered,) = of(RequestAnswered, drain(endpoint))
    assert answered.request.peer.principal == "me"
    assert answered.request.peer.info == CLIENT_INFO


def test_a_state_that_could_not_be_read_changes_no_answer() -> None:
    """A verb that raises must change nothing: here the time was missing."""
    endpoint = new_endpoint(config=Config(state_keys=(b"k" * 16,)))
    params: JSONObject = {"name": "t", "arguments": {}, "requestState": "s"}
    exchange = post_modern(endpoint, modern(1, "tools/call", params))
    request = asked(endpoint)
    with pytest.raises(LocalProtocolError, match="pass at="):
        endpoint.read_state(request)
    endpoint.send_result(request, {"content": []})

    assert answer(exchange).status == 200


# ---------------------------------------------------------------------------------- statuses


@pytest.mark.parametrize(
    ("code", "data", "status"),
    [
        (-32700, None, 400),
        (-32600, None, 400),
        (-32601, None, 404),
        (-32602, None, 400),
        (-32603, None, 200),
        (-32020, None, 400),
        (-32021, {"requiredCapabilities": {"sampling": {}}}, 400),
        (-32022, {"supported": [MODERN], "requested": "x"}, 400),
        (-32002, None, 400),
        (-32000, None, 200),
        (7, None, 200),
    ],
)
def test_errors_of_the_application_have_a_status(code: int, data: Any, status: int) -> None:
    """CAP-008, HTTP-023, HTTP-024: gateways do not read bodies."""
    endpoint = new_endpoint()
    exchange = post_modern(endpoint, modern_tool_call())

    assert endpoint.send_error(asked(endpoint), code, "no", data)
    response = answer(exchange)
    assert response.status == status
    assert response.json["error"]["code"] == (-32602 if code == -32002 else code)


def test_an_error_that_cannot_be_sent_leaves_no_status_behind() -> None:
    """A verb that raises must not set the status of the response that follows."""
    endpoint = new_endpoint()
    exchange = post_modern(endpoint, modern_tool_call())
    request = asked(endpoint)
    for code, message in ((-32601, 7), (-32050, "x")):
        with pytest.raises(Exception, match=r"JSON-008|ERR-006"):
            endpoint.send_error(request, code, message)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # on purpose

    endpoint.send_result(request, {"content": []})
    assert answer(exchange).status == 200


def test_an_error_after_the_head_comes_on_the_stream() -> None:
    """The status was sent with the head."""
    endpoint = new_endpoint()
    exchange = post_modern(endpoint, modern_tool_call())
    request = asked(endpoint)
    endpoint.start_stream(request)
    endpoint.send_error(request, -32602, "no")

    response = answer(exchange)
    assert response.status == 200
    assert response.messages[0]["error"]["code"] == -32602
    assert response.ended


@HOSTED
@pytest.mark.parametrize(
    "method", ["ping", "initialize", "logging/setLevel", "unknown/x", "sampling/createMessage"]
)
def test_methods_that_are_not_there_get_404(method: str, revisions: tuple[str, ...]) -> None:
    """HTTP-023: the body must have the id and the code, also for methods of older revisions."""
    endpoint = new_endpoint(revisions=revisions)
    message = modern(5, method)

    assert refused(endpoint, message, modern_headers(message)) == (404, -32601)


@pytest.mark.parametrize(
    ("meta", "fields"), [(envelope(), {}), ({}, {"mcp-protocol-version": MODERN})]
)
def test_initialize_is_a_handshake_unless_all_say_otherwise(
    meta: JSONObject, fields: dict[str, str]
) -> None:
    """VER-012: an envelope alone, or a header alone, does not make `initialize` a modern
    request."""
    message = modern(5, "initialize", initialize(5, LEGACY)["params"], meta)
    endpoint = new_endpoint()

    assert answer(post(endpoint, message, fields)).last["result"]["protocolVersion"] == LEGACY
    assert len(endpoint.sessions) == 1


def test_undeclared_methods_get_404() -> None:
    """A method without its capability must be refused like an unknown one."""
    endpoint = new_endpoint(capabilities={})
    message = modern_tool_call()

    assert refused(endpoint, message, modern_headers(message)) == (404, -32601)


def test_limits_get_503() -> None:
    """A request over a limit must get a status that allows a retry."""
    endpoint = new_endpoint(config=Config(max_requests=1))
    post_modern(endpoint, modern_tool_call())
    second = post_modern(endpoint, modern_tool_call())

    assert answer(second).status == 503
    assert of(LimitReached, drain(endpoint))[0].rule == "OWN-004"


def test_what_a_client_that_takes_no_stream_cannot_get_is_reported() -> None:
    """Notifications that are left out must be reported, though the response arrives."""
    endpoint = new_endpoint()
    exchange = post_modern(endpoint, modern_tool_call(), {"accept": JSON})
    request = asked(endpoint)
    endpoint.send_notification("x/y", request=request)

    assert drain(endpoint) == [MessageUndelivered(session=None, is_answer=False)]
    assert endpoint.send_result(request, {"content": []})
    assert answer(exchange).status == 200
