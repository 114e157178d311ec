"""Rare situations: several actions at once, at the limits, or in an unusual order."""

import gc
import itertools
import tracemalloc

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    CancelCause,
    Config,
    FailureReason,
    LimitReached,
    ListenerRemoved,
    ProtocolViolation,
    RequestAnswered,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResourceUpdated,
)
from sansmcp.http import MessageUndelivered, SessionEnd, SessionEnded
from tests.support.http.server_endpoint import (
    JSON,
    POST,
    answer,
    asked,
    body_of,
    broken,
    client,
    connect,
    drain,
    modern_headers,
    modern_tool_call,
    more,
    new_endpoint,
    of,
    post,
    post_modern,
    progressing,
    request,
    sessions,
    tool_call,
)
from tests.support.modern import LISTEN, listen, modern
from tests.support.wire import call, initialize, note


def test_a_server_without_the_modern_revision_has_no_listeners() -> None:
    """The property is empty instead of raising."""
    assert new_endpoint(revisions=LEGACY_REVISIONS).listeners == ()


@pytest.mark.unjudged("thousands of messages")
@pytest.mark.parametrize(("number", "size"), [(2_000, 700), (100, 20_000)])
def test_what_is_remembered_of_heads_is_bounded(number: int, size: int) -> None:
    """A client with a new head for each request must not fill the cache of judged heads."""

    def serve(first: int, last: int) -> int:
        for kind in range(first, last):
            accept = f"application/json;v={kind};x={'x' * size}"
            exchange = post_modern(endpoint, modern(1, "server/discover"), {"accept": accept})
            assert answer(exchange).status == 200
            drain(endpoint)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    endpoint = new_endpoint()
    tracemalloc.start()
    try:
        before = serve(0, 300)
        assert serve(300, 300 + number) - before < 500_000
    finally:
        tracemalloc.stop()


def test_fields_that_do_not_matter_are_passed_over() -> None:
    """Each request has many headers that mean nothing to MCP."""
    endpoint = new_endpoint()
    fields = {"User-Agent": "x", "authorization": "secret", "X-Custom": "1"}
    post_modern(endpoint, modern_tool_call(), fields)

    assert asked(endpoint).method == "tools/call"


def test_every_step_may_tell_the_time() -> None:
    """Each entry point takes the time, and timers count from the latest."""
    endpoint = new_endpoint(sessions=sessions(idle=10.0))
    exchange = endpoint.exchange("POST", "/", POST.items(), now=1.0)
    exchange.receive_data(body_of(initialize(0, "2025-11-25")), now=2.0)
    exchange.receive_end(now=3.0)
    assert endpoint.next_timeout() == 13.0
    exchange.receive_disconnect(now=4.0)
    endpoint.close(now=5.0)

    assert endpoint.next_timeout() is None


@pytest.mark.parametrize("name", ["last-event-id", "mcp-session-id"])
def test_fields_of_older_revisions_mean_nothing_in_the_modern_one(name: str) -> None:
    """COMPAT-012 and COMPAT-013: they must be ignored even if they come twice."""
    endpoint = new_endpoint()
    message = modern_tool_call()
    fields = [*POST.items(), *modern_headers(message).items(), (name, "a"), (name, "b")]
    exchange = endpoint.exchange("POST", "/", fields)
    exchange.receive_data(body_of(message))
    exchange.receive_end()

    assert asked(endpoint).method == "tools/call"


def test_a_null_in_place_of_params_is_reported_only() -> None:
    """null params must be tolerated, also in a notification."""
    one = client()

    assert answer(one.post(call(1, "ping", None))).status == 200
    assert answer(one.post(note("notifications/roots/list_changed", None))).status == 202
    assert broken(one.endpoint) == ["OWN-015", "OWN-015"]


def test_refusals_in_a_batch_are_in_its_answer() -> None:
    """The status of the response must not be that of one refused request."""
    one = client("2025-03-26")
    response = answer(one.post([call(1, "unknown/method"), call(2, "ping")]))

    assert response.status == 200
    assert response.json[0]["error"]["code"] == -32601


