"""The ASGI application: functions that look something up, and take their time."""

import asyncio
from typing import Any

import pytest

from sansmcp import JSONObject
from sansmcp_io.asgi import ServerCall
from tests.support.http.asgi import Session, new_app, on_asyncio, post_modern
from tests.support.http.event_stores import AsyncStore
from tests.support.http.server_endpoint import modern_tool_call, progressing
from tests.support.http.tools import text


async def never(*_: object) -> Any:
    await asyncio.get_running_loop().create_future()


def echo(call: ServerCall) -> JSONObject:
    call.progress(1)
    return text("done")


@on_asyncio
async def test_a_schema_may_be_looked_up_by_an_async_function() -> None:
    """It stands in a database."""

    async def tool_schema(name: str) -> JSONObject:
        await asyncio.sleep(0)
        return {"properties": {"x": {"x-mcp-header": "X"}}}

    app = new_app(echo, tool_schema=tool_schema)
    assert (await post_modern(app, modern_tool_call()).ended()).status == 200
    assert (await post_modern(app, modern_tool_call(x="a")).ended()).status == 400


@pytest.mark.parametrize("setting", ["tool_schema", "authenticate"])
@on_asyncio
async def test_a_lookup_that_takes_too_long_is_answered_for(setting: str) -> None:
    """The client may try again."""
    app = new_app(echo, **{setting: never}, lookup_timeout=0.05)
    response = await post_modern(app, modern_tool_call()).ended()

    assert (response.status, response.headers["retry-after"]) == (503, "5")
    assert response.json["error"]["code"] == -32603


@on_asyncio
async def test_a_stream_is_resumed_from_a_store() -> None:
    """Of an application that runs in several loops, one after the other."""
    store = AsyncStore()
    app = new_app(echo, event_log=store)
    session = await Session.open(app)
    first = await session.post(progressing()).ended()
    last = first.body.partition(b"\n")[0].removeprefix(b"id: ").decode()
    again = await session.get({"last-event-id": last}).ended()

    assert again.messages[-1]["result"] == text("done")
    app.close()
    while app.sessions or not store.kept.forgotten:
        await asyncio.sleep(0)
