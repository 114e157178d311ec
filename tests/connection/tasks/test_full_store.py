"""A store of tasks that is full: the client learns it as from the store in memory."""

from typing import Any

import pytest

from sansmcp import (
    Event,
    JSONObject,
    LimitReached,
    LocalProtocolError,
    TaskCancelled,
    TaskEnd,
    TasksWanted,
    TaskToStore,
    TaskWanted,
)
from tests.support.modern import FORM, cancelled
from tests.support.tasks import NOTHING, START, Host, host, legacy
from tests.support.wire import drain, of, only, sent, wire

WHY = "the disk is full"
NO_ROOM = (-32603, WHY)


def full(kept: Host, text: str | None = WHY) -> list[Event]:
    """Refuse each record that is to be stored; the other events that this causes."""
    seen: list[Event] = []
    while events := drain(kept.server):
        for event in events:
            if isinstance(event, TaskToStore):
                kept.server.fail_task_lookup(event, text, no_room=True, now=1.0)
            elif isinstance(event, TaskWanted):
                kept.server.provide_task(event, kept.shelf.record(event.task_id))
            else:
                seen.append(event)
    return seen


def said(error: Any) -> tuple[int, str]:
    """Code and reason of an error."""
    return error["code"], error["data"]["reason"]


def over(events: list[Event]) -> tuple[TaskEnd, str]:
    """Why a task has ended."""
    (event,) = of(TaskCancelled, events)
    return event.cause, event.text


@pytest.mark.parametrize("is_legacy", [False, True])
def test_a_request_whose_task_has_no_room_is_refused(is_legacy: bool) -> None:
    """OWN-070: as with too many tasks in memory."""
    kept = host(store="ask")
    if is_legacy:
        legacy(kept)
    task = kept.server.create_task(kept.called(), at=START, now=0.0)
    assert task is not None
    events = full(kept)
    (answer,) = sent(kept.server)
    assert said(answer["error"]) == NO_ROOM
    assert answer["error"]["message"] == "too many tasks"
    assert over(events) == (TaskEnd.NO_ROOM, WHY)
    assert not of(LimitReached, events)  # it is no limit of the library
    assert (task.open, kept.server.open_tasks) == (False, ())


def test_a_store_that_says_nothing_is_full() -> None:
    """The text is optional."""
    kept = host(store="ask")
    assert kept.server.create_task(kept.called(), at=START, now=0.0)
    full(kept, None)
    (answer,) = sent(kept.server)
    assert said(answer["error"]) == (-32603, "the store of tasks is full")


def test_a_request_that_was_cancelled_meanwhile_gets_nothing() -> None:
    """CANC-009: nobody waits for the refusal."""
    kept = host(store="ask")
    request = kept.called()
    assert kept.server.create_task(request, at=START, now=0.0)
    (to_store,) = of(TaskToStore, drain(kept.server))
    kept.server.receive_data(wire(cancelled(request.id)))
    assert [event.cause for event in of(TaskCancelled, drain(kept.server))] == [TaskEnd.PEER]
    kept.server.fail_task_lookup(to_store, WHY, no_room=True)
    assert (drain(kept.server), sent(kept.server)) == ([], [])


def test_a_task_whose_result_has_no_room_fails_with_less() -> None:
    """OWN-070: the client learns why."""
    kept = host(store="ask")
    task = kept.create()
    assert kept.server.complete_task(task, NOTHING)
    (to_store,) = of(TaskToStore, drain(kept.server))
    kept.server.fail_task_lookup(to_store, WHY, no_room=True)
    assert kept.events() == []  # the application has ended it itself
    found = kept.get(task.id)
    assert (found["status"], found["statusMessage"]) == ("failed", "the task has no room")
    assert said(found["error"]) == NO_ROOM


def test_a_question_without_room_ends_the_work() -> None:
    """The work would wait for ever for an answer to it."""
    kept = host(store="ask")
    task = kept.create()
    assert kept.server.require_task_input(task, {"a": FORM})
    (to_store,) = of(TaskToStore, drain(kept.server))
    kept.server.fail_task_lookup(to_store, WHY, no_room=True)
    assert over(kept.events()) == (TaskEnd.NO_ROOM, WHY)
    assert kept.get(task.id)["status"] == "failed"


def test_a_task_that_cannot_even_fail_is_given_up() -> None:
    """It stays in the store as it was; the library asks no third time."""
    kept = host(store="ask")
    task = kept.create()
    assert kept.server.update_task(task, message="x")
    assert over(full(kept)) == (TaskEnd.NO_ROOM, WHY)
    assert (task.open, kept.server.open_tasks) == (False, ())
    assert kept.get(task.id)["status"] == "working"


def test_a_task_without_room_fails_without_what_could_not_be_stored() -> None:
    """Only its time to live, which needs no room, is as the application wants it."""
    kept = host(store="ask")
    task = kept.create()
    assert kept.server.require_task_input(task, {"a": FORM})
    assert kept.server.update_task(task, keep="k" * 1000, ttl_ms=5000)
    kept.server.fail_task_lookup(only(TaskToStore, drain(kept.server)), WHY, no_room=True)
    (to_store,) = of(TaskToStore, drain(kept.server))
    kept.server.fail_task_lookup(to_store)
    assert kept.get(task.id)["status"] == "failed"
    record = kept.shelf.record(task.id)
    assert record is not None
    assert (record.ttl_ms, record.keep) == (5000, b"")


def test_answers_without_room_leave_the_task_as_it_is() -> None:
    """OWN-070: the client may answer with less."""
    kept = host(store="ask")
    task = kept.create()
    kept.do(kept.server.require_task_input, task, {"a": FORM})
    params: JSONObject = {"taskId": task.id, "inputResponses": {"a": {"action": "accept"}}}
    kept.server.receive_data(wire(kept.request(7, "tasks/update", params)))
    assert not of(TaskCancelled, full(kept))
    (answer,) = sent(kept.server)
    assert said(answer["error"]) == NO_ROOM
    assert answer["error"]["message"] == "the answers have no room"
    assert kept.get(task.id)["status"] == "input_required"
    assert task.open


def test_only_a_record_has_no_room() -> None:
    """OWN-071: a store that reads needs none; the question stays open."""
    kept = legacy(host(store="ask"))
    kept.hold("tasks/get", {"taskId": "x"})
    for event in (*kept.hold("tasks/list"), *kept.hold("tasks/get", {"taskId": "y"})):
        if isinstance(event, TaskWanted | TasksWanted):
            with pytest.raises(LocalProtocolError, match="OWN-071"):
                kept.server.fail_task_lookup(event, no_room=True)
            kept.server.fail_task_lookup(event)
    assert [answer["error"]["message"] for answer in sent(kept.server)] == [
        "the task cannot be looked up now"
    ] * 2
    odd: Any = "yes"
    (event,) = of(TaskWanted, kept.hold("tasks/get", {"taskId": "z"}))
    with pytest.raises(ValueError, match="no_room"):
        kept.server.fail_task_lookup(event, no_room=odd)


def test_a_full_memory_has_room_for_the_failure_of_each_task() -> None:
    """OWN-070: the error of a task goes over the bound a little, and once."""
    kept = host(max_task_bytes=1000)
    task = kept.create(keep="k" * (990 - 2 * kept.create().record.size))
    assert not kept.server.complete_task(task, {"content": [], "x": "y" * 1000})
    assert kept.get(task.id)["status"] == "failed"
    assert kept.get(task.id)["error"] == {"code": -32603, "message": "the task has no room"}
