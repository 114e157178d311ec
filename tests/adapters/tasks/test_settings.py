"""The options `tasks` and `running_tasks` of all servers, and tasks below ASGI."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import trio

import sansmcp_io.asgi
import sansmcp_io.asyncio
import sansmcp_io.blocking
import sansmcp_io.trio
import sansmcp_io.wsgi
from sansmcp import JSONObject, Tasks
from sansmcp_io.asgi import App, CreateTask, RunningTask, ServerCall
from tests.support.adapters.task_talk import TEXT, headers_of
from tests.support.http.asgi import new_app, on_asyncio, post, until
from tests.support.modern import envelope, modern
from tests.support.tasks import WITH_TASKS, Entropy
from tests.support.wire import SERVER_INFO

INFO: JSONObject = {"name": "test", "version": "1.0"}


def nothing(call: Any) -> JSONObject:
    return {}


def make_wsgi(**options: Any) -> None:
    sansmcp_io.wsgi.App(nothing, info=INFO, **options)


def make_asgi(**options: Any) -> None:
    sansmcp_io.asgi.App(nothing, info=INFO, **options)


def serve_blocking(**options: Any) -> None:
    sansmcp_io.blocking.serve_stdio(nothing, info=INFO, **options)


def serve_trio(**options: Any) -> None:
    async def serve() -> None:
        await sansmcp_io.trio.serve_http(nothing, info=INFO, port=0, **options)

    trio.run(serve)


def serve_asyncio(**options: Any) -> None:
    async def serve() -> None:
        await sansmcp_io.asyncio.serve_http(nothing, info=INFO, port=0, **options)

    asyncio.run(serve())


@pytest.mark.parametrize("make", [make_wsgi, make_asgi, serve_blocking, serve_trio, serve_asyncio])
def test_a_store_of_the_application_is_not_for_adapters(make: Callable[..., None]) -> None:
    """They would never answer its questions."""
    with pytest.raises(ValueError, match=r"Tasks\.store must be 'memory'"):
        make(tasks=Tasks(entropy=Entropy(), store="ask"))


@pytest.mark.parametrize("make", [make_wsgi, make_asgi, serve_trio, serve_asyncio])
def test_tasks_of_authenticated_clients_need_a_key_for_each(make: Callable[..., None]) -> None:
    """Without one, no client could find its task again."""
    with pytest.raises(ValueError, match="a task belongs to the principal"):
        make(tasks=True, authenticate=nothing)


# --------------------------------------------------------------------------------- below ASGI


class Slow:
    """A handler of a task that waits until the test releases it."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.seen: list[str] = []

    async def work(self, task: RunningTask) -> JSONObject:
        self.seen.append("began")
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.seen.append("cancelled")
            raise
        return TEXT

    def __call__(self, call: ServerCall) -> CreateTask:
        return CreateTask(self.work)


async def ask(app: App, method: str, params: JSONObject) -> Any:
    message = modern(1, method, params, envelope(WITH_TASKS))
    return (await post(app, message, headers_of(message)).ended()).json


async def begun(app: App) -> str:
    answer = await ask(app, "tools/call", {"name": "t"})
    task_id: str = answer["result"]["taskId"]
    return task_id


def app_of(slow: Slow, **options: Any) -> App:
    return new_app(slow, info=SERVER_INFO, capabilities={"tools": {}}, tasks=True, **options)


@on_asyncio
async def test_a_task_below_asgi_outlives_its_request() -> None:
    """The scope of the request has ended when its response was sent."""
    slow = Slow()
    app = app_of(slow)
    task_id = await begun(app)
    await until(lambda: slow.seen)
    slow.go.set()
    while (task := (await ask(app, "tasks/get", {"taskId": task_id}))["result"])[
        "status"
    ] == "working":
        await asyncio.sleep(0)
    assert task["result"]["content"] == TEXT["content"]
    app.close()


@on_asyncio
async def test_the_lifespan_leaves_tasks_time() -> None:
    """Requests and tasks have the same `drain` seconds."""
    slow = Slow()
    app = app_of(slow, drain=60)
    async with app.lifespan():
        await begun(app)
        await until(lambda: slow.seen)
        asyncio.get_running_loop().call_later(0.01, slow.go.set)
    assert slow.seen == ["began"]


@on_asyncio
async def test_the_end_of_an_application_cancels_its_tasks() -> None:
    """With a lifespan or without."""
    ended = Slow()
    app = app_of(ended, drain=0.001)
    async with app.lifespan():
        await begun(app)
        await until(lambda: ended.seen)
    assert ended.seen == ["began", "cancelled"]
    closed = Slow()
    app = app_of(closed)
    await begun(app)
    await until(lambda: closed.seen)
    app.close()
    await until(lambda: closed.seen == ["began", "cancelled"])
