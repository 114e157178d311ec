"""A client that resumes a stream gets the events that it has missed, in order."""

import pytest

from sansmcp import Config, ToolsListChanged
from sansmcp.http import SendBody, ServerExchange, ServerSentEvent, SessionEnded, SSEDecoder
from tests.support.http.server_endpoint import (
    CHANGED,
    Client,
    answer,
    client,
    drain,
    more,
    open_stream,
    progressing,
    resumed,
    sessions,
)
from tests.support.wire import note


def test_what_waits_on_a_connection_does_not_go_out_on_two() -> None:
    """SSE-027, SSE-028: the client decides which of its connections it reads."""
    one = client()
    exchange, handle = one.asked(progressing())
    one.endpoint.send_progress(handle, 1)
    before = answer(exchange)
    one.endpoint.send_progress(handle, 2)
    _, response = resumed(one, before.ids[-1])

    rest = more(exchange, before)
    assert (rest.body, rest.ended) == (b"", True)
    assert [message["params"]["progress"] for message in response.messages] == [2]


def long_stream(one: Client, events: int, is_answered: bool) -> str:
    """A stream with many long events whose connection was lost; returns the first event's id."""
    exchange, handle = one.asked(progressing())
    one.endpoint.send_progress(handle, 0)
    first = answer(exchange).ids[-1]
    exchange.receive_disconnect()
    for number in range(1, events):
        one.endpoint.send_progress(handle, number, message="m" * 10_000)
    if is_answered:
        one.endpoint.send_result(handle, {"content": []})
    return first


def in_portions(one: Client, exchange: ServerExchange) -> tuple[list[int], bytes]:
    """Take all output as a connection with room for it does; returns the size of each portion."""
    sizes: list[int] = []
    body = b""
    while exchange in one.endpoint.ready():
        data = b""
        while (output := exchange.next_output()) is not None:
            if isinstance(output, SendBody):
                data += output.data
        sizes.append(len(data))
        body += data
    return sizes, body


@pytest.mark.parametrize("is_answered", [False, True])
def test_what_was_missed_comes_in_portions(is_answered: bool) -> None:
    """A client that resumes again and again without reading would fill the memory."""
    one = client(config=Config(max_unsent_bytes=50_000))
    first = long_stream(one, 30, is_answered)
    unread = [one.get({"last-event-id": first}) for _ in range(20)]
    assert (one.session.open, drain(one.endpoint)) == (True, [])

    sizes, body = in_portions(one, unread[-1])
    assert max(sizes) < 100_000
    events = [event for event in SSEDecoder().feed(body) if isinstance(event, ServerSentEvent)]
    assert len(events) == 29 + is_answered
    assert unread[-1].ended is is_answered


def test_what_comes_while_a_client_catches_up_follows_what_it_has_missed() -> None:
    """New messages, also the last one, must follow the missed events in the order of ids."""
    one = client()
    first = long_stream(one, 30, False)
    (handle,) = one.endpoint.open_requests
    exchange = one.get({"last-event-id": first})
    one.endpoint.ready()
    exchange.next_output()
    output = exchange.next_output()
    assert isinstance(output, SendBody)
    assert one.endpoint.send_progress(handle, 30)
    assert one.endpoint.send_result(handle, {"content": []})
    assert exchange.next_output() is None
    assert not exchange.ended

    _, body = in_portions(one, exchange)
    events = SSEDecoder().feed(output.data + body)
    numbers = [int(event.id.rpartition("-")[2]) for event in events if hasattr(event, "id")]
    assert numbers == list(range(numbers[0], numbers[0] + 31))
    assert exchange.ended


def test_a_client_that_goes_while_it_catches_up_is_gone() -> None:
    """The client must be able to resume where it stopped."""
    one = client()
    first = long_stream(one, 30, True)
    exchange = one.get({"last-event-id": first})
    exchange.next_output()
    exchange.next_output()
    exchange.receive_disconnect()
    assert exchange.next_output() is None

    again = one.get({"last-event-id": first})
    whole = again.response()
    assert whole is not None
    assert len(SSEDecoder().feed(whole[2])) == 30


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_session_that_ends_ends_what_is_being_caught_up(is_answered: bool) -> None:
    """The log ends with the session, so no event may follow."""
    one = client()
    first = long_stream(one, 30, is_answered)
    exchange, before = resumed(one, first)
    one.endpoint.end_session(one.session)

    assert not before.ended
    assert exchange.ended
    assert more(exchange, before).ended
    assert isinstance(drain(one.endpoint)[-1], SessionEnded)


def test_a_client_comes_back_to_a_stream_that_gave_way() -> None:
    """The client must get the missed events and then stay on the stream, or it would resume for
    ever."""
    one = client(sessions=sessions(max_streams=1))
    first, before = open_stream(one)
    one.endpoint.send_notification("x/1", session=one.session)
    second, second_before = open_stream(one)
    assert more(first, before).ended
    again, response = resumed(one, before.ids[-1])
    assert (response.messages, response.ended) == ([note("x/1")], False)
    assert more(second, second_before).ended

    one.endpoint.publish(ToolsListChanged())
    response = more(again, response)
    assert response.messages == [CHANGED]
    again.receive_disconnect()
    one.endpoint.send_notification("x/2", session=one.session)
    assert resumed(one, response.ids[-1])[1].messages == [note("x/2")]


def test_changes_that_wait_come_when_a_stream_that_gave_way_is_taken_up() -> None:
    """A resumed stream must get waiting changes like a new one."""
    one = client(sessions=sessions(max_streams=1))
    _, before = open_stream(one)
    second, _ = open_stream(one)
    second.receive_disconnect()
    one.endpoint.publish(ToolsListChanged())

    assert resumed(one, before.ids[-1])[1].messages == [CHANGED]


def test_what_nobody_has_read_follows_on_a_stream_that_gave_way() -> None:
    """A resumed stream must get unread events of other streams, as a new one would."""
    one = client(sessions=sessions(max_streams=1))
    _, before = open_stream(one)
    second, _ = open_stream(one)
    second.receive_disconnect()
    one.endpoint.send_notification("x/1", session=one.session)
    again, response = resumed(one, before.ids[-1])
    assert response.messages == [note("x/1")]

    one.endpoint.send_notification("x/2", session=one.session)
    assert more(again, response).messages == [note("x/2")]
