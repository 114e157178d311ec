"""A client for the official conformance suite: `python -m tests.conformance.client WAY URL`.

WAY is the loop, or what else makes the requests: see `WAYS`.

The suite starts a server for each scenario and this with its URL. It says in variables which
scenario that is, which revision is spoken, and with what tools are to be called.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

import httpx2
import sniffio
import trio

import sansmcp_io.asyncio
import sansmcp_io.blocking
import sansmcp_io.trio
from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, ErrorCode, JSONObject
from sansmcp_io.trio import Call, Client, PeerError
from tests.conformance.authorization import authorization

INFO: Final = {"name": "sansmcp-conformance", "version": "1.0"}
CAPABILITIES: Final[JSONObject] = {"elicitation": {"form": {}}}
Answer: TypeAlias = Callable[[Call], Coroutine[Any, Any, JSONObject]]


async def fill_in_defaults(call: Call) -> JSONObject:
    """A user who agrees to what a form has in it already (SEP-1034)."""
    fields: Any = call.params.get("requestedSchema", {}).get("properties", {})
    content = {name: field["default"] for name, field in fields.items() if "default" in field}
    return {"action": "accept", "content": content or {"confirmed": True}}


async def everything(client: Client, context: Mapping[str, Any]) -> None:
    """List all items, and request each of them once."""
    calls: list[JSONObject] = context.get("toolCalls", [])
    offered: Any = client.peer.capabilities
    if "tools" in offered:
        tools: list[Any] = [tool async for tool in client.items("tools/list")]
        named = {call["name"] for call in calls}
        calls = [call for call in calls if call["name"] in {tool["name"] for tool in tools}]
        for tool in tools:
            if tool["name"] not in named:
                calls.append({"name": tool["name"], "arguments": {"a": 2, "b": 3}})
    for params in calls:
        await client.request("tools/call", params)
    if "resources" in offered:
        async for resource in client.items("resources/list"):
            await client.request("resources/read", {"uri": _member(resource, "uri")})
    if "prompts" in offered:
        async for prompt in client.items("prompts/list"):
            await client.request("prompts/get", {"name": _member(prompt, "name")})


def _member(item: Any, name: str) -> str:
    value: str = item[name]
    return value


async def listing(client: Client, context: Mapping[str, Any]) -> None:
    """List the tools, and ignore their schemas."""
    async for _ in client.items("tools/list"):
        pass


async def echoing(client: Client, context: Mapping[str, Any]) -> None:
    """Give a schema back as it came."""
    tools: list[Any] = [tool async for tool in client.items("tools/list")]
    (schema,) = [
        tool["inputSchema"] for tool in tools if tool["name"] == "json_schema_2020_12_tool"
    ]
    await client.request(
        "tools/call", {"name": "json_schema_echo", "arguments": {"schema": schema}}
    )


async def answering(client: Client, context: Mapping[str, Any]) -> None:
    """Answer questions during a call, while another tool is called (see `main`)."""
    await listing(client, context)
    for name in ("test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_no_result_type"):
        await client.request("tools/call", {"name": name, "arguments": {}})


async def asking_twice(client: Client, context: Mapping[str, Any]) -> None:
    """Ask before and after the server has changed its authorization server."""
    await listing(client, context)
    await everything(client, context)


SCENARIOS: Final[Mapping[str, Callable[[Client, Mapping[str, Any]], Coroutine[Any, Any, None]]]] = {
    "json-schema-ref-no-deref": listing,
    "json-schema-2020-12-preservation": echoing,
    "sep-2322-client-request-state": answering,
    "auth/authorization-server-migration": asking_twice,
}


class Stream:
    """A trace that waits for the GET stream, before which questions of the server may be lost."""

    def __init__(self) -> None:
        self.is_answered = False
        self._asked: set[str] = set()

    def sent(self, connection: str, data: bytes) -> None:
        if data.startswith(b"GET "):
            self._asked.add(connection)

    def received(self, connection: str, data: bytes) -> None:
        if connection in self._asked and connection != "httpx2":  # which says nothing
            self.is_answered = True

    def happened(self, event: object) -> None:
        """Ignore events."""

    def has_come(self, response: httpx2.Response) -> None:
        self.is_answered |= response.request.method == "GET"

    async def has_come_on_a_loop(self, response: httpx2.Response) -> None:
        self.has_come(response)


@asynccontextmanager
async def on_trio(url: str, stream: Stream, **options: Any) -> AsyncGenerator[Client, None]:
    async with sansmcp_io.trio.connect_http(url, trace=stream, **options) as client:
        yield client


@asynccontextmanager
async def on_asyncio(url: str, stream: Stream, **options: Any) -> AsyncGenerator[Client, None]:
    async with sansmcp_io.asyncio.connect_http(url, trace=stream, **options) as client:
        yield client


@asynccontextmanager
async def on_threads(
    url: str, stream: Stream, *, on_request: Any, **options: Any
) -> AsyncGenerator[Any, None]:
    def answer(call: Any) -> JSONObject:
        result: JSONObject = step(on_request(call))
        return result

    with (
        httpx2.Client(event_hooks={"response": [stream.has_come]}) as http,
        sansmcp_io.blocking.connect_http(url, http=http, on_request=answer, **options) as client,
    ):
        yield BlockingClient(client)


def by_httpx(connect: Any) -> Any:
    """The same over an httpx2 client."""

    @asynccontextmanager
    async def connecting(url: str, stream: Stream, **options: Any) -> AsyncGenerator[Client, None]:
        hooks: Any = {"response": [stream.has_come_on_a_loop]}
        async with (
            httpx2.AsyncClient(event_hooks=hooks) as http,
            connect(url, stream, http=http, **options) as client,
        ):
            yield client

    return connecting


class BlockingClient:
    """A client without a loop with async methods, whose awaits never suspend."""

    def __init__(self, client: sansmcp_io.blocking.Client) -> None:
        self._client = client
        self.peer = client.peer

    async def request(self, method: str, params: JSONObject | None = None) -> JSONObject:
        return self._client.request(method, params)

    async def items(self, method: str) -> AsyncGenerator[Any, None]:
        for item in self._client.items(method):
            yield item

    def poll(self) -> None:
        self._client.poll(0.01)


def step(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


async def pause(client: Any) -> None:
    """Let other tasks run."""
    if isinstance(client, BlockingClient):
        client.poll()
    elif sniffio.current_async_library() == "trio":
        await trio.sleep(0.01)
    else:
        await asyncio.sleep(0.01)


def _run_asyncio(function: Any, *args: object) -> None:
    asyncio.run(function(*args))


def _run_threads(function: Any, *args: object) -> None:
    step(function(*args))


WAYS: Final[Mapping[str, tuple[Any, Any]]] = {
    "trio": (trio.run, on_trio),
    "asyncio": (_run_asyncio, on_asyncio),
    "httpx-trio": (trio.run, by_httpx(on_trio)),
    "httpx-asyncio": (_run_asyncio, by_httpx(on_asyncio)),
    "httpx-threads": (_run_threads, on_threads),
}
"""How a coroutine function is run, and how a client is opened within it."""


async def main(connect: Any, url: str) -> None:
    """Play one scenario."""
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    version = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", MODERN_REVISIONS[-1])
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))

    client: Client

    async def on_request(call: Call) -> JSONObject:
        if scenario == "sep-2322-client-request-state":
            # Nothing of the round that is under way may get into another call.
            await client.request("tools/call", {"name": "test_mrtr_unrelated", "arguments": {}})
        return await fill_in_defaults(call)

    async def play() -> None:
        nonlocal client
        stream = Stream()
        async with connect(
            url,
            stream,
            info=INFO,
            capabilities=CAPABILITIES,
            revisions=MODERN_REVISIONS if version in MODERN_REVISIONS else LEGACY_REVISIONS,
            on_request=on_request,
            # To this scenario every GET is the call's: one that opens a stream of its own is taken
            # for a call that was resumed too early.
            get_stream=scenario != "sse-retry",
            request_timeout=20.0,
            auth=authorization(scenario, context),
        ) as client:
            if scenario.startswith("elicitation-"):
                while not stream.is_answered:
                    await pause(client)
            await SCENARIOS.get(scenario, everything)(client, context)

    try:
        await play()
    except PeerError as error:
        # One scenario refuses a revision and offers the same one: a contradiction, which the
        # library ends the opening with. To try once more is a decision of the application's.
        if error.code != ErrorCode.UNSUPPORTED_PROTOCOL_VERSION:
            raise
        await play()


if __name__ == "__main__":
    run, connect = WAYS[sys.argv[1]]
    run(main, connect, sys.argv[2])
