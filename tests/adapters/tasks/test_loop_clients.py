"""Clients that follow tasks of the server, on asyncio and trio, over stdio, h11 and httpx2."""

import gc
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import Any

import attrs
import httpx2
import pytest

import sansmcp_io.asyncio
import sansmcp_io.trio
from sansmcp import FailureReason, JSONObject, LocalProtocolError, Tasks
from sansmcp_io.trio import (
    Call,
    Client,
    ClientTask,
    ConnectionLost,
    InvalidAnswer,
    McpError,
    PeerError,
    RequestTimeout,
    TaskCancelledError,
    TaskLost,
)
from tests.support.adapters import loops
from tests.support.adapters.loops import STANDARD_LOOPS, on_each_loop
from tests.support.adapters.task_talk import Endings
from tests.support.http.on_loops import connect_http, serving
from tests.support.modern import LEGACY, MODERN
from tests.support.processes import ROOT
from tests.support.programs.task_tools import SETTINGS, Tools, text

STDIO, H11, HTTPX = "stdio", "h11", "httpx"
each_transport = pytest.mark.parametrize("transport", [STDIO, H11, HTTPX])
each_revision = pytest.mark.parametrize("revision", [MODERN, LEGACY])
on_loops = on_each_loop(loops=STANDARD_LOOPS)
CAPABILITIES: JSONObject = {"elicitation": {"form": {}}, "roots": {}}
SERVER = [sys.executable, "-m", "tests.support.programs.task_tools"]


async def answer(call: Call) -> JSONObject:
    """A user who has one root, and gives a name."""
    await loops.checkpoint()
    if call.method == "roots/list":
        return {"roots": [{"uri": "file:///a"}]}
    return {"action": "accept", "content": {"name": "Ann"}}


def somebody(head: object) -> str:
    """The principal of all clients."""
    return "somebody"


@attrs.frozen
class Talk:
    """A client, and its server.

    Attributes:
        client: The client.
        url: Where the server is reached, over HTTP.
    """

    client: Client
    url: str = ""

    def call(self, name: str, **more: Any) -> Awaitable[Any]:
        params: JSONObject = {"name": name, "arguments": more.pop("arguments", {})}
        result: Awaitable[Any] = self.client.request("tools/call", params, **more)
        return result

    async def said(self, name: str, **more: Any) -> str:
        result = await self.call(name, **more)
        said: str = result["content"][0]["text"]
        return said

    async def start(self, name: str, **more: Any) -> ClientTask:
        params: JSONObject = {"name": name, "arguments": more.pop("arguments", {})}
        task: ClientTask = await self.client.start_task("tools/call", params, **more)
        return task

    async def until_seen(self, *wanted: str) -> None:
        """Wait until the server has seen this."""
        while await self.said("see") != str(list(wanted)):
            await loops.sleep(0.01)


@asynccontextmanager
async def talking(
    transport: str, revision: str = MODERN, **options: Any
) -> AsyncGenerator[Talk, None]:
    settings: dict[str, Any] = {
        "info": {"name": "test", "version": "1.0"},
        "revisions": (revision,),
        "capabilities": CAPABILITIES,
        "on_request": answer,
        **options,
    }
    if transport == STDIO:
        adapter: Any = sansmcp_io.trio if loops.is_trio() else sansmcp_io.asyncio
        async with adapter.connect_stdio(SERVER, cwd=ROOT, **settings) as client:
            yield Talk(client)
        return
    known: dict[str, Any] = {"authenticate": somebody, "principal_key": str}
    async with serving(Tools(), **SETTINGS, **known) as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        if transport == H11:
            async with connect_http(url, **settings) as client:
                yield Talk(client, url)
        else:
            async with (
                httpx2.AsyncClient() as http,
                connect_http(url, http=http, **settings) as client,
            ):
                yield Talk(client, url)


# ---------------------------------------------------------------------------- `request`


@each_revision
@each_transport
@on_loops
async def test_a_request_for_a_task_returns_the_result(transport: str, revision: str) -> None:
    """A caller must not see whether the server has made a task of its request."""
    async with talking(transport, revision) as talk:
        assert await talk.said("nap", task=True) == "rested"
        assert await talk.said("nap", task=5.5) == "rested"
        assert await talk.said("ask", task=True) == "['Ann', 'Ann'] 1"
        with pytest.raises(PeerError) as caught:
            await talk.call("say", task=True)
        assert (caught.value.code, caught.value.data) == (-32001, {"seats": 0})


