"""Workers and Redis that are killed, paused and stopped in the middle: every call ends once."""

import asyncio
import itertools
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
    Place,
    Worker,
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


async def status_of(http: httpx2.AsyncClient, worker: Place, session: str) -> int:
    """The status of a call, once it is known which workers live."""
    while True:
        response = await http.post(worker.url, json=call(9, "pid"), headers=named(session))
        if response.status_code != 503:
            return response.status_code
        assert response.headers["retry-after"] == "5"
        await asyncio.sleep(0.05)


@bounded
async def test_what_is_left_of_a_worker_that_was_killed() -> None:
    """Calls end with the cause, within the time of a lease, and the next ones open another session.

    What was stored is read to the end of what was sent; for all else, the session does not exist.
    """
    with running_redis() as redis, running_workers(redis.url, 3, LEASE) as workers:
        transport = InTurn(workers[:1])
        async with (
            httpx2.AsyncClient(timeout=60, trust_env=False) as http,
            client_of(transport, revisions=[LEGACY], get_stream=False) as client,
        ):
            assert await tool(client, "pid") == str(workers[0].process.pid)
            transport.pinned = workers[1]
            waiting = asyncio.create_task(tool(client, "wait", seconds=30))
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
                begun = time.monotonic()
                workers[0].kill()
                while await events.next():  # and the end of the stream
                    pass
            with pytest.raises(PeerError, match="has ended before it answered") as failure:
                await waiting
            assert failure.value.status == 503
            assert time.monotonic() - begun < 10
            assert await tool(client, "pid") == str(workers[1].process.pid)

            headers = named(session, **{"last-event-id": first["id"]})
            async with http.stream("GET", workers[2].url, headers=headers) as response:
                assert response.status_code == 200
                events = Events(response)
                seen: list[int] = []
                while event := await events.next():
                    seen.append(json.loads(event["data"])["params"]["progress"])
            assert seen[:3] == [2, 3, 4]
            for worker in workers[1:]:
                assert await status_of(http, worker, session) == 404
            headers = named(session, **{"last-event-id": last["id"]}, authorization="bob")
            response = await http.get(workers[2].url, headers=headers)
            assert response.status_code == 404


@bounded
async def test_redis_that_is_paused_or_killed_loses_no_session() -> None:
    """A short pause is a delay. While Redis is away for longer, what needs it gets 503.

    All else goes on, and keys that were written before their times were renewed do not stay.
    """
    with running_redis() as redis, running_workers(redis.url, 2, "lease=4") as workers:
        owner, asker = workers
        async with (
            httpx2.AsyncClient(timeout=60, trust_env=False) as http,
            client_of(InTurn(workers), revisions=[MODERN]) as modern,
        ):
            session = await initialized(http, owner)
            numbers = itertools.count(100)

            async def post(worker: Worker, name: str, **arguments: float) -> httpx2.Response:
                body = call(next(numbers), name, **arguments)
                return await http.post(worker.url, json=body, headers=named(session))

            async def tell_in(session: str) -> None:
                body = call(next(numbers), "progress", steps=2)
                response = await http.post(owner.url, json=body, headers=named(session))
                assert response.status_code == 200

            quiet = await initialized(http, owner)
            await tell_in(quiet)  # and no more until Redis has lost this
            assert (await post(asker, "pid")).status_code == 200
            redis.pause()
            waiting = asyncio.create_task(post(asker, "pid"))
            await asyncio.sleep(0.5)
            redis.go_on()
            assert (await waiting).status_code == 200

            redis.pause()
            waiting = asyncio.create_task(post(asker, "pid"))
            for unknown in ("A" * 12, "B" * 12, "C" * 12):  # one of them is asked about at a time
                response = await http.post(
                    asker.url, json=call(1, "pid"), headers=named(f"{unknown}.x")
                )
                assert (response.status_code, response.headers["retry-after"]) == (503, "5")
            redis.go_on()
            response = await waiting
            assert response.status_code in (200, 503)
            assert await status_of(http, asker, session) == 200

            waiting = asyncio.create_task(post(asker, "wait", seconds=30))
            await asyncio.sleep(0.3)
            redis.kill()
            response = await waiting
            assert (response.status_code, "has been away" in response.text) == (503, True)
            assert "retry-after" not in response.headers
            for worker, status in zip(workers, (200, 503), strict=True):
                response = await post(worker, "pid")
                assert response.status_code == status
            assert response.headers["retry-after"] == "5"
            assert await tool(modern, "echo", text="on") == "on"
            assert (await post(owner, "progress", steps=2)).status_code == 200  # is to be stored
            redis.start()
            assert await status_of(http, asker, session) == 200
            with redis.client() as client:
                await until(lambda: any(":events:" in key for key in redis.keys))
                await until(lambda: all(client.pttl(key) > 0 for key in redis.keys))
                await tell_in(quiet)
                await until(lambda: sum(":events:" in key for key in redis.keys) == 2)
                await until(lambda: all(client.pttl(key) > 0 for key in redis.keys))
        for worker in workers:
            worker.stop()
            lines = worker.ended().splitlines()
            away = sum("cannot be reached" in line for line in lines)
            assert away == sum("can be reached again" in line for line in lines), lines
            assert away in (1, 2), lines  # one for each time that it was away for long


