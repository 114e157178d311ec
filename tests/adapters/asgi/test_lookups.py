"""The ASGI application with lookup functions that take their time."""

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
    """Schemas may be in a database, so `tool_schema` may be an async function."""

    async def tool_schema(name: str) -> JSONObject:
        await asyncio.sleep(0)
        return {"properties": {"x": {"x-mcp-header": "X"}}}

    app = new_app(echo, tool_schema=tool_schema)
    assert (await post_modern(app, modern_tool_call()).ended()).status == 200
    assert (await post_modern(app, modern_tool_call(x="a")).ended()).status == 400


@pytest.mark.parametrize("setting", ["tool_schema", "authenticate"])
@on_asyncio
async def test_a_lookup_that_takes_too_long_is_answered_for(
    setting: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A lookup that takes too long must be answered with an error, so that the client may retry."""
    app = new_app(echo, **{setting: never}, lookup_timeout=0.05)
    response = await post_modern(app, modern_tool_call()).ended()

    assert (response.status, response.headers["retry-after"]) == (503, "5")
    assert response.json["error"]["code"] == -32603
    (record,) = caplog.records
    assert record.getMessage() == f"{setting} took more than 0.05 s"
    assert record.exc_info is None, "it is no mistake in the code"


@on_asyncio
async def test_a_stream_is_resumed_from_a_store() -> None:
    """A stored stream must be resumable in an application that runs in several loops, one after the
    other.
    """
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
