"""A lost session is reopened: callers on trio only notice a delay."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import trio

from sansmcp_io.trio import Client, ConnectionLost, RequestTimeout
from tests.support.adapters.on_trio import on_trio
from tests.support.http.keep_alive_server import OK, Request, call, client_of, keeping, response
from tests.support.wire import result

CHANGED = "notifications/custom"


async def list_tools(client: Client, timeout: float | None = None) -> object:
    return [tool async for tool in client.items("tools/list", timeout=timeout)]


async def ping(client: Client, timeout: float | None = None) -> object:
    return await client.ping(timeout=timeout) > 0


async def call_tool(client: Client, timeout: float | None = None) -> object:
    return await call(client, "any", timeout=timeout)


ASKING = pytest.mark.parametrize(
    ("ask", "answer"), [(call_tool, OK), (list_tools, []), (ping, True)]
)
Ask = Callable[..., Awaitable[object]]


@asynccontextmanager
async def reopening(**settings: object) -> AsyncGenerator[tuple[Client, trio.Event], None]:
    """A client whose session is lost, and an event that allows the next one."""
    sessions = 0
    may_open = trio.Event()
    is_lost = trio.Event()

    async def answer(stream: trio.SocketStream, request: Request) -> bytes | None:
        nonlocal sessions
        if request.method == "initialize":
            sessions += 1
            if sessions == 2:
                is_lost.set()
                await may_open.wait()
        elif request.method == "tools/list":
            return response(200, result(request.message["id"], {"tools": []}))
        return response(404) if request.method == CHANGED else None

    async with keeping(answer) as port, client_of(port, **settings) as client:
        client.notify(CHANGED)
        await is_lost.wait()
        yield client, may_open
        may_open.set()


@ASKING
@on_trio()
async def test_whatever_is_asked_waits_for_a_session(ask: Ask, answer: object) -> None:
    """A listing was refused as if the session had never been open, and a ping had no session."""
    answers: list[object] = []
    async with reopening() as (client, may_open), trio.open_nursery() as nursery:

        async def run() -> None:
            answers.append(await ask(client))

        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert answers == []
        may_open.set()
    assert answers == [answer]


@ASKING
@on_trio()
async def test_it_waits_no_longer_than_it_may(ask: Ask, answer: object) -> None:
    """The timeout of a request runs from the call, and includes the wait for a session."""
    async with reopening() as (client, _):
        with pytest.raises(RequestTimeout, match="session was lost"):
            await ask(client, timeout=0.1)


@on_trio()
async def test_the_time_in_all_counts_too() -> None:
    """`max_timeout` was ignored as long as there was no session."""
    async with reopening() as (client, _):
        with pytest.raises(RequestTimeout, match="session was lost"):
            await call(client, "any", max_timeout=0.1)


@on_trio()
async def test_a_notification_does_not_wait() -> None:
    """A notification is lost with its session, and the error must not blame the caller."""
    async with reopening() as (client, _):
        with pytest.raises(ConnectionLost, match="session was lost"):
            client.notify(CHANGED)


@on_trio()
async def test_a_server_may_never_open_another_session() -> None:
    """Then the conversation must end, within the time limit of the opening."""
    async with reopening(start_timeout=2.0) as (client, _):
        with pytest.raises(ConnectionLost):
            await call_tool(client)
