"""Broken streams: which messages are kept, and how a client resumes."""

from typing import Any

import pytest

from sansmcp import CancelCause, RequestCancelled, RequestReceived, ToolsListChanged
from sansmcp.http import MessageUndelivered
from tests.support.http.server_endpoint import (
    CHANGED,
    JSON,
    STREAMABLE,
    Client,
    answer,
    asked,
    broken,
    client,
    connect,
    drain,
    more,
    new_endpoint,
    of,
    open_stream,
    progressing,
    resumed,
    sessions,
    tool_call,
    without_log,
)
from tests.support.wire import note, result

REVISIONS = pytest.mark.parametrize("revision", STREAMABLE)


# ------------------------------------------------------------------------------------ breaks


@REVISIONS
def test_a_broken_connection_cancels_nothing(revision: str) -> None:
    """SSE-009: a legacy client cancels by a notification only."""
    one = client(revision)
    exchange = one.post(progressing())
    handle = asked(one.endpoint)
    one.endpoint.send_progress(handle, 1)
    exchange.receive_disconnect()

    assert handle.open
    assert drain(one.endpoint) == []
    assert answer(one.post(note("notifications/cancelled", {"requestId": 1}))).status == 202
    assert drain(one.endpoint) == [RequestCancelled(request=handle, cause=CancelCause.PEER)]


@REVISIONS
def test_an_answer_waits_for_its_client(revision: str) -> None:
    """c194: a response without a connection must be kept, and sent when the client resumes."""
    one = client(revision)
    exchange = one.post(progressing())
    handle = asked(one.endpoint)
    one.endpoint.send_progress(handle, 1)
    last = answer(exchange).ids[-1]
    exchange.receive_disconnect()
    assert one.endpoint.send_progress(handle, 2)
    assert one.endpoint.send_result(handle, {"content": []})
    assert drain(one.endpoint) == []

    _, response = resumed(one, last)
    assert [message.get("id") for message in response.messages] == [None, 1]
    assert response.ended
    _, again = resumed(one, last)
    assert again.messages == response.messages
    _, nothing = resumed(one, response.ids[-1])
    assert (nothing.messages, nothing.ended) == ([], True)


@REVISIONS
def test_a_stream_goes_on_where_it_is_taken_up(revision: str) -> None:
    """Later messages must be sent on the new connection."""
    one = client(revision)
    exchange = one.post(progressing())
    handle = asked(one.endpoint)
    one.endpoint.send_progress(handle, 1)
    last = answer(exchange).ids[-1]
    exchange.receive_disconnect()
    again, response = resumed(one, last)
    assert (response.messages, response.ended) == ([], False)

    one.endpoint.send_progress(handle, 2)
    one.endpoint.send_result(handle, {"content": []})
    rest = more(again, response)
    assert [message.get("id") for message in rest.messages] == [None, 1]
    assert rest.ended


def test_a_stream_is_taken_from_a_connection_that_only_seems_to_live() -> None:
    """The client knows sooner than the server which of its connections are broken."""
    one = client()
    exchange, before = open_stream(one)
    again, response = resumed(one, before.ids[-1])
    assert more(exchange, before).ended
    one.endpoint.publish(ToolsListChanged())

    assert more(again, response).messages == [CHANGED]
    exchange.receive_disconnect()
    one.endpoint.publish(ToolsListChanged())
    assert more(again, response).messages == [CHANGED]


def test_a_get_stream_is_taken_up() -> None:
    """Missed messages must follow, each once."""
    one = client()
    exchange, before = open_stream(one)
    one.endpoint.send_notification("x/1", session=one.session)
    last = more(exchange, before).ids[-1]
    exchange.receive_disconnect()
    one.endpoint.send_notification("x/2", session=one.session)
    again, response = resumed(one, last)

    assert response.messages == [note("x/2")]
    one.endpoint.send_notification("x/3", session=one.session)
    assert more(again, response).messages == [note("x/3")]


def test_the_stream_taken_up_last_is_the_newest() -> None:
    """The client reads the stream that it resumed last, so new messages must go there."""
    one = client()
    first, first_before = open_stream(one)
    first.receive_disconnect()
    _, second_before = open_stream(one)
    again, response = resumed(one, first_before.ids[-1])
    one.endpoint.publish(ToolsListChanged())

    assert more(again, response).messages == [CHANGED]
    assert not second_before.ended


def test_streams_are_not_mixed() -> None:
    """SSE-035 and c192: a replay must have the events of one stream only."""
    one = client()
    listening, _ = open_stream(one)
    exchange = one.post(progressing())
    handle = asked(one.endpoint)
    one.endpoint.publish(ToolsListChanged())
    one.endpoint.send_progress(handle, 1)
    one.endpoint.publish(ToolsListChanged())
    one.endpoint.send_result(handle, {"content": []})
    events = answer(exchange).events
    listening.receive_disconnect()
    exchange.receive_disconnect()

    _, response = resumed(one, events[0].id)
    assert [event.id for event in response.events] == [event.id for event in events[1:]]


@pytest.mark.parametrize(
    "last",
    [
        "x",
        "1-1-1",
        "00000000-1-1",
        "s1-1-1",
        "{tag}-99-1",
        "{tag}-1-99",
        "{tag}-1-0",
        "{tag}-1",
        "é",
    ],
)
@pytest.mark.parametrize("settings", [{}, {"sessions": sessions(event_log=None)}])
def test_an_unknown_event_replays_nothing(last: str, settings: Any) -> None:
    """c193: an id of another session, or of another form, must replay nothing."""
    one = client(**settings)
    _, before = open_stream(one)
    tag = before.ids[0].partition("-")[0] if before.ids else "00000000"
    _, response = resumed(one, last.format(tag=tag))

    assert response.status == 400
    assert broken(one.endpoint) == ["SSE-035"]


