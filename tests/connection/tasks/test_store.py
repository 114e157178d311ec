"""The stores of tasks: bounds and time in memory, and questions to a store of the application."""

import copy
import gc
import tracemalloc
from typing import Any

import pytest

from sansmcp import (
    Config,
    Event,
    JSONObject,
    LimitReached,
    LocalProtocolError,
    ServerConnection,
    TaskCancelled,
    TaskEnd,
    TaskInputReceived,
    TaskRecord,
    TaskStatus,
    TasksWanted,
    TaskToStore,
    TaskWanted,
)
from sansmcp.testing import canonical, plain
from tests.support.called import lines_in
from tests.support.modern import FORM, ROOTS, cancelled, envelope, modern
from tests.support.tasks import (
    NOTHING,
    START,
    WITH_TASKS,
    Host,
    host,
    legacy,
    settings,
)
from tests.support.wire import SERVER_INFO, call, drain, of, only, sent

RECORD: dict[str, Any] = {
    "id": "t",
    "owner": "2026-07-28 ",
    "method": "tools/call",
    "is_modern": True,
    "created_at": START,
    "updated_at": START,
    "ttl_ms": 1000,
}


def again(kept: Host) -> Host:
    """Another process with the same store."""
    server = ServerConnection(
        info=SERVER_INFO,
        capabilities={"tools": {}},
        tasks=settings(store="ask", entropy=kept.entropy),
    )
    return Host(server, kept.shelf, kept.entropy)


def over(events: list[Event]) -> tuple[TaskEnd, str]:
    """Why a task has ended."""
    event = only(TaskCancelled, [one for one in events if isinstance(one, TaskCancelled)])
    return event.cause, event.text


# ---------------------------------------------------------------------------------------- bounds


def test_there_are_so_many_tasks_and_no_more() -> None:
    """OWN-070, TASK-044: one over it is refused, and those that are over make room in time."""
    kept = host(max_tasks=1, ttl_ms=1000)
    task = kept.create()
    kept.do(kept.server.complete_task, task, NOTHING)
    request = kept.called()
    assert kept.server.create_task(request) is None
    assert [event.rule for event in of(LimitReached, drain(kept.server))] == ["OWN-070"]
    (answer,) = sent(kept.server)
    assert answer["error"]["code"] == -32603
    assert answer["error"]["data"]["reason"]
    kept.server.handle_timeout(2.0)
    assert kept.create(at=START + 2).open


def test_what_is_put_into_tasks_is_bounded() -> None:
    """OWN-070: a result without room is an error, and the application learns it."""
    kept = host(max_task_bytes=1500)
    task, other = kept.create(), kept.create()
    long: JSONObject = {"content": [{"type": "text", "text": "x" * 1500}]}
    assert not kept.server.complete_task(task, long)
    events = kept.events()
    assert [event.rule for event in of(LimitReached, events)] == ["OWN-070"]
    assert kept.get(task.id)["status"] == "failed"
    assert not kept.server.require_task_input(
        other, {"a": {**FORM, "params": {**FORM["params"], "message": "x" * 1500}}}
    )
    cause, text = over(kept.events())
    assert (cause, "1500 bytes" in text) == (TaskEnd.NO_ROOM, True)
    assert kept.get(other.id)["status"] == "failed"


@pytest.mark.parametrize("verb", ["complete_task", "fail_task", "cancel_task", "update_task"])
def test_a_task_without_room_can_always_fail(verb: str) -> None:
    """OWN-070: the error that says so has room, however full the store is."""
    result: JSONObject = {"content": [{"type": "text", "text": "x" * 999}]}
    arguments: dict[str, JSONObject] = {
        "complete_task": {"result": result},
        "fail_task": {"code": -32603, "message": "x" * 999},
    }
    empty = host().create().record.size
    kept = host(max_task_bytes=1000)
    task, other = kept.create(), kept.create(keep="x" * (1000 - 2 * empty - 2))
    getattr(kept.server, verb)(task, **arguments.get(verb, {"message": "x" * 999}))
    assert [event.rule for event in of(LimitReached, kept.events())] == ["OWN-070"]
    said = kept.get(task.id)
    assert (said["status"], said["statusMessage"]) == ("failed", "the task has no room")
    assert other.open


