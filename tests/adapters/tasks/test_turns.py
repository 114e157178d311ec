"""Tasks that wait for answers of people let others work, on asyncio and trio."""

from collections import defaultdict
from contextvars import ContextVar
from functools import partial
from typing import Any

from sansmcp import JSONObject
from sansmcp_io.trio import CreateTask, RequestTimeout, RunningTask, ServerCall
from tests.support.adapters import loops
from tests.support.adapters.loops import on_each_loop
from tests.support.adapters.task_talk import ACCEPTED, HTTP, STREAM, TEXT, TaskTalk, talking
from tests.support.modern import FORM


class Office:
    """A handler whose tasks note what they do; the name of the tool tells what that is.

    Attributes:
        seen: What they have done, in order.
        go: Lets those with the name `work` end, one event for each.
    """

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.go: defaultdict[str, loops.Event] = defaultdict(loops.new_event)

    def __call__(self, call: ServerCall) -> CreateTask:
        name = call.params["name"]
        return CreateTask(partial(getattr(self, name.split("-")[0]), name))

    async def work(self, name: str, task: RunningTask) -> JSONObject:
        self.seen.append(name)
        await self.go[name].wait()
        return TEXT

    async def ask(self, name: str, task: RunningTask) -> JSONObject:
        is_over = False
        try:
            await task.ask({"who": FORM})
            is_over = True
        finally:
            self.seen.append(name if is_over else f"{name} cancelled")
        return TEXT

    async def until(self, *seen: str) -> None:
        """Wait until tasks have done this."""
        while self.seen != [*seen]:
            assert len(self.seen) <= len(seen), self.seen
            await loops.sleep(0.001)

    async def check_one_at_a_time(self, talk: TaskTalk) -> None:
        """Check that one task works at a time, when none does."""
        before = [*self.seen]
        first, second = [await talk.begun(name) for name in ("work-y", "work-z")]
        await self.until(*before, "work-y")
        await talk.get(second)
        assert self.seen == [*before, "work-y"]
        self.go["work-y"].set()
        await self.until(*before, "work-y", "work-z")
        self.go["work-z"].set()
        for task_id in (first, second):
            assert (await talk.over(task_id))["status"] == "completed"


async def asked(talk: TaskTalk, name: str) -> str:
    """Begin a task, and wait for its question."""
    task_id = await talk.begun(name)
    await talk.until(task_id, "input_required")
    return task_id


async def lets_others_work(transport: str) -> None:
    office = Office()
    async with talking(office, transport, running_tasks=1) as talk:
        waiting = [await asked(talk, "ask-a"), await asked(talk, "ask-b")]
        await talk.begun("work-c")
        await office.until("work-c")
        office.go["work-c"].set()
        for task_id in waiting:
            await talk.update(task_id, who=ACCEPTED)
            assert (await talk.over(task_id))["status"] == "completed"
        await office.check_one_at_a_time(talk)


@on_each_loop()
async def test_questions_that_people_do_not_answer_hold_up_no_other_task_over_http() -> None:
    """A hundred of them would stop all tasks of all clients."""
    await lets_others_work(HTTP)


@on_each_loop()
async def test_questions_that_people_do_not_answer_hold_up_no_other_task_on_a_stream() -> None:
    """The same on a stream."""
    await lets_others_work(STREAM)


@on_each_loop()
async def test_an_answered_task_goes_on_when_its_turn_comes() -> None:
    """No more tasks work at a time than `running_tasks`. Somebody has answered this one, so that it
    comes before those that have not begun.
    """
    office = Office()
    async with talking(office, HTTP, running_tasks=1) as talk:
        task_id = await asked(talk, "ask-a")
        await talk.begun("work-b")
        await talk.begun("work-c")
        await office.until("work-b")
        await talk.update(task_id, who=ACCEPTED)
        await talk.begun("work-d")
        await talk.until(task_id, "working")
        assert office.seen == ["work-b"]
        office.go["work-b"].set()
        await office.until("work-b", "ask-a", "work-c")
        office.go["work-c"].set()
        await office.until("work-b", "ask-a", "work-c", "work-d")
        office.go["work-d"].set()
        assert (await talk.over(task_id))["status"] == "completed"


@on_each_loop()
async def test_a_task_that_is_cancelled_while_it_waits_for_its_turn_keeps_none() -> None:
    """Each lost turn would slow the server down for ever."""
    office = Office()
    async with talking(office, HTTP, running_tasks=1) as talk:
        first, second = await asked(talk, "ask-a"), await asked(talk, "ask-b")
        third = await talk.begun("work-c")
        await office.until("work-c")
        await talk.update(first, who=ACCEPTED)
        for task_id in (first, second):  # one waits for its turn, and one for an answer
            await talk.ask("tasks/cancel", {"taskId": task_id})
        await office.until("work-c", "ask-a cancelled", "ask-b cancelled")
        office.go["work-c"].set()
        await talk.over(third)
        await office.check_one_at_a_time(talk)