@on_loops
async def test_a_task_may_follow_questions_about_its_request() -> None:
    """The rounds of a request come before its task."""
    async with talking(H11) as talk:
        assert await talk.said("first", task=True) == "rested"
        task = await talk.start("first")
        assert task.status == "working"
        assert (await task.result())["content"] == text("rested")["content"]


@each_revision
@each_transport
@on_loops
async def test_progress_comes_as_for_any_request(transport: str, revision: str) -> None:
    """In 2025-11-25 under the token of the request. In 2026-07-28 there is none for tasks."""
    told: list[Any] = []

    def note(*progress: Any) -> None:
        told.append(progress)

    async with talking(transport, revision) as talk:
        task = await talk.start("wait", on_progress=note)
        await talk.until_seen("began")
        await talk.call("go")
        assert (await task.result())["content"] == text("waited")["content"]
    assert told == ([(1, 2, "half"), (2, 2, "done")] if revision == LEGACY else [])


@each_revision
@each_transport
@on_loops
async def test_a_cancelled_caller_cancels_its_task(transport: str, revision: str) -> None:
    """Work for nobody must not go on at the server."""
    async with talking(transport, revision) as talk:
        async with loops.open_nursery() as nursery:
            nursery.start_soon(partial(talk.call, "wait", task=True))
            await talk.until_seen("began")
            nursery.cancel()
        await talk.until_seen("began", "cancelled")


@each_revision
@on_loops
async def test_a_task_that_takes_longer_than_its_time_is_cancelled(revision: str) -> None:
    """`max_timeout` is for the task, too; the time between two polls does not count as silence."""
    async with talking(H11, revision) as talk:
        with pytest.raises(RequestTimeout, match="in the time allowed"):
            await talk.call("wait", task=True, max_timeout=0.3)
        await talk.until_seen("began", "cancelled")
        await talk.call("go")
        assert (
            await talk.said("nap", arguments={"poll_ms": 700}, task=True, timeout=0.5) == "rested"
        )


@pytest.mark.parametrize("task", [0, -1.0, float("inf"), float("nan"), "1"])
@on_loops
async def test_a_time_to_live_is_a_number_above_zero(task: Any) -> None:
    """Nothing is sent."""
    async with talking(H11) as talk:
        with pytest.raises(ValueError, match="task is True, or a number of seconds above zero"):
            await talk.call("nap", task=task)


@on_loops
async def test_tasks_are_turned_off() -> None:
    """A program that has an extension of the same name needs that."""
    async with talking(H11, tasks=False) as talk:
        with pytest.raises(LocalProtocolError, match="tasks are not turned on"):
            await talk.call("nap", task=True)
        assert await talk.said("echo") == "plain"


# ---------------------------------------------------------------------------- `start_task`


@each_revision
@each_transport
@on_loops
async def test_a_task_is_followed_by_its_handle(transport: str, revision: str) -> None:
    """What the server tells of it, until its result is there."""
    async with talking(transport, revision) as talk:
        task = await talk.start("wait", task=60)
        assert (task.method, task.status, task.open) == ("tools/call", "working", True)
        assert task.id is not None
        assert repr(task) == "<ClientTask tools/call working>"
        with pytest.raises(TimeoutError, match="is not over after"):
            await task.result(timeout=0.01)
        seen: list[tuple[str, str | None]] = []
        async for update in task.updates():
            seen.append((update.status, update.message))
            assert update.task["taskId"] == task.id
            if update.message == "half":
                assert task.message == "half"
                await talk.call("go")
        assert seen[-2:] == [("working", "half"), ("completed", None)]
        assert (task.status, task.message, task.open) == ("completed", None, False)
        for timeout in (None, 5):  # as often as it is wanted
            assert (await task.result(timeout=timeout))["content"] == text("waited")["content"]
        assert not await task.cancel()
        assert [update.status async for update in task.updates()] == ["completed"]


