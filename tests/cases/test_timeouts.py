"""Failure class 9, timeouts: which waits count as silence of the peer."""

import pytest

from sansmcp import (
    CancelCause,
    ClientConnection,
    FailureReason,
    IncomingRequest,
    InputRequired,
    JSONObject,
    ListingEnd,
    ListingEnded,
    PingEnded,
    ProgressReceived,
    RequestCancelled,
    RequestFailed,
    ResponseReceived,
)
from tests.support.modern import FORM, input_required, modern_client
from tests.support.wire import (
    asked,
    call,
    drain,
    initialized_by,
    new_client,
    note,
    of,
    only,
    ready_client,
    ready_server,
    receive,
    result,
    sent,
)

ANSWER: JSONObject = {"action": "accept", "content": {}}
TOOL: JSONObject = {"name": "t"}
DONE: JSONObject = {"content": []}


def client() -> ClientConnection:
    return ready_client("2025-11-25")


def question(one: ClientConnection, id: object = 9, now: float = 0.0) -> IncomingRequest:
    """A question of the server during a call."""
    one.handle_timeout(now)
    return asked(one, call(id, FORM["method"], FORM["params"]))


def failed(one: ClientConnection, now: float) -> bool:
    """Whether the one call has timed out by now."""
    one.handle_timeout(now)
    failures = of(RequestFailed, drain(one))
    assert all(failure.reason is FailureReason.TIMED_OUT for failure in failures)
    sent(one)
    return bool(failures)


def test_silence_does_not_count_while_a_question_is_open() -> None:
    """Case c284: a user who was slow to answer ended the call that had asked."""
    one = client()
    ours = one.send_request("tools/call", TOOL, timeout=1, now=0)
    theirs = question(one)
    one.handle_timeout(2.5)
    assert drain(one) == []
    assert one.next_timeout() is None
    assert one.send_result(theirs, ANSWER)
    assert one.next_timeout() == 3.5
    event = only(ResponseReceived, receive(one, result(ours.id, DONE), now=3.4))
    assert event.request is ours


def test_progress_arms_no_timer_while_a_question_is_open() -> None:
    """Neighbour of case c284: a loop would wake up without work."""
    one = client()
    ours = one.send_request("tools/call", TOOL, progress=True, timeout=10, max_timeout=100, now=0)
    question(one)
    assert not failed(one, 10)
    assert one.next_timeout() == 100
    params = {"progressToken": ours.progress_token, "progress": 1}
    receive(one, note("notifications/progress", params), now=20)
    assert one.next_timeout() == 100
    assert failed(one, 100)


def test_a_user_of_the_modern_era_has_any_time() -> None:
    """Case c284, in 2026-07-28: the questions end the request, and the next round has its own
    timeout."""
    one = modern_client()
    ours = one.send_request("tools/call", TOOL, timeout=1, now=0)
    only(InputRequired, receive(one, input_required(ours.id, {"q": FORM})))
    one.handle_timeout(1_000)
    assert drain(one) == []
    again = one.provide_input(ours, {"q": ANSWER}, timeout=1, now=1_000)
    assert not failed(one, 1_000.9)
    assert again.open
    assert failed(one, 1_001)


TASKS: JSONObject = {
    "elicitation": {},
    "tasks": {"requests": {"elicitation": {"create": {}}}},
}


def task(status: str) -> JSONObject:
    """A task of the client, as the client describes it to the server."""
    when = "2026-01-01T00:00:00Z"
    return {"taskId": "t", "status": status, "createdAt": when, "lastUpdatedAt": when, "ttl": None}


def task_asked() -> tuple[ClientConnection, JSONObject]:
    """A client whose call waits for a question that it has answered with a task."""
    one = ready_client("2025-11-25", capabilities=TASKS)
    one.send_request("tools/call", TOOL, timeout=60, now=0)
    theirs = asked(one, call(9, FORM["method"], {**FORM["params"], "task": {}}))
    assert one.send_result(theirs, {"task": task("working")}, now=1)
    return one, {"taskId": "t"}


