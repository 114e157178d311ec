"""Workers and Redis that are killed, paused and stopped in the middle: every call ends once."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Final

import httpx2
import pytest

from sansmcp_io.asyncio import PeerError
from tests.cluster.by_hand import Events, call
from tests.support.redis_server import running_redis
from tests.support.workers import (
    InTurn,
    bounded,
    client_of,
    initialized,
    named,
    running_workers,
    tool,
)

LEGACY: Final = "2025-11-25"
MODERN: Final = "2026-07-28"
LEASE: Final = "lease=2"


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that others do."""
    while not condition():
        await asyncio.sleep(0.02)


@bounded
async def test_calls_end_when_the_worker_that_serves_them_is_killed() -> None:
    """With the cause, within the time of a lease; the next ones open another session."""
    with running_redis() as redis, running_workers(redis.url, 2, LEASE) as workers:
        transport = InTurn(workers)
        async with client_of(transport, revisions=[LEGACY], get_stream=False) as client:
            pid = int(await tool(client, "pid"))
            owner = next(worker for worker in workers if worker.process.pid == pid)
            other = next(worker for worker in workers if worker is not owner)
            transport.pinned = other
            begun = time.monotonic()
            waiting = asyncio.create_task(tool(client, "wait", seconds=30))
            await asyncio.sleep(0.3)
            owner.kill()
            with pytest.raises(PeerError, match="has ended before it answered") as failure:
                await waiting
            assert failure.value.status == 503
            assert time.monotonic() - begun < 10
            assert await tool(client, "pid") == str(other.process.pid)


@bounded
async def test_what_was_stored_can_be_read_after_its_worker_was_killed() -> None:
    """To the end of what was sent; then, and for all else, the session does not exist."""
    with running_redis() as redis, running_workers(redis.url, 3, LEASE) as workers:
        async with httpx2.AsyncClient(timeout=20, trust_env=False) as http:
            session = await initialized(http, workers[0])
            body = call(1, "progress", steps=6, pause=0.1)
            async with http.stream(
                "POST", workers[1].url, json=body, headers=named(session)
            ) as response:
                events = Events(response)
                first = await events.next_message()
                last = first
                while json.loads(last["data"])["params"]["progress"] < 4:
                    last = await events.next_message()
                workers[0].kill()
                while await events.next():  # and the end of the stream
                    pass
            headers = named(session, **{"last-event-id": first["id"]})
            async with http.stream("GET", workers[2].url, headers=headers) as response:
                assert response.status_code == 200
                events = Events(response)
                seen: list[int] = []
                while event := await events.next():
                    seen.append(json.loads(event["data"])["params"]["progress"])
            assert seen[:3] == [2, 3, 4]
            for worker in workers[1:]:
                response = await http.post(worker.url, json=call(2, "pid"), headers=named(session))
                assert response.status_code == 404
            headers = named(session, **{"last-event-id": last["id"]}, authorization="bob")
            response = await http.get(workers[2].url, headers=headers)
            assert response.status_code == 404


@bounded
async def test_redis_that_is_killed_comes_back() -> None:
    """What needs it gets 503 with Retry-After, all else goes on, and no session is lost."""
    with running_redis() as redis, running_workers(redis.url, 2, LEASE) as workers:
        async with (
            httpx2.AsyncClient(timeout=20, trust_env=False) as http,
            client_of(InTurn(workers), revisions=[MODERN]) as modern,
        ):
            session = await initialized(http, workers[0])
            waiting = asyncio.create_task(
                http.post(workers[1].url, json=call(1, "wait", seconds=30), headers=named(session))
            )
            await asyncio.sleep(0.3)
            redis.kill()
            response = await waiting
            assert (response.status_code, "has been away" in response.text) == (503, True)
            for worker, status in zip(workers, (200, 503), strict=True):
                response = await http.post(worker.url, json=call(2, "pid"), headers=named(session))
                assert response.status_code == status
            assert response.headers["retry-after"] == "5"
            assert await tool(modern, "echo", text="on") == "on"
            redis.start()
            while response.status_code == 503:
                response = await http.post(
                    workers[1].url, json=call(3, "pid"), headers=named(session)
                )
                await asyncio.sleep(0.05)
            assert str(workers[0].process.pid) in response.text
        for worker in workers:
            worker.stop()
            lines = worker.ended().splitlines()
            assert sum("cannot be reached" in line for line in lines) == 1, lines
            assert sum("can be reached again" in line for line in lines) == 1, lines