@on_loops
async def test_a_handle_has_the_result_of_a_server_that_makes_no_task() -> None:
    """The server decides (2026-07-28)."""
    async with talking(H11) as talk:
        task = await talk.start("echo")
        assert (task.id, task.status, task.message, task.open) == (None, "completed", None, False)
        assert (await task.result())["content"] == text("plain")["content"]
        assert [update async for update in task.updates()] == []
        assert not await task.cancel()
        with pytest.raises(PeerError):
            await talk.client.start_task("tools/unknown", task=False)


@each_revision
@on_loops
async def test_failures_have_one_exception_each(revision: str) -> None:
    """A caller has to know whether to begin again, and what to say."""
    async with talking(H11, revision) as talk:
        failed = await talk.start("say")
        with pytest.raises(PeerError, match="no room"):
            await failed.result()
        assert (failed.status, failed.open) == ("failed", False)

        cancelled = await talk.start("wait")
        assert cancelled.id is not None
        await talk.client.request("tasks/cancel", {"taskId": cancelled.id})
        with pytest.raises(TaskCancelledError, match="the server has cancelled the task"):
            await cancelled.result()
        assert cancelled.status == "cancelled"

        expired = await talk.start("wait", arguments={"ttl_ms": 20})
        with pytest.raises(TaskLost, match="its time to live is over"):
            await expired.result()
        assert expired.status == "working"

        with pytest.raises(TaskLost, match="the task is not known"):
            await talk.client.resume_task("unknown")

        slow = await talk.start("wait", max_timeout=0.2)
        with pytest.raises(RequestTimeout):
            await slow.result()


@each_revision
@each_transport
@on_loops
async def test_a_task_is_cancelled_by_its_handle(transport: str, revision: str) -> None:
    """It ends here at once, for all that wait for it."""
    async with talking(transport, revision) as talk:
        task = await talk.start("wait")
        await talk.until_seen("began")
        waited: list[str] = []

        async def wait() -> None:
            with pytest.raises(TaskCancelledError) as caught:
                await task.result()
            waited.append(str(caught.value))

        async with loops.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(wait)
            await loops.checkpoint()
            assert await task.cancel(reason="enough")
        assert waited == ["this side has cancelled the task of tools/call"] * 2
        assert (task.status, await task.cancel()) == ("cancelled", False)
        await talk.until_seen("began", "cancelled")


@on_loops
async def test_a_cancelled_wait_leaves_the_task_alone() -> None:
    """A handle outlives its callers; but a caller of `start_task` has no handle yet."""
    async with talking(STDIO) as talk:
        task = await talk.start("wait")
        async with loops.move_on_after(0.02):
            await task.result()
        async with loops.move_on_after(0.02):
            async for _ in task.updates():
                pass
        assert task.open
        await talk.call("go")
        assert (await task.result())["content"] == text("waited")["content"]


@on_loops
async def test_a_dropped_handle_leaves_nothing_behind() -> None:
    """Polls for nobody would go on as long as the task; and the task may be resumed elsewhere."""
    ended = Endings()
    async with talking(H11, trace=ended) as talk:
        task = await talk.start("wait")
        task_id = task.id
        assert task_id is not None
        assert ended.reasons == []
        del task
        gc.collect()
        while not ended.reasons:
            await loops.checkpoint()
        assert ended.reasons == [FailureReason.CANCELLED]
        again = await talk.client.resume_task(task_id)
        await talk.call("go")
        assert (await again.result())["content"] == text("waited")["content"]
        assert await talk.said("see") == "['began']"


# ---------------------------------------------------------------------------- `resume_task`


@each_revision
@on_loops
async def test_a_task_is_resumed_by_another_client(revision: str) -> None:
    """The id is all that is needed; over HTTP the task outlives the client that has started it."""
    async with talking(H11, revision) as talk:
        settings: dict[str, Any] = {"info": {"name": "other", "version": "1"}, "on_request": answer}
        settings |= {"revisions": (revision,), "capabilities": CAPABILITIES}
        async with connect_http(talk.url, **settings) as other:
            task = await other.start_task("tools/call", {"name": "wait", "arguments": {}})
            task_id = task.id
            assert task_id is not None
        with pytest.raises(ConnectionLost):
            await task.result()
        resumed = await talk.client.resume_task(task_id, timeout=30, max_timeout=60)
        with pytest.raises(LocalProtocolError, match="followed already"):
            await talk.client.resume_task(task_id)
        assert (resumed.id, resumed.status) == (task_id, "working")
        await talk.call("go")
        assert (await resumed.result())["content"] == text("waited")["content"]
        over = await talk.client.resume_task(task_id)
        assert (over.status, over.id) == ("completed", task_id)
        assert (await over.result())["content"] == text("waited")["content"]


