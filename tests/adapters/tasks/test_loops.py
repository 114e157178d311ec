"""Handlers that return `CreateTask`, on asyncio and trio, over HTTP and on a stream."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import attrs
import pytest

from sansmcp import ErrorCode, JSONObject, Tasks
from sansmcp_io.trio import (
    CreateTask,
    McpError,
    RequestTimeout,
    RequireInput,
    RunningTask,
    ServerCall,
)
from tests.support.adapters import loops
from tests.support.adapters.loops import on_each_loop
from tests.support.adapters.task_talk import ACCEPTED, HTTP, STREAM, TEXT, talking
from tests.support.modern import EVERYTHING, FORM, ROOTS
from tests.support.tasks import NEEDED, Entropy

each_transport = pytest.mark.parametrize("transport", [HTTP, STREAM])
Work = Callable[[RunningTask], Awaitable[JSONObject]]


class Slow:
    """A handler of a task that waits until the test releases it.

    Attributes:
        began: How often its work has begun.
        cancelled: How often its work was cancelled.
    """

    def __init__(self, **settings: Any) -> None:
        self.began = 0
        self.cancelled = 0
        self.go = loops.new_event()
        self.tasks: list[RunningTask] = []
        self._settings = settings

    async def work(self, task: RunningTask) -> JSONObject:
        self.began += 1
        self.tasks.append(task)
        is_over = False
        try:
            await self.go.wait()
            is_over = True
        finally:
            self.cancelled += not is_over
        return TEXT

    def __call__(self, call: ServerCall) -> CreateTask:
        return CreateTask(self.work, **self._settings)


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await loops.sleep(0.001)


def with_work(work: Work) -> Callable[[ServerCall], CreateTask]:
    return lambda call: CreateTask(work)


# ------------------------------------------------------------------------------- the work


@each_transport
@on_each_loop()
async def test_the_client_gets_a_task_at_once_and_the_result_when_it_is_there(
    transport: str,
) -> None:
    """The request must not wait for the work."""
    slow = Slow(ttl_ms=5000, poll_ms=7, message="warming up")
    async with talking(slow, transport) as talk:
        task_id = await talk.begun()
        task = await talk.get(task_id)
        assert (task["status"], task["statusMessage"]) == ("working", "warming up")
        assert (task["ttlMs"], task["pollIntervalMs"]) == (5000, 7)
        assert slow.tasks[0].id == task_id
        slow.go.set()
        task = await talk.over(task_id)
        assert (task["status"], task["result"]["content"]) == ("completed", TEXT["content"])


@on_each_loop()
async def test_the_work_may_return_an_object() -> None:
    """The result of a task may be an object, as that of a handler."""

    @attrs.frozen
    class Done:
        content: list[object]
        isError: bool | None = None

    async with talking(lambda call: CreateTask(lambda task: Done(TEXT["content"])), HTTP) as talk:
        result = (await talk.over(await talk.begun()))["result"]
        assert (result["content"], "isError" in result) == (TEXT["content"], False)


@each_transport
@on_each_loop()
async def test_async_handlers_and_plain_work_may_be_mixed(transport: str) -> None:
    """Whether a function is async must matter for nothing but waiting."""

    async def handler(call: ServerCall) -> CreateTask:
        await loops.checkpoint()
        return CreateTask(lambda task: TEXT)

    async with talking(handler, transport) as talk:
        assert (await talk.over(await talk.begun()))["result"]["content"] == TEXT["content"]


@each_transport
@on_each_loop()
async def test_progress_and_updates_are_the_status_message(transport: str) -> None:
    """Clients of 2026-07-28 see progress of a task only there."""
    go = [loops.new_event() for _ in range(4)]
    wanted: list[bool] = []

    async def work(task: RunningTask) -> JSONObject:
        wanted.append(task.progress(1))
        await go[0].wait()
        wanted.append(task.progress(2, total=4))
        await go[1].wait()
        wanted.append(task.progress(3, total=4, message="nearly"))
        await go[2].wait()
        wanted.append(task.update(message="at the end", ttl_ms=86_400_000))
        await go[3].wait()
        return TEXT

    def has_reported(before: int) -> bool:
        return len(wanted) > before or len(wanted) == len(go)

    async with talking(with_work(work), transport) as talk:
        task_id = await talk.begun()
        said: list[str] = []
        await until(lambda: wanted)
        for event in go:
            said.append((await talk.get(task_id))["statusMessage"])
            before = len(wanted)
            event.set()
            await until(partial(has_reported, before))
        assert said == ["1", "2 of 4", "nearly", "at the end"]
        assert wanted == [True] * 4
        assert (await talk.over(task_id))["ttlMs"] == 86_400_000


@each_transport
@on_each_loop()
async def test_errors_of_the_work_are_those_of_handlers(
    transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The text of an unexpected exception may be a secret; that of `McpError` is for the client."""

    def handler(call: ServerCall) -> CreateTask:
        async def work(task: RunningTask) -> Any:
            await loops.checkpoint()
            match call.params["name"]:
                case "said":
                    raise McpError(-32001, "no room", {"seats": 0})
                case "unsayable":
                    raise McpError(-32001, "no room", {"seats": object()})
                case "unexpected":
                    raise ValueError("secret")
                case _:
                    return {"content": object()}

        return CreateTask(work)

    async with talking(handler, transport) as talk:
        task = await talk.over(await talk.begun("said"))
        assert task["status"] == "failed"
        assert task["error"] == {"code": -32001, "message": "no room", "data": {"seats": 0}}
        for name in ("unsayable", "unexpected", "no result"):
            task = await talk.over(await talk.begun(name))
            assert task["error"] == {"code": -32603, "message": "internal error"}
    assert caplog.text.count("the task of 'tools/call' failed") == 3


