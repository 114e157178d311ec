"""Every worker serves every request of every session: three real workers, called in turn."""

import asyncio
import json
from collections.abc import Callable, Generator
from typing import Any, Final

import httpx2
import pytest

from sansmcp import JSONObject
from sansmcp_io.asyncio import Call, PeerError
from tests.cluster.by_hand import Events, call
from tests.support.redis_server import RedisServer, running_redis
from tests.support.workers import (
    InTurn,
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


@pytest.fixture(scope="module")
def redis() -> Generator[RedisServer, None, None]:
    """A Redis for all tests of this module."""
    with running_redis() as server:
        yield server


@pytest.fixture(scope="module")
def workers(redis: RedisServer) -> Generator[list[Worker], None, None]:
    """Three workers: below uvicorn, on asyncio, and on trio."""
    with (
        running_workers(redis.url, 1) as below_uvicorn,
        running_workers(redis.url, 1, how="asyncio") as on_asyncio,
        running_workers(redis.url, 1, how="trio") as on_trio,
    ):
        yield [*below_uvicorn, *on_asyncio, *on_trio]


def noting(steps: list[tuple[Any, ...]]) -> Callable[..., None]:
    """A function that notes the progress of a call."""

    def note(*step: Any) -> None:
        steps.append(step)

    return note


@bounded
async def test_calls_of_a_session_are_served_by_its_worker(workers: list[Worker]) -> None:
    """Whichever worker they reach: plain responses, streams, and bodies of many entries."""
    for start in range(3):
        async with client_of(InTurn(workers, start), revisions=[LEGACY]) as client:
            pids = {await tool(client, "pid") for _ in range(6)}
            assert len(pids) == 1
            for _ in range(3):
                steps: list[tuple[Any, ...]] = []
                assert await tool(client, "progress", steps=3, on_progress=noting(steps)) == "done"
                assert [step[0] for step in steps] == [1, 2, 3]
                assert len(await tool(client, "big", bytes=1_000_000)) == 1_000_000
                assert await tool(client, "echo", text="y" * 700_000) == "y" * 700_000


@bounded
async def test_requests_of_2026_07_28_are_served_where_they_arrive(workers: list[Worker]) -> None:
    """They belong to no session; a state that one worker has sealed is read by another one."""

    async def answer(call: Call) -> JSONObject:
        return {"action": "accept", "content": {"name": "ann"}}

    capabilities: JSONObject = {"elicitation": {}}
    async with client_of(
        InTurn(workers), revisions=[MODERN], on_request=answer, capabilities=capabilities
    ) as client:
        assert len({await tool(client, "pid") for _ in range(6)}) == 3
        for number in range(4):
            assert await tool(client, "input", text=str(number)) == f"{number} ann"


@bounded
async def test_a_question_to_a_client_is_answered_by_way_of_another_worker(
    workers: list[Worker],
) -> None:
    """The answer is a request of its own, which reaches any worker."""

    async def answer(call: Call) -> JSONObject:
        content = {"type": "text", "text": "sampled"}
        return {"role": "assistant", "content": content, "model": "m"}

    for start in range(3):
        transport = InTurn(workers, start)
        capabilities: JSONObject = {"sampling": {}}
        async with client_of(
            transport, revisions=[LEGACY], on_request=answer, capabilities=capabilities
        ) as client:
            for _ in range(3):
                assert await tool(client, "sample") == "sampled"


@bounded
async def test_a_call_is_cancelled_by_way_of_another_worker(workers: list[Worker]) -> None:
    """The cancellation is a request of its own, which reaches any worker."""
    async with client_of(InTurn(workers), revisions=[LEGACY]) as client:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await tool(client, "wait", seconds=30)
        assert await tool(client, "echo", text="on") == "on"


@bounded
async def test_a_change_reaches_the_clients_of_all_workers(workers: list[Worker]) -> None:
    """Subscribers in sessions and streams of 2026-07-28, whichever worker publishes."""
    told: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def note(method: str, params: JSONObject) -> None:
        told.put_nowait((method, str(params.get("uri"))))

    publisher = InTurn(workers)
    for worker in workers:
        listener = InTurn([worker])
        async with (
            client_of(listener, revisions=[LEGACY], on_notification=note) as legacy,
            client_of(listener, revisions=[MODERN]) as modern,
            client_of(publisher, revisions=[MODERN]) as client,
            modern.listen({"resourceSubscriptions": ["file:///a"]}) as changes,
        ):
            await legacy.request("resources/subscribe", {"uri": "file:///a"})
            for _ in workers:
                await tool(client, "publish", uri="file:///a")
                assert await told.get() == ("notifications/resources/updated", "file:///a")
                assert (await anext(aiter(changes)))[0] == "notifications/resources/updated"
            await tool(client, "publish")
            assert (await told.get())[0] == "notifications/tools/list_changed"


# ---------------------------------------------------------------------------------- by hand


@pytest.fixture
def http() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(timeout=60, trust_env=False)


@bounded
async def test_a_stream_is_resumed_by_way_of_any_worker(
    workers: list[Worker], http: httpx2.AsyncClient
) -> None:
    """The events are in Redis: from the one on that the client names."""
    async with http:
        session = await initialized(http, workers[0])
        for worker in workers:
            body = call(1, "progress", steps=4, pause=0.05)
            async with http.stream(
                "POST", worker.url, json=body, headers=named(session)
            ) as response:
                events = Events(response)
                first = await events.next()
                while not first.get("data"):
                    first = await events.next()
            for other in workers:
                headers = named(session, **{"last-event-id": first["id"]})
                async with http.stream("GET", other.url, headers=headers) as response:
                    events = Events(response)
                    seen = [json.loads((await events.next())["data"]) for _ in range(4)]
                progress = [one["params"]["progress"] for one in seen[:-1]]
                assert (progress, seen[-1]["id"]) == ([2, 3, 4], 1)


@bounded
async def test_get_streams_and_ends_of_sessions_are_carried(
    workers: list[Worker], http: httpx2.AsyncClient
) -> None:
    """A GET stream is open at another worker, and DELETE ends it by way of a third one."""
    async with http:
        session = await initialized(http, workers[0])
        async with http.stream("GET", workers[1].url, headers=named(session)) as stream:
            assert stream.headers["content-type"] == "text/event-stream"
            events = Events(stream)
            response = await http.post(
                workers[2].url, json=call(1, "publish"), headers=named(session)
            )
            assert response.status_code == 200
            while not (event := await events.next()).get("data"):
                pass
            assert json.loads(event["data"])["method"] == "notifications/tools/list_changed"
            response = await http.delete(workers[2].url, headers=named(session))
            assert response.status_code == 204
            assert await events.next() == {}
        for worker in workers:
            response = await http.post(worker.url, json=call(2, "pid"), headers=named(session))
            assert response.status_code == 404


@bounded
async def test_a_session_is_open_to_its_principal_only(
    workers: list[Worker], http: httpx2.AsyncClient
) -> None:
    """Also where its id is known, and also for its stored events."""
    async with http:
        session = await initialized(http, workers[0], authorization="ann")
        for worker in workers:
            for who, status in (("ann", 200), ("bob", 404), ("", 404), ("nobody", 401)):
                headers = named(session, **({"authorization": who} if who else {}))
                response = await http.post(worker.url, json=call(1, "who"), headers=headers)
                assert response.status_code == status, (who, response.text)
                if status == 200:
                    assert '"ann"' in response.text


@pytest.mark.parametrize(
    "session", ["", "x", "no-worker", "AAAAAAAAAAAA.x", "AAAAAAAAAAAA", "a" * 5_000, "{mcp}.*"]
)
@bounded
async def test_what_is_no_session_is_404_everywhere(
    workers: list[Worker], http: httpx2.AsyncClient, session: str
) -> None:
    """Ids come from clients, and name nothing in Redis."""
    async with http:
        for worker in workers:
            for method in ("POST", "GET", "DELETE"):
                status = 503  # as long as Redis is new, the worker of a session may come back
                while status == 503:
                    response = await http.request(
                        method, worker.url, json=call(1, "pid"), headers=named(session)
                    )
                    status = response.status_code
                assert status == 404


@bounded
async def test_clients_of_2024_11_05_post_to_any_worker(
    workers: list[Worker], http: httpx2.AsyncClient
) -> None:
    """Also `initialize`, before which there is no more of a session than its stream."""
    opening = {
        "protocolVersion": "2024-11-05",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    messages: list[JSONObject] = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call(1, "echo", text="old"),
    ]
    async with http:
        url = workers[0].url.replace("/mcp", "/sse")
        async with http.stream("GET", url, headers={"accept": "text/event-stream"}) as stream:
            events = Events(stream)
            target = (await events.next())["data"]
            for worker, message in zip(workers, messages, strict=True):
                response = await http.post(worker.url.replace("/mcp", target), json=message)
                assert response.status_code == 202
                if "id" in message:
                    answer = json.loads((await events.next())["data"])
                    while answer.get("id") != message["id"]:
                        answer = json.loads((await events.next())["data"])
                    assert "result" in answer


@bounded
async def test_the_error_of_a_tool_is_carried(workers: list[Worker]) -> None:
    """As any response."""
    async with client_of(InTurn(workers), revisions=[LEGACY]) as client:
        for _ in workers:
            with pytest.raises(PeerError, match="no tool nothing"):
                await tool(client, "nothing")