@on_loops
async def test_a_cancelled_resumption_does_not_cancel_the_task() -> None:
    """It belongs to whoever has its id."""
    async with talking(H11) as talk:
        task = await talk.start("wait")
        info = {"name": "other", "version": "1"}
        async with (
            connect_http(talk.url, info=info, revisions=(MODERN,)) as other,
            loops.open_nursery() as nursery,
        ):
            nursery.start_soon(other.resume_task, task.id)
            nursery.cancel()
        await talk.call("go")
        assert (await task.result())["content"] == text("waited")["content"]


# ---------------------------------------------------------------------------- questions


@each_revision
@each_transport
@on_loops
async def test_questions_of_a_task_go_to_on_request(transport: str, revision: str) -> None:
    """While no caller waits for the task, too; the answers may be any mappings or objects."""
    asked: list[str] = []

    async def note(call: Call) -> Mapping[str, object]:
        asked.append(call.method)
        return MappingProxyType(await answer(call))

    async with talking(transport, revision, on_request=note) as talk:
        task = await talk.start("ask")
        while len(asked) < 3:
            await loops.sleep(0.01)
        assert (await task.result())["content"] == text("['Ann', 'Ann'] 1")["content"]
    assert sorted(asked) == ["elicitation/create"] * 2 + ["roots/list"]


@pytest.mark.parametrize("answers", [McpError(-32001, "not here"), ValueError("x"), object()])
@on_loops
async def test_a_question_without_an_answer_ends_the_task(answers: Any) -> None:
    """The server would wait for it until the end of the task."""

    async def fail(call: Call) -> Any:
        await loops.checkpoint()
        if isinstance(answers, Exception):
            raise answers
        return answers

    async with talking(H11, on_request=fail) as talk:
        said = "not here" if isinstance(answers, McpError) else "internal error"
        with pytest.raises(McpError, match=said):
            await talk.call("ask", task=True)
        task = await talk.start("ask")
        for _ in range(2):
            with pytest.raises(McpError, match=said):
                await task.result()
        assert (task.status, task.open) == ("cancelled", False)
        await talk.until_seen("not answered", "not answered")


@on_loops
async def test_an_answer_is_dropped_with_its_task() -> None:
    """A user who is still asked must learn that the answer is not wanted any more."""
    seen: list[str] = []

    async def hang(call: Call) -> JSONObject:
        seen.append("asked")
        try:
            await loops.sleep_forever()
        finally:
            seen.append("dropped")
        return {}

    async with talking(H11, on_request=hang) as talk:
        task = await talk.start("ask")
        while len(seen) < 2:
            await loops.sleep(0.01)
        assert await task.cancel()
        while len(seen) < 4:
            await loops.checkpoint()
        other = await talk.start("ask")
        while len(seen) < 6:
            await loops.sleep(0.01)
    with pytest.raises(ConnectionLost):
        await other.result()
    assert sorted(seen) == ["asked"] * 4 + ["dropped"] * 4


@on_loops
async def test_more_questions_than_the_limit_end_the_task() -> None:
    """`Tasks.max_questions`."""
    async with talking(H11, tasks=Tasks(entropy=os.urandom, max_questions=2)) as talk:
        with pytest.raises(InvalidAnswer, match="has asked 2 questions"):
            await talk.call("ask", task=True)


@on_loops
async def test_an_exception_of_on_progress_ends_the_task() -> None:
    """As it ends a request; in 2026-07-28 there is no progress of tasks."""

    def fail(progress: float, total: float | None, message: str | None) -> None:
        if progress == 2:
            raise RuntimeError("no more")

    async with talking(H11, LEGACY) as talk:
        task = await talk.start("wait", on_progress=fail)
        await talk.call("go")
        with pytest.raises(RuntimeError, match="no more"):
            await task.result()
        assert task.status == "cancelled"
