"""Workers with tasks in a real Redis, in one thread: races, losses, and the death of workers."""

import itertools
import json
from collections.abc import Callable, Generator
from typing import Any, Final

import pytest

from sansmcp import (
    IncomingRequest,
    JSONObject,
    RequestReceived,
    Task,
    TaskCancelled,
    TaskEnd,
    TaskInputReceived,
    TaskQuestion,
    TaskToStore,
)
from sansmcp_io.asyncio._handlers import AsyncioHandlerRunner
from sansmcp_io.redis._commands import Command
from sansmcp_io.redis._task_scripts import MOST_CHANGES
from tests.support.http.server_endpoint import (
    Client,
    answer,
    connect,
    new_endpoint,
    of,
    post_modern,
)
from tests.support.modern import FORM, envelope, modern
from tests.support.redis_server import RedisServer, running_redis
from tests.support.task_store import LEASE, Keeper, Shared
from tests.support.tasks import NOTHING, START, WITH_TASKS, Entropy, settings
from tests.support.wire import call

ENTROPY: Final = Entropy()
ANNA: Final[dict[str, Any]] = {"principal": "Anna", "principal_key": "anna"}


@pytest.fixture(scope="module")
def redis() -> Generator[RedisServer, None, None]:
    """A Redis for all tests of this module."""
    with running_redis() as server:
        yield server


@pytest.fixture
def shared(redis: RedisServer) -> Shared:
    return Shared(redis)


class Worker:
    """A worker: its endpoint, and its part of the store."""

    def __init__(
        self, shared: Shared, letter: str, *, most_here: int = 10_000, **options: Any
    ) -> None:
        self.shared = shared
        tasks = settings(store="ask", entropy=ENTROPY, page_size=50, max_tasks=most_here)
        self.endpoint = new_endpoint(capabilities={"tools": {}}, tasks=tasks)
        options["most_here"] = most_here
        self.events: list[Any] = []
        self.holds: Callable[[Any], bool] = lambda event: False
        self.held: list[Any] = []
        self.keeper = Keeper(shared, letter * 12, self.endpoint, self.turn, **options)
        self._numbers = itertools.count(1)

    def turn(self) -> None:
        """Handle all events: questions by the store, others by the test."""
        while (event := self.endpoint.next_event()) is not None:
            if not isinstance(event, TaskQuestion):
                self.events.append(event)
            elif self.holds(event):
                self.held.append(event)
            else:
                self.keeper.tasks.handle(event)

    def do(self, verb: Callable[..., Any], *args: Any, **more: Any) -> Any:
        """Call a verb, and handle what it causes."""
        outcome = verb(*args, now=self.shared.now, **more)
        self.turn()
        return outcome

    def send(self, method: str, params: JSONObject, **about: Any) -> Any:
        """The exchange of a request of 2026-07-28."""
        named = {"mcp-name": params["taskId"]} if "taskId" in params else {}
        message = modern(next(self._numbers), method, params, envelope(WITH_TASKS))
        exchange = post_modern(self.endpoint, message, named, now=self.shared.now, **about)
        self.turn()
        return exchange

    def ask(self, method: str, params: JSONObject, **about: Any) -> Any:
        """The response to a request."""
        return answer(self.send(method, params, **about)).json

    def requested(self, request: Any = None) -> IncomingRequest:
        """The request that a handler has got."""
        (event,) = of(RequestReceived, self.events)
        self.events.clear()
        return event.request

    def create(self, **more: Any) -> Task:
        """A task of 2026-07-28, whose answer is taken."""
        exchange = self.send("tools/call", {"name": "t"})
        at = START + self.shared.now
        task: Task = self.do(self.endpoint.create_task, self.requested(), at=at, **more)
        assert answer(exchange).json["result"]["taskId"] == task.id
        return task

    def get(self, task_id: str) -> Any:
        """The result of `tasks/get`."""
        return self.ask("tasks/get", {"taskId": task_id})["result"]

    def ends(self) -> list[tuple[TaskEnd, str]]:
        """Why tasks of this worker have ended without its doing."""
        return [(event.cause, event.text) for event in of(TaskCancelled, self.events)]


Pair = tuple[Worker, Worker]


@pytest.fixture
def pair(shared: Shared) -> Pair:
    return Worker(shared, "A"), Worker(shared, "B")


# --------------------------------------------------------------------------------- any worker