def test_messages_and_keys_count_for_the_bytes_of_tasks() -> None:
    """OWN-070: the peer's next call finds no room for another task."""
    empty = host().create().record.size
    for change in ({"message": "x" * 100}, {}):
        kept = host(max_task_bytes=2 * empty + 50)
        task = kept.create()
        if change:
            kept.do(kept.server.update_task, task, **change)
        else:
            kept.do(kept.server.require_task_input, task, {"k" * 100: ROOTS})
            answers: JSONObject = {"k" * 100: {"roots": []}}
            kept.ask("tasks/update", {"taskId": task.id, "inputResponses": answers})
        assert kept.server.create_task(kept.called(), at=START) is None


def test_a_process_works_on_so_many_tasks_of_a_store() -> None:
    """OWN-070: those that are over make room at once, since the store has them."""
    kept = host(store="ask", max_tasks=1)
    task = kept.create()
    request = kept.called()
    assert kept.server.create_task(request, at=START) is None
    assert [event.rule for event in of(LimitReached, kept.events())] == ["OWN-070"]
    (answer,) = sent(kept.server)
    assert (answer["id"], answer["error"]["code"]) == (request.id, -32603)
    with pytest.raises(LocalProtocolError, match="OWN-070"):
        kept.server.adopt_task(TaskRecord(**RECORD))
    kept.do(kept.server.complete_task, task, NOTHING)
    assert kept.create().open


def test_answers_without_room_are_refused() -> None:
    """OWN-070: the task goes on, and the client may answer with less."""
    kept = host(max_task_bytes=2000)
    task = kept.create()
    kept.do(kept.server.require_task_input, task, {"a": FORM})
    params: JSONObject = {"taskId": task.id, "inputResponses": {"a": {"x": "y" * 2000}}}
    assert kept.code("tasks/update", params) == -32603
    assert kept.get(task.id)["status"] == "input_required"


@pytest.mark.parametrize("step", ["tasks/cancel", "complete_task", "fail_task", "cancel_task"])
def test_a_task_that_is_over_keeps_neither_questions_nor_answers(kept: Host, step: str) -> None:
    """OWN-070: they count for its bytes until its time is over."""
    task = kept.create()
    kept.do(kept.server.require_task_input, task, {"a": ROOTS, "b": ROOTS})
    kept.ask("tasks/update", {"taskId": task.id, "inputResponses": {"a": {"roots": []}}})
    assert task.record.questions
    assert task.record.answers
    arguments: dict[str, Any] = {"complete_task": (NOTHING,), "fail_task": (-1, "m")}
    if step == "tasks/cancel":
        kept.ask(step, {"taskId": task.id})
    else:
        kept.do(getattr(kept.server, step), task, *arguments.get(step, ()))
    assert task.status.is_final
    assert (task.record.questions, task.record.answers) == (b"", b"")


def test_an_answer_that_is_too_long_makes_no_task() -> None:
    """The client knows of no task then, so it is not kept."""
    server = host()
    request = server.called()
    assert server.server.create_task(request, at=START, meta={"x": "y" * 70_000_000}) is None
    assert sent(server.server)[0]["error"]["code"] == -32603
    assert server.server.open_tasks == ()


# ------------------------------------------------------------------------------------------ time


def test_a_task_ends_with_its_time(kept: Host) -> None:
    """XTASK-075, XTASK-082, XTASK-084, XTASK-086: it counts from the creation, whatever happens."""
    task = kept.create(ttl_ms=10_000)
    kept.do(kept.server.update_task, task, message="x", now=9.0)
    assert kept.get(task.id)["status"] == "working"
    assert kept.get(task.id)["lastUpdatedAt"].endswith("09.000Z")
    deadline = kept.server.next_timeout()
    assert deadline is not None
    assert deadline == pytest.approx(10.001)
    kept.server.handle_timeout(deadline)
    assert over(kept.events()) == (TaskEnd.EXPIRED, "")
    assert not task.open
    assert kept.code("tasks/get", {"taskId": task.id}) == -32602
    assert not kept.server.complete_task(task, NOTHING)


def test_the_time_to_live_may_change(kept: Host) -> None:
    """XTASK-083: earlier, later, and without end."""
    task = kept.create(ttl_ms=10_000)
    kept.do(kept.server.update_task, task, ttl_ms=20_000)
    kept.server.handle_timeout(11.0)
    assert kept.get(task.id)["ttlMs"] == 20_000
    kept.do(kept.server.update_task, task, ttl_ms=12_000)
    kept.server.handle_timeout(11.5)
    assert task.open
    kept.server.handle_timeout(12.1)
    assert over(kept.events())[0] is TaskEnd.EXPIRED