@each_transport
@on_each_loop()
async def test_a_cancelled_task_cancels_its_work(transport: str) -> None:
    """Work whose result is not wanted must not go on."""
    slow = Slow()
    async with talking(slow, transport) as talk:
        task_id = await talk.begun()
        await until(lambda: slow.began)
        await talk.ask("tasks/cancel", {"taskId": task_id})
        await until(lambda: slow.cancelled)
        assert (await talk.get(task_id))["status"] == "cancelled"
        assert not slow.tasks[0].open
        assert not slow.tasks[0].update(message="too late")
        assert not slow.tasks[0].progress(1)


@each_transport
@on_each_loop()
async def test_work_ends_when_its_time_to_live_is_over(transport: str) -> None:
    """Nobody can fetch its result any more."""
    slow = Slow(ttl_ms=50)
    async with talking(slow, transport) as talk:
        task_id = await talk.begun()
        await until(lambda: slow.cancelled)
        answer = await talk.ask("tasks/get", {"taskId": task_id})
        assert answer["error"]["code"] == ErrorCode.INVALID_PARAMS


# ------------------------------------------------------------------------------- questions


@each_transport
@on_each_loop()
async def test_work_asks_in_between(transport: str) -> None:
    """The same key may be asked again, and several at once."""

    async def work(task: RunningTask) -> JSONObject:
        answers: Any = await task.ask({"who": FORM})
        again: Any = await task.ask({"who": FORM, "where": ROOTS})
        third: Any = await task.ask({"who": FORM})
        names = [one["who"]["content"]["name"] for one in (answers, again, third)]
        return {"content": [{"type": "text", "text": f"{names} {again['where']['roots']}"}]}

    async with talking(with_work(work), transport) as talk:
        task_id = await talk.begun()
        task = await talk.until(task_id, "input_required")
        assert task["inputRequests"] == {"who": FORM}
        await talk.update(task_id, who=ACCEPTED)
        task = await talk.until(task_id, "input_required")
        assert sorted(task["inputRequests"]) == ["where", "who-2"]
        await talk.update(task_id, where={"roots": []})
        assert list((await talk.get(task_id))["inputRequests"]) == ["who-2"]
        await talk.update(task_id, **{"who-2": ACCEPTED})
        await talk.until(task_id, "input_required")
        await talk.update(task_id, **{"who-3": ACCEPTED})
        task = await talk.over(task_id)
        assert task["result"]["content"][0]["text"] == "['Ann', 'Ann', 'Ann'] []"


@each_transport
@on_each_loop()
async def test_a_cancelled_task_cancels_the_wait_for_answers(transport: str) -> None:
    """The client may cancel instead of answering."""
    seen: list[str] = []

    async def work(task: RunningTask) -> JSONObject:
        try:
            await task.ask({"who": FORM})
        finally:
            seen.append("left")
        return TEXT

    async with talking(with_work(work), transport) as talk:
        task_id = await talk.begun()
        await talk.until(task_id, "input_required")
        await talk.ask("tasks/cancel", {"taskId": task_id})
        await until(lambda: seen)


@each_transport
@on_each_loop()
async def test_questions_that_the_client_cannot_answer_fail_the_task(transport: str) -> None:
    """The client can call again, with the capability."""

    def handler(call: ServerCall) -> CreateTask:
        questions: JSONObject = {} if call.params["name"] == "none" else {"a": FORM}
        return CreateTask(lambda task: task.ask(questions))

    only_tasks: JSONObject = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    async with talking(handler, transport, client=only_tasks) as talk:
        error = (await talk.over(await talk.begun()))["error"]
        assert error["code"] == ErrorCode.MISSING_CLIENT_CAPABILITY
        assert "elicitation" in error["data"]["requiredCapabilities"]
        error = (await talk.over(await talk.begun("none")))["error"]
        assert error["code"] == ErrorCode.INTERNAL_ERROR