def test_any_worker_answers_for_a_task(shared: Shared, pair: Pair) -> None:
    """A load balancer need not know where a task is worked on."""
    one, other = pair
    task = one.create()
    assert other.get(task.id)["status"] == "working"
    assert one.do(one.endpoint.update_task, task, message="half")
    assert other.get(task.id)["statusMessage"] == "half"
    one.do(one.endpoint.complete_task, task, NOTHING)
    assert other.get(task.id)["result"]["content"] == []
    client = session(other)
    for odd in ("x", "\ud800", "0" * 47, "../" * 16, "f" * 48):
        exchange = client.post(call(5, "tasks/get", {"taskId": odd}), **ANNA)
        other.turn()
        assert answer(exchange).last["error"]["code"] == -32602


def test_a_cancellation_reaches_the_worker_that_works(shared: Shared, pair: Pair) -> None:
    """The work is told to stop, and its late result changes nothing."""
    one, other = pair
    task = one.create()
    assert "result" in other.ask("tasks/cancel", {"taskId": task.id})
    assert one.ends() == []
    shared.deliver()
    assert one.ends() == [(TaskEnd.PEER, "")]
    assert not one.do(one.endpoint.complete_task, task, NOTHING)
    assert other.get(task.id)["status"] == "cancelled"


def test_answers_reach_the_worker_that_has_asked(shared: Shared, pair: Pair) -> None:
    """Each answer once, whichever worker has got it."""
    one, other = pair
    task = one.create()
    one.do(one.endpoint.require_task_input, task, {"a": FORM, "b": FORM}, at=START)
    for worker, key in ((other, "a"), (one, "b")):
        params: JSONObject = {"taskId": task.id, "inputResponses": {key: {"action": "decline"}}}
        assert "result" in worker.ask("tasks/update", params)
        shared.deliver()
    told = of(TaskInputReceived, one.events)
    assert [(set(event.responses), event.missing) for event in told] == [
        ({"a"}, ("b",)),
        ({"b"}, ()),
    ]
    assert other.get(task.id)["status"] == "working"


def test_a_wait_for_the_result_at_another_worker_ends(shared: Shared, pair: Pair) -> None:
    """`tasks/result` of 2025-11-25 waits where it has arrived."""
    one, other = pair
    task = in_session(one)
    waiting = session(other).post(call(5, "tasks/result", {"taskId": task.id}), **ANNA)
    other.turn()
    one.do(one.endpoint.complete_task, task, NOTHING)
    shared.deliver()
    assert answer(waiting).last["result"]["content"] == []


def session(worker: Worker) -> Client:
    """A client of 2025-11-25 with a session, whose tasks belong to Anna."""
    client = connect(worker.endpoint, now=worker.shared.now, **ANNA)
    worker.turn()
    worker.events.clear()
    return client


def in_session(worker: Worker, client: Client | None = None) -> Task:
    """A task of 2025-11-25."""
    client = session(worker) if client is None else client
    exchange = client.post(call(1, "tools/call", {"name": "t", "task": {}}), **ANNA)
    worker.turn()
    task: Task = worker.do(
        worker.endpoint.create_task, worker.requested(), at=START + worker.shared.now
    )
    assert answer(exchange).last["result"]["task"]["taskId"] == task.id
    return task


def test_a_change_between_a_question_and_its_answer_is_not_missed(
    shared: Shared, pair: Pair
) -> None:
    """The thread that reads changes may be faster than the one that has read the task."""
    one, other = pair
    task = in_session(one)
    client = session(other)
    shared.holds_answers = True
    waiting = client.post(call(5, "tasks/result", {"taskId": task.id}), **ANNA)
    other.turn()
    shared.holds_answers = False
    one.do(one.endpoint.complete_task, task, NOTHING)
    shared.deliver()
    shared.release_answers()
    assert answer(waiting).last["result"]["content"] == []


def test_lost_changes_are_noticed(shared: Shared, pair: Pair) -> None:
    """The stream of changes has a bound, and a worker may be paused."""
    one, other = pair
    first, second = one.create(), one.create()
    shared.deliver()
    one.do(one.endpoint.update_task, first, message="x")
    shared.deliver()
    other.ask("tasks/cancel", {"taskId": first.id})
    shared.client.delete(shared.keys.task_changes)
    other.ask("tasks/cancel", {"taskId": second.id})
    shared.deliver()
    assert len(one.ends()) == 2
    assert MOST_CHANGES > 1000