def test_a_task_that_was_shortened_ends_once(kept: Host) -> None:
    """XTASK-083: the later time is nobody's any more."""
    task, other = kept.create(ttl_ms=20_000), kept.create(ttl_ms=30_000)
    kept.do(kept.server.update_task, task, ttl_ms=10_000)
    kept.server.handle_timeout(10.1)
    assert over(kept.events()) == (TaskEnd.EXPIRED, "")
    kept.server.handle_timeout(20.1)
    assert kept.events() == []
    assert other.open


def test_times_that_count_no_more_take_no_memory(kept: Host) -> None:
    """OWN-070: a task that is shortened again and again, and tasks that are over."""
    task = kept.create()
    size = len(repr(canonical(kept.server)))
    for _ in range(300):
        assert kept.server.update_task(task, ttl_ms=3_600_000)
        assert kept.server.update_task(task, ttl_ms=1_800_000)
        kept.events()
    grown = len(repr(canonical(kept.server))) - size
    assert grown < 150 * len(f"(1800001800.0, '{task.id}')")
    endless = kept.create(ttl_ms=None)
    kept.server.handle_timeout(1801.0)
    assert over(kept.events()) == (TaskEnd.EXPIRED, "")
    assert endless.open


@pytest.mark.parametrize("store", ["memory", "ask"])
def test_the_time_to_live_may_become_endless_and_end_again(store: Any) -> None:
    """XTASK-083: where no limit is set."""
    kept = host(store=store, max_ttl_ms=None)
    task = kept.create(ttl_ms=1000)
    kept.do(kept.server.update_task, task, ttl_ms=None)
    kept.server.handle_timeout(1e6)
    assert task.open
    kept.do(kept.server.update_task, task, ttl_ms=10**9 + 1)
    kept.server.handle_timeout(1e6 + 2)
    assert over(kept.events())[0] is TaskEnd.EXPIRED


def test_the_time_to_live_is_not_lengthened_beyond_the_limit(kept: Host) -> None:
    """OWN-075: a task is not kept for ever by mistake; a longer time from the beginning stays."""
    task, long = kept.create(ttl_ms=1000), kept.create(ttl_ms=90_000_000)
    update = kept.server.update_task
    for changed, ttl_ms in ((task, 86_400_001), (task, None), (long, 90_000_001), (long, None)):
        with pytest.raises(LocalProtocolError, match="OWN-075"):
            update(changed, ttl_ms=ttl_ms, message="not said")
    assert "statusMessage" not in kept.get(task.id)
    kept.do(update, task, ttl_ms=86_400_000)
    kept.do(update, long, ttl_ms=90_000_000)
    kept.do(update, long, ttl_ms=89_000_000)
    assert [kept.get(one.id)["ttlMs"] for one in (task, long)] == [86_400_000, 89_000_000]
    endless = kept.create(ttl_ms=None)
    kept.do(update, endless, ttl_ms=None)


def test_a_result_is_forgotten_with_the_time_of_its_task() -> None:
    """XTASK-084: not before."""
    kept = host(ttl_ms=1000)
    task = kept.create()
    kept.do(kept.server.complete_task, task, NOTHING)
    kept.server.handle_timeout(0.9)
    assert kept.get(task.id)["status"] == "completed"
    kept.server.handle_timeout(1.1)
    assert kept.events() == []
    assert kept.code("tasks/get", {"taskId": task.id}) == -32602


def test_without_a_clock_the_times_of_messages_count() -> None:
    """A caller may tell the time in Unix seconds alone."""
    kept = host(ttl_ms=1000)
    task = kept.create(now=None)
    assert kept.server.next_timeout() is None
    answer = kept.ask("tasks/get", {"taskId": task.id}, at=START + 0.5)
    assert answer["result"]["status"] == "working"
    assert "error" in kept.ask("tasks/get", {"taskId": task.id}, at=START + 1.5)
    assert not task.open
    later = kept.server.create_task(kept.called())  # the time is known from the messages
    assert later is not None
    assert later.record.created_at == START + 1.5


def test_those_who_wait_for_a_task_are_told_that_its_time_is_over() -> None:
    """TASK-024: a wait must end."""
    for store in ("memory", "ask"):
        kept = legacy(host(store=store, ttl_ms=1000))
        task = kept.create()
        kept.receive(call(1, "tasks/result", {"taskId": task.id}))
        kept.server.handle_timeout(1.1)
        assert over(kept.events())[0] is TaskEnd.EXPIRED
        assert [answer["error"]["code"] for answer in sent(kept.server)] == [-32602]