@pytest.mark.parametrize("told_by", ["poll", "notification"])
def test_silence_does_not_count_while_a_question_is_a_task(told_by: str) -> None:
    """Neighbour of case c284: the user is being asked as long as the task runs."""
    one, about = task_asked()
    for id in range(10, 20):
        now = 10.0 * id
        assert not failed(one, now)
        polled = asked(one, call(id, "tasks/get", about))
        assert one.send_result(polled, task("working"), now=now)
    if told_by == "poll":
        polled = asked(one, call(20, "tasks/get", about))
        assert one.send_result(polled, task("completed"), now=200)
    else:
        one.send_notification("notifications/tasks/status", task("completed"), now=200)
    assert not failed(one, 258.9)
    assert failed(one, 260)


def test_silence_counts_again_where_the_end_of_a_task_can_not_be_told() -> None:
    """Neighbour of case c284: after a failed write the server gets no answer to wait for."""
    one, _ = task_asked()
    sent(one)
    assert not failed(one, 100)
    one.send_failed(now=100)
    assert failed(one, 160)


def test_what_was_left_of_the_silence_is_left_after_the_answer() -> None:
    """Neighbour of case c284: the timeout must pause, and not start again."""
    one = client()
    one.send_request("tools/call", TOOL, timeout=10, now=0)
    theirs = question(one, now=4)
    assert one.send_result(theirs, ANSWER, now=50)
    assert not failed(one, 55.9)
    assert failed(one, 56)


def test_pauses_add_up() -> None:
    """Neighbour of case c284: a server may ask again, and ask several questions at once."""
    one = client()
    one.send_request("tools/call", TOOL, timeout=10, now=0)
    first, second = question(one, 1, now=2), question(one, 2, now=4)
    assert one.send_result(first, ANSWER, now=6)
    assert one.send_result(second, ANSWER, now=8)  # 2 to 8
    third = question(one, 3, now=12)
    assert one.send_result(third, ANSWER, now=22)  # 12 to 22
    assert not failed(one, 25.9)
    assert failed(one, 26)


def test_a_call_is_not_spared_the_pauses_before_it() -> None:
    """Neighbour of case c284: only pauses after its own start may count."""
    one = client()
    assert one.send_result(question(one, now=1), ANSWER, now=100)
    one.send_request("tools/call", TOOL, timeout=10, now=100)
    assert not failed(one, 109.9)
    assert failed(one, 110)


@pytest.mark.parametrize("parked", [True, False])
def test_the_longest_time_counts_always(parked: bool) -> None:
    """Case c284: `max_timeout` limits the whole wait, whichever side is slow."""
    one = client()
    one.send_request("tools/call", TOOL, timeout=1 if parked else 50, max_timeout=20, now=0)
    question(one)
    assert not failed(one, 5)
    assert one.next_timeout() == 20
    assert failed(one, 20)
    assert one.next_timeout() is None


def test_after_the_answer_the_longest_time_still_counts() -> None:
    """Neighbour of case c284: the earlier of both deadlines must count."""
    one = client()
    one.send_request("tools/call", TOOL, timeout=10, max_timeout=20, now=0)
    theirs = question(one)
    assert not failed(one, 12)
    assert one.send_result(theirs, ANSWER, now=15)
    assert one.next_timeout() == 20
    assert failed(one, 20)


def test_silence_counts_again_soon_after_a_long_pause() -> None:
    """Neighbour of case c284: with a distant `max_timeout`, the timeout comes first."""
    one = client()
    one.send_request("tools/call", TOOL, timeout=1, max_timeout=1_000, now=0)
    theirs = question(one)
    assert not failed(one, 100)
    assert one.send_result(theirs, ANSWER, now=200)
    assert one.next_timeout() == 201
    assert failed(one, 201)


