"""Event logs that are full, that fail, or that belong to another user."""

from collections.abc import Sequence

from sansmcp import FailureReason, LimitReached, RequestFailed
from sansmcp.http import MemoryEventLog
from tests.support.http.server_endpoint import (
    answer,
    asked,
    client,
    drain,
    more,
    of,
    open_stream,
    progressing,
    resumed,
    sessions,
)
from tests.support.wire import note, result


def test_the_log_has_a_limit() -> None:
    """The oldest events must be dropped and reported once, and the rest be replayed."""
    for log in (lambda: MemoryEventLog(max_events=3), lambda: MemoryEventLog(max_bytes=100)):
        one = client(sessions=sessions(event_log=log))
        exchange, before = open_stream(one)
        for number in range(6):
            one.endpoint.send_notification(f"x/{number}", session=one.session)
        assert [event.rule for event in of(LimitReached, drain(one.endpoint))] == ["OWN-033"]
        first = more(exchange, before).ids[0]
        exchange.receive_disconnect()

        _, response = resumed(one, first)
        assert response.messages == [note("x/3"), note("x/4"), note("x/5")]
        (late,) = of(LimitReached, drain(one.endpoint))
        assert "lost 2 of the events" in late.text


def test_a_stream_that_the_log_has_forgotten_is_unknown() -> None:
    """The client must be refused instead of waiting for lost events."""
    one = client(sessions=sessions(event_log=lambda: MemoryEventLog(max_events=1)))
    exchange = one.post(progressing())
    handle = asked(one.endpoint)
    one.endpoint.send_progress(handle, 1)
    one.endpoint.send_result(handle, {"content": []})
    first = answer(exchange).ids[0]
    open_stream(one)

    assert resumed(one, first)[1].status == 400


def test_a_request_that_the_log_has_forgotten_is_over() -> None:
    """A request that never reached the client must end; one that was sent may still be answered."""
    one = client(sessions=sessions(event_log=lambda: MemoryEventLog(max_events=2)))
    exchange, _ = open_stream(one)
    sent = one.endpoint.send_request("roots/list", session=one.session)
    exchange.receive_disconnect()
    answered, *waiting = [
        one.endpoint.send_request("roots/list", session=one.session) for _ in range(4)
    ]
    failed = of(RequestFailed, drain(one.endpoint))
    assert [event.request for event in failed] == [answered, waiting[0]]
    assert {event.reason for event in failed} == {FailureReason.NO_STREAM}

    _, response = open_stream(one)
    assert [message["id"] for message in response.messages] == [call.id for call in waiting[1:]]
    assert sent.open


def test_a_request_that_was_withdrawn_may_be_forgotten() -> None:
    """A withdrawn request has ended already, so nothing is lost."""
    one = client(sessions=sessions(event_log=lambda: MemoryEventLog(max_events=4)))
    for _ in range(2):
        question = one.endpoint.send_request("roots/list", session=one.session)
        assert one.endpoint.cancel(question)
    drain(one.endpoint)
    for _ in range(5):
        one.endpoint.send_notification("x/y", session=one.session)

    assert [type(event) for event in drain(one.endpoint)] == [LimitReached]


def test_a_message_that_is_too_long_for_the_log_is_lost_at_once() -> None:
    """A request that the log cannot keep must end instead of waiting for ever."""
    one = client(sessions=sessions(event_log=lambda: MemoryEventLog(max_bytes=20)))
    question = one.endpoint.send_request("roots/list", session=one.session)

    assert not question.open


# ------------------------------------------------------------------------------- own event logs


class Shelf:
    """An event log of the application: a list that can be out of reach."""

    def __init__(self) -> None:
        self.events: list[tuple[int, int, bytes]] = []
        self.is_away = False

    def append(self, stream: int, event: int, message: bytes) -> int:
        if self.is_away:
            raise OSError("away")
        self.events.append((stream, event, message))
        return 0

    def replay(self, stream: int, after: int) -> Sequence[tuple[int, bytes]] | None:
        if self.is_away:
            raise OSError("away")
        return [(n, text) for name, n, text in self.events if name == stream and n > after]


def test_another_log_can_be_used() -> None:
    """The event log is an interface of two methods, so an application may bring its own."""
    one = client(sessions=sessions(event_log=Shelf))
    exchange, before = open_stream(one)
    exchange.receive_disconnect()
    one.endpoint.send_notification("x/y", session=one.session)

    assert resumed(one, before.ids[-1])[1].messages == [note("x/y")]


def test_a_log_that_fails_breaks_nothing() -> None:
    """Messages must still reach an open stream; a failing log is reported once."""
    shelf = Shelf()
    one = client(sessions=sessions(event_log=lambda: shelf))
    listening, before = open_stream(one)
    exchange, handle = one.asked(progressing())
    shelf.is_away = True
    assert one.endpoint.send_progress(handle, 1)
    assert one.endpoint.send_result(handle, {"content": []})
    assert answer(exchange).last == result(1, {"content": []})
    listening.receive_disconnect()
    question = one.endpoint.send_request("roots/list", session=one.session)
    said, failed = drain(one.endpoint)
    assert isinstance(said, LimitReached)
    assert (said.rule, "OSError('away')" in said.text) == ("OWN-033", True)
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (question, FailureReason.NO_STREAM)

    again, response = resumed(one, before.ids[-1])
    assert (response.status, response.messages) == (200, [])
    shelf.is_away = False
    one.endpoint.send_notification("x/y", session=one.session)
    assert more(again, response).messages == [note("x/y")]


def test_a_log_that_cannot_be_made_breaks_nothing() -> None:
    """Events must keep their ids, and resuming be refused."""

    def fail() -> MemoryEventLog:
        raise OSError("away")

    one = client(sessions=sessions(event_log=fail))
    exchange, handle = one.asked(progressing())
    assert one.endpoint.send_progress(handle, 1)
    assert one.endpoint.send_result(handle, {"content": []})
    response = answer(exchange)
    assert response.last == result(1, {"content": []})

    assert resumed(one, response.ids[-1])[1].status == 400