@pytest.mark.parametrize("ttl_ms", [10_000, 5000])
def test_a_wait_for_the_task_of_a_process_that_has_died_ends_with_its_time(ttl_ms: int) -> None:
    """TASK-024: nobody tells of its change, and its time is known."""
    kept = host(store="ask")
    other = legacy(again(kept))
    task = legacy(kept).create(ttl_ms=10_000)
    other.receive(call(1, "tasks/result", {"taskId": task.id}), at=START + 1, now=1.0)
    assert sent(other.server) == []
    if ttl_ms != 10_000:
        kept.do(kept.server.update_task, task, ttl_ms=ttl_ms)
        other.server.task_changed(task.record)
    deadline = other.server.next_timeout()
    assert deadline is not None
    assert deadline == pytest.approx(ttl_ms / 1000 + 0.001)
    other.server.handle_timeout(deadline)
    assert [answer["error"]["code"] for answer in sent(other.server)] == [-32602]


def test_the_end_of_the_connection_ends_the_tasks_in_memory() -> None:
    """The work is for nobody; in a store of the application the tasks go on."""
    for store, ends in (("memory", 1), ("ask", 0)):
        kept = host(store=store)
        task = kept.create()
        kept.server.receive_eof()
        assert [event.cause for event in of(TaskCancelled, kept.events())] == [
            TaskEnd.CLOSED
        ] * ends
        assert task.open is not bool(ends)


# ---------------------------------------------------------------- a store of the application


def test_a_change_of_another_process_is_not_overwritten() -> None:
    """Compare and set: who was slower reads again and decides again."""
    kept = host(store="ask")
    task = kept.create()
    other = again(kept)
    other.ask("tasks/cancel", {"taskId": task.id})
    kept.server.complete_task(task, NOTHING)
    kept.events()
    assert kept.get(task.id)["status"] == "cancelled"
    second = kept.create()
    other.ask("tasks/cancel", {"taskId": second.id})
    assert kept.server.update_task(second, message="x")
    assert over(kept.events()) == (TaskEnd.PEER, "")
    assert kept.server.open_tasks == ()


def test_answers_and_endings_come_from_other_processes() -> None:
    """A worker learns from `task_changed` what its client told another worker, each thing once."""
    kept = host(store="ask")
    task = kept.create()
    kept.do(kept.server.require_task_input, task, {"a": FORM, "b": FORM})
    other = again(kept)
    for key in ("a", "b"):
        other.ask("tasks/update", {"taskId": task.id, "inputResponses": {key: {"action": key}}})
        record = kept.shelf.record(task.id)
        assert record is not None
        for _ in range(2):
            kept.server.task_changed(record)
        assert only(TaskInputReceived, kept.events()).responses == {key: {"action": key}}
    adopted = other.server.adopt_task(task.record)
    other.do(other.server.complete_task, adopted, NOTHING)
    record = kept.shelf.record(task.id)
    assert record is not None
    kept.server.task_changed(record, now=5.0)
    assert over(kept.events()) == (TaskEnd.ELSEWHERE, "")
    assert sent(kept.server) == []


def test_those_who_wait_are_told_by_other_processes() -> None:
    """TASK-024: `tasks/result` may wait elsewhere, and a subscription too; told twice, once."""
    kept = legacy(host(store="ask"))
    task = kept.create()
    other = legacy(again(kept))
    other.receive(call(1, "tasks/result", {"taskId": task.id}))
    kept.do(kept.server.complete_task, task, NOTHING)
    for _ in range(2):
        other.server.task_changed(task.record)
    assert [answer["id"] for answer in sent(other.server)] == [1]


def test_a_subscription_is_told_what_another_request_has_found() -> None:
    """XTASK-125: a change by another process that nobody has told of, seen by a poll."""
    kept = host(store="ask")
    task = kept.create()
    other = again(kept)
    filter = {"notifications": {"taskIds": [task.id]}}
    other.receive(modern(1, "subscriptions/listen", filter, envelope(WITH_TASKS)))
    assert sent(other.server)
    kept.do(kept.server.complete_task, task, NOTHING)
    poll = modern(2, "tasks/get", {"taskId": task.id}, envelope(WITH_TASKS))
    other.receive(poll)
    answer, told = sent(other.server)
    assert (answer["result"]["status"], told["params"]["status"]) == ("completed", "completed")
    other.receive(poll)
    assert len(sent(other.server)) == 1


