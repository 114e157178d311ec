"""`wake` is called when there is work, and is enough to drive an endpoint."""

from typing import Any

from sansmcp import Config, RequestReceived, ToolsListChanged
from sansmcp.http import ServerEndpoint
from tests.support.http.server_endpoint import (
    CHANGED,
    LEGACY,
    answer,
    body_of,
    client,
    connect,
    drain,
    modern_tool_call,
    more,
    new_endpoint,
    of,
    open_stream,
    post_modern,
    request,
    tool_call,
)
from tests.support.wire import note


class Waking:
    """An endpoint that counts the calls of `wake`."""

    def __init__(self, **settings: Any) -> None:
        self.calls = 0
        self.endpoint = new_endpoint(wake=self.wake, **settings)

    def wake(self) -> None:
        self.calls += 1

    def woken(self) -> bool:
        calls, self.calls = self.calls, 0
        return calls > 0


def taken(endpoint: ServerEndpoint) -> None:
    """Take all events and all output."""
    drain(endpoint)
    for exchange in endpoint.ready():
        while exchange.next_output() is not None:
            pass


def test_events_output_and_deadlines_wake() -> None:
    """Each kind of news must wake once where there was none before."""
    waking = Waking()
    endpoint = waking.endpoint
    exchange = post_modern(endpoint, modern_tool_call())
    assert waking.woken()
    post_modern(endpoint, modern_tool_call(2))
    assert not waking.woken()
    handle = of(RequestReceived, drain(endpoint))[0].request
    endpoint.send_result(handle, {"content": []})
    assert waking.woken()
    taken(endpoint)
    assert exchange.ended

    one = connect(endpoint, LEGACY, now=0.0)
    taken(endpoint)
    waking.woken()
    one.get(now=1.0)
    assert waking.woken()
    taken(endpoint)
    endpoint.publish(ToolsListChanged())
    assert waking.woken()
    taken(endpoint)
    endpoint.handle_timeout(2.0)
    assert not waking.woken()
    endpoint.send_request("roots/list", session=one.session, timeout=1.0, now=2.0)
    assert waking.woken()
    taken(endpoint)
    endpoint.handle_timeout(3.0)
    assert waking.woken()


def test_taking_output_wakes_where_others_have_waited_for_it() -> None:
    """Output that was held back by a limit must wake the caller when there is room."""
    waking = Waking(config=Config(soft_unsent_bytes=2000))
    endpoint = waking.endpoint
    one = connect(endpoint)
    listening, before = open_stream(one)
    exchange, handle = one.asked(tool_call(1))
    endpoint.ready()
    endpoint.send_log("error", "x" * 3000, request=handle)
    assert endpoint.publish(ToolsListChanged())
    assert endpoint.ready() == [exchange]
    waking.woken()
    answer(exchange)

    assert waking.woken()
    assert listening in endpoint.ready()
    assert more(listening, before).messages == [CHANGED]


def test_what_was_missed_wakes_for_each_portion() -> None:
    """Between two portions of a replay there is no output, so each must wake."""
    waking = Waking()
    endpoint = waking.endpoint
    one = connect(endpoint)
    exchange, before = open_stream(one)
    exchange.receive_disconnect()
    for number in range(3):
        endpoint.send_log("error", f"{number}" * 50_000, session=one.session)
    again = one.get({"last-event-id": before.ids[-1]})
    endpoint.ready()
    waking.woken()
    response = answer(again)
    found = response.messages
    while waking.woken():
        assert endpoint.ready() == [again]
        response = more(again, response)
        found += response.messages

    assert [message["params"]["data"][0] for message in found] == ["0", "1", "2"]


def test_a_refused_head_wakes() -> None:
    """The refusal is output, so the caller must be woken to send it."""
    waking = Waking()
    waking.endpoint.exchange("PUT", "/", [])

    assert waking.woken()


def test_waking_is_not_re_entrant() -> None:
    """Verbs that are called within `wake` must not call it again."""
    calls: list[int] = []

    def wake() -> None:
        calls.append(len(calls))
        assert len(calls) < 10
        taken(endpoint)
        if len(calls) == 1:
            request(endpoint, "PUT")

    endpoint = new_endpoint(wake=wake)
    post_modern(endpoint, modern_tool_call())

    assert calls == [0, 1]


def test_ready_names_each_exchange_once() -> None:
    """Input of one exchange may be output of another, which must be named once."""
    endpoint = new_endpoint()
    one = connect(endpoint)
    taken(endpoint)
    listening = one.get()
    assert endpoint.ready() == [listening]
    assert endpoint.ready() == []
    endpoint.publish(ToolsListChanged())
    endpoint.publish(ToolsListChanged())
    assert endpoint.ready() == [listening]
    answer(listening)
    running = one.post(tool_call(1))
    assert endpoint.ready() == []
    one.post(tool_call(2))
    first, second = (event.request for event in of(RequestReceived, drain(endpoint)))
    endpoint.send_result(second, {"content": []})
    endpoint.send_result(first, {"content": []})
    assert endpoint.ready()[-1] is running


def test_a_whole_response_can_be_taken_at_once() -> None:
    """Callers that take responses as values never call `ready()`, which must not pile up
    entries."""
    endpoint = new_endpoint()
    exchange = post_modern(endpoint, modern_tool_call())
    assert exchange.response() is None
    (received,) = of(RequestReceived, drain(endpoint))
    endpoint.send_result(received.request, {"content": []})
    response = exchange.response()

    assert response is not None
    status, headers, body = response
    assert status == 200
    assert dict(headers)[b"content-length"] == b"%d" % len(body)
    assert exchange.response() == response  # a value does not go away by being looked at
    assert exchange.next_output() is None
    assert exchange.held_bytes == 0
    exchange.receive_disconnect()
    assert exchange.response() == response
    assert endpoint.ready() == []


def test_a_whole_stream_can_be_taken_at_once() -> None:
    """A stream is a whole response only after its end."""
    endpoint = new_endpoint()
    exchange = post_modern(endpoint, modern_tool_call())
    (received,) = of(RequestReceived, drain(endpoint))
    endpoint.start_stream(received.request)
    assert exchange.response() is None
    endpoint.send_result(received.request, {"content": []})
    response = exchange.response()

    assert response is not None
    assert response[2].startswith(b"data: {")


def test_a_response_that_was_begun_is_taken_to_its_end() -> None:
    """A response that was begun in pieces must not be taken as a whole."""
    exchange = request(new_endpoint(), "PUT")
    assert exchange.next_output() is not None

    assert exchange.response() is None
    assert exchange.next_output() is not None
    assert exchange.next_output() is not None
    assert exchange.next_output() is None


def test_advice_to_pause() -> None:
    """`paused` must be true while too many events wait."""
    endpoint = new_endpoint(config=Config(max_events=2))
    for _ in range(3):
        assert not endpoint.paused
        request(endpoint, "PUT")
    assert endpoint.paused
    drain(endpoint)
    assert not endpoint.paused


def test_advice_to_pause_where_few_events_hold_much() -> None:
    """The messages of all exchanges must count until all events are taken."""
    body = body_of(note("notifications/x", {"text": "x" * 1_000}))
    limit = 2 * len(body)
    one = client(config=Config(max_event_bytes=limit))
    drain(one.endpoint)
    for _ in range(2):
        assert not one.endpoint.paused
        assert answer(one.post(body)).status == 202
    assert not one.endpoint.paused
    one.post(body)
    assert one.endpoint.paused
    assert len(drain(one.endpoint)) == 3
    assert not one.endpoint.paused
    one.post(body)
    assert not one.endpoint.paused
