"""The stream of a session that carries a message, and messages that wait for a stream."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from sansmcp import (
    CancelCause,
    Config,
    FailureReason,
    LimitReached,
    PingEnded,
    PromptsListChanged,
    RequestCancelled,
    RequestFailed,
    ResourceUpdated,
    ResponseReceived,
    ToolsListChanged,
)
from sansmcp.http import MemoryEventLog, MessageUndelivered, SendBody, ServerExchange
from tests.support.http.server_endpoint import (
    CHANGED,
    JSON,
    STREAMABLE,
    Client,
    answer,
    asked,
    client,
    connect,
    drain,
    modern_tool_call,
    more,
    new_endpoint,
    of,
    open_stream,
    post_modern,
    progressing,
    resumed,
    sessions,
    take,
    tool_call,
    without_log,
)
from tests.support.modern import FILE
from tests.support.wire import call, note, result

REVISIONS = pytest.mark.parametrize("revision", STREAMABLE)
OLDER = STREAMABLE[:-1]


# ---------------------------------------------------------------------------- on which stream


@REVISIONS
def test_what_belongs_to_a_request_goes_on_its_stream(revision: str) -> None:
    """SSE-002 and SSE-003: the response comes last and ends the stream (SSE-008)."""
    one = client(revision)
    listening, before = open_stream(one)
    exchange = one.post(progressing())
    handle = asked(one.endpoint)
    one.endpoint.send_progress(handle, 1)
    one.endpoint.send_log("info", "x", request=handle)
    question = one.endpoint.send_request("roots/list", request=handle)
    one.endpoint.send_notification("x/y", request=handle)
    one.post(result(question.id, {"roots": []}))
    one.endpoint.send_result(handle, {"content": []})

    response = answer(exchange)
    assert [one.get("method") for one in response.messages] == [
        "notifications/progress",
        "notifications/message",
        "roots/list",
        "x/y",
        None,
    ]
    assert response.ended
    assert len(set(response.ids)) == len(response.ids)
    assert more(listening, before).body == b""
    assert of(ResponseReceived, drain(one.endpoint))[0].request is question


@REVISIONS
def test_what_belongs_to_no_request_goes_on_the_get_stream(revision: str) -> None:
    """SSE-022 to SSE-024: responses must not go there."""
    one = client(revision)
    listening, before = open_stream(one)
    running = one.post(progressing())
    drain(one.endpoint)
    one.endpoint.publish(ToolsListChanged())
    one.endpoint.send_log("info", "x", session=one.session)
    one.endpoint.send_notification("x/y", session=one.session)
    question = one.endpoint.send_request("roots/list", session=one.session)
    ping = one.endpoint.ping(one.session)

    response = more(listening, before)
    assert [one["method"] for one in response.messages] == [
        "notifications/tools/list_changed",
        "notifications/message",
        "x/y",
        "roots/list",
        "ping",
    ]
    assert not response.ended
    assert take(running) is None
    one.post(result(response.messages[-1]["id"], {}))
    assert drain(one.endpoint) == [PingEnded(ping=ping)]
    assert one.endpoint.cancel(question, reason="enough")
    assert not one.endpoint.cancel(question)
    assert not one.endpoint.cancel(ping)
    assert more(listening, response).messages[0]["method"] == "notifications/cancelled"


@pytest.mark.parametrize("revision", STREAMABLE)
def test_a_stream_begins_with_an_event_to_come_back_to(revision: str) -> None:
    """SSE-015: only since 2025-11-25, as older clients would take the event for a message."""
    one = client(revision, sessions=sessions(retry_ms=500))
    _, response = open_stream(one)

    if revision in OLDER:
        assert response.body == b""
    else:
        (event,) = response.events
        assert (event.data, bool(event.id)) == (b"", True)
        assert b"retry: 500\n" in response.body


def test_without_a_log_events_have_no_ids() -> None:
    """Without a log, a stream cannot be resumed."""
    one = without_log()
    exchange = one.post(progressing())
    handle = asked(one.endpoint)
    one.endpoint.send_progress(handle, 1)
    one.endpoint.send_result(handle, {"content": []})

    assert answer(exchange).ids == ["", ""]


@REVISIONS
def test_each_message_goes_on_one_stream(revision: str) -> None:
    """SSE-027: a message goes on the newest stream, and not on one whose client has left."""
    one = client(revision)
    first, first_before = open_stream(one)
    second, second_before = open_stream(one)
    one.endpoint.publish(ToolsListChanged())
    assert more(first, first_before).body == b""
    assert more(second, second_before).messages == [CHANGED]

    second.receive_disconnect()
    one.endpoint.publish(ToolsListChanged())
    assert more(first, first_before).messages == [CHANGED]


def test_get_streams_have_a_limit() -> None:
    """The oldest stream must be ended and reported; its client may resume."""
    one = client(sessions=sessions(max_streams=2))
    streams = [open_stream(one) for _ in range(3)]

    assert [more(exchange, before).ended for exchange, before in streams] == [True, False, False]
    (event,) = of(LimitReached, drain(one.endpoint))
    assert event.rule == "OWN-031"


def test_streams_that_nobody_reads_make_room_silently() -> None:
    """A client that reconnects for ever without an event id must not fill the log."""
    one = client(sessions=sessions(max_streams=2))
    for _ in range(20):
        exchange, _ = open_stream(one)
        exchange.receive_disconnect()
    _, last = open_stream(one)

    assert not last.ended
    assert drain(one.endpoint) == []


def test_a_client_that_takes_no_stream_is_not_asked_there() -> None:
    """The request ends at once, instead of after a timeout."""
    one = client()
    exchange = one.post(progressing(), {"accept": JSON})
    handle = asked(one.endpoint)
    assert not one.endpoint.send_progress(handle, 1)
    question = one.endpoint.send_request("roots/list", request=handle)
    (failed,) = of(RequestFailed, drain(one.endpoint))
    assert (failed.request, failed.reason) == (question, FailureReason.NO_STREAM)

    assert one.endpoint.send_result(handle, {"content": []})
    assert answer(exchange).json["id"] == 1


# ----------------------------------------------------------------------------- nobody listens


def test_messages_wait_for_a_get_stream() -> None:
    """Messages must wait in the log, up to its bound, and come once on the next stream."""
    one = client()
    question = one.endpoint.send_request("roots/list", session=one.session)
    one.endpoint.send_notification("x/y", session=one.session)
    assert one.endpoint.send_log("info", "x", session=one.session)
    assert drain(one.endpoint) == []

    exchange, response = open_stream(one)
    assert [one["method"] for one in response.messages] == [
        "roots/list",
        "x/y",
        "notifications/message",
    ]
    one.post(result(question.id, {"roots": []}))
    assert of(ResponseReceived, drain(one.endpoint))
    exchange.receive_disconnect()
    _, again = open_stream(one)
    assert again.messages == []


def test_without_a_log_nothing_waits() -> None:
    """c172: without a log, a message that cannot be sent must be reported."""
    one = without_log()
    question = one.endpoint.send_request("roots/list", session=one.session, timeout=60.0, now=1.0)
    ping = one.endpoint.ping(one.session)
    one.endpoint.send_notification("x/y", session=one.session)
    assert not one.endpoint.send_log("info", "x", session=one.session)

    failed, pinged, lost = drain(one.endpoint)
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (question, FailureReason.NO_STREAM)
    text = "no stream of the client is open on which ping could be sent"
    assert pinged == PingEnded(ping=ping, failure=FailureReason.NO_STREAM, text=text)
    assert lost == MessageUndelivered(session=one.session, is_answer=False)
    assert not question.open


@pytest.mark.parametrize("log", [True, False])
def test_changes_wait_each_once(log: bool) -> None:
    """Two changes of one list need one notification."""
    one = client() if log else without_log()
    one.endpoint.send_result(one.asked(call(1, "resources/subscribe", {"uri": FILE}))[1], {})
    for _ in range(5):
        assert one.endpoint.publish(ToolsListChanged())
        assert one.endpoint.publish(ResourceUpdated(FILE))
        assert not one.endpoint.publish(ResourceUpdated("file:///other"))
    assert drain(one.endpoint) == []

    exchange, response = open_stream(one)
    assert response.messages == [CHANGED, note("notifications/resources/updated", {"uri": FILE})]
    one.endpoint.publish(PromptsListChanged())
    assert more(exchange, response).messages == [note("notifications/prompts/list_changed")]


def test_changes_that_wait_have_a_limit() -> None:
    """The limit must be that of a connection."""
    one = client(config=Config(max_held_changes=1))
    assert one.endpoint.publish(ToolsListChanged())
    assert not one.endpoint.publish(PromptsListChanged())

    assert of(LimitReached, drain(one.endpoint))[0].rule == "OWN-010"


def test_changes_wait_while_a_client_does_not_read() -> None:
    """Above the soft limit changes must wait, and follow when the client has read."""
    one = connect(new_endpoint(config=Config(soft_unsent_bytes=100)))
    exchange, before = open_stream(one)
    for _ in range(10):
        one.endpoint.publish(ToolsListChanged())
    one.endpoint.publish(PromptsListChanged())
    found: list[Any] = []
    for _ in range(4):
        before = more(exchange, before)
        found += before.messages

    assert found.count(CHANGED) <= 3
    assert note("notifications/prompts/list_changed") in found


# ------------------------------------------------------------------------------------- cancelled


@REVISIONS
def test_a_cancelled_request_frees_its_connection(revision: str) -> None:
    """c045: there must be no response, and the stream ends, also if it is empty."""
    one = client(revision)
    exchange, handle = one.asked(tool_call(4))
    assert answer(one.post(note("notifications/cancelled", {"requestId": 4}))).status == 202
    response = answer(exchange)
    assert (response.is_stream, response.body, response.ended) == (True, b"", True)
    assert drain(one.endpoint) == [RequestCancelled(request=handle, cause=CancelCause.PEER)]

    only_json = one.post(tool_call(5), {"accept": JSON})
    one.post(note("notifications/cancelled", {"requestId": 5}))
    assert answer(only_json).status == 204


@pytest.mark.parametrize("is_timeout", [False, True])
def test_a_cancellation_of_ours_outlives_the_stream_of_its_request(is_timeout: bool) -> None:
    """The stream of the request has ended, so the cancellation must go on the GET stream."""
    one = client()
    listening, before = open_stream(one)
    exchange, handle = one.asked(tool_call(1))
    question = one.endpoint.send_request("roots/list", request=handle, timeout=5.0, now=1.0)
    one.endpoint.send_result(handle, {"content": []})
    answer(exchange)
    if is_timeout:
        one.endpoint.handle_timeout(7.0)
    else:
        assert one.endpoint.cancel(question)

    assert [type(event) for event in drain(one.endpoint)] == [RequestFailed]
    (said,) = more(listening, before).messages
    assert (said["method"], said["params"]["requestId"]) == (
        "notifications/cancelled",
        question.id,
    )


def test_a_cancellation_of_ours_goes_where_its_request_went() -> None:
    """The cancellation must go on the stream of its request while that is open."""
    one = client()
    listening, before = open_stream(one)
    exchange, handle = one.asked(tool_call(1))
    question = one.endpoint.send_request("roots/list", request=handle)
    assert one.endpoint.cancel(question)

    methods = [message["method"] for message in answer(exchange).messages]
    assert methods == ["roots/list", "notifications/cancelled"]
    assert more(listening, before).body == b""


@pytest.mark.parametrize("is_gone", [False, True])
def test_only_an_answer_is_reported_as_one(is_gone: bool) -> None:
    """A message that is lost after the response must not be reported as a lost response."""
    one = without_log()
    exchange, handle = one.asked(tool_call(1))
    if is_gone:
        exchange.receive_disconnect()
    assert one.endpoint.send_result(handle, {"content": []}) is not is_gone
    one.endpoint.send_notification("x/y", request=handle)

    lost = of(MessageUndelivered, drain(one.endpoint))
    assert [event.is_answer for event in lost] == [*[True] * is_gone, False]


@pytest.mark.parametrize("is_modern", [False, True])
def test_an_answer_that_was_never_taken_is_reported(is_modern: bool) -> None:
    """If the client leaves before the transport takes the response, it is lost."""
    endpoint = new_endpoint()
    one = connect(endpoint)
    session = None if is_modern else one.session
    for id, is_taken in enumerate((False, True), 1):
        if is_modern:
            exchange = post_modern(endpoint, modern_tool_call(id))
        else:
            exchange = one.post(tool_call(id))
        assert endpoint.send_result(asked(endpoint), {"content": []})
        if is_taken:
            assert answer(exchange).ended
        exchange.receive_disconnect()
        exchange.receive_disconnect()
        lost = [] if is_taken else [MessageUndelivered(session=session, is_answer=True)]
        assert drain(endpoint) == lost


def test_what_waits_follows_where_two_streams_were_closed_before_they_were_read() -> None:
    """The message was on the first stream, and the next GET replayed the second one only."""
    endpoint = new_endpoint(sessions=sessions(event_log=MemoryEventLog))
    one = connect(endpoint)
    assert endpoint.send_log("error", "x", session=one.session)
    first, second = one.get(), one.get()
    endpoint.close_stream(one.session)
    assert answer(first).messages == answer(second).messages == []

    (message,) = answer(one.get()).messages
    assert message["params"]["data"] == "x"


def logged(response: Any) -> list[Any]:
    """The values in the log messages of a response."""
    return [message["params"]["data"] for message in response.messages]


def two_read(one: Client) -> tuple[ServerExchange, str, ServerExchange, str]:
    """Two GET streams of a client, each with its first event, which the client has received."""
    first, begun = open_stream(one)
    second, also = open_stream(one)
    return first, begun.ids[-1], second, also.ids[-1]


def test_what_waits_follows_where_the_client_takes_up_another_stream() -> None:
    """A client that resumes another stream would never have got the message."""
    one = client()
    first, id, second, _ = two_read(one)
    for exchange in (first, second):
        exchange.receive_disconnect()
    assert one.endpoint.send_log("error", "on the second", session=one.session)

    exchange, response = resumed(one, id)
    assert logged(response) == ["on the second"]
    assert one.endpoint.send_log("error", "later", session=one.session)
    assert logged(more(exchange, response)) == ["later"]


def test_what_waits_on_two_streams_comes_with_one_get() -> None:
    """One GET replayed the messages of one stream, and the rest waited for the next GET."""
    one = client()
    first, id, second, _ = two_read(one)
    for exchange in (first, second):
        exchange.receive_disconnect()
    assert one.endpoint.send_log("error", "on the second", session=one.session)
    never_read = one.get({"last-event-id": id})
    assert one.endpoint.send_log("error", "on the first", session=one.session)
    never_read.receive_disconnect()

    exchange, response = open_stream(one)
    assert logged(response) == ["on the second"]
    assert exchange in one.endpoint.ready()
    assert logged(more(exchange, response)) == ["on the first"]
    assert one.endpoint.send_log("error", "later", session=one.session)
    assert logged(more(exchange, response)) == ["later"]
    assert not more(exchange, response).body


def test_what_waits_follows_beside_a_stream_that_is_read() -> None:
    """With another stream open, the next GET opened a new one without the waiting messages."""
    one = client()
    reader, _, second, id = two_read(one)
    assert one.endpoint.send_log("error", "read", session=one.session)
    assert isinstance(second.next_output(), SendBody)
    never_read = one.get({"last-event-id": id})
    assert one.endpoint.send_log("error", "missed", session=one.session)
    never_read.receive_disconnect()

    assert logged(open_stream(one)[1]) == ["missed"]
    assert reader.next_output() is None


def test_what_waits_goes_where_something_waits_already() -> None:
    """Messages must keep their order, so later ones wait behind earlier ones."""
    one = client()
    assert one.endpoint.send_log("error", 1, session=one.session)
    first = one.get()
    second, _ = open_stream(one)
    first.receive_disconnect()
    second.receive_disconnect()
    assert one.endpoint.send_log("error", 2, session=one.session)

    assert logged(open_stream(one)[1]) == [1, 2]


@pytest.mark.parametrize("is_taken_up", [False, True])
def test_what_was_not_taken_off_an_exchange_was_not_sent(is_taken_up: bool) -> None:
    """If the client leaves before the transport takes a message, it must be sent from the log."""
    one = client()
    exchange, begun = open_stream(one)
    assert one.endpoint.send_log("error", "x", session=one.session)
    if is_taken_up:
        one.get({"last-event-id": begun.ids[-1]})
        assert one.endpoint.close_stream(one.session)
    else:
        exchange.receive_disconnect()

    assert logged(open_stream(one)[1]) == ["x"]
    assert logged(open_stream(one)[1]) == []


class FailingLog:
    """A log that cannot be read for a while."""

    def __init__(self) -> None:
        self.is_failing = False
        self._log = MemoryEventLog()

    def append(self, stream: int, event: int, message: bytes) -> int:
        """Keep one event."""
        return self._log.append(stream, event, message)

    def replay(self, stream: int, after: int) -> Sequence[tuple[int, bytes]] | None:
        """The events after this one on its stream, or an error."""
        if self.is_failing:
            raise OSError("the database is away")
        return self._log.replay(stream, after)


def unread_streams(one: Client, number: int) -> None:
    """Many GET streams of a client, each with an unsent message: its own number."""
    opened = [open_stream(one) for _ in range(number)]
    for exchange, _ in opened:
        exchange.receive_disconnect()
    for name, (_, begun) in enumerate(opened, 1):
        never_read = one.get({"last-event-id": begun.ids[-1]})
        assert one.endpoint.send_log("error", name, session=one.session)
        never_read.receive_disconnect()


@pytest.mark.parametrize("number", [2, 400])
def test_what_streams_have_lost_is_not_looked_for_again_and_again(number: int) -> None:
    """A client could make the server follow its streams until the stack was full."""
    log = partial(MemoryEventLog, max_events=number * 2)
    one = client(sessions=sessions(event_log=log, max_streams=number))
    unread_streams(one, number)
    one.post(progressing())
    handle = asked(one.endpoint)
    for done in range(number * 2 + 1):
        assert one.endpoint.send_progress(handle, done)
    drain(one.endpoint)

    exchange, response = open_stream(one)
    assert logged(response) == []
    assert len(of(LimitReached, drain(one.endpoint))) == number
    assert one.endpoint.send_log("error", "later", session=one.session)
    assert logged(more(exchange, response)) == ["later"]
    open_stream(one)
    assert drain(one.endpoint) == []


def test_what_waits_on_two_streams_stays_where_the_log_fails() -> None:
    """After a failure of the log, the message must follow with the next GET."""
    log = FailingLog()
    one = client(sessions=sessions(event_log=lambda: log))
    unread_streams(one, 2)
    log.is_failing = True
    exchange, response = open_stream(one)
    assert logged(response) == []
    exchange.receive_disconnect()
    log.is_failing = False
    exchange, response = open_stream(one)
    assert sorted(logged(response) + logged(more(exchange, response))) == [1, 2]