def test_an_event_of_another_session_replays_nothing() -> None:
    """Both sessions have the same stream numbers, so the id must name the session too."""
    endpoint = new_endpoint()
    one, other = connect(endpoint), connect(endpoint)
    _, mine = open_stream(one)
    open_stream(other)
    endpoint.publish(ToolsListChanged())

    assert resumed(other, mine.ids[0])[1].status == 400


def test_an_answer_without_a_way_back_is_lost_and_reported() -> None:
    """Without a log, or without a sent event, the client cannot resume."""
    for one in (client(), without_log()):
        exchange, handle = one.asked(tool_call(1))
        exchange.receive_disconnect()
        assert not one.endpoint.start_stream(handle)
        assert not one.endpoint.send_result(handle, {"content": []})
        assert drain(one.endpoint) == [MessageUndelivered(session=one.session, is_answer=True)]
        assert not handle.open


def test_a_stream_that_was_started_early_has_a_way_back() -> None:
    """`start_stream`, or `answers="sse"`, sends an event that the client can resume from."""
    for one in (client(), client(answers="sse")):
        exchange, handle = one.asked(tool_call(1))
        assert one.endpoint.start_stream(handle)
        last = answer(exchange).ids[-1]
        exchange.receive_disconnect()
        assert one.endpoint.send_result(handle, {"content": []})

        assert resumed(one, last)[1].messages == [result(1, {"content": []})]


def test_questions_on_a_lost_stream_fail_at_once() -> None:
    """Questions of `require_input` are requests here, and must end without a stream."""
    one = without_log()
    exchange, handle = one.asked(tool_call(1))
    one.endpoint.start_stream(handle)
    exchange.receive_disconnect()
    assert not one.endpoint.require_input(handle, {"r": {"method": "roots/list"}})

    assert one.endpoint.open_requests == ()
    assert any(isinstance(event, MessageUndelivered) for event in drain(one.endpoint))


def test_questions_go_on_the_stream_of_the_request() -> None:
    """The next round must come when the questions are answered."""
    one = client()
    exchange, handle = one.asked(tool_call(1))
    assert one.endpoint.require_input(handle, {"r": {"method": "roots/list"}}, state="s")
    response = answer(exchange)
    (question,) = response.messages
    one.post(result(question["id"], {"roots": []}))
    (again,) = of(RequestReceived, drain(one.endpoint))

    assert again.request.input_responses == {"r": {"roots": []}}
    assert one.endpoint.read_state(again.request) == "s"
    one.endpoint.send_result(again.request, {"content": []})
    assert more(exchange, response).messages == [result(1, {"content": []})]


# ------------------------------------------------------------------------------------- polling


def test_a_long_request_needs_no_connection() -> None:
    """SSE-017 to SSE-020: the server ends the connection, and the client resumes."""
    one = client(sessions=sessions(retry_ms=700))
    exchange, handle = one.asked(tool_call(1))
    assert one.endpoint.close_stream(handle)
    response = answer(exchange)
    assert response.ended
    assert response.body.endswith(b"retry: 700\n\n")
    assert not one.endpoint.close_stream(handle)
    assert handle.open

    one.endpoint.send_result(handle, {"content": []})
    assert resumed(one, response.ids[-1])[1].messages == [result(1, {"content": []})]


def test_a_client_that_is_sent_away_is_told_how_long() -> None:
    """SSE-019, SSE-021: the client must get a time to wait, a second by default."""
    one = client()
    listening, before = open_stream(one)
    exchange, handle = one.asked(tool_call(1))
    assert one.endpoint.close_stream(handle)
    assert one.endpoint.close_stream(one.session)

    assert answer(exchange).body.endswith(b"retry: 1000\n\n")
    assert more(listening, before).body == b"retry: 1000\n\n"


def test_a_get_stream_can_be_closed_for_polling() -> None:
    """SSE-021: the time to wait can be set for each closing."""
    one = client()
    exchange, before = open_stream(one)
    assert one.endpoint.close_stream(one.session, retry_ms=5)
    response = more(exchange, before)
    assert (response.body, response.ended) == (b"retry: 5\n\n", True)
    one.endpoint.send_notification("x/y", session=one.session)

    assert resumed(one, before.ids[-1])[1].messages == [note("x/y")]
    assert one.endpoint.close_stream(one.session)
    assert not one.endpoint.close_stream(one.session)


@pytest.mark.parametrize("one", [client("2025-06-18"), without_log()], ids=["older", "no log"])
def test_a_client_that_could_not_come_back_is_not_sent_away(one: Client) -> None:
    """SSE-006: before 2025-11-25 the stream must stay open until the response."""
    exchange, handle = one.asked(tool_call(1))

    assert not one.endpoint.close_stream(handle)
    one.endpoint.send_result(handle, {"content": []})
    assert answer(exchange).status == 200


def test_a_client_that_takes_no_stream_is_not_sent_away() -> None:
    """The client reads no stream, so it cannot resume one."""
    one = client()
    _, handle = one.asked(tool_call(1), {"accept": JSON})

    assert not one.endpoint.close_stream(handle)