@pytest.mark.parametrize("seconds", [0.5, 3.0])
@bounded
async def test_redis_that_is_paused_loses_no_session(seconds: float) -> None:
    """A short pause is a delay; a longer one ends the calls that are under way."""
    with running_redis() as redis, running_workers(redis.url, 2, LEASE) as workers:
        async with httpx2.AsyncClient(timeout=20, trust_env=False) as http:
            session = await initialized(http, workers[0])
            response = await http.post(workers[1].url, json=call(1, "pid"), headers=named(session))
            redis.pause()
            waiting = asyncio.create_task(
                http.post(workers[1].url, json=call(2, "pid"), headers=named(session))
            )
            await asyncio.sleep(seconds)
            redis.go_on()
            response = await waiting
            assert response.status_code == 200 or seconds > 1
            while response.status_code == 503:
                await asyncio.sleep(0.05)
                response = await http.post(
                    workers[1].url, json=call(3, "pid"), headers=named(session)
                )
            assert str(workers[0].process.pid) in response.text


@bounded
async def test_a_worker_that_is_paused_for_long_counts_as_dead_and_comes_back() -> None:
    """Its calls end meanwhile, and those that it had not begun are not served later."""
    with running_redis() as redis, running_workers(redis.url, 2, LEASE) as workers:
        async with httpx2.AsyncClient(timeout=20, trust_env=False) as http:
            session = await initialized(http, workers[0])
            response = await http.post(
                workers[1].url, json=call(1, "calls"), headers=named(session)
            )
            assert response.status_code == 200
            workers[0].pause()
            response = await http.post(workers[1].url, json=call(2, "pid"), headers=named(session))
            assert response.status_code == 503
            response = await http.post(workers[1].url, json=call(3, "pid"), headers=named(session))
            assert response.status_code == 404
            workers[0].go_on()
            while response.status_code != 200:
                response = await http.post(
                    workers[1].url, json=call(4, "calls"), headers=named(session)
                )
                await asyncio.sleep(0.05)
            assert '"text":"2"' in response.text.replace(" ", "")


@bounded
async def test_a_worker_whose_handler_blocks_the_loop_is_alive() -> None:
    """The lease is renewed by a thread: its sessions wait, as those of one process would."""
    with running_redis() as redis, running_workers(redis.url, 2, LEASE) as workers:
        async with httpx2.AsyncClient(timeout=20, trust_env=False) as http:
            session = await initialized(http, workers[0])
            blocking = asyncio.create_task(
                http.post(
                    workers[0].url, json=call(1, "block", seconds=2.5), headers=named(session)
                )
            )
            await asyncio.sleep(0.3)
            response = await http.post(workers[1].url, json=call(2, "pid"), headers=named(session))
            assert response.status_code == 200
            assert (await blocking).status_code == 200


@pytest.mark.parametrize("how", ["asgi", "asyncio", "trio"])
@bounded
async def test_a_worker_that_is_stopped_in_order_finishes_first(how: str) -> None:
    """What it serves for others, and what others serve for it; then it is gone at once."""
    with (
        running_redis() as redis,
        running_workers(redis.url, 2, LEASE, how=how) as workers,
        running_workers(redis.url, 1, LEASE) as others,
    ):
        async with httpx2.AsyncClient(timeout=20, trust_env=False) as http:
            owner, asker = workers
            session = await initialized(http, owner)
            away = await initialized(http, others[0])
            serving = asyncio.create_task(
                http.post(others[0].url, json=call(1, "wait", seconds=1.0), headers=named(session))
            )
            asking = asyncio.create_task(
                http.post(asker.url, json=call(1, "wait", seconds=1.0), headers=named(away))
            )
            await asyncio.sleep(0.3)
            owner.stop()
            asker.stop()
            assert "waited" in (await serving).text
            assert "waited" in (await asking).text
            assert owner.ended() == asker.ended() == ""
            response = await http.post(others[0].url, json=call(2, "pid"), headers=named(session))
            assert response.status_code == 404
            assert len([key for key in redis.keys if "lease" in key or "inbox" in key]) == 2


@bounded
async def test_nothing_is_left_in_redis_beyond_its_time() -> None:
    """Workers that are killed take nothing with them: all keys expire."""
    with (
        running_redis() as redis,
        running_workers(redis.url, 2, "lease=0.5", "keep_events=1") as workers,
    ):
        async with httpx2.AsyncClient(timeout=20, trust_env=False) as http:
            session = await initialized(http, workers[0])
            response = await http.post(
                workers[1].url, json=call(1, "progress", steps=2), headers=named(session)
            )
            assert response.status_code == 200
            assert [key.split(":")[2] for key in redis.keys] == [
                *("events", "inbox", "inbox", "lease", "lease")
            ]
        with redis.client() as client:
            assert all(0 < client.pttl(key) <= 3_600_000 for key in redis.keys)
        for worker in workers:
            worker.kill()
        await until(lambda: not redis.keys)