def test_a_message_after_the_end_of_its_request_is_lost_and_reported() -> None:
    """The stream of the request has ended, so the message must be reported."""
    one = client()
    _, handle = one.asked(tool_call(1))
    one.endpoint.send_result(handle, {"content": []})
    one.endpoint.send_notification("x/y", request=handle)
    question = one.endpoint.send_request("roots/list", request=handle)

    lost, failed = drain(one.endpoint)
    assert lost == MessageUndelivered(session=one.session, is_answer=False)
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (question, FailureReason.NO_STREAM)


def test_several_questions_on_a_lost_stream_fail_together() -> None:
    """The first question that cannot be sent must end the request and the other questions."""
    one = client(sessions=sessions(event_log=None))
    exchange, handle = one.asked(tool_call(1))
    exchange.receive_disconnect()
    roots = {"method": "roots/list"}
    assert not one.endpoint.require_input(handle, {"a": roots, "b": roots})

    answered = of(RequestAnswered, drain(one.endpoint))
    assert [(event.request, event.code) for event in answered] == [(handle, -32603)]
    assert one.endpoint.open_requests == ()


def test_a_cancellation_while_questions_are_open_on_a_lost_stream() -> None:
    """The questions cannot be withdrawn, but the cancellation must still take effect."""
    one = client(sessions=sessions(event_log=None))
    exchange, handle = one.asked(tool_call(1))
    assert one.endpoint.require_input(handle, {"a": {"method": "roots/list"}})
    exchange.receive_disconnect()
    assert answer(one.post(note("notifications/cancelled", {"requestId": 1}))).status == 202

    assert RequestCancelled(request=handle, cause=CancelCause.PEER) in drain(one.endpoint)


# ------------------------------------------------------------------------------- hard limits

SMALL = Config(max_unsent_bytes=600, soft_unsent_bytes=400)
LONG = {"content": [{"type": "text", "text": "x" * 1000}]}


@pytest.mark.parametrize("is_stream", [False, True])
def test_an_answer_over_the_limit_is_an_error_outside_of_sessions(is_stream: bool) -> None:
    """The client must get an error, and other clients be served."""
    endpoint = new_endpoint(config=SMALL)
    exchange = post_modern(endpoint, modern_tool_call())
    handle = asked(endpoint)
    if is_stream:
        endpoint.start_stream(handle)
    assert not endpoint.send_result(handle, LONG)

    response = answer(exchange)
    assert response.status == 200
    assert response.last["error"]["code"] == -32603
    assert [event.rule for event in of(LimitReached, drain(endpoint))] == ["OWN-044"]


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("is_error", [False, True])
def test_an_answer_over_the_limit_is_an_error_within_its_session(
    is_stream: bool, is_error: bool
) -> None:
    """It ended the session with all other calls, which got a head without its body."""
    endpoint = new_endpoint(config=SMALL, capabilities={"tools": {}})
    one = connect(endpoint)
    exchange, handle = one.asked(tool_call(1))
    other_exchange, other = one.asked(tool_call(2))
    if is_stream:
        endpoint.start_stream(handle)
    if is_error:
        assert not endpoint.send_error(handle, -32602, "no", "x" * 1000)
    else:
        assert not endpoint.send_result(handle, LONG)

    response = answer(exchange)
    assert response.status == 200
    error = response.last["error"]
    assert (error["code"], error["message"]) == (-32603, "the response is too large")
    assert "Config.max_unsent_bytes is 600" in error["data"]["reason"]
    [event] = drain(endpoint)
    assert isinstance(event, LimitReached)
    assert event.rule == "OWN-044"
    assert "the response to tools/call has 10" in event.text
    assert endpoint.send_result(other, {"content": []})
    assert answer(other_exchange).last["result"] == {"content": []}


def test_an_answer_of_which_not_even_the_error_fits_gets_503_with_its_id() -> None:
    """A client that reads ids in errors must end that call, and no other."""
    endpoint = new_endpoint(config=Config(max_unsent_bytes=60, soft_unsent_bytes=40))
    exchange = post_modern(endpoint, modern_tool_call(7))
    assert not endpoint.send_result(asked(endpoint), LONG)

    response = answer(exchange)
    assert (response.status, response.json["id"]) == (503, 7)