@on_each_loop()
async def test_work_that_waits_no_more_for_answers_goes_on() -> None:
    """Its own time limit cancels the wait, also the one for its turn."""
    office = Office()
    left = loops.new_event()

    async def impatient(task: RunningTask) -> JSONObject:
        async with loops.move_on_after(0.01):
            await task.ask({"who": FORM})
        left.set()
        return TEXT

    def handler(call: ServerCall) -> CreateTask:
        return CreateTask(impatient) if call.params["name"] == "impatient" else office(call)

    async with talking(handler, HTTP, running_tasks=1) as talk:
        await talk.begun("work-a")
        task_id, second = await talk.begun("impatient"), await talk.begun("work-b")
        office.go["work-a"].set()
        await left.wait()
        assert (await talk.over(task_id))["status"] == "completed"
        await office.until("work-a", "work-b")
        office.go["work-b"].set()
        await talk.over(second)
        await office.check_one_at_a_time(talk)


@on_each_loop()
async def test_a_handler_whose_question_is_late_waits_for_its_turn() -> None:
    """It knows nothing of tasks: it works on as any other."""
    office = Office()

    async def late(call: ServerCall) -> JSONObject:
        try:
            await call.request(FORM["method"], FORM["params"], timeout=0.01)
        except RequestTimeout:
            office.seen.append("late")
        return TEXT

    def handler(call: ServerCall) -> Any:
        return late(call) if call.params["name"] == "late" else office(call)

    async with talking(handler, STREAM, legacy=True, running_tasks=1) as talk:
        await talk.begun("work-a")
        task_id, second = await talk.begun("late"), await talk.begun("work-b")
        office.go["work-a"].set()
        await talk.until(task_id, "input_required")
        await loops.sleep(0.02)  # the time of the question is over
        assert office.seen == ["work-a", "work-b"]
        office.go["work-b"].set()
        await office.until("work-a", "work-b", "late")
        for id in (task_id, second):
            assert "result" in await talk.ask("tasks/result", {"taskId": id})


@on_each_loop()
async def test_work_may_wait_for_several_answers_at_once() -> None:
    """The work has one turn, whatever it is made of."""
    names: list[str] = []
    keys = ("who", "where", "when")

    async def ask(task: RunningTask, key: str) -> None:
        await task.ask({key: FORM})
        names.append(key)

    async def work(task: RunningTask) -> JSONObject:
        async with loops.open_nursery() as nursery:
            for key in keys:
                nursery.start_soon(ask, task, key)
        return TEXT

    office = Office()

    def handler(call: ServerCall) -> CreateTask:
        return CreateTask(work) if call.params["name"] == "several" else office(call)

    async with talking(handler, HTTP, running_tasks=1) as talk:
        task_id = await talk.begun("several")
        while len((await talk.get(task_id)).get("inputRequests", ())) < len(keys):
            await loops.sleep(0.001)
        other = await talk.begun("work-b")
        await office.until("work-b")
        await talk.update(task_id, who=ACCEPTED, where=ACCEPTED)
        assert names == []
        office.go["work-b"].set()
        await talk.over(other)
        while len(names) < 2:
            await loops.sleep(0.001)
        await talk.update(task_id, when=ACCEPTED)
        assert (await talk.over(task_id))["status"] == "completed"
        assert sorted(names) == sorted(keys)
        await office.check_one_at_a_time(talk)


@on_each_loop()
async def test_any_number_of_tasks_may_ask_one_after_the_other() -> None:
    """Each lets the next one begin, and calls within calls have their limit in Python."""
    office = Office()
    async with talking(office, STREAM, running_tasks=1) as talk:
        first = await talk.begun("work-a")
        waiting = [await talk.begun("ask-b") for _ in range(150)]
        office.go["work-a"].set()
        await talk.over(first)
        for task_id in waiting:
            await talk.until(task_id, "input_required")


@on_each_loop()
async def test_a_task_does_not_see_the_context_variables_of_the_one_before() -> None:
    """That one may have been a request of another user."""
    user: ContextVar[str] = ContextVar("user", default="nobody")
    seen: list[str] = []

    async def work(name: str, task: RunningTask) -> JSONObject:
        seen.append(user.get())
        user.set(name)
        await task.ask({"who": FORM})
        return TEXT

    def handler(call: ServerCall) -> CreateTask:
        user.set(f"caller of {call.params['name']}")
        return CreateTask(partial(work, call.params["name"]))

    async with talking(handler, HTTP, running_tasks=1) as talk:
        for name in ("a", "b"):
            await asked(talk, name)
    assert seen == ["caller of a", "caller of b"]