@pytest.mark.parametrize("max_timeout", [None, 1_000])
def test_progress_during_a_question_restarts_what_comes_after_it(max_timeout: float | None) -> None:
    """Neighbour of case c284: progress must restart the timeout also during a question."""
    one = client()
    ours = one.send_request(
        "tools/call", TOOL, progress=True, timeout=10, max_timeout=max_timeout, now=0
    )
    theirs = question(one, now=8)
    assert not failed(one, 30)
    told = note("notifications/progress", {"progressToken": ours.progress_token, "progress": 1})
    only(ProgressReceived, receive(one, told, now=40))
    assert one.send_result(theirs, ANSWER, now=50)
    assert not failed(one, 59.9)
    assert failed(one, 60)


@pytest.mark.parametrize("end", ["answer", "error", "cancelled"])
def test_a_question_is_over_however_it_ends(end: str) -> None:
    """Neighbour of case c284: after each kind of ending the timeout must run again."""
    one = client()
    one.send_request("tools/call", TOOL, timeout=10, now=0)
    theirs = question(one)
    one.handle_timeout(100)
    if end == "answer":
        one.send_result(theirs, ANSWER)
    elif end == "error":
        one.send_error(theirs, -1, "no")
    else:
        event = only(
            RequestCancelled, receive(one, note("notifications/cancelled", {"requestId": 9}))
        )
        assert event.cause is CancelCause.PEER
    assert not failed(one, 109.9)
    assert failed(one, 110)


def test_a_question_that_comes_when_the_time_was_over_is_a_sign_of_life() -> None:
    """Neighbour of case c284: a message that is received before the timer fires counts."""
    one = client()
    one.send_request("tools/call", TOOL, timeout=10, now=0)
    theirs = asked_at(one, 12)
    assert not failed(one, 30)
    assert one.send_result(theirs, ANSWER, now=40)
    assert not failed(one, 49.9)
    assert failed(one, 50)


def asked_at(one: ClientConnection, now: float) -> IncomingRequest:
    """Receive a question at this time, before the timers are handled."""
    one.receive_data(b"", now=now)
    return asked(one, call(9, FORM["method"], FORM["params"]))


def test_a_call_that_is_cancelled_meanwhile_is_over() -> None:
    """Neighbour of case c284: a cancelled call must leave no timer."""
    one = client()
    ours = one.send_request("tools/call", TOOL, timeout=1, now=0)
    theirs = question(one)
    assert not failed(one, 5)
    assert one.cancel(ours)
    drain(one)
    assert one.send_result(theirs, ANSWER, now=6)
    assert one.next_timeout() is None


def test_pings_are_not_spared() -> None:
    """Neighbour of case c284: a ping needs no answer to a question, so its timeout must run on."""
    one = client()
    one.ping(timeout=1, now=0)
    question(one)
    one.handle_timeout(1)
    assert only(PingEnded, drain(one)).failure is FailureReason.TIMED_OUT


def test_pages_are_spared() -> None:
    """Neighbour of case c284: a server of one thread cannot list while it waits for an answer."""
    one = client()
    one.send_paginated("tools/list", timeout=1, now=0)
    theirs = question(one)
    one.handle_timeout(10)
    assert drain(one) == []
    assert one.send_result(theirs, ANSWER, now=10)
    one.handle_timeout(11)
    assert only(ListingEnded, drain(one)).reason is ListingEnd.TIMED_OUT


def test_a_question_from_before_there_was_a_clock_counts_from_the_call() -> None:
    """Neighbour of case c284: without a time before, the pause must count from the call."""
    one = new_client()
    one.start()
    (first,) = sent(one)
    receive(one, result(first["id"], initialized_by("2025-11-25")))
    theirs = asked(one, call(9, FORM["method"], FORM["params"]))
    one.send_request("tools/call", TOOL, timeout=1, now=0)
    assert not failed(one, 5)
    assert one.send_result(theirs, ANSWER, now=5)
    assert failed(one, 6)


def test_a_server_does_not_wait_longer_because_of_its_clients_calls() -> None:
    """Neighbour of case c284: a call of the client must not pause the timeout of a request of
    the server."""
    server = ready_server("2025-11-25")
    asked(server, call(1, "tools/call", TOOL))
    server.send_request("roots/list", timeout=1, now=0)
    server.handle_timeout(1)
    assert only(RequestFailed, drain(server)).reason is FailureReason.TIMED_OUT
