"""Clients of 2025-11-25 whose handlers work on tasks, on each loop and without one."""

import threading
from collections.abc import Callable
from typing import Any, Final

import pytest

from sansmcp import JSONObject
from sansmcp_io import blocking
from sansmcp_io.trio import Call, CreateTask, McpError, RunningTask
from tests.adapters.tasks import test_blocking_clients, test_loop_clients
from tests.adapters.tasks.test_loop_clients import H11, STDIO, on_loops
from tests.support.adapters import loops
from tests.support.modern import FORM, LEGACY

ANN: Final[JSONObject] = {"action": "accept", "content": {"name": "Ann"}}
OPTIONS: Final[dict[str, Any]] = {
    "revision": LEGACY,
    "capabilities": {
        "elicitation": {},
        "tasks": {"cancel": {}, "list": {}, "requests": {"elicitation": {"create": {}}}},
    },
}
each_transport = pytest.mark.parametrize("transport", [STDIO, H11])
TASK: Final[JSONObject] = {"task": True}


@each_transport
@on_loops
async def test_a_handler_of_a_client_returns_create_task(transport: str) -> None:
    """A server may wait for people without an open request."""
    tasks: list[RunningTask] = []

    async def work(task: RunningTask) -> JSONObject:
        tasks.append(task)
        assert task.update(message="asking")
        await loops.checkpoint()
        return ANN

    def answer(call: Call) -> CreateTask:
        return CreateTask(work, ttl_ms=5000)

    async with test_loop_clients.talking(transport, on_request=answer, **OPTIONS) as talk:
        assert await talk.said("delegate", arguments=TASK) == "Ann"
        assert await talk.said("delegate") == "Ann"
        assert [task.id is None for task in tasks] == [False, True], "a task only if it is wanted"


@each_transport
@on_loops
async def test_a_handler_of_a_client_knows_nothing_of_tasks(transport: str) -> None:
    """The library makes the task around it, as on a server."""

    async def slowly(call: Call) -> JSONObject:
        await loops.checkpoint()
        await call.request("tools/call", {"name": "echo"})
        return ANN

    def answer(call: Call) -> Any:
        return ANN if call.context == "plain" else slowly(call)

    for context in ("plain", "slow"):
        more: Any = {"on_request": answer, "context": context, **OPTIONS}
        async with test_loop_clients.talking(transport, **more) as talk:
            assert await talk.said("delegate", arguments=TASK) == "Ann"


@each_transport
@on_loops
async def test_failures_of_a_task_of_a_client_are_those_of_its_request(
    transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Only servers ask questions about tasks, which the log tells."""

    async def refuse(task: RunningTask) -> JSONObject:
        await loops.checkpoint()
        raise McpError(-32001, "no")

    async def ask(task: RunningTask) -> JSONObject:
        return await task.ask({"who": FORM})

    works = [refuse, ask]

    def answer(call: Call) -> CreateTask:
        return CreateTask(works.pop(0))

    async with test_loop_clients.talking(transport, on_request=answer, **OPTIONS) as talk:
        assert await talk.said("delegate", arguments=TASK) == "-32001 no"
        assert await talk.said("delegate", arguments=TASK) == "-32603 internal error"
    assert "only the work on a task of a server can ask questions" in caplog.text


@each_transport
@on_loops
async def test_the_work_on_a_task_of_a_client_ends_with_its_block(
    transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is left behind, and nothing is complained of."""
    began = loops.new_event()
    ended: list[str] = []

    async def work(task: RunningTask) -> JSONObject:
        began.set()
        try:
            await loops.sleep_forever()
        finally:
            ended.append("cancelled")
        return ANN

    def answer(call: Call) -> CreateTask:
        return CreateTask(work)

    async with (
        test_loop_clients.talking(transport, on_request=answer, **OPTIONS) as talk,
        loops.open_nursery() as nursery,
    ):
        nursery.start_soon(lambda: talk.call("delegate", arguments=TASK))
        await began.wait()
        nursery.cancel()
    assert ended == ["cancelled"]
    assert "task of 'elicitation/create'" not in caplog.text


@each_transport
def test_a_handler_of_a_client_without_a_loop_works_on_tasks(transport: str) -> None:
    """The work has a thread of its own."""
    tasks: list[blocking.RunningTask] = []

    def work(task: blocking.RunningTask) -> JSONObject:
        tasks.append(task)
        task.update(message="asking")
        task.sleep(0.001)
        return ANN

    handlers: list[Callable[[blocking.Call], Any]] = [
        lambda call: CreateTask(work),
        lambda call: ANN,
    ]
    for handler in handlers:
        more: Any = {"on_request": handler, **OPTIONS}
        with test_blocking_clients.talking(transport, **more) as talk:
            assert talk.said("delegate", arguments=TASK) == "Ann"
            assert talk.said("delegate") == "Ann"
    assert [task.id is None for task in tasks] == [False, True], "a task only if it is wanted"


def test_a_client_without_a_loop_is_left_while_it_works_on_a_task() -> None:
    """The work is told, and what it does afterwards counts for nothing."""
    began, told = threading.Event(), threading.Event()
    lost: list[Exception] = []

    def work(task: blocking.RunningTask) -> JSONObject:
        began.set()
        try:
            task.sleep(60)
        except blocking.CallCancelled:
            told.set()
        return ANN

    def answer(call: blocking.Call) -> CreateTask:
        return CreateTask(work)

    more: Any = {"on_request": answer, **OPTIONS}
    with test_blocking_clients.talking(STDIO, **more) as talk:

        def ask() -> None:
            try:
                talk.call("delegate", arguments=TASK)
            except blocking.ConnectionLost as error:
                lost.append(error)

        caller = threading.Thread(target=ask)
        caller.start()
        assert began.wait(20)
    assert told.wait(20)
    caller.join(20)
    assert len(lost) == 1