@bounded
async def test_a_worker_whose_loop_does_not_move() -> None:
    """While a handler blocks the loop, the lease is renewed by a thread: the sessions wait.

    A worker that is paused for long counts as dead and comes back. Its calls end meanwhile, and
    those that it had not begun are not served later.
    """
    with running_redis() as redis, running_workers(redis.url, 2, LEASE) as workers:
        owner, asker = workers
        async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:
            session = await initialized(http, owner)
            numbers = itertools.count(100)

            async def post(worker: Worker, name: str, **arguments: float) -> httpx2.Response:
                body = call(next(numbers), name, **arguments)
                return await http.post(worker.url, json=body, headers=named(session))

            blocking = asyncio.create_task(post(owner, "block", seconds=2.5))
            await asyncio.sleep(0.3)
            assert (await post(asker, "calls")).status_code == 200
            assert (await blocking).status_code == 200

            owner.pause()
            response = await post(asker, "pid")
            assert (response.status_code, "retry-after" in response.headers) == (503, False)
            assert await status_of(http, asker, session) == 404
            owner.go_on()
            response = await post(asker, "calls")
            while response.status_code != 200:
                await asyncio.sleep(0.05)
                response = await post(asker, "calls")
            assert '"text":"3"' in response.text.replace(" ", "")


@bounded
async def test_a_worker_that_is_stopped_in_order_finishes_first() -> None:
    """What it serves for others, and what others serve for it; then it is gone at once.

    No other request meets an unknown fate: it is served, or its client is told to try again.
    """
    with (
        running_redis() as redis,
        running_workers(redis.url, 2, LEASE, "drain=20") as below_uvicorn,
        running_workers(redis.url, 1, LEASE, "drain=20", how="asyncio") as on_asyncio,
        running_workers(redis.url, 1, LEASE, "drain=20", how="trio") as on_trio,
    ):
        other, *stopped = *below_uvicorn, *on_asyncio, *on_trio
        async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:

            async def stop(worker: Worker) -> None:
                session = await initialized(http, worker)
                away = await initialized(http, other)
                calls = [
                    asyncio.create_task(
                        http.post(place.url, json=call(1, "wait", seconds=1.0), headers=named(name))
                    )
                    for place, name in ((other, session), (worker, away))
                ]
                await asyncio.sleep(0.3)
                worker.stop()
                assert await status_of(http, other, session) in (200, 404)
                for task in calls:
                    assert "waited" in (await task).text
                while await status_of(http, other, session) != 404:
                    await asyncio.sleep(0.02)

            await asyncio.gather(*map(stop, stopped))
            assert [worker.ended() for worker in stopped] == [""] * 3
            assert len([key for key in redis.keys if "lease" in key or "inbox" in key]) == 2


@bounded
async def test_a_new_worker_takes_no_session_for_lost_because_redis_is_new() -> None:
    """The worker of the session has not come back yet: 503, and not 404, which ends the session."""
    with running_redis() as redis, running_workers(redis.url, 1, "lease=120") as [owner]:
        async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:
            session = await initialized(http, owner)
            owner.pause()
            redis.kill()
            redis.start()
            with running_workers(redis.url, 1, "lease=120") as [new]:
                response = await http.post(new.url, json=call(1, "pid"), headers=named(session))
                assert (response.status_code, response.headers["retry-after"]) == (503, "5")
                owner.go_on()
                assert await status_of(http, new, session) == 200


@bounded
async def test_nothing_is_left_in_redis_beyond_its_time() -> None:
    """Entries go when they were read, events with their session, and all keys expire."""
    with (
        running_redis() as redis,
        running_workers(redis.url, 2, "lease=1", "keep_events=1") as workers,
    ):
        async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:
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
                # Requests and responses go when they were read.
                inboxes = [key for key in redis.keys if "inbox" in key]
                await until(lambda: not any(client.xlen(key) for key in inboxes))
            response = await http.delete(workers[1].url, headers=named(session))
            assert response.status_code == 204
            await until(lambda: not any("events" in key for key in redis.keys))
        for worker in workers:
            worker.kill()
        await until(lambda: not redis.keys)
