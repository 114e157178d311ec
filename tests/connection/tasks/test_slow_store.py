"""A store of the application that answers late, or in part, and clocks that are late."""

from collections.abc import Sequence
from typing import Any

import pytest

from sansmcp import (
    Event,
    JSONObject,
    LimitReached,
    Task,
    TaskQuestion,
    TaskRecord,
    TaskStatus,
    TasksWanted,
    TaskToStore,
    TaskWanted,
)
from tests.support.http.server_endpoint import asked, new_endpoint, post_modern
from tests.support.http.server_endpoint import drain as drain_http
from tests.support.modern import cancelled, envelope, modern
from tests.support.tasks import NOTHING, START, WITH_TASKS, Host, Shelf, host, legacy, settings
from tests.support.wire import call, drain, of, sent, wire

LONG: JSONObject = {"content": [{"type": "text", "text": "x" * 5000}], "isError": True}


# -------------------------------------------------------------------------------------- clocks


@pytest.mark.parametrize("store", ["memory", "ask"])
def test_a_task_is_made_at_the_time_that_is_told_with_it(store: Any) -> None:
    """XTASK-082: an hour after the last time that was told, a task is not over at once."""
    kept = host(store=store)
    kept.create()
    request = kept.called()
    task = kept.create(request, at=None, now=4000.0)
    assert task.record.created_at == START + 4000
    assert kept.get(task.id)["status"] == "working"


def test_a_task_is_not_made_before_the_time_that_is_known() -> None:
    """XTASK-082: the caller's clock was set back."""
    kept = host()
    kept.create()
    task = kept.create(at=START - 7200, now=1.0)
    assert task.record.created_at == START + 1
    assert kept.get(task.id)["status"] == "working"


# --------------------------------------------------------------------------------------- pages


def test_a_page_whose_tasks_are_over_is_not_the_last() -> None:
    """TASK-033: the store may keep tasks for longer than their time."""
    kept = legacy(host(store="ask", page_size=1))
    tasks = [kept.create(ttl_ms=ttl) for ttl in (1000, None, None)]
    kept.server.handle_timeout(2.0)
    kept.told()
    seen: list[str] = []
    result: JSONObject = {"nextCursor": None}
    while "nextCursor" in result:
        cursor: Any = result["nextCursor"]
        result = kept.ask("tasks/list", {} if cursor is None else {"cursor": cursor})["result"]
        page: Any = result["tasks"]
        seen += [task["taskId"] for task in page]
    assert seen == [task.id for task in tasks[1:]]


# ----------------------------------------------------------------------------- stores that fail


def test_those_who_wait_learn_that_the_store_has_failed() -> None:
    """TASK-024: the task is there, and the client may ask again."""
    kept = legacy(host(store="ask"))
    task = kept.create()
    kept.receive(call(1, "tasks/result", {"taskId": task.id}))
    kept.shelf.fails = True
    kept.server.complete_task(task, NOTHING)
    kept.events()
    (answer,) = sent(kept.server)
    assert (answer["id"], answer["error"]["code"]) == (1, -32603)
    kept.shelf.fails = False
    assert kept.get(task.id)["status"] == "working"


def test_a_failed_tool_without_room_is_not_stored() -> None:
    """OWN-070: the verb says so, though the task has failed too."""
    kept = legacy(host(max_task_bytes=1000))
    task = kept.create()
    assert not kept.server.complete_task(task, LONG)
    assert (task.status, task.record.result) == (TaskStatus.FAILED, b"")
    kept = legacy(host())
    task = kept.create()
    assert kept.server.complete_task(task, {**NOTHING, "isError": True})
    assert task.status is TaskStatus.FAILED


def test_the_tasks_that_matter_are_in_order_of_their_creation() -> None:
    """Reports of a process do not depend on the order in which it puts strings."""
    kept = host(store="ask")
    tasks = [kept.create().id for _ in range(8)]
    assert list(kept.server.followed_tasks) == tasks


# --------------------------------------------------------------------------- stores that are slow


@pytest.mark.parametrize("changes", [(0,), (1,), (0, 1), ()])
def test_a_change_before_the_acknowledgement_follows_it(changes: tuple[int, ...]) -> None:
    """XTASK-125: of a task that was looked up before it changed, and of no other."""
    kept = host(store="ask")
    tasks = [kept.create(), kept.create()]
    filter: JSONObject = {"notifications": {"taskIds": [task.id for task in tasks]}}
    first, second = of(TaskWanted, kept.hold("subscriptions/listen", filter))
    kept.shelf.answer(kept.server, first)
    for place in changes:
        kept.server.complete_task(tasks[place], NOTHING)
    if 0 in changes:
        for event in drain(kept.server):
            kept.shelf.answer(kept.server, event)
    assert sent(kept.server) == []
    kept.shelf.answer(kept.server, second)
    told = kept.told()
    assert told[0]["method"] == "notifications/subscriptions/acknowledged"
    assert [one["params"]["taskId"] for one in told[1:]] == [tasks[place].id for place in changes]
    assert all(one["params"]["status"] == "completed" for one in told[1:])


