"""`serve_http` on real sockets with a store of tasks of the application, which may fail."""

from collections import Counter
from typing import Any

import pytest

from sansmcp import JSONObject, TaskRecord, Tasks
from sansmcp_io.asgi import App
from sansmcp_io.trio import RunningTask
from tests.adapters.tasks.test_loops import Slow, until, with_work
from tests.support.adapters import loops
from tests.support.adapters.loops import on_each_loop
from tests.support.http.on_loops import INFO, Talk, serving, talking
from tests.support.http.on_loops import last as last_message
from tests.support.http.task_stores import AsyncTasks, DictTasks
from tests.support.http.tools import opened
from tests.support.modern import envelope, modern
from tests.support.tasks import WITH_TASKS, Entropy
from tests.support.wire import call

SHORT = 0.05
"""Seconds after which a lookup is late, where one never ends."""


async def ask(talk: Talk, method: str, params: JSONObject) -> Any:
    """The response to a request of 2026-07-28."""
    message = modern(1, method, params, envelope(WITH_TASKS))
    name = params["taskId" if "taskId" in params else "name"]
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": method, "mcp-name": name}
    return last_message(await talk.post(message, headers))


async def create(talk: Talk) -> str:
    task_id: str = (await ask(talk, "tools/call", {"name": "t"}))["result"]["taskId"]
    return task_id


async def status(talk: Talk, task_id: str) -> str:
    found: str = (await ask(talk, "tasks/get", {"taskId": task_id}))["result"]["status"]
    return found


@pytest.mark.parametrize("kind", [DictTasks, AsyncTasks])
@on_each_loop()
async def test_tasks_are_kept_by_the_application(kind: type[Any]) -> None:
    """Any process that has the store answers for them, in both forms."""
    store, slow = kind(), Slow()
    settings: JSONObject = {"tasks": True, "task_store": store}
    async with (
        serving(slow, **settings) as server,
        serving(slow, **settings) as other,
        talking(server) as talk,
        talking(other) as elsewhere,
    ):
        task = await create(talk)
        assert await status(elsewhere, task) == "working"
        slow.go.set()
        while await status(elsewhere, task) == "working":
            await loops.checkpoint()
        assert await status(talk, task) == "completed"
        assert (await ask(talk, "tasks/get", {"taskId": "x"}))["error"]["code"] == -32602
        headers = await opened(talk)
        for number in (1, 2, 3):
            message = call(number, "tools/call", {"name": "t", "task": {}})
            assert "task" in last_message(await talk.post(message, headers))["result"]
        page = last_message(await talk.post(call(5, "tasks/list"), headers))["result"]
        assert len(page["tasks"]) == 3


@on_each_loop()
async def test_a_task_that_another_process_has_cancelled_is_stopped() -> None:
    """Nothing tells it, so the store is asked again from time to time."""
    store, slow = AsyncTasks(), Slow()
    settings: JSONObject = {"tasks": Tasks(entropy=Entropy()), "task_store": store}
    async with (
        serving(slow, **settings) as server,
        serving(slow, **settings) as other,
        talking(server) as talk,
        talking(other) as elsewhere,
    ):
        task = await create(talk)
        store.kept.failure = OSError("away")
        await loops.sleep(3.5)
        store.kept.failure = None
        assert "result" in await ask(elsewhere, "tasks/cancel", {"taskId": task})
        assert slow.cancelled == 0
        await until(lambda: slow.cancelled)
        assert not slow.tasks[0].open


class Watched:
    """A store with a plain `get` and an async `put`.

    Attributes:
        gets: Which tasks were read, and in which turn of the test.
        turn: The turn of the test.
        go: What each `put` waits for.
        waits: Whether one has waited.
    """

    def __init__(self) -> None:
        self._kept = DictTasks()
        self.gets: list[tuple[str, int]] = []
        self.turn = 0
        self.go: Any = None
        self.waits = False

    def get(self, task_id: str) -> TaskRecord | None:
        self.gets.append((task_id, self.turn))
        return self._kept.get(task_id)

    async def put(self, record: TaskRecord) -> bool:
        if self.go is not None:
            self.waits = True
            await self.go.wait()
        return self._kept.put(record)

    def page(self, owner: str, after: str | None, limit: int) -> list[TaskRecord]:
        return self._kept.page(owner, after, limit)