def test_it_is_known_which_tasks_of_others_matter(kept: Host) -> None:
    """A process that shares a store need not read each change of each task."""
    assert not kept.server.followed_tasks
    own, other = kept.create(), kept.create()
    assert set(kept.server.followed_tasks) == {own.id, other.id}
    kept.do(kept.server.complete_task, own, NOTHING)
    assert kept.server.followed_tasks == (other.id,)
    assert [kept.server.follows_task(id) for id in (own.id, other.id)] == [False, True]
    plain = ServerConnection(info=SERVER_INFO)
    assert (plain.followed_tasks, plain.follows_task("x")) == ((), False)


def test_a_task_that_a_client_waits_for_matters() -> None:
    """Another process works on it, and `tasks/result` has come here."""
    kept = legacy(host(store="ask"))
    task = kept.create()
    other = legacy(again(kept))
    other.receive(call(1, "tasks/result", {"taskId": task.id}))
    assert other.server.followed_tasks == (task.id,)
    assert other.server.follows_task(task.id)
    assert not other.server.follows_task("x")


def test_a_task_is_taken_over() -> None:
    """A process has died: its task goes on here, or fails."""
    kept = host(store="ask")
    task = kept.create(keep={"step": 3})
    other = again(kept)
    record = kept.shelf.record(task.id)
    assert record is not None
    taken = other.server.adopt_task(record, at=START, now=0.0)
    assert (taken.record.keep, taken.peer.revision) == (b'{"step":3}', "2026-07-28")
    other.do(other.server.require_task_input, taken, {"a": FORM})
    other.do(other.server.fail_task, taken, -32603, "the worker has died")
    assert other.get(task.id)["status"] == "failed"
    with pytest.raises(LocalProtocolError, match="TASK-018"):
        other.server.adopt_task(taken.record)
    with pytest.raises(LocalProtocolError, match="OWN-071"):
        kept.server.adopt_task(record)
    with pytest.raises(LocalProtocolError, match="OWN-071"):
        host().server.adopt_task(record)
    old: dict[str, Any] = {**RECORD, "is_modern": False}
    assert other.server.adopt_task(TaskRecord(**old)).peer.revision == "2025-11-25"
    with pytest.raises(LocalProtocolError, match="OWN-071"):
        host(store="ask", revisions=("2025-11-25",)).server.adopt_task(record)
    with pytest.raises(LocalProtocolError, match="OWN-071"):
        host(store="ask", revisions=("2026-07-28",)).server.adopt_task(TaskRecord(**old))


def test_a_store_that_fails_is_an_internal_error() -> None:
    """XTASK-140, TASK-039: -32603, and the work is told to stop if its change is lost."""
    kept = host(store="ask")
    task, second = kept.create(), kept.create()
    kept.shelf.fails = True
    for method in ("tasks/get", "tasks/cancel", "tasks/update"):
        assert kept.code(method, {"taskId": task.id, "inputResponses": {}}) == -32603
    assert kept.server.require_task_input(task, {"a": FORM})
    assert over(kept.events()) == (TaskEnd.FAILED, "the shelf is gone")
    request = kept.called()
    lost = kept.server.create_task(request)
    assert lost is not None
    assert over(kept.events()) == (TaskEnd.FAILED, "the shelf is gone")
    assert sent(kept.server)[0]["error"]["code"] == -32603
    message = modern(1, "subscriptions/listen", {"notifications": {"taskIds": [second.id]}})
    message["params"]["_meta"] = envelope(WITH_TASKS)
    kept.receive(message)
    assert sent(kept.server)[0]["params"]["notifications"] == {}
    legacy(kept)
    assert kept.code("tasks/list") == -32603


def test_an_update_that_cannot_be_stored_does_not_end_the_work() -> None:
    """The next change takes it along, also where that one cannot be stored either."""
    kept = host(store="ask")
    task = kept.create(keep={"step": 1})
    kept.shelf.fails = True
    assert kept.do(kept.server.update_task, task, message="half", ttl_ms=5000) == []
    assert kept.do(kept.server.update_task, task, message="more", keep={"step": 2}) == []
    assert (task.open, task.record.message) == (True, None)
    kept.shelf.fails = False
    assert kept.get(task.id)["status"] == "working"
    assert kept.do(kept.server.update_task, task, poll_ms=7) == []
    record = task.record
    assert (record.message, record.ttl_ms, record.poll_ms) == ("more", 5000, 7)
    assert (record.keep, record.version) == (b'{"step":2}', 2)
    assert kept.do(kept.server.update_task, task, message=None) == []
    assert task.record.ttl_ms == 5000