def test_a_session_that_ends_because_nobody_reads_answers_every_exchange() -> None:
    """The head of a 503 promised a body that was dropped, which broke connections."""
    endpoint = new_endpoint(config=SMALL, capabilities={"tools": {}})
    one = connect(endpoint)
    exchange, handle = one.asked(tool_call(1))
    waiting, _ = one.asked(tool_call(2))
    gone, other = one.asked(tool_call(3))
    gone.receive_disconnect()
    answered, before = one.asked(tool_call(4))
    assert endpoint.send_result(before, {"content": [{"type": "text", "text": "y" * 300}]})
    stream = one.get()
    head = answer(stream)
    assert not endpoint.send_result(handle, {"content": [{"type": "text", "text": "z" * 300}]})

    for id, refused in ((1, answer(exchange)), (2, answer(waiting))):
        assert (refused.status, refused.json["id"]) == (503, id)
        assert refused.headers["content-length"] == str(len(refused.body))
        assert refused.last["error"]
        assert refused.ended
    assert "y" * 300 in str(answer(answered).last)
    assert more(stream, head).ended
    events = drain(endpoint)
    assert of(ProtocolViolation, events)[0].rule == "OWN-012"
    assert other in [event.request for event in of(RequestCancelled, events)]
    assert events[-1] == SessionEnded(session=one.session, cause=SessionEnd.OVERFLOW)


def test_an_answer_over_the_limit_for_a_client_that_is_gone() -> None:
    """The response is not queued, so there is nothing to drop."""
    endpoint = new_endpoint(stateless=True, config=SMALL)
    exchange = post(endpoint, tool_call(1))
    handle = asked(endpoint)
    exchange.receive_disconnect()
    assert not endpoint.send_result(handle, LONG)

    assert exchange.next_output() is None
    assert endpoint.open_requests == ()


def test_what_waited_for_a_client_that_is_gone_takes_no_room() -> None:
    """The next message exceeded the limit, and the client was accused of not reading."""
    endpoint = new_endpoint(stateless=True, config=SMALL)
    exchange = post(endpoint, progressing(1))
    handle = asked(endpoint)
    steps = itertools.count(1)
    while endpoint.send_progress(handle, next(steps)):
        pass
    exchange.receive_disconnect()
    drain(endpoint)
    endpoint.send_result(handle, {"content": [{"type": "text", "text": "x" * 400}]})

    assert of(ProtocolViolation, drain(endpoint)) == []
    assert endpoint.open_requests == ()


def test_an_answer_of_the_core_over_the_limit() -> None:
    """The core answers while the request is still being received."""
    endpoint = new_endpoint(config=Config(max_unsent_bytes=10, soft_unsent_bytes=10))
    response = answer(post_modern(endpoint, modern(1, "server/discover")))
    assert response.status == 503
    assert answer(post(endpoint, initialize(0, "2025-11-25"))).status == 503

    assert endpoint.sessions == ()


def test_a_change_that_waited_and_is_too_much_by_itself_is_left_out() -> None:
    """The change was published before a stream existed on which it could exceed the limit."""
    uri = "file:///" + "x" * 700
    endpoint = new_endpoint(config=Config(max_unsent_bytes=700, soft_unsent_bytes=200))
    one = connect(endpoint)
    exchange, handle = one.asked(call(1, "resources/subscribe", {"uri": uri}))
    endpoint.send_result(handle, {})
    answer(exchange)
    assert endpoint.publish(ResourceUpdated(uri))
    one.get()

    events = drain(endpoint)
    assert [event.rule for event in of(LimitReached, events)] == ["OWN-044"]
    assert of(SessionEnded, events) == []


