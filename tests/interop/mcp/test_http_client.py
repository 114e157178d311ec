"""The client of the official `mcp` package with a server of this project over HTTP."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx2
import mcp_types as types
import pytest
import trio
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import FileUrl

from sansmcp import JSONObject, ResourceUpdated
from sansmcp.http import Sessions
from sansmcp_io.trio import (
    HTTPServer,
    McpError,
    RequireInput,
    ServerCall,
    Unauthorized,
)
from tests.support.adapters.on_trio import on_trio
from tests.support.http.on_loops import serving

# The package's HTTP client leaves generators to the garbage collector, of which trio complains.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

URI: Final = "test://thing"
MODES: Final = ("legacy", "auto", "2026-07-28")
ROOT: Final = types.Root(uri=FileUrl("file:///peer/root"))
FORM: Final[JSONObject] = {
    "method": "elicitation/create",
    "params": {
        "message": "Which?",
        "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
    },
}


def text(value: str) -> JSONObject:
    return {"content": [{"type": "text", "text": value}]}


async def handle(call: ServerCall) -> JSONObject | RequireInput:
    """Tools for everything that clients and servers do together."""
    match call.method:
        case "tools/list":
            names = ["ask", "echo", "fail", "progress", "slow", "leave"]
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
        case "resources/read":
            contents: list[JSONObject] = [{"uri": URI, "text": "a"}]
            return {"contents": contents}
        case "tools/call":
            pass
        case _:
            return {}
    arguments: JSONObject = call.params.get("arguments") or {}
    match call.params["name"]:
        case "echo":
            return text(f"{arguments['text']} {call.revision}")
        case "progress":
            for step in range(3):
                call.progress(step + 1, total=3)
                call.log("warning", f"step {step}")
            return text("done")
        case "slow":
            await trio.sleep_forever()
        case "ask":
            if not call.input_responses:
                return RequireInput({"form": FORM, "roots": {"method": "roots/list"}}, state="s")
            return text(json.dumps([call.input_responses, call.state]))
        case "leave":
            closed = call.close_stream(retry_ms=10)
            await trio.sleep(0.05)  # so that the client finds the stream ended before the answer
            return text(str(closed))
        case _:
            pass
    raise McpError(-32001, "no luck")


class Peer:
    """The messages and questions that the client has received."""

    def __init__(self) -> None:
        self.logged: list[Any] = []

    async def on_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[ROOT])

    async def on_elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"a": "b"})

    async def on_log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.logged.append(params.data)

    def client(self, server: HTTPServer, mode: str, **settings: Any) -> Client:
        return Client(
            f"http://127.0.0.1:{server.port}/mcp",
            mode=mode,
            list_roots_callback=self.on_roots,
            elicitation_callback=self.on_elicit,
            logging_callback=self.on_log,
            log_level=None if mode == "legacy" else "warning",
            **settings,
        )


async def said(client: Client, name: str, progress: Any = None, **arguments: Any) -> str:
    result = await client.call_tool(name, arguments, progress_callback=progress)
    assert not result.is_error
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.parametrize("answers", ["auto", "sse"])
@pytest.mark.parametrize("sessions", [True, False])
@pytest.mark.parametrize("mode", MODES)
@on_trio()
async def test_it_talks_to_the_client_of_the_package(
    mode: str, sessions: bool, answers: str
) -> None:
    """Two independent implementations must agree, whatever form the responses have."""
    progress: list[float] = []

    async def on_progress(value: float, total: float | None, message: str | None) -> None:
        progress.append(value)

    peer = Peer()
    async with (
        serving(handle, sessions=sessions, answers=answers) as server,
        peer.client(server, mode) as client,
    ):
        assert len((await client.list_tools()).tools) == 6
        revision = "2025-11-25" if mode == "legacy" else "2026-07-28"
        assert await said(client, "echo", text="hello") == f"hello {revision}"
        assert await said(client, "progress", on_progress) == "done"
        assert progress == [1, 2, 3]
        if sessions or mode != "legacy":  # else there is no channel for what belongs to nothing
            assert peer.logged == ["step 0", "step 1", "step 2"]
        with pytest.raises(MCPError, match="no luck"):
            await client.call_tool("fail")
        assert len(server.sessions) == int(sessions and mode == "legacy")


@pytest.mark.parametrize("mode", MODES)
@on_trio()
async def test_it_asks_the_client_of_the_package(mode: str) -> None:
    """Questions must work during a call in a session, and as a result in 2026-07-28."""
    async with serving(handle) as server, Peer().client(server, mode) as client:
        responses, state = json.loads(await said(client, "ask"))

    assert responses["form"] == {"action": "accept", "content": {"a": "b"}}
    assert responses["roots"]["roots"][0]["uri"] == str(ROOT.uri)
    assert state == "s"


@pytest.mark.parametrize("mode", MODES)
@on_trio()
async def test_the_client_of_the_package_cancels(mode: str) -> None:
    """The handler must be cancelled by a notification, and by a disconnect."""
    async with serving(handle) as server, Peer().client(server, mode) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "slow")
            while not server.open_requests:
                await trio.sleep(0.001)  # until the socket has brought it
            nursery.cancel_scope.cancel()
        while server.open_requests:
            await trio.sleep(0.001)
        assert await said(client, "echo", text="on")


@on_trio()
async def test_the_client_of_the_package_subscribes() -> None:
    """In 2026-07-28 its subscription is a stream, which must end properly with the server."""
    async with (
        serving(handle) as server,
        Peer().client(server, "auto") as client,
        client.listen(resource_subscriptions=[URI]) as subscription,
    ):
        assert server.publish(ResourceUpdated(URI))
        event = await anext(subscription)
        assert URI in repr(event)
        server.close()
        assert [event async for event in subscription] == []


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
@on_trio()
async def test_the_client_of_the_package_hears_of_changes_in_a_session() -> None:
    """Changes must come on the GET stream, which it opens once it is ready."""
    heard = trio.Event()

    async def on_message(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            heard.set()

    async with (
        serving(handle) as server,
        Peer().client(server, "legacy", message_handler=on_message) as client,
    ):
        await client.subscribe_resource(URI)  # pyright: ignore[reportDeprecated]  # so it is there
        server.publish(ResourceUpdated(URI))
        await heard.wait()


@on_trio()
async def test_the_client_of_the_package_comes_back() -> None:
    """A stream that the server closes during a call must be resumed without a loss."""
    async with serving(handle, answers="sse") as server:
        async with Peer().client(server, "legacy") as client:
            assert await said(client, "leave") == "True"
        assert server.sessions == ()  # it has deleted its session


@on_trio()
async def test_the_client_of_the_package_says_who_it_is() -> None:
    """Its tokens must reach `authenticate`, and the principal the handler."""

    def check(headers: Mapping[str, str]) -> str:
        if match := re.fullmatch("Bearer (.+)", headers.get("authorization", "")):
            return match[1]
        raise Unauthorized("Bearer")

    def who(call: ServerCall) -> JSONObject:
        if call.method == "tools/list":
            return {"tools": []}
        return text(str(call.principal))

    ids: Callable[[], str] = iter("abc").__next__
    settings = Sessions(new_id=ids)
    async with (
        serving(who, authenticate=check, sessions=settings) as server,
        httpx2.AsyncClient(headers={"authorization": "Bearer ann"}) as http,
    ):
        url = f"http://127.0.0.1:{server.port}/mcp"
        for mode in MODES:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode=mode) as client:
                result = await client.call_tool("x")
                assert "ann" in str(result.content)