def test_a_result_takes_along_what_could_not_be_stored() -> None:
    """But for the message, which is that of the end."""
    kept = host(store="ask")
    task = kept.create()
    kept.shelf.fails = True
    kept.do(kept.server.update_task, task, message="half", ttl_ms=5000)
    kept.shelf.fails = False
    kept.do(kept.server.complete_task, task, NOTHING)
    found = kept.get(task.id)
    assert (found["status"], found["ttlMs"], "statusMessage" in found) == ("completed", 5000, False)


def test_a_task_that_the_store_has_lost_is_over() -> None:
    """A store may forget, by a restart for example."""
    kept = host(store="ask")
    task = kept.create()
    kept.shelf.records.clear()
    assert kept.server.update_task(task, message="x")
    assert over(kept.events()) == (TaskEnd.LOST, "")


def test_an_expired_record_is_not_given_out() -> None:
    """XTASK-075: a store need not be exact."""
    kept = host(store="ask")
    task = kept.create(ttl_ms=1000)
    other = again(kept)
    assert "error" in other.ask("tasks/get", {"taskId": task.id}, at=START + 2)


def test_questions_are_answered_once_and_with_what_fits() -> None:
    """OWN-071: a mistake of the store must not reach a client."""
    kept = host(store="ask")
    kept.server.create_task(kept.called(), at=START)
    stored = only(TaskToStore, drain(kept.server))
    kept.server.task_stored(stored)
    with pytest.raises(LocalProtocolError, match="OWN-071"):
        kept.server.task_stored(stored)
    sent(kept.server)
    wanted = only(TaskWanted, kept.hold("tasks/get", {"taskId": "other"}))
    with pytest.raises(LocalProtocolError, match="OWN-071"):
        kept.server.provide_task(wanted, stored.record)
    mistakes: list[Any] = [5, "x", {}]
    for mistake in mistakes:
        with pytest.raises(ValueError, match="TaskRecord"):
            kept.server.provide_task(wanted, mistake)
        with pytest.raises(ValueError, match="TaskRecord"):
            kept.server.task_changed(mistake)
    kept.server.provide_task(wanted, None)
    assert sent(kept.server)[0]["error"]["code"] == -32602
    legacy(kept)
    pages = only(TasksWanted, kept.hold("tasks/list"))
    with pytest.raises(LocalProtocolError, match="OWN-071"):
        kept.server.provide_tasks(pages, [stored.record])
    for mistake in (5, [5]):
        wrong: Any = mistake
        with pytest.raises(LocalProtocolError, match="OWN-071"):
            kept.server.provide_tasks(pages, wrong)
    kept.server.provide_tasks(pages, [])
    assert sent(kept.server)[0]["result"] == {"tasks": []}


def test_answers_that_come_after_the_end_of_their_request_are_not_sent() -> None:
    """The client has cancelled the request while the store was asked."""
    kept = host(store="ask")
    task = kept.create()
    for method in ("tasks/get", "tasks/list"):
        if method == "tasks/list":
            legacy(kept)
        params = {} if method == "tasks/list" else {"taskId": task.id}
        for kept.shelf.fails in (False, True):
            (asked,) = kept.hold(method, params)
            assert kept.receive(cancelled(kept.last_id)) == []
            kept.shelf.answer(kept.server, asked)
            assert sent(kept.server) == []


def test_operations_on_one_task_keep_their_order() -> None:
    """More changes are asked for before the store has answered the first."""
    kept = host(store="ask")
    task = kept.server.create_task(kept.called(), at=START)
    assert task is not None
    assert kept.server.require_task_input(task, {"a": FORM})
    assert kept.server.require_task_input(task, {"b": FORM})
    assert kept.server.complete_task(task, NOTHING)
    assert len(drain(copy.deepcopy(kept.server))) == 1
    kept.events()
    record = kept.shelf.record(task.id)
    assert record is not None
    assert (record.version, record.status) == (4, TaskStatus.COMPLETED)


def test_many_changes_that_wait_for_the_store_end_with_their_task() -> None:
    """A slow store, and a task that another process ends meanwhile, need no deep stack."""
    kept = host(store="ask")
    task, other = kept.create(), again(kept)
    for number in range(2000):
        assert kept.server.require_task_input(task, {str(number): FORM})
    (asked,) = drain(kept.server)
    taken = other.server.adopt_task(task.record, at=START)
    other.do(other.server.complete_task, taken, NOTHING)
    kept.shelf.answer(kept.server, asked)
    assert over(kept.events())[0] is TaskEnd.ELSEWHERE
    assert kept.get(task.id)["result"]["content"] == []