def test_changes_that_cannot_be_read_are_left_out(
    shared: Shared, pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """They are of another version."""
    shared.client.xadd(shared.keys.task_changes, {"t": b"odd"})
    shared.deliver()
    assert "a change of a task cannot be read" in caplog.text


# --------------------------------------------------------------------------------- two at once


def test_of_two_writes_at_once_one_decides_again(shared: Shared, pair: Pair) -> None:
    """Both have read the same version; whichever order Redis sees, none is lost."""
    one, other = pair
    for first, second in ((one, other), (other, one)):
        task = one.create()
        one.holds = other.holds = lambda event: isinstance(event, TaskToStore)
        one.do(one.endpoint.complete_task, task, NOTHING)
        exchange = other.send("tasks/cancel", {"taskId": task.id})
        one.holds = other.holds = lambda event: False
        for worker in (first, second):
            (held,) = worker.held
            worker.held.clear()
            worker.keeper.tasks.handle(held)
            worker.turn()
        assert answer(exchange).status == 200
        shared.deliver()
        status = "completed" if first is one else "cancelled"
        assert [worker.get(task.id)["status"] for worker in pair] == [status] * 2
    assert one.endpoint.open_tasks == ()


def test_a_write_that_is_sent_twice_counts_once(shared: Shared, pair: Pair) -> None:
    """Its answer was lost with the connection: the worker cannot know whether it was written."""
    one, other = pair
    task = one.create()
    shared.loses_answers = True
    one.do(one.endpoint.complete_task, task, NOTHING)
    shared.come_back()
    record = one.endpoint.open_tasks
    assert record == ()
    assert other.get(task.id)["status"] == "completed"
    assert one.ends() == []


# --------------------------------------------------------------------------------- Redis is away


def test_requests_get_a_response_while_redis_is_away(shared: Shared, pair: Pair) -> None:
    """An error at once, and none of them waits; nobody is told of a task that is not kept."""
    one, _ = pair
    task = one.create()
    shared.is_away = True
    one.keeper.go_away()
    for method in ("tasks/get", "tasks/cancel"):
        assert one.ask(method, {"taskId": task.id})["error"]["code"] == -32603
    exchange = one.send("tools/call", {"name": "t"})
    lost = one.do(one.endpoint.create_task, one.requested(), at=START)
    assert answer(exchange).json["error"]["code"] == -32603
    assert not lost.open
    client = session(one)
    page = client.post(call(4, "tasks/list"), **ANNA)
    one.turn()
    assert answer(page).last["error"]["code"] == -32603
    shared.come_back()
    assert one.get(task.id)["status"] == "working"
    assert [one.id for one in one.endpoint.open_tasks] == [task.id]


def test_what_work_has_done_is_stored_when_redis_is_back(shared: Shared, pair: Pair) -> None:
    """A result is not lost because Redis was away for a moment."""
    one, other = pair
    task, failed = one.create(), one.create()
    shared.is_away = True
    one.keeper.go_away()
    assert one.do(one.endpoint.update_task, task, message="x")
    assert one.do(one.endpoint.complete_task, task, NOTHING)
    assert one.do(one.endpoint.fail_task, failed, -32603, "no")
    assert one.ends() == []
    shared.wait(600)
    one.keeper.tasks.tick()
    shared.come_back()
    assert other.get(task.id)["status"] == "completed"
    assert other.get(failed.id)["error"]["message"] == "no"


def test_a_task_whose_creation_was_perhaps_stored_is_removed(shared: Shared, pair: Pair) -> None:
    """The client got an error, so nobody knows the task, and nobody works on it."""
    one, other = pair
    session(one)
    shared.loses_answers = True
    exchange = one.send("tools/call", {"name": "t"})
    one.do(one.endpoint.create_task, one.requested(), at=START)
    assert answer(exchange).json["error"]["code"] == -32603
    shared.come_back()
    assert not any(b":task:" in key for key in shared.names())
    other.keeper.tasks.tick()
    assert other.endpoint.open_tasks == ()


def test_a_client_need_not_wait_for_long_for_what_its_own_worker_stores(
    shared: Shared, pair: Pair
) -> None:
    """Redis goes away between the question and the change: an error, and the change comes later."""
    one, other = pair
    task = one.create()
    one.holds = lambda event: isinstance(event, TaskToStore)
    exchange = one.send("tasks/cancel", {"taskId": task.id})
    one.holds = lambda event: False
    shared.is_away = True
    one.keeper.go_away()
    one.keeper.tasks.handle(one.held.pop())
    shared.wait(5)
    one.keeper.tasks.tick()
    one.turn()
    assert exchange.next_output() is None
    shared.wait(6)
    one.keeper.tasks.tick()
    one.turn()
    assert answer(exchange).json["error"]["code"] == -32603
    assert task.open
    shared.come_back()
    assert one.ends() == [(TaskEnd.PEER, "")]
    assert other.get(task.id)["status"] == "cancelled"


def test_what_redis_refuses_is_written_again(
    shared: Shared, pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """It is full, or a replica: a result waits until it is not."""
    one, other = pair
    task = one.create()
    shared.refuses = True
    one.do(one.endpoint.complete_task, task, NOTHING)
    one.keeper.tasks.tick()
    assert caplog.text.count("Redis does not store a task") == 1
    shared.refuses = False
    one.keeper.tasks.tick()
    assert other.get(task.id)["status"] == "completed"


def test_running_tasks_survive_a_redis_that_has_lost_all(shared: Shared, pair: Pair) -> None:
    """The workers know their tasks; what was over is gone."""
    one, other = pair
    done, task, late = one.create(), one.create(), one.create()
    one.do(one.endpoint.complete_task, done, NOTHING)
    shared.is_away = True
    one.keeper.go_away()
    shared.lose_all()
    one.do(one.endpoint.complete_task, late, NOTHING)
    shared.come_back()
    assert other.get(task.id)["status"] == "working"
    assert other.get(late.id)["status"] == "completed"
    assert other.ask("tasks/get", {"taskId": done.id})["error"]["code"] == -32602
    one.do(one.endpoint.complete_task, task, NOTHING)
    assert other.get(task.id)["status"] == "completed"


def test_a_task_that_was_perhaps_restored_is_not_removed(shared: Shared) -> None:
    """Its client polls it: it must not be gone for a moment."""
    worker = Worker(shared, "A")
    task = worker.create()
    shared.lose_all()
    shared.loses_answers = True
    worker.keeper.came_back()
    assert shared.client.exists(shared.keys.task(task.id))
    shared.come_back()
    assert shared.client.exists(shared.keys.task(task.id))
    assert worker.get(task.id)["status"] == "working"


# --------------------------------------------------------------------------- the death of workers


def test_the_tasks_of_a_dead_worker_fail_and_its_results_stay(
    shared: Shared, pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """A client must not poll for ever for a result that nobody works on."""
    one, other = pair
    running, done = one.create(), one.create()
    legacy = in_session(one)
    one.do(one.endpoint.complete_task, done, {"content": [{"type": "text", "text": "kept"}]})
    other.keeper.tasks.tick()
    assert other.get(running.id)["status"] == "working"
    one.keeper.die()
    other.keeper.tasks.tick()
    found = other.get(running.id)
    assert (found["status"], found["error"]["code"]) == ("failed", -32603)
    assert found["error"]["message"] == "the process that worked on the task has ended"
    assert other.get(done.id)["result"]["content"][0]["text"] == "kept"
    exchange = session(other).post(call(5, "tasks/result", {"taskId": legacy.id}), **ANNA)
    other.turn()
    assert answer(exchange).last["error"]["code"] == -32603
    assert other.endpoint.open_tasks == ()
    assert caplog.text.count("has ended") == 2


def test_a_task_that_may_run_twice_goes_on_elsewhere(shared: Shared) -> None:
    """The application has kept with it what it needs, and says so."""
    taken: list[Task] = []

    def resume(task: Task) -> bool:
        taken.append(task)
        return bool(json.loads(task.record.keep)["twice"])

    one, other = Worker(shared, "A"), Worker(shared, "B", resumes=resume)
    may, may_not = one.create(keep={"twice": True}), one.create(keep={"twice": False})
    one.keeper.die()
    other.keeper.tasks.tick()
    assert len(taken) == 2
    (task,) = other.endpoint.open_tasks
    assert task.id == may.id
    assert other.get(may_not.id)["status"] == "failed"
    third = Worker(shared, "C")
    assert third.get(may.id)["status"] == "working"
    assert "result" in third.ask("tasks/cancel", {"taskId": may.id})
    shared.deliver()
    assert other.ends() == [(TaskEnd.PEER, "")]


def test_a_paused_worker_finds_that_its_task_was_taken(shared: Shared) -> None:
    """Its lease had ended. Whoever is first has the result; the other one is told to stop."""
    one = Worker(shared, "A")
    other = Worker(shared, "B", resumes=resumed)
    task = one.create()
    shared.client.delete(shared.keys.lease("A" * 12))
    other.keeper.tasks.tick()
    one.keeper.live()
    (taken,) = other.endpoint.open_tasks
    one.do(one.endpoint.complete_task, task, NOTHING)
    shared.deliver()
    assert other.ends() == [(TaskEnd.ELSEWHERE, "")]
    assert not taken.open
    assert other.get(task.id)["status"] == "completed"


def test_a_task_that_kills_its_workers_is_not_begun_for_ever(shared: Shared) -> None:
    """Else one bad request ends all workers, again and again."""
    worker = Worker(shared, "A")
    task = worker.create()
    for letter in "BCDEFGH":
        worker.keeper.die()
        worker = Worker(shared, letter, resumes=resumed)
        worker.keeper.tasks.tick()
    found = worker.get(task.id)
    assert found["status"] == "failed"
    assert "one after the other" in found["error"]["message"]


def test_workers_that_end_in_order_may_hand_a_task_on_for_ever(shared: Shared) -> None:
    """A deployment restarts all workers; that a task was under way each time is no sign of harm."""
    worker = Worker(shared, "A")
    task = worker.create(keep={"k": 1})
    for letter in "BCDEFGH":
        worker.keeper.tasks.drain()
        worker.keeper.tasks.release(task.id)
        worker.keeper.die()
        worker = Worker(shared, letter, resumes=resumed)
        worker.keeper.tasks.tick()
        assert [one.id for one in worker.endpoint.open_tasks] == [task.id]
    assert worker.get(task.id)["status"] == "working"


def test_a_worker_that_ends_releases_only_its_own_tasks(shared: Shared) -> None:
    """It was paused, and another worker has taken the task since."""
    one, other = Worker(shared, "A"), Worker(shared, "B", resumes=resumed)
    task = one.create()
    shared.client.delete(shared.keys.lease("A" * 12))
    other.keeper.tasks.tick()
    one.keeper.tasks.release(task.id)
    third = Worker(shared, "C", resumes=resumed)
    third.keeper.tasks.tick()
    assert third.endpoint.open_tasks == ()
    other.do(other.endpoint.complete_task, other.endpoint.open_tasks[0], NOTHING)
    assert third.get(task.id)["status"] == "completed"


def test_a_worker_that_ends_gives_back_what_it_takes_over_just_then(shared: Shared) -> None:
    """The answer of Redis comes after the decision to end."""
    one, other = Worker(shared, "A"), Worker(shared, "B", resumes=resumed)
    task = one.create()
    one.keeper.die()
    shared.holds_answers = True
    other.keeper.tasks.tick()
    other.keeper.tasks.drain()
    shared.holds_answers = False
    shared.release_answers()
    assert other.endpoint.open_tasks == ()
    third = Worker(shared, "C", resumes=resumed)
    third.keeper.tasks.tick()
    assert [found.id for found in third.endpoint.open_tasks] == [task.id]


def test_a_worker_stores_what_its_work_has_done_before_it_ends(shared: Shared) -> None:
    """An update is under way when the result comes; it waits for its turn."""
    worker = Worker(shared, "A")
    task = worker.create()
    assert not worker.keeper.tasks.is_storing
    shared.holds_answers = True
    worker.do(worker.endpoint.update_task, task, message="x")
    worker.do(worker.endpoint.complete_task, task, NOTHING)
    assert worker.keeper.tasks.is_storing
    shared.holds_answers = False
    while worker.keeper.tasks.is_storing:
        shared.release_answers()
    assert worker.get(task.id)["status"] == "completed"


def test_many_tasks_of_a_dead_worker_are_taken_over_at_once(shared: Shared, pair: Pair) -> None:
    """A script takes a few, so that Redis is never busy for long."""
    one, other = pair
    tasks = [one.create() for _ in range(70)]
    one.keeper.die()
    other.keeper.tasks.tick()
    assert {other.get(task.id)["status"] for task in tasks} == {"failed"}


def test_a_worker_takes_over_as_much_as_it_has_room_for(shared: Shared) -> None:
    """What it could not work on would be lost; the others have room."""
    one = Worker(shared, "A")
    small = Worker(shared, "B", most_here=3, resumes=resumed)
    large = Worker(shared, "C", resumes=resumed)
    small.create()
    tasks = {one.create().id for _ in range(5)}
    one.keeper.die()
    for _ in range(2):
        small.keeper.tasks.tick()
    assert len(small.endpoint.open_tasks) == 3
    large.keeper.tasks.tick()
    taken = {task.id for worker in (small, large) for task in worker.endpoint.open_tasks}
    assert taken > tasks
    assert len(large.endpoint.open_tasks) == 3


def test_a_task_without_room_at_the_last_moment_is_left_to_others(shared: Shared) -> None:
    """A client has taken the room while Redis was asked; the others are taken over."""
    one, other = Worker(shared, "A"), Worker(shared, "B", most_here=2, resumes=resumed)
    tasks = {one.create().id for _ in range(2)}
    other.keeper.tasks.tick()  # Redis knows the script now
    one.keeper.die()
    shared.holds_answers = True
    other.send("tools/call", {"name": "t"})
    own = other.do(other.endpoint.create_task, other.requested(), at=START)
    other.keeper.tasks.tick()
    shared.holds_answers = False
    while len(other.endpoint.open_tasks) < 2:
        shared.release_answers()
    third = Worker(shared, "C", resumes=resumed)
    third.keeper.tasks.tick()
    taken = {task.id for worker in (other, third) for task in worker.endpoint.open_tasks}
    assert len(other.endpoint.open_tasks) == 2
    assert taken == {own.id, *tasks}
    for task in third.endpoint.open_tasks:
        assert shared.client.hget(shared.keys.task(task.id), "c") == b"2"


def test_a_failure_to_begin_again_costs_one_task_only(
    shared: Shared, caplog: pytest.LogCaptureFixture
) -> None:
    """Another version of the program has kept something else."""

    def resume(task: Task) -> bool:
        return bool(json.loads(task.record.keep)["twice"])

    one, other = Worker(shared, "A"), Worker(shared, "B", resumes=resume)
    good, bad = one.create(keep={"twice": True}), one.create(keep={})
    one.keeper.die()
    other.keeper.tasks.tick()
    assert other.get(good.id)["status"] == "working"
    assert other.get(bad.id)["status"] == "failed"
    assert "cannot be begun again" in caplog.text


def test_a_task_that_comes_back_to_a_silent_worker_goes_on_there(shared: Shared) -> None:
    """The worker that had taken it has died, too. The first one still works on it."""
    one, other = Worker(shared, "A"), Worker(shared, "B", resumes=resumed)
    task = one.create()
    shared.client.delete(shared.keys.lease("A" * 12))
    other.keeper.tasks.tick()
    other.do(other.endpoint.update_task, other.endpoint.open_tasks[0], message="again")
    one.keeper.live()
    other.keeper.die()
    one.keeper.tasks.tick()
    assert one.endpoint.open_tasks == (task,)
    assert shared.client.hget(shared.keys.task(task.id), "w") == b"A" * 12
    assert one.do(one.endpoint.complete_task, task, NOTHING)
    assert one.get(task.id)["status"] == "completed"


def test_answers_for_a_task_that_was_taken_over_and_fails_harm_nobody(shared: Shared) -> None:
    """Another worker has stored them before the failure; no work here waits for them."""
    one = Worker(shared, "A")
    task = one.create()
    one.do(one.endpoint.require_task_input, task, {"who": FORM}, at=START)
    one.keeper.die()
    other, third = Worker(shared, "B"), Worker(shared, "C")
    other.holds = lambda event: isinstance(event, TaskToStore)
    other.keeper.tasks.tick()
    assert len(other.held) == 1
    params: JSONObject = {"taskId": task.id, "inputResponses": {"who": {"action": "decline"}}}
    assert "result" in third.ask("tasks/update", params)
    shared.deliver()
    (event,) = of(TaskInputReceived, other.events)
    assert event.task.data is None
    runner = AsyncioHandlerRunner(
        other.endpoint,
        lambda call: NOTHING,
        lambda request: request,
        clock=other.keeper.now,
        most_running=1,
        until_room=None,
        wake=other.turn,
        end_program=lambda request, failure: None,
    )
    runner.answered(event)
    assert not runner.is_working


def test_nobody_is_taken_for_dead_because_redis_was_away(shared: Shared, pair: Pair) -> None:
    """Leases have ended meanwhile, and living workers have to renew them first."""
    one, other = pair
    task = one.create()
    shared.is_away = True
    for worker in pair:
        worker.keeper.go_away()
    shared.client.delete(shared.keys.lease("A" * 12))
    other.keeper.tasks.tick()
    shared.come_back()
    other.keeper.tasks.tick()
    assert other.get(task.id)["status"] == "working"
    shared.wait(LEASE)
    other.keeper.tasks.tick()
    assert other.get(task.id)["status"] == "failed"


def test_tasks_that_were_taken_with_an_answer_that_was_lost_are_taken_again(
    shared: Shared, pair: Pair
) -> None:
    """They would belong to a living worker that does not know of them."""
    one, other = pair
    task = one.create()
    one.keeper.die()
    shared.loses_answers = True
    other.keeper.tasks.tick()
    shared.come_back()
    assert other.get(task.id)["status"] == "working"
    shared.wait(LEASE)
    other.keeper.tasks.tick()
    assert other.get(task.id)["status"] == "failed"


def test_a_worker_that_ends_takes_no_tasks(shared: Shared, pair: Pair) -> None:
    """It would have to give them up at once."""
    one, other = pair
    task = one.create()
    one.keeper.die()
    other.keeper.tasks.drain()
    other.keeper.tasks.tick()
    assert other.get(task.id)["status"] == "working"


def test_a_task_that_no_worker_can_read_is_left(
    shared: Shared,
    pair: Pair,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a later version, or of a revision that is not spoken here. Another may go on with it."""
    one, other = pair
    odd, task = one.create(), one.create()
    shared.client.hset(shared.keys.task(odd.id), "d", b"odd")
    record = json.loads(shared.client.hget(shared.keys.task(task.id), "d"))
    record["capabilities"] = "odd"
    assert other.ask("tasks/get", {"taskId": odd.id})["error"]["code"] == -32603
    other.keeper.endpoint = new_endpoint(
        revisions=["2025-11-25"], capabilities={"tools": {}}, tasks=settings(store="ask")
    )
    one.keeper.die()
    for _ in range(3):
        other.keeper.tasks.tick()
    assert "cannot be read" in caplog.text
    assert caplog.text.count("cannot be taken over") == 2
    sent: list[Any] = []
    put = shared.put

    def note(command: Command) -> None:
        sent.append(command.words[0])
        put(command)

    with monkeypatch.context() as patch:
        patch.setattr(shared, "put", note)
        for _ in range(3):
            other.keeper.tasks.tick()
    assert sent == ["EVALSHA"] * 3, "each of them was claimed and released once, and no more"
    for left in (odd, task):
        key = shared.keys.task(left.id)
        assert shared.client.hmget(key, "w", "c") == [b"-", b"1"]
    third = Worker(shared, "C", resumes=resumed)
    third.keeper.tasks.tick()
    assert [found.id for found in third.endpoint.open_tasks] == [task.id]


def resumed(task: Task) -> bool:
    """Work on any task goes on."""
    return True


# -------------------------------------------------------------------------------- bounds and time


def test_an_owner_has_so_many_tasks(shared: Shared) -> None:
    """One client must not take the room of all."""
    one, other = Worker(shared, "A", most=3), Worker(shared, "B", most=3)
    for worker in (one, other, one):
        worker.create()
    exchange = other.send("tools/call", {"name": "t"})
    other.do(other.endpoint.create_task, other.requested(), at=START)
    response = answer(exchange)
    error = response.json["error"]
    assert (response.status, error["code"], error["message"]) == (503, -32603, "too many tasks")
    assert "as many tasks as it may have" in error["data"]["reason"]
    assert [cause for cause, _ in other.ends()] == [TaskEnd.NO_ROOM]
    in_session(other)  # of Anna


def test_a_result_that_is_too_large_lets_the_task_fail(shared: Shared, pair: Pair) -> None:
    """The client learns why, and so does the work."""
    one, other = pair
    task, asking = one.create(), one.create()
    large: JSONObject = {"content": [{"type": "text", "text": "x" * 100_000}]}
    one.do(one.endpoint.complete_task, task, large)
    question = {**FORM, "params": {**FORM["params"], "message": "x" * 100_000}}
    one.do(one.endpoint.require_task_input, asking, {"a": question}, at=START)
    assert [cause for cause, _ in one.ends()] == [TaskEnd.NO_ROOM]
    for one_of in (task, asking):
        found = other.get(one_of.id)
        assert (found["status"], found["statusMessage"]) == ("failed", "the task has no room")
        assert "more bytes" in found["error"]["data"]["reason"]


def test_answers_that_are_too_large_leave_the_task_as_it_is(shared: Shared, pair: Pair) -> None:
    """A client must not end the work by them; it may answer with less."""
    one, other = pair
    kept = one.create()
    one.do(one.endpoint.require_task_input, kept, {"a": FORM}, at=START)
    params: JSONObject = {"taskId": kept.id, "inputResponses": {"a": {"x": "y" * 100_000}}}
    for worker in pair:
        error = worker.ask("tasks/update", params)["error"]
        assert (error["code"], error["message"]) == (-32603, "the answers have no room")
    assert other.get(kept.id)["status"] == "input_required"
    assert kept.open
    one.do(one.endpoint.complete_task, kept, NOTHING)
    assert other.get(kept.id)["status"] == "completed"


def test_a_task_without_room_for_its_error_is_given_up(shared: Shared) -> None:
    """Another worker lets it fail, as if its own had died."""
    one, other = Worker(shared, "A", max_bytes=520), Worker(shared, "B")
    task = one.create()
    large: JSONObject = {"content": [{"type": "text", "text": "x" * 1000}]}
    one.do(one.endpoint.complete_task, task, large)
    assert one.endpoint.open_tasks == ()
    assert other.get(task.id)["status"] == "working"
    other.keeper.tasks.tick()
    found = other.get(task.id)
    assert (found["status"], "more bytes" in found["error"]["message"]) == ("failed", True)


def test_tasks_expire_in_redis(shared: Shared, pair: Pair) -> None:
    """Nothing is left, also of tasks that nobody asks for again."""
    one, other = pair
    long, short = one.create(ttl_ms=50_000), one.create(ttl_ms=10_000)
    for task, seconds in ((long, 50), (short, 10)):
        assert 0 < shared.client.pttl(shared.keys.task(task.id)) <= seconds * 1000
    one.do(one.endpoint.update_task, short, ttl_ms=20_000)
    assert 15_000 < shared.client.pttl(shared.keys.task(short.id)) <= 20_000
    for key in (
        shared.keys.places("2026-07-28 anonymous"),
        shared.keys.running("A" * 12),
        shared.keys.task_workers,
    ):
        if shared.client.exists(key):
            assert 40_000 < shared.client.pttl(key) <= 50_000
    assert shared.client.exists(shared.keys.running("A" * 12))
    shared.wait(30)
    one.keeper.tasks.tick()
    one.do(one.endpoint.complete_task, long, NOTHING)
    assert other.get(long.id)["status"] == "completed"


def test_the_ids_of_tasks_that_expire_do_not_pile_up(shared: Shared) -> None:
    """A task without end keeps the set of its worker alive."""
    one = Worker(shared, "A")
    running = shared.keys.running("A" * 12)
    kept = one.create(ttl_ms=None)
    forgotten = [one.create(ttl_ms=10_000) for _ in range(3)]
    changed = one.create(ttl_ms=10_000)
    assert shared.client.scard(running) == 5
    shared.wait(11)
    one.do(one.endpoint.update_task, changed, message="late")
    one.do(one.endpoint.handle_timeout)
    one.keeper.tasks.tick()
    assert shared.client.smembers(running) == {kept.id.encode()}
    ids = [task.id.encode() for task in forgotten]
    shared.client.delete(*(shared.keys.task(task.id) for task in forgotten))
    shared.client.sadd(running, *ids)  # Redis was away at that time
    shared.come_back()
    assert shared.client.smembers(running) == {kept.id.encode()}


def test_a_task_without_end_is_kept(shared: Shared, pair: Pair) -> None:
    """And ends when its time to live is given later."""
    one, _ = pair
    task = one.create(ttl_ms=None)
    assert shared.client.pttl(shared.keys.task(task.id)) == -1
    assert shared.client.pttl(shared.keys.task_workers) == -1
    one.do(one.endpoint.update_task, task, ttl_ms=10_000)
    assert 0 < shared.client.pttl(shared.keys.task(task.id)) <= 10_000
    one.do(one.endpoint.update_task, task, ttl_ms=1)
    shared.wait(1)
    one.do(one.endpoint.update_task, task, message="late")
    assert not shared.client.exists(shared.keys.task(task.id))


def test_a_thousand_tasks_are_listed_by_pages(shared: Shared, pair: Pair) -> None:
    """Each once and in order, whichever workers answer, while others come and go."""
    one, other = pair
    client = session(one)
    made: list[str] = []
    for number in range(1000):
        shared.now += 0.001 * (number % 3)
        task = in_session(one, client)
        text = "x" * (5000 if number % 100 == 0 else 1)
        one.do(one.endpoint.complete_task, task, {"content": [{"type": "text", "text": text}]})
        made.append(task.id)
    gone = made.pop(700)
    shared.client.delete(shared.keys.task(gone))
    clients = itertools.cycle([(one, client), (other, session(other))])
    seen: list[str] = []
    cursor: str | None = None
    pages = 0
    while cursor is not None or not pages:
        pages += 1
        worker, asker = next(clients)
        params = {} if cursor is None else {"cursor": cursor}
        exchange = asker.post(call(9, "tasks/list", params), **ANNA)
        worker.turn()
        result = answer(exchange).last["result"]
        seen += [found["taskId"] for found in result["tasks"]]
        cursor = result.get("nextCursor")
    assert pages == 20
    assert seen[: len(made)] == made
    stranger = connect(other.endpoint, principal="B", principal_key="bert")
    exchange = stranger.post(call(9, "tasks/list"), principal="B", principal_key="bert")
    other.turn()
    assert answer(exchange).last["result"]["tasks"] == []


def test_a_script_that_redis_has_forgotten_is_sent_again(shared: Shared, pair: Pair) -> None:
    """After a restart of Redis, for example."""
    one, other = pair
    task = one.create()
    shared.client.script_flush()
    assert one.do(one.endpoint.complete_task, task, NOTHING)
    assert other.get(task.id)["status"] == "completed"


def test_a_poll_costs_the_same_however_many_tasks_there_are(shared: Shared, pair: Pair) -> None:
    """One read of one key; nothing is searched."""
    one, _ = pair
    tasks = [one.create() for _ in range(200)]
    before = shared.client.info("commandstats")
    one.get(tasks[100].id)
    after = shared.client.info("commandstats")
    calls = {
        name: found["calls"] - before.get(name, {"calls": 0})["calls"]
        for name, found in after.items()
    }
    assert {name: count for name, count in calls.items() if count and "info" not in name} == {
        "cmdstat_hget": 1
    }
