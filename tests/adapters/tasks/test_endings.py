"""Tasks when a client leaves, and when a server ends, on asyncio and trio."""

import asyncio
from typing import Any

import pytest
import trio

from sansmcp import ErrorCode, JSONObject
from sansmcp_io.trio import CreateTask, RunningTask
from tests.adapters.tasks.test_loops import Slow, until
from tests.support.adapters import loops
from tests.support.adapters.loops import on_each_loop
from tests.support.adapters.task_talk import (
    HTTP,
    STREAM,
    TEXT,
    TaskTalk,
    headers_of,
    post_to,
    talking,
)
from tests.support.http import on_loops
from tests.support.http.h11_client import posted

ENDED = {"code": ErrorCode.INTERNAL_ERROR, "message": "the server has ended before the task"}


async def follow(http: on_loops.Talk, talk: TaskTalk, task_id: str) -> None:
    """Subscribe to a task on a connection of its own."""
    message = talk.request("subscriptions/listen", {"notifications": {"taskIds": [task_id]}})
    await http.send(posted(message, headers_of(message)))
    await http.receive_head()
    assert (await http.message())["params"]["notifications"] == {"taskIds": [task_id]}


@on_each_loop()
async def test_a_task_outlives_the_connection_of_its_client() -> None:
    """The client may be gone for hours, and fetch the result then."""
    slow = Slow()
    async with talking(slow, HTTP) as talk:
        async with on_loops.talking(talk.server) as http:
            message = talk.request("tools/call", {"name": "t"})
            task_id = (await post_to(http, message))["result"]["taskId"]
        await until(lambda: slow.began)
        slow.go.set()
        assert (await talk.over(task_id))["result"]["content"] == TEXT["content"]


@on_each_loop()
async def test_a_server_over_http_waits_for_tasks_when_it_ends() -> None:
    """`drain` seconds are theirs, too: subscriptions tell of the result."""
    slow = Slow()
    async with talking(slow, HTTP, drain=60) as talk:
        task_id = await talk.begun()
        async with on_loops.talking(talk.server) as http:
            await follow(http, talk, task_id)
            talk.server.close()
            await loops.sleep(0.01)
            assert slow.cancelled == 0
            slow.go.set()
            told = await http.message()
            assert (told["method"], told["params"]["status"]) == (
                "notifications/tasks",
                "completed",
            )


@on_each_loop()
async def test_tasks_that_are_not_done_in_time_fail_with_the_reason() -> None:
    """A client that is told nothing would poll a server that is not there."""
    slow = Slow()
    async with talking(slow, HTTP, running_tasks=1) as talk:
        task_id, waiting = await talk.begun(), await talk.begun()
        async with (
            on_loops.talking(talk.server) as http,
            on_loops.talking(talk.server) as other,
        ):
            await follow(http, talk, task_id)
            await follow(other, talk, waiting)
            talk.server.close()
            for stream in (http, other):
                params = (await stream.message())["params"]
                assert (params["status"], params["error"]) == ("failed", ENDED)
            await until(lambda: slow.cancelled)
            assert slow.began == 1


@pytest.mark.parametrize("drain", [60.0, 0.001])
@on_each_loop()
async def test_the_end_of_a_stream_leaves_time_for_results_that_are_waited_for(
    drain: float,
) -> None:
    """`tasks/result` is a request that was read before the end."""
    slow = Slow()
    async with talking(slow, STREAM, legacy=True, drain=drain) as talk:
        task_id = await talk.begun()
        assert talk.lines is not None
        assert talk.close is not None
        message = talk.request("tasks/result", {"taskId": task_id})
        await talk.lines.send(message)
        await talk.close()
        if drain > 1:
            slow.go.set()
        answer = await talk.response(message["id"])
        if drain > 1:
            assert answer["result"]["content"] == TEXT["content"]
        else:
            assert answer["error"] == ENDED
            await until(lambda: slow.cancelled)


@on_each_loop()
async def test_the_end_of_a_stream_cancels_tasks_for_which_nobody_waits() -> None:
    """Nobody can come back for their results."""
    slow = Slow()
    async with talking(slow, STREAM, drain=60) as talk:
        await talk.begun()
        await until(lambda: slow.began)
        assert talk.close is not None
        await talk.close()
        await until(lambda: slow.cancelled)


@pytest.mark.parametrize("transport", [HTTP, STREAM])
@on_each_loop()
async def test_work_may_end_the_program(transport: str, caplog: pytest.LogCaptureFixture) -> None:
    """As a handler may: `sys.exit` must not be taken for an error of one task."""

    async def work(task: RunningTask) -> JSONObject:
        await loops.checkpoint()
        # asyncio itself would raise a bare SystemExit out of the test.
        raise BaseExceptionGroup("of a nursery", [SystemExit(3)])

    async def until_the_end() -> None:
        async with talking(lambda call: CreateTask(work), transport) as talk:
            await talk.begun()
            await loops.sleep_forever()

    with pytest.raises(BaseExceptionGroup) as caught:
        await until_the_end()
    assert caught.group_contains(SystemExit)
    assert "SystemExit(3)]), which ends the program" in caplog.text


@pytest.mark.parametrize("transport", [HTTP, STREAM])
@on_each_loop()
async def test_work_that_cancels_itself_fails(transport: str) -> None:
    """Else its client would poll until the time to live is over."""

    async def work(task: RunningTask) -> Any:
        if not loops.is_trio():
            raise asyncio.CancelledError
        kept: list[BaseException] = []
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled as error:
                kept.append(error)
        raise kept[0]

    async with talking(lambda call: CreateTask(work), transport) as talk:
        error = (await talk.over(await talk.begun()))["error"]
        assert error["code"] == ErrorCode.INTERNAL_ERROR