def test_changes_that_waited_follow_as_there_is_room() -> None:
    """Sent at once they could exceed the limit: none may be lost, and none end the session."""
    uris = [f"file:///{number}/" + "x" * 200 for number in range(4)]
    endpoint = new_endpoint(config=Config(max_unsent_bytes=700, soft_unsent_bytes=20))
    one = connect(endpoint)
    for number, uri in enumerate(uris):
        exchange, handle = one.asked(call(number, "resources/subscribe", {"uri": uri}))
        endpoint.send_result(handle, {})
        answer(exchange)
    for uri in uris:
        assert endpoint.publish(ResourceUpdated(uri))
    messages = answer(one.get()).messages

    assert [message["params"]["uri"] for message in messages] == uris
    assert of(SessionEnded, drain(endpoint)) == []


# ------------------------------------------------------------------------------------- closing


def test_close_cancels_a_subscription_that_was_never_acknowledged() -> None:
    """A subscription that was never acknowledged must end without a result."""
    endpoint = new_endpoint(config=Config(manual=frozenset({LISTEN})))
    exchange = post_modern(endpoint, listen(9, {"toolsListChanged": True}))
    handle = asked(endpoint)
    acknowledged = post_modern(endpoint, listen(10, {"toolsListChanged": True}))
    assert endpoint.acknowledge(asked(endpoint))
    endpoint.close()

    assert answer(exchange).status == 503
    assert answer(acknowledged).messages[-1]["id"] == 10
    events = drain(endpoint)
    assert of(RequestCancelled, events)[0].request is handle
    assert not of(ListenerRemoved, events)


def test_a_late_client_of_a_closed_endpoint_is_refused_by_its_head() -> None:
    """A cached head must be refused too after the endpoint was closed."""
    endpoint = new_endpoint()
    message = modern(1, "server/discover")
    assert answer(post_modern(endpoint, message)).status == 200
    endpoint.close()
    exchange = endpoint.exchange("POST", "/", {**POST, **modern_headers(message)}.items())

    assert exchange.refused
    assert answer(exchange).status == 503
    assert not of(RequestReceived, drain(endpoint))


def test_a_stateless_initialize_does_not_look_at_the_revision_in_its_head() -> None:
    """The header must not be judged on `initialize`, whatever its value is."""
    endpoint = new_endpoint(stateless=True)
    fields = {"mcp-protocol-version": "no revision", "content-type": JSON}
    response = answer(request(endpoint, "POST", fields, body_of(initialize(0, "2025-11-25"))))

    assert response.json["result"]["protocolVersion"] == "2025-11-25"


def test_a_session_knows_what_its_client_is_subscribed_to() -> None:
    """An application that watches resources needs to know which are still subscribed."""
    one = client()
    _, handle = one.asked(call(1, "resources/subscribe", {"uri": "file:///a"}))
    one.endpoint.send_result(handle, {})

    assert one.session.subscriptions == ("file:///a",)


def test_an_exchange_says_what_it_is_and_whether_it_has_output() -> None:
    """Adapters that pull output ask only the exchange that they serve."""
    one = client()
    exchange = one.get(target=b"/mcp?x=1")
    assert (exchange.method, exchange.path) == ("GET", "/mcp")
    before = answer(exchange)
    assert not exchange.has_output
    one.endpoint.send_notification("x/y", session=one.session)
    assert exchange.has_output
    more(exchange, before)
    one.endpoint.send_notification("x/z", session=one.session)
    again = one.get({"last-event-id": before.ids[-1]})
    while again.has_output:
        again.next_output()
    assert again.next_output() is None
    one.endpoint.end_session(one.session)
    assert again.has_output
    again.next_output()
    assert not again.has_output
    half = one.endpoint.exchange("POST", "/mcp", list(POST.items()))
    assert not half.has_output


def test_who_sends_a_request_may_be_said_until_it_is_complete() -> None:
    """A transport that has to look up the principal may give it after the head."""
    endpoint = new_endpoint()
    message = modern_tool_call()
    fields = {**POST, **modern_headers(message)}
    exchange = endpoint.exchange("POST", "/mcp", list(fields.items()))
    exchange.receive_data(body_of(message))
    exchange.principal = "ann"
    exchange.receive_end()

    assert asked(endpoint).principal == "ann"