def test_a_task_that_expires_while_the_store_is_asked_ends_once() -> None:
    """The store answers that it is gone, and the application knows already."""
    kept = host(store="ask", ttl_ms=1000)
    task = kept.create()
    assert kept.server.update_task(task, message="x")
    (asked,) = drain(kept.server)
    kept.server.handle_timeout(2.0)
    assert over(drain(kept.server))[0] is TaskEnd.EXPIRED
    assert isinstance(asked, TaskToStore)
    kept.server.task_stored(asked, False)
    assert kept.events() == []


def test_a_request_that_was_cancelled_needs_no_answer_of_a_store_that_fails() -> None:
    """Its task was reported as cancelled."""
    kept = host(store="ask")
    assert kept.server.create_task(kept.called(), at=START)
    (asked,) = drain(kept.server)
    kept.server.receive_eof()
    assert TaskEnd.PEER in [event.cause for event in of(TaskCancelled, drain(kept.server))]
    kept.shelf.fails = True
    kept.shelf.answer(kept.server, asked)
    assert kept.events() == []


def test_a_task_goes_on_after_the_end_of_its_connection() -> None:
    """TASK-031: nobody is told of its status, and the store is."""
    kept = legacy(host(store="ask"))
    task = kept.create()
    kept.server.receive_eof()
    kept.events()
    kept.do(kept.server.complete_task, task, NOTHING)
    assert sent(kept.server) == []
    record = kept.shelf.record(task.id)
    assert record is not None
    assert record.status is TaskStatus.COMPLETED


def test_only_tasks_whose_time_is_over_are_forgotten() -> None:
    """Two tasks of one owner."""
    kept = host()
    kept.create(ttl_ms=1000)
    other = kept.create(ttl_ms=5000)
    kept.server.handle_timeout(2.0)
    assert kept.get(other.id)["status"] == "working"


def test_without_checks_of_shape_odd_params_do_no_harm() -> None:
    """`Config(check="none")` delivers anything."""
    kept = host(config=Config(check="none"))
    task = kept.create()
    assert kept.code("tasks/get", {}) == -32602
    assert kept.server.require_task_input(task, {"a": FORM})
    assert "result" in kept.ask("tasks/update", {"taskId": task.id})
    assert kept.server.complete_task(task, {"odd": 1})


def test_wake_tells_of_what_verbs_of_tasks_queue() -> None:
    """An adapter writes when it is woken."""
    woken: list[int] = []
    kept = host(wake=lambda: woken.append(1))
    task = kept.create()
    kept.hold("subscriptions/listen", {"notifications": {"taskIds": [task.id]}})
    kept.told()
    woken.clear()
    assert kept.server.complete_task(task, NOTHING)
    assert woken


# ---------------------------------------------------------------------------------------- records


def test_a_record_survives_as_bytes() -> None:
    """What one process writes another reads."""
    fields: dict[str, Any] = {
        **RECORD,
        "status": TaskStatus.FAILED,
        "version": 7,
        "poll_ms": 5,
        "message": "\ud800 ü",
        "keys": ("a", "b"),
        "questions": b'{"a":1}',
        "answers": b"{}",
        "result": b"[]",
        "error": b"1",
        "keep": b"null",
        "capabilities": b'{"roots":{}}',
    }
    record = TaskRecord(**fields)
    assert TaskRecord.from_bytes(record.to_bytes()) == record
    assert record.expires_at == START + 1
    assert "t'" not in repr(record)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b"5", b'{"status":"x"}', b'{"status":"working","keys":5}', b"\xff"]
)
def test_bytes_that_are_no_record_raise(data: bytes) -> None:
    """A store may give anything."""
    with pytest.raises(ValueError, match="no record"):
        TaskRecord.from_bytes(data)


def test_times_are_written_in_iso_8601() -> None:
    """XTASK-036, XTASK-037, TASK-019: for every day."""
    for seconds, text in (
        (0.0, "1970-01-01T00:00:00.000Z"),
        (951_827_696.5, "2000-02-29T12:34:56.500Z"),
        (4_107_542_399.999, "2100-02-28T23:59:59.999Z"),
        (253_402_300_799.0, "9999-12-31T23:59:59.000Z"),
    ):
        kept = host()
        task = kept.create(at=seconds)
        assert kept.get(task.id)["createdAt"] == text


# ------------------------------------------------------------------------------- memory and cost