@on_each_loop()
async def test_looks_for_changes_hold_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others run between two of them; and a task that is being stored is not read meanwhile."""
    monkeypatch.setattr("sansmcp_io._async.task_lookups.LOOK_SECONDS", 0.01)
    store, slow = Watched(), Slow()
    async with (
        serving(slow, tasks=True, task_store=store) as server,
        talking(server) as talk,
    ):
        tasks = {await create(talk) for _ in range(10)}
        store.go = loops.new_event()
        slow.tasks[0].update(message="half")
        await until(lambda: store.waits)
        store.gets.clear()
        while len(store.gets) < 3 * len(tasks):
            store.turn += 1
            await loops.checkpoint()
        assert max(Counter(turn for _, turn in store.gets).values()) <= 2
        assert {task for task, _ in store.gets} == tasks - {slow.tasks[0].id}
        store.go.set()
        await until(lambda: any(task == slow.tasks[0].id for task, _ in store.gets))


@on_each_loop()
async def test_a_store_that_fails_is_an_error_of_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each request has a complete response, and the log has the first failure with its cause."""
    store, slow = DictTasks(), Slow()
    async with (
        serving(slow, tasks=True, task_store=store) as server,
        talking(server) as talk,
    ):
        task = await create(talk)
        store.failure = OSError("away")
        for method in ("tasks/get", "tasks/cancel"):
            answer = await ask(talk, method, {"taskId": task})
            assert answer["error"]["code"] == -32603
            assert "away" not in str(answer)
        answer = await ask(talk, "tools/call", {"name": "t"})
        assert answer["error"]["code"] == -32603
        await until(lambda: slow.cancelled == slow.began - 1)
        store.failure = None
        assert await status(talk, task) == "working"
    assert [record.getMessage() for record in caplog.records] == ["task_store failed"]


@pytest.mark.parametrize("kind", [DictTasks, AsyncTasks])
@on_each_loop()
async def test_a_store_that_is_full_says_so_to_the_client(
    kind: type[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """It has not failed: nothing is logged, and tasks end with a reason."""
    store, slow = kind(), Slow()
    kept = store if isinstance(store, DictTasks) else store.kept
    large: JSONObject = {"content": [{"type": "text", "text": "x" * 1000}]}

    async def work(task: RunningTask) -> JSONObject:
        await slow.work(task)
        return large

    async with (
        serving(with_work(work), tasks=True, task_store=store) as server,
        talking(server) as talk,
    ):
        task = await create(talk)
        kept.most = 1000
        slow.go.set()
        while await status(talk, task) == "working":
            await loops.checkpoint()
        found = (await ask(talk, "tasks/get", {"taskId": task}))["result"]
        assert found["status"] == "failed"
        assert found["error"]["data"] == {"reason": "1000 bytes are kept"}
        kept.most = 10
        error = (await ask(talk, "tools/call", {"name": "t"}))["error"]
        assert (error["code"], error["message"]) == (-32603, "too many tasks")
        assert error["data"] == {"reason": "10 bytes are kept"}
    assert caplog.records == []


@on_each_loop()
async def test_a_store_that_is_slow_holds_no_request_for_ever() -> None:
    """`lookup_timeout` bounds each call of it."""
    store = AsyncTasks()
    async with (
        serving(Slow(), tasks=True, task_store=store, lookup_timeout=SHORT) as server,
        talking(server) as talk,
    ):
        task = await create(talk)
        store.wait = loops.sleep_forever
        answer = await ask(talk, "tasks/get", {"taskId": task})
        assert answer["error"]["code"] == -32603
        assert "too long" in answer["error"]["message"]
        store.wait = None
        assert await status(talk, task) == "working"


@on_each_loop()
async def test_mistakes_of_a_store_are_errors_of_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They must not reach a client, or hold it up."""

    class Odd(DictTasks):
        def get(self, task_id: str) -> Any:
            return "odd"

        def put(self, record: TaskRecord) -> Any:
            return None

        def page(self, owner: str, after: str | None, limit: int) -> Any:
            return 5

    async with (
        serving(Slow(), tasks=True, task_store=Odd()) as server,
        talking(server) as talk,
    ):
        for method, params in (("tools/call", {"name": "t"}), ("tasks/get", {"taskId": "x"})):
            assert (await ask(talk, method, params))["error"]["code"] == -32603
        headers = await opened(talk)
        page = last_message(await talk.post(call(5, "tasks/list"), headers))
        assert page["error"]["code"] == -32603
    assert "task_store.put must return True or False" in caplog.text


def test_settings_that_contradict_each_other() -> None:
    """They raise where the server is made, and the text says what to do."""

    def new(**settings: Any) -> App:
        return App(lambda call: {}, info=INFO, **settings)

    cases: list[tuple[dict[str, Any], str]] = [
        ({"task_store": DictTasks()}, "pass tasks="),
        ({"tasks": True, "task_store": {}}, "needs a method put"),
        ({"tasks": Tasks(entropy=Entropy(), store="ask")}, "driven by hand"),
    ]
    for settings, text in cases:
        with pytest.raises(ValueError, match=text):
            new(**settings)
    new(tasks=True, task_store=AsyncTasks())
