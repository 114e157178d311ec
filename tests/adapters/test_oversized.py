"""A response over `max_unsent_bytes` is an error for its caller alone, on each adapter."""

import asyncio
from typing import Any

import pytest

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, Config, JSONObject
from sansmcp_io.trio import PeerError, ServerCall
from tests.support.adapters import loops
from tests.support.adapters.loops import on_each_loop
from tests.support.http.asgi import Session, new_app, on_asyncio, until
from tests.support.http.asgi import post_modern as post_asgi
from tests.support.http.h11_client import posted
from tests.support.http.on_loops import connect_http, serving, talking
from tests.support.http.server_endpoint import modern_tool_call, tool_call
from tests.support.http.tools import opened, said, text

INFO: JSONObject = {"name": "test-client", "version": "1.0"}
CONFIG = Config(max_unsent_bytes=200_000)
ERAS = pytest.mark.parametrize(
    "revisions", [MODERN_REVISIONS, LEGACY_REVISIONS[-1:]], ids=["modern", "legacy"]
)


class Handler:
    """Answers `large` with more than the limit, and `wait` when the test releases it."""

    def __init__(self, event: Any) -> None:
        self.waits = 0
        self.go = event

    def __call__(self, call: ServerCall) -> Any:
        if call.method != "tools/call":
            return {}
        match call.params["name"]:
            case "wait":
                return self.wait()
            case "large":
                return text("x" * 300_000)
            case "flood":
                for _ in range(3):
                    call.log("info", "x" * 90_000)
            case _:
                pass
        return text("small")

    async def wait(self) -> JSONObject:
        self.waits += 1
        await self.go.wait()
        return text("waited")


def named(name: str) -> tuple[str, JSONObject]:
    return "tools/call", {"name": name, "arguments": {}}


@ERAS
@on_each_loop()
async def test_over_http(revisions: tuple[str, ...]) -> None:
    """The response ended the session, and the call beside it got the head of a 503 without its
    body.
    """
    handler = Handler(loops.new_event())
    async with (
        serving(handler, config=CONFIG) as server,
        connect_http(
            f"http://127.0.0.1:{server.port}/mcp", info=INFO, revisions=revisions
        ) as client,
        loops.open_nursery() as nursery,
    ):
        results: list[Any] = []

        async def wait() -> None:
            results.append(await client.request(*named("wait"), timeout=60))

        nursery.start_soon(wait)
        while not handler.waits:
            await loops.checkpoint()
        with pytest.raises(PeerError, match=r"^the response is too large \(-32603\)$") as caught:
            await client.request(*named("large"), timeout=60)
        assert "Config.max_unsent_bytes is 200000" in str(caught.value.data)
        handler.go.set()
        while not results:
            await loops.checkpoint()
        assert results[0]["content"] == text("waited")["content"]
        assert (await client.request(*named("small"), timeout=60))["content"]


@on_each_loop()
async def test_session_that_ends_over_http_completes_every_response() -> None:
    """When a conversation has ended, the responses on its HTTP connections must still be
    complete."""
    handler = Handler(loops.new_event())
    async with (
        serving(handler, config=CONFIG) as server,
        talking(server) as one,
        talking(server) as two,
    ):
        fields = await opened(one)
        await one.send(posted(tool_call(1, "wait"), fields))
        while not handler.waits:
            await loops.checkpoint()
        flooded = await two.post(tool_call(2, "flood"), fields)
        assert flooded.status == 200  # a stream that ends without an answer
        response = await one.receive()
        assert response.status == 503
        assert int(response.headers["content-length"]) == len(response.body) > 0
        assert said(await one.call(modern_tool_call(1, "small"))) == "small"


@on_asyncio
async def test_below_asgi() -> None:
    """The ASGI server was given a head whose body did not follow."""
    handler = Handler(asyncio.Event())
    app = new_app(handler, config=CONFIG)
    client = await Session.open(app)
    waiting = client.post(tool_call(1, "wait"))
    await until(lambda: handler.waits)
    large = await client.post(tool_call(2, "large")).ended()
    assert large.json["error"]["code"] == -32603
    modern = await post_asgi(app, modern_tool_call(2, "large")).ended()
    assert modern.json["error"]["message"] == "the response is too large"
    flooded = await client.post(tool_call(3, "flood")).ended()
    assert flooded.is_complete
    await waiting.ended()
    assert waiting.status == 503
    assert int(waiting.headers["content-length"]) == len(waiting.body) > 0
    assert app.sessions == ()