def steps_of_a_poll(count: int) -> int:
    """The lines of the library that run for one poll where there are so many tasks."""
    kept = host(max_tasks=count, max_tasks_per_owner=count)
    tasks = [kept.create() for _ in range(count)]
    kept.get(tasks[0].id)
    return lines_in(lambda: kept.get(tasks[count // 2].id))


@pytest.mark.unjudged("the judge keeps each message")
def test_a_poll_costs_the_same_however_many_tasks_there_are() -> None:
    """A server with thousands of tasks must answer as fast as one with ten."""
    assert steps_of_a_poll(3000) == steps_of_a_poll(10)


@pytest.mark.unjudged("the judge keeps each message")
def test_an_idle_task_takes_at_most_two_kib() -> None:
    """Ten thousand of them are 20 MB at most."""
    kept = host()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tasks = [kept.create() for _ in range(500)]
        gc.collect()
        size = (tracemalloc.get_traced_memory()[0] - before) / len(tasks)
    finally:
        tracemalloc.stop()
    assert size <= 2048


def test_a_copy_goes_on_by_itself() -> None:
    """All state is plain data, tasks included."""
    kept = host()
    task = kept.create()
    server, copied = copy.deepcopy((kept.server, task))
    assert canonical(server) == canonical(kept.server)
    copied.data = "of the application"
    assert canonical(copied) == canonical(task)
    server.receive_eof()
    (event,) = of(TaskCancelled, drain(server))
    assert plain([event])[0].startswith("TaskCancelled(task=<Task over record=TaskRecord(")
    assert task.open
    assert kept.get(task.id)["status"] == "working"


# ---------------------------------------------------------------------------------- atomic verbs

WRONG: Any = {1, 2}
"""A value that is no JSON."""
MISTAKES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("create_task", (), {"ttl_ms": 0}),
    ("create_task", (), {"poll_ms": True}),
    ("create_task", (), {"message": 1}),
    ("create_task", (), {"keep": WRONG}),
    ("create_task", (), {"meta": 7}),
    ("create_task", (), {"meta": {"a": WRONG}}),
    ("update_task", (), {"message": "x", "ttl_ms": 0}),
    ("update_task", (), {"message": "x", "ttl_ms": 86_400_001}),
    ("update_task", (), {"ttl_ms": 1, "message": 1}),
    ("complete_task", ([],), {}),
    ("complete_task", ({},), {}),
    ("complete_task", ({**NOTHING, "structuredContent": WRONG},), {}),
    ("complete_task", (NOTHING,), {"meta": {"a": WRONG}}),
    ("fail_task", ("x", "m"), {}),
    ("fail_task", (-1, 5), {}),
    ("fail_task", (-1, "m", WRONG), {}),
    ("cancel_task", (), {"message": 1}),
    ("require_task_input", ({},), {}),
    ("require_task_input", ({"b": FORM, "a": FORM},), {}),
    ("require_task_input", ({"b": FORM, "c": {"method": "tools/list"}},), {}),
    ("require_task_input", ({"b": FORM, "c": {**FORM, "params": {"message": WRONG}}},), {}),
]


@pytest.mark.parametrize("is_legacy", [False, True])
@pytest.mark.parametrize(("verb", "arguments", "options"), MISTAKES)
def test_a_verb_that_raises_has_changed_nothing(
    kept: Host, is_legacy: bool, verb: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    """Invariant 7: not even the clock, since a timer could fire by it."""
    if is_legacy:
        legacy(kept)
    task = kept.create()
    kept.do(kept.server.require_task_input, task, {"a": FORM})
    sent(kept.server)
    subject = kept.called() if verb == "create_task" else task
    before = canonical(kept.server)
    with pytest.raises(LocalProtocolError):
        getattr(kept.server, verb)(subject, *arguments, **options, at=START + 9, now=9.0)
    assert canonical(kept.server) == before
    assert kept.events() == []
    assert sent(kept.server) == []


@pytest.mark.parametrize("changed", [{"status": TaskStatus.FAILED}, {"capabilities": b"["}])
def test_a_record_that_cannot_be_taken_over_changes_nothing(changed: dict[str, Any]) -> None:
    """Invariant 7: one that is over, and one that the store has damaged."""
    kept = host(store="ask")
    before = canonical(kept.server)
    record = TaskRecord(**{**RECORD, **changed})
    with pytest.raises((LocalProtocolError, ValueError)):
        kept.server.adopt_task(record, at=START, now=1.0)
    assert canonical(kept.server) == before