def test_a_task_that_is_over_before_the_acknowledgement_is_not_told() -> None:
    """XTASK-084: nobody knows it any more."""
    kept = host(store="ask")
    tasks = [kept.create(ttl_ms=1000), kept.create()]
    filter: JSONObject = {"notifications": {"taskIds": [task.id for task in tasks]}}
    first, second = of(TaskWanted, kept.hold("subscriptions/listen", filter))
    kept.shelf.answer(kept.server, first)
    kept.server.handle_timeout(2.0)
    kept.shelf.answer(kept.server, second)
    assert len(kept.told()) == 1


@pytest.mark.parametrize("method", ["tasks/get", "subscriptions/listen"])
def test_cancelled_requests_do_not_wait_for_the_store(method: str) -> None:
    """OWN-070: the store is asked for one of them, and for none of the others."""
    kept = host(store="ask", max_lookups=2)
    task = kept.create()
    params: JSONObject = {"taskId": task.id}
    if method != "tasks/get":
        params = {"notifications": {"taskIds": [task.id]}}
    (asked,) = of(TaskWanted, kept.hold(method, params))
    for _ in range(10):
        assert kept.hold(method, params) == []
        kept.server.receive_data(wire(cancelled(kept.last_id)))
        assert not of(TaskWanted, drain(kept.server))
    assert sent(kept.server) == []
    kept.shelf.answer(kept.server, asked)
    assert not of(TaskWanted, kept.events())
    assert len(sent(kept.server)) == 1


def test_so_many_requests_wait_for_the_store_and_no_more() -> None:
    """OWN-070: those that were cancelled count until the store has answered."""
    kept = legacy(host(store="ask", max_lookups=2))
    asked = [*kept.hold("tasks/get", {"taskId": "x"}), *kept.hold("tasks/list")]
    assert [type(event) for event in asked] == [TaskWanted, TasksWanted]
    kept.server.receive_data(wire(cancelled(kept.last_id)))
    assert not of(TaskWanted, drain(kept.server))
    for method in ("tasks/get", "tasks/list"):
        events = kept.hold(method, {"taskId": "y"})
        assert [event.rule for event in of(LimitReached, events)] == ["OWN-070"]
        (answer,) = sent(kept.server)
        assert (answer["id"], answer["error"]["code"]) == (kept.last_id, -32603)
    kept.shelf.answer(kept.server, asked[1])
    assert of(TasksWanted, kept.hold("tasks/list"))
    kept.told()
    kept.shelf.answer(kept.server, asked[0])
    assert len(sent(kept.server)) == 1
    assert kept.code("tasks/get", {"taskId": "y"}) == -32602


def test_a_listing_that_has_failed_waits_no_more() -> None:
    """OWN-070: and makes room for the next one."""
    kept = legacy(host(store="ask", max_lookups=1))
    kept.shelf.fails = True
    assert [kept.code("tasks/list", {}) for _ in range(3)] == [-32603] * 3
    kept.shelf.fails = False
    assert kept.ask("tasks/list", {})["result"] == {"tasks": []}


def test_a_subscription_leaves_out_the_tasks_for_which_no_room_is_left() -> None:
    """XTASK-124, OWN-070: the client polls them."""
    kept = host(store="ask", max_lookups=1)
    tasks = [kept.create(), kept.create()]
    filter: JSONObject = {"notifications": {"taskIds": [task.id for task in tasks]}}
    events = kept.hold("subscriptions/listen", filter)
    assert [event.rule for event in of(LimitReached, events)] == ["OWN-070"]
    kept.shelf.answer(kept.server, of(TaskWanted, events)[0])
    (told,) = kept.told()
    assert told["params"]["notifications"]["taskIds"] == [tasks[0].id]


def stored(kept: Host, events: Sequence[Event] = ()) -> list[TaskRecord]:
    """The records that the store is asked to keep, in these events and after; it keeps each."""
    records: list[TaskRecord] = []
    while events := [*events, *drain(kept.server)]:
        for event in events:
            if isinstance(event, TaskQuestion):
                kept.shelf.answer(kept.server, event)
        records += [event.record for event in of(TaskToStore, events)]
        events = ()
    return records


def test_updates_do_not_pile_up_behind_a_slow_store() -> None:
    """OWN-070: all that come while it is busy are stored as one, and wait as one."""
    kept = host(store="ask", max_lookups=3)
    task = kept.create()
    assert kept.server.update_task(task, message="first", keep=1)
    assert kept.server.update_task(task, ttl_ms=5000, keep=2)
    for number in range(10_000):
        assert kept.server.update_task(task, message=str(number))
    held = kept.hold("tasks/get", {"taskId": task.id})
    assert not of(LimitReached, held)
    records = stored(kept, held)
    assert [(one.message, one.keep) for one in records] == [("first", b"1"), ("9999", b"2")]
    assert records[-1].ttl_ms == 5000
    (answer,) = sent(kept.server)
    assert answer["result"]["statusMessage"] == "9999"
    assert kept.server.update_task(task, message="later")
    assert [one.message for one in stored(kept)] == ["later"]