# ------------------------------------------------------------------------ clients without tasks


@each_transport
@on_each_loop()
async def test_a_client_without_tasks_waits_for_the_response(transport: str) -> None:
    """The handler is the same for all clients."""

    async def work(task: RunningTask) -> JSONObject:
        await loops.checkpoint()
        return {"content": [{"type": "text", "text": f"{task.id} {task.update(message='x')}"}]}

    async with talking(with_work(work), transport, client=EVERYTHING) as talk:
        assert (await talk.tool("t"))["content"][0]["text"] == "None True"


@each_transport
@on_each_loop()
async def test_a_client_without_tasks_is_told_that_questions_need_them(transport: str) -> None:
    """In 2026-07-28 there are no questions within a request that goes on."""

    def handler(call: ServerCall) -> CreateTask:
        questions: JSONObject = {} if call.params["name"] == "none" else {"a": FORM}
        return CreateTask(lambda task: task.ask(questions))

    async with talking(handler, transport, client=EVERYTHING) as talk:
        error = (await talk.ask("tools/call", {"name": "t"}))["error"]
        assert (error["code"], error["data"]) == (ErrorCode.MISSING_CLIENT_CAPABILITY, NEEDED)
        error = (await talk.ask("tools/call", {"name": "none"}))["error"]
        assert error["code"] == ErrorCode.INTERNAL_ERROR


@each_transport
@on_each_loop()
async def test_a_required_task_is_refused_to_others(transport: str) -> None:
    """`Tasks.tools` says so."""
    tasks = Tasks(entropy=Entropy(), tools={"t": "required"})
    async with talking(Slow(), transport, client=EVERYTHING, tasks=tasks) as talk:
        error = (await talk.ask("tools/call", {"name": "t"}))["error"]
        assert (error["code"], error["data"]) == (ErrorCode.MISSING_CLIENT_CAPABILITY, NEEDED)


