"""Tasks of real workers that are killed, stopped and paused, and a Redis that goes away."""

import asyncio
import inspect
import itertools
import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final

import httpx2
import pytest

from sansmcp import JSONObject
from tests.support.redis_server import RedisServer, running_redis
from tests.support.task_caller import Caller, text_of
from tests.support.workers import Place, Worker, bounded, running_workers

LEASE: Final = "lease=1"


@pytest.fixture
def redis() -> Generator[RedisServer, None, None]:
    """A Redis for one test."""
    with running_redis() as server:
        yield server


def calling(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test with a client, and with its fixtures."""

    async def run(**fixtures: Any) -> None:
        async with httpx2.AsyncClient(timeout=30, trust_env=False) as http:
            await test(Caller(http), **fixtures)

    ready = bounded(run)
    wanted = inspect.signature(test)
    names = [one for name, one in wanted.parameters.items() if name != "caller"]
    ready.__name__ = test.__name__
    ready.__doc__ = test.__doc__
    ready.__signature__ = wanted.replace(parameters=names)  # type: ignore[attr-defined]
    return ready


@calling
async def test_any_worker_of_any_kind_answers_for_a_task(
    caller: Caller, redis: RedisServer
) -> None:
    """Below uvicorn, on asyncio, and on trio."""
    with (
        running_workers(redis.url, 1) as below_uvicorn,
        running_workers(redis.url, 1, how="asyncio") as on_asyncio,
        running_workers(redis.url, 1, how="trio") as on_trio,
    ):
        workers = [*below_uvicorn, *on_asyncio, *on_trio]
        for one, other in itertools.permutations(workers, 2):
            task = await caller.begin(one, "done", 0.1)
            assert text_of(await caller.until(other, task, "completed")) == "done"
            task = await caller.begin(one, "never", 60)
            assert "result" in await caller.ask(other, "tasks/cancel", {"taskId": task})
            assert (await caller.until(one, task, "cancelled"))["taskId"] == task


@calling
async def test_results_outlive_a_worker_that_is_killed(caller: Caller, redis: RedisServer) -> None:
    """Its running tasks fail, with the cause, within about a lease."""
    with running_workers(redis.url, 2, LEASE) as (one, other):
        done = await caller.begin(one, "kept", 0)
        await caller.until(other, done, "completed")
        running = await caller.begin(one, "lost", 60)
        one.kill()
        begun = time.monotonic()
        failed = await caller.until(other, running, "failed")
        assert time.monotonic() - begun < 10
        assert "has ended" in failed["error"]["message"]
        assert text_of((await caller.get(other, done))["result"]) == "kept"


@pytest.fixture
def ledger() -> Generator[RedisServer, None, None]:
    """A Redis that counts the runs of tasks."""
    with running_redis() as server:
        yield server


@pytest.mark.parametrize("ends", [Worker.kill, Worker.stop])
@calling
async def test_a_task_that_may_restart_is_done_by_one_other_worker(
    caller: Caller, redis: RedisServer, ledger: RedisServer, ends: Callable[[Worker], None]
) -> None:
    """Of several workers that could take it over, one does: below uvicorn, on asyncio, on trio."""
    options = (LEASE, "drain=0.2")
    with (
        running_workers(redis.url, 1, *options) as below_uvicorn,
        running_workers(redis.url, 1, *options, how="asyncio") as on_asyncio,
        running_workers(redis.url, 1, *options, how="trio") as on_trio,
    ):
        workers = [*below_uvicorn, *on_asyncio, *on_trio]
        count = 1
        more: JSONObject = {"ledger": ledger.port, "may_restart": True}
        while workers:
            worker = workers.pop()
            tasks = [await caller.begin(worker, f"{count}.{n}", 60, **more) for n in range(8)]
            other = await caller.begin(worker, "lost", 60)
            await until_noted(ledger, count, 8)
            ends(worker)
            if not workers:
                break
            for number, task in enumerate(tasks):
                found = await caller.until(workers[0], task, "completed")
                assert text_of(found) == f"{count}.{number}  2"
            await caller.until(workers[0], other, "failed")
            if ends is Worker.stop:
                assert "Traceback" not in await asyncio.to_thread(worker.ended)
            count += 1


async def until_noted(ledger: RedisServer, count: int, most: int) -> None:
    """Wait until the work on these tasks has begun."""
    with ledger.client() as client:
        while True:
            noted = await asyncio.to_thread(client.hkeys, "calls")
            if sum(key.startswith(b"%d." % count) for key in noted) == most:
                return
            await asyncio.sleep(0.02)


@calling
async def test_a_restarted_task_has_its_request_its_principal_and_its_answers(
    caller: Caller, redis: RedisServer, ledger: RedisServer
) -> None:
    """The client is not asked again: not for the answer that it gave, nor for the open one."""
    anna = {"authorization": "anna"}
    arguments: JSONObject = {
        "text": "said",
        "seconds": 0,
        "asks": ["first", "second"],
        "ledger": ledger.port,
        "may_restart": True,
    }
    with (
        running_workers(redis.url, 1, LEASE) as (one,),
        running_workers(redis.url, 1, LEASE, how="trio") as (other,),
    ):
        call: JSONObject = {"name": "task", "arguments": arguments}
        begun = await caller.ask(one, "tools/call", call, **anna)
        about: JSONObject = {"taskId": begun["result"]["taskId"]}

        async def asked(worker: Place, key: str) -> None:
            while True:
                found = (await caller.ask(worker, "tasks/get", about, **anna))["result"]
                if list(found.get("inputRequests", ())) == [key]:
                    return
                assert found["status"] in ("working", "input_required")

        async def answer(worker: Place, key: str) -> None:
            accepted = {"action": "accept", "content": {"name": f"{key} answer"}}
            params = {**about, "inputResponses": {key: accepted}}
            assert "result" in await caller.ask(worker, "tasks/update", params, **anna)

        await asked(one, "first")
        await answer(one, "first")
        await asked(one, "second")
        one.kill()
        await asyncio.to_thread(one.process.wait)
        await until_taken(redis)
        await asked(other, "second")
        await answer(other, "second")
        found: Any = {"status": "working"}
        while found["status"] == "working":
            found = (await caller.ask(other, "tasks/get", about, **anna))["result"]
        assert text_of(found) == "said first answer second answer anna 1"
        assert caller_is_refused(await caller.ask(other, "tasks/get", about))


async def until_taken(redis: RedisServer) -> None:
    """Wait until work on the one task was begun a second time."""
    with redis.client() as client:
        (key,) = [one for one in redis.keys if ":task:" in one]
        while await asyncio.to_thread(client.hget, key, "c") != b"2":
            await asyncio.sleep(0.02)


def caller_is_refused(answer: Any) -> bool:
    """Whether the task does not exist for another principal."""
    code: int = answer["error"]["code"]
    return code == -32602


@calling
async def test_tasks_outlive_a_restart_of_all_workers(caller: Caller, redis: RedisServer) -> None:
    """No worker is left for a while; those that are started later answer, and clean up."""
    with running_workers(redis.url, 2, LEASE) as workers:
        done = await caller.begin(workers[0], "kept", 0)
        await caller.until(workers[1], done, "completed")
        tasks = [await caller.begin(worker, "lost", 60) for worker in workers]
        for worker in workers:
            worker.stop()
        for worker in workers:
            assert "Traceback" not in await asyncio.to_thread(worker.ended)
    with running_workers(redis.url, 1, LEASE) as (worker,):
        assert text_of((await caller.get(worker, done))["result"]) == "kept"
        for task in tasks:
            await caller.until(worker, task, "failed")


@calling
async def test_work_goes_on_while_redis_is_away(caller: Caller, redis: RedisServer) -> None:
    """Polls get an error, and the result is there when Redis is back, even one without its data."""
    with running_workers(redis.url, 2, LEASE) as (one, other):
        task = await caller.begin(one, "done", 2)
        redis.kill()
        assert (await caller.get(one, task))["error"]["code"] == -32603
        begun = await caller.ask(
            one, "tools/call", {"name": "task", "arguments": {"text": "", "seconds": 1}}
        )
        assert begun["error"]["code"] == -32603
        await asyncio.sleep(2.5)  # the result comes meanwhile, which no response shows
        redis.start()
        result = await until_known(caller, other, task)
        assert text_of(result) == "done"


async def until_known(caller: Caller, worker: Place, task: str) -> Any:
    """The task, once it is completed; until then Redis may be away, or may not have it yet."""
    while (await caller.get(worker, task)).get("result", {}).get("status") != "completed":
        await asyncio.sleep(0.05)
    return (await caller.get(worker, task))["result"]


@calling
async def test_a_redis_that_does_not_answer_holds_no_request_for_long(
    caller: Caller, redis: RedisServer
) -> None:
    """It is paused: each request has a complete response after a few seconds."""
    with running_workers(redis.url, 1, LEASE) as (worker,):
        task = await caller.begin(worker, "done", 60)
        redis.pause()
        begun = time.monotonic()
        assert (await caller.get(worker, task))["error"]["code"] == -32603
        assert time.monotonic() - begun < 8
        redis.go_on()
        await caller.until(worker, task, "working")


@calling
async def test_nothing_is_left_in_redis_after_the_time_of_tasks(
    caller: Caller, redis: RedisServer
) -> None:
    """Redis removes them by itself, also when all workers are gone."""
    with running_workers(redis.url, 1, LEASE) as (worker,):
        for text in ("a", "b"):
            await caller.begin(worker, text, 0, ttl_ms=1500)
        await caller.begin(worker, "c", 60, ttl_ms=1500)
        assert [key for key in redis.keys if ":task:" in key]
        worker.kill()
    while left := [key for key in redis.keys if not key.endswith(("changes", "count"))]:
        assert left
        await asyncio.sleep(0.1)


@calling
async def test_no_finished_result_is_lost_while_workers_are_killed(
    caller: Caller, redis: RedisServer
) -> None:
    """Each task that a client has seen as completed is completed for ever; each other one ends."""
    ended: dict[str, str] = {}
    with running_workers(redis.url, 3, LEASE) as workers:
        places: list[Worker] = list(workers)
        try:
            for round_of in range(4):
                tasks = {
                    await caller.begin(worker, f"{number}", 0.02 * number): f"{number}"
                    for number, worker in enumerate(places * 8)
                }
                victim = round_of % 3
                places[victim].kill()
                alive = [one for one in places if one is not places[victim]]
                for number, (task, text) in enumerate(tasks.items()):
                    found: Any = {"status": "working"}
                    while found["status"] == "working":
                        found = (await caller.get(alive[number % 2], task))["result"]
                        await asyncio.sleep(0.01)
                    ended[task] = found["status"]
                    if found["status"] == "completed":
                        assert text_of(found) == text
                places[victim].close()
                places[victim] = Worker(redis.url, LEASE)
                await asyncio.to_thread(places[victim].wait)
            for task, status in ended.items():
                for worker in places:
                    assert (await caller.get(worker, task))["result"]["status"] == status
        finally:
            for worker in places:
                worker.close()
    assert set(ended.values()) == {"completed", "failed"}