@pytest.mark.parametrize(
    ("verb", "arguments", "message"),
    [
        ("complete_task", (NOTHING,), None),
        ("fail_task", (-5, "it broke"), "it broke"),
        ("cancel_task", (), None),
    ],
)
def test_the_end_of_a_task_does_not_wait_for_an_update(
    verb: str, arguments: tuple[Any, ...], message: str | None
) -> None:
    """It takes the update along, but for the message; and nothing else waits (OWN-070)."""
    kept = host(store="ask", max_lookups=3)
    task = kept.create()
    assert kept.server.update_task(task, message="first")
    assert kept.server.update_task(task, message="second", ttl_ms=5000, keep=2)
    assert getattr(kept.server, verb)(task, *arguments)
    held = kept.hold("tasks/get", {"taskId": task.id})
    assert not of(LimitReached, held)
    first, last = stored(kept, held)
    assert (first.message, first.ttl_ms) == ("first", 3_600_000)
    assert (last.message, last.ttl_ms, last.keep) == (message, 5000, b"2")
    assert last.status.is_final
    (answer,) = sent(kept.server)
    assert answer["result"]["status"] == last.status.text


def test_a_task_whose_result_has_no_room_keeps_its_new_time() -> None:
    """The update waits with the result, and is refused with it."""
    kept = host(store="ask")
    task = kept.create()
    assert kept.server.update_task(task, message="first")
    assert kept.server.update_task(task, ttl_ms=5000, keep=2)
    assert kept.server.complete_task(task, NOTHING)
    (asked,) = drain(kept.server)
    kept.shelf.answer(kept.server, asked)
    (asked,) = of(TaskToStore, drain(kept.server))
    kept.server.fail_task_lookup(asked, no_room=True)
    (last,) = stored(kept)
    assert (last.status, last.ttl_ms, last.keep) == (TaskStatus.FAILED, 5000, b"")


# -------------------------------------------------------------------------------- room for each


@pytest.mark.parametrize("store", ["memory", "ask"])
def test_one_owner_does_not_take_the_room_of_all(store: Any) -> None:
    """OWN-070: a client of an HTTP endpoint fills its own share."""
    endpoint = new_endpoint(
        capabilities={"tools": {}},
        tasks=settings(store=store, max_tasks=3, max_tasks_per_owner=2),
    )
    shelf = Shelf()

    def settle() -> None:
        for event in drain_http(endpoint):
            if isinstance(event, TaskToStore):
                shelf.answer(endpoint, event)

    def made(name: str) -> Task | None:
        message = modern(1, "tools/call", {"name": "t"}, envelope(WITH_TASKS))
        post_modern(endpoint, message, principal=name, principal_key=name)
        task = endpoint.create_task(asked(endpoint), at=START, now=0.0)
        settle()
        return task

    anna = [made("anna") for _ in range(3)]
    assert [task is None for task in anna] == [False, False, True]
    bert = made("bert")
    assert bert is not None
    assert made("carl") is None  # max_tasks
    if store == "ask":  # tasks that are over make room at once
        assert endpoint.complete_task(bert, NOTHING)
        settle()
        assert made("anna") is None
        assert made("carl") is not None


def test_one_owner_does_not_take_the_bytes_of_all() -> None:
    """OWN-070: what is too much for a client fails, and the others have their share."""
    endpoint = new_endpoint(
        capabilities={"tools": {}}, tasks=settings(max_task_bytes_per_owner=2000)
    )

    def made(name: str, keep: JSONObject | None = None, **more: Any) -> Task | None:
        message = modern(1, "tools/call", {"name": "t"}, envelope(WITH_TASKS))
        post_modern(endpoint, message, principal=name, principal_key=name)
        options: dict[str, Any] = {"at": START, "now": 0.0, **more}
        return endpoint.create_task(asked(endpoint), keep=keep, **options)

    large: JSONObject = {"content": [], "x": "y" * 1000}
    first, second = made("anna", ttl_ms=1000), made("anna")
    assert first is not None
    assert second is not None
    assert endpoint.complete_task(first, large)
    assert not endpoint.complete_task(second, large)
    assert second.status is TaskStatus.FAILED
    assert made("anna", large) is None
    bert = made("bert")
    assert bert is not None
    assert endpoint.complete_task(bert, large)
    endpoint.handle_timeout(2.0)  # the first task of Anna is over
    assert made("anna", large) is not None


def test_the_bytes_of_all_bound_one_owner_too() -> None:
    """OWN-070: `max_task_bytes` is the limit if it is less."""
    kept = host(max_task_bytes=1000, max_task_bytes_per_owner=2000)
    assert not kept.server.complete_task(kept.create(), {"content": [], "x": "y" * 1000})