@each_transport
@on_each_loop()
async def test_create_task_needs_that_tasks_are_turned_on(
    transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The mistake must be seen at the first call, not only with clients that take tasks."""
    async with talking(Slow(), transport, tasks=False) as talk:
        error = (await talk.ask("tools/call", {"name": "t"}))["error"]
        assert error == {"code": ErrorCode.INTERNAL_ERROR, "message": "internal error"}
    assert "tasks=True" in caplog.text


def test_create_task_takes_a_function() -> None:
    """A coroutine in its place would be found out much later."""
    wrong: Any = {"content": []}
    with pytest.raises(TypeError, match="CreateTask takes a function of one argument"):
        CreateTask(wrong)


# ------------------------------------------------------------------------------------- bounds


@each_transport
@on_each_loop()
async def test_more_tasks_than_may_run_wait_for_their_turn(transport: str) -> None:
    """They are tasks already: they can be polled and cancelled."""
    slow = Slow()
    async with talking(slow, transport, running_tasks=1) as talk:
        first, second, third = [await talk.begun() for _ in range(3)]
        await until(lambda: slow.began)
        assert (await talk.get(second))["status"] == "working"
        await talk.ask("tasks/cancel", {"taskId": second})
        slow.go.set()
        for task_id in (first, third):
            assert (await talk.over(task_id))["status"] == "completed"
        assert slow.began == 2


@each_transport
@on_each_loop()
async def test_too_many_tasks_are_refused(transport: str) -> None:
    """The memory of finished tasks has a bound, too."""
    tasks = Tasks(entropy=Entropy(), max_tasks=1)
    async with talking(Slow(), transport, tasks=tasks) as talk:
        await talk.begun()
        error = (await talk.ask("tools/call", {"name": "t"}))["error"]
        assert error["code"] == ErrorCode.INTERNAL_ERROR


# ----------------------------------------------------------------------------- 2025-11-25


@on_each_loop()
async def test_handlers_that_know_nothing_of_tasks_serve_clients_that_want_them() -> None:
    """The library makes the task around the handler."""

    async def slowly(call: ServerCall) -> JSONObject:
        assert call.input_responses == {}
        assert call.state is None
        await loops.checkpoint()
        call.progress(1, message="half")
        method: str = FORM["method"]
        answer: Any = await call.request(method, FORM["params"])
        return {"content": [{"type": "text", "text": answer["content"]["name"]}]}

    def handler(call: ServerCall) -> Any:
        return TEXT if call.params["name"] == "plain" else slowly(call)

    async with talking(handler, STREAM, legacy=True) as talk:
        plain = await talk.begun("plain")
        answer = await talk.ask("tasks/result", {"taskId": plain})
        assert answer["result"]["content"] == TEXT["content"]
        task_id = await talk.begun("slow", _meta={"progressToken": 5})
        assert talk.lines is not None
        asked = next((one for one in talk.seen if one["method"] == "elicitation/create"), None)
        while asked is None:
            message = await talk.lines.receive()
            talk.seen.append(message)
            asked = message if message["method"] == "elicitation/create" else None
        await talk.lines.send({"jsonrpc": "2.0", "id": asked["id"], "result": ACCEPTED})
        answer = await talk.ask("tasks/result", {"taskId": task_id})
        assert answer["result"]["content"][0]["text"] == "Ann"
        progress = [one for one in talk.seen if one["method"] == "notifications/progress"]
        assert [one["params"]["message"] for one in progress] == ["half"]


@on_each_loop()
async def test_settings_count_where_the_task_was_made_before_the_handler_returned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The library cannot wait for an async handler; a longer time to live has its limit."""
    slow = Slow(ttl_ms=5000, poll_ms=7, message="warming up")
    long = Slow(ttl_ms=60_000, message="going on")

    async def handler(call: ServerCall) -> CreateTask:
        await loops.checkpoint()
        return slow(call) if call.params["name"] == "slow" else long(call)

    tasks = Tasks(entropy=Entropy(), ttl_ms=9000, max_ttl_ms=10_000)
    async with talking(handler, STREAM, legacy=True, tasks=tasks) as talk:
        task_id = await talk.begun()
        await until(lambda: slow.began)
        task = await talk.get(task_id)
        assert (task["ttl"], task["pollInterval"]) == (5000, 7)
        assert task["statusMessage"] == "warming up"
        task_id = await talk.begun("long")
        await until(lambda: long.began)
        task = await talk.get(task_id)
        assert (task["ttl"], task["statusMessage"]) == (9000, "going on")
    assert "the time to live is lengthened to 10000 ms at most" in caplog.text


@on_each_loop()
async def test_a_setting_that_is_not_valid_fails_the_task() -> None:
    """As it fails the request where the task is made after the handler."""

    async def handler(call: ServerCall) -> CreateTask:
        await loops.checkpoint()
        return CreateTask(lambda task: TEXT, poll_ms=0)

    async with talking(handler, STREAM, legacy=True) as talk:
        answer = await talk.ask("tasks/result", {"taskId": await talk.begun()})
        assert answer["error"] == {"code": -32603, "message": "internal error"}


@on_each_loop()
async def test_a_handler_waits_for_an_answer_as_long_as_it_says() -> None:
    """It knows nothing of tasks: its `timeout` must not be lost."""

    async def handler(call: ServerCall) -> JSONObject:
        try:
            await call.request(FORM["method"], FORM["params"], timeout=0.01)
        except RequestTimeout as error:
            return {"content": [{"type": "text", "text": str(error)}]}
        return TEXT

    async with talking(handler, STREAM, legacy=True) as talk:
        answer = await talk.ask("tasks/result", {"taskId": await talk.begun()})
        assert answer["result"]["content"][0]["text"] == (
            "elicitation/create was not answered in time"
        )


@on_each_loop()
async def test_rounds_of_a_handler_are_questions_of_its_task() -> None:
    """`RequireInput` ends a request; a task goes on."""

    async def handler(call: ServerCall) -> JSONObject | RequireInput | CreateTask:
        if call.state is None:
            return RequireInput(state="begun")
        if call.state == "begun":
            return RequireInput({"who": FORM}, state="asked")
        assert call.state == "asked"
        answer: Any = call.input_responses["who"]
        name: str = answer["content"]["name"]
        return CreateTask(lambda task: {"content": [{"type": "text", "text": name}]})

    async with talking(handler, STREAM, legacy=True) as talk:
        task_id = await talk.begun()
        assert talk.lines is not None
        while not any(one["method"] == "elicitation/create" for one in talk.seen):
            talk.seen.append(await talk.lines.receive())
        (asked,) = [one for one in talk.seen if one["method"] == "elicitation/create"]
        await talk.lines.send({"jsonrpc": "2.0", "id": asked["id"], "result": ACCEPTED})
        answer = await talk.ask("tasks/result", {"taskId": task_id})
        assert answer["result"]["content"][0]["text"] == "Ann"


@on_each_loop()
async def test_a_legacy_client_without_tasks_is_asked_within_its_request() -> None:
    """2025-11-25 has questions within a request."""

    async def work(task: RunningTask) -> JSONObject:
        answers: Any = await task.ask({"who": FORM})
        task.progress(1)
        return {"content": [{"type": "text", "text": answers["who"]["content"]["name"]}]}

    async with talking(with_work(work), STREAM, legacy=True, client=EVERYTHING) as talk:
        assert talk.lines is not None
        message = talk.request("tools/call", {"name": "t", "_meta": {"progressToken": 5}})
        await talk.lines.send(message)
        asked = await talk.lines.receive()
        assert asked["method"] == "elicitation/create"
        await talk.lines.send({"jsonrpc": "2.0", "id": asked["id"], "result": ACCEPTED})
        assert (await talk.lines.receive())["method"] == "notifications/progress"
        answer = await talk.response(message["id"])
        assert answer["result"]["content"][0]["text"] == "Ann"


@on_each_loop()
async def test_questions_that_a_legacy_client_without_tasks_cannot_answer_fail_its_request() -> (
    None
):
    """The client is told why, as one whose task asks."""
    seen: list[McpError] = []

    async def work(task: RunningTask) -> JSONObject:
        try:
            return await task.ask({"who": FORM})
        except McpError as error:
            seen.append(error)
            raise

    async def wrong(task: RunningTask) -> JSONObject:
        return await task.ask({"who": {"method": "tools/list"}})

    def handler(call: ServerCall) -> CreateTask:
        return CreateTask(wrong if call.params["name"] == "wrong" else work)

    async with talking(handler, STREAM, legacy=True, client={}) as talk:
        error = (await talk.ask("tools/call", {"name": "t"}))["error"]
        assert (error["code"], seen[0].code) == (ErrorCode.INVALID_PARAMS,) * 2
        assert "did not declare" in error["message"]
        error = (await talk.ask("tools/call", {"name": "wrong"}))["error"]
        assert error["code"] == ErrorCode.INTERNAL_ERROR


@on_each_loop()
async def test_all_that_a_handler_asks_with_is_kept_within_a_task() -> None:
    """It knows nothing of tasks: nothing may be dropped without a word."""

    def hear(progress: float, total: float | None, message: str | None) -> None:
        raise AssertionError(progress)

    async def handler(call: ServerCall) -> JSONObject:
        params = {**FORM["params"], "_meta": {"example.org/a": 1, "example.org/b": 1}}
        with pytest.raises(ValueError, match="no progress"):
            await call.request(FORM["method"], params, on_progress=hear)
        await call.request(FORM["method"], params, meta={"example.org/b": 2})
        return TEXT

    async with talking(handler, STREAM, legacy=True) as talk:
        task_id = await talk.begun()
        await talk.until(task_id, "input_required")
        assert talk.lines is not None
        while not any(one["method"] == "elicitation/create" for one in talk.seen):
            talk.seen.append(await talk.lines.receive())
        (asked,) = [one for one in talk.seen if one["method"] == "elicitation/create"]
        meta: JSONObject = asked["params"]["_meta"]
        assert (meta["example.org/a"], meta["example.org/b"]) == (1, 2)
        await talk.lines.send({"jsonrpc": "2.0", "id": asked["id"], "result": ACCEPTED})
        assert (await talk.over(task_id))["status"] == "completed"


@on_each_loop()
async def test_a_queued_handler_of_a_legacy_client_is_closed_when_its_task_is_cancelled() -> None:
    """Python would warn of a coroutine that nobody awaits."""
    go = loops.new_event()

    async def handler(call: ServerCall) -> JSONObject:
        await go.wait()
        return TEXT

    async with talking(handler, STREAM, legacy=True, running_tasks=1) as talk:
        first, second = await talk.begun(), await talk.begun()
        await talk.ask("tasks/cancel", {"taskId": second})
        go.set()
        await talk.ask("tasks/result", {"taskId": first})
        assert (await talk.get(second))["status"] == "cancelled"


@on_each_loop()
async def test_a_legacy_client_that_wants_too_many_tasks_is_refused() -> None:
    """The coroutine of its handler is closed, too."""

    async def handler(call: ServerCall) -> JSONObject:
        await loops.sleep_forever()
        return TEXT

    tasks = Tasks(entropy=Entropy(), max_tasks=1)
    async with talking(handler, STREAM, legacy=True, tasks=tasks) as talk:
        await talk.begun()
        answer = await talk.ask("tools/call", {"name": "t", "task": {}})
        assert answer["error"]["code"] == ErrorCode.INTERNAL_ERROR
