"""HTTP on asyncio: cancellation from outside and from inside, and failures of tasks."""

import asyncio
import json
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from functools import partial
from typing import Any, cast

import httpx2
import pytest

from sansmcp import LEGACY_REVISIONS, JSONObject
from sansmcp.http import AuthorizationRequired
from sansmcp_io.asyncio import (
    Call,
    Client,
    ConnectionLost,
    HTTPClientLimits,
    HTTPLimits,
    HTTPServer,
    McpError,
    RequestRefused,
    RequireInput,
    ServerCall,
    Unauthorized,
    connect_http,
    serve_http,
)
from tests.adapters.everywhere.shims import listening, server
from tests.support.adapters.on_asyncio import on_asyncio
from tests.support.http.certificates import certificate
from tests.support.http.h11_client import posted_modern
from tests.support.http.server_endpoint import modern_tool_call
from tests.support.processes import descriptors

__all__ = ["certificate"]  # a fixture

INFO: JSONObject = {"name": "test", "version": "1.0"}
LEGACY = LEGACY_REVISIONS[-1]


def serve_nothing(call: ServerCall) -> JSONObject:
    return {}


def list_nothing(call: ServerCall) -> JSONObject:
    return {"tools": []}


def text(value: str) -> JSONObject:
    return {"content": [{"type": "text", "text": value}]}


@asynccontextmanager
async def serving(handler: Any, **settings: Any) -> AsyncGenerator[HTTPServer, None]:
    listening: asyncio.Future[HTTPServer] = asyncio.get_running_loop().create_future()
    serve = serve_http(
        handler, port=0, info=INFO, on_listening=listening.set_result, drain=0.001, **settings
    )
    task = asyncio.create_task(serve)
    server = await listening
    try:
        yield server
    finally:
        server.close()
        await task


@asynccontextmanager
async def connecting(server: HTTPServer, **settings: Any) -> AsyncGenerator[Client, None]:
    url = f"http://127.0.0.1:{server.port}/mcp"
    async with connect_http(url, info=INFO, **settings) as client:
        yield client


async def cancelled_within() -> None:
    """Wait for a task that was cancelled."""
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


# ------------------------------------------------------------------------------------ connections


@pytest.mark.unjudged("hundreds of calls")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@on_asyncio
async def test_calls_cancelled_while_their_connection_opens_leave_no_socket(host: str) -> None:
    """A client that runs for months with impatient users would run out of sockets."""

    async def connect_and_cancel(*numbers_of_turns: int) -> None:
        async with connect_http(url, info=INFO) as client:
            for turns in numbers_of_turns:
                calls = [asyncio.create_task(client.request("tools/list")) for _ in range(10)]
                for _ in range(turns):
                    await asyncio.sleep(0)
                for call in calls:
                    call.cancel()
                await asyncio.wait(calls)

    with listening(server("asyncio", "http")) as url:
        url = url.replace("127.0.0.1", host)
        await connect_and_cancel(1)  # the loop opens what it keeps
        before = descriptors()
        await connect_and_cancel(*range(1, 26))
        assert descriptors() <= before


@on_asyncio
async def test_address_that_does_not_answer_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a broken IPv6 route, each host that has such an address would be out of reach."""
    before = descriptors()
    with silent_port() as silent:
        async with serving(list_nothing, capabilities={"tools": {}}, hosts=[NAME]) as server:
            resolve_to(monkeypatch, silent, server.port)
            async with connect_http(f"http://{NAME}/mcp", info=INFO) as client:
                assert (await client.request("tools/list"))["tools"] == []
    left = {name for _, name in descriptors() - before}
    assert not any(name.startswith("socket:") for name in left)  # uvloop keeps other things


@on_asyncio
async def test_address_that_refuses_is_followed_by_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`localhost` has two addresses on most systems, and a server often listens on one of them."""
    async with serving(list_nothing, capabilities={"tools": {}}, hosts=[NAME]) as server:
        resolve_to(monkeypatch, refusing_port(), server.port)
        async with connect_http(f"http://{NAME}/mcp", info=INFO) as client:
            assert (await client.request("tools/list"))["tools"] == []


@on_asyncio
async def test_all_addresses_that_refuse_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that names one address only sends the user to the wrong place."""
    ports = refusing_port(), refusing_port()
    resolve_to(monkeypatch, *ports)
    with pytest.raises(ConnectionLost) as caught:
        async with connect_http(f"http://{NAME}/mcp", info=INFO):
            pytest.fail("nobody listens")
    assert all(str(port) in str(caught.value) for port in ports)


@pytest.mark.unjudged("one of them is large")
@on_asyncio
async def test_transport_that_drops_its_buffer_late_is_given_up_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Aborting a transport again and again would keep the loop from reaching the point where it
    drops the buffer.
    """

    class Transport:
        def __init__(self, transport: asyncio.Transport) -> None:
            self._transport = transport
            self._kept = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self._transport, name)

        def abort(self) -> None:
            self._kept = self._transport.get_write_buffer_size()
            self._transport.abort()

        def get_write_buffer_size(self) -> int:
            return self._kept or self._transport.get_write_buffer_size()

    async def create_server(factory: Any, *where: Any, **options: Any) -> asyncio.Server:
        def new_protocol() -> asyncio.BaseProtocol:
            protocol = factory()
            made = protocol.connection_made

            def connection_made(transport: asyncio.Transport) -> None:
                made(Transport(transport))

            protocol.connection_made = connection_made
            return cast(asyncio.BaseProtocol, protocol)

        server: asyncio.Server = await real_create_server(new_protocol, *where, **options)
        return server

    def answer(call: ServerCall) -> JSONObject:
        return text("x" * call.params["arguments"]["size"])

    loop = asyncio.get_running_loop()
    real_create_server: Any = loop.create_server
    monkeypatch.setattr(loop, "create_server", create_server)
    limits = HTTPLimits(held_bytes=1_000_000)
    async with serving(answer, capabilities={"tools": {}}, limits=limits) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(posted_modern(modern_tool_call(1, "x", size=32_000_000)))
        with suppress(ConnectionError):
            while await reader.read(65_536):
                pass
        writer.close()
        async with connecting(server) as client:
            result: Any = await client.request(
                "tools/call", {"name": "x", "arguments": {"size": 1}}
            )
        assert result["content"] == text("x")["content"]


NAME = "two.example"


def resolve_to(monkeypatch: pytest.MonkeyPatch, *ports: int) -> None:
    """Let every host name resolve to these ports of this machine."""
    found: list[Any] = [
        (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", port))
        for port in ports
    ]

    def getaddrinfo(*about: object, **options: object) -> list[Any]:
        return found

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def refusing_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port: int = free.getsockname()[1]
        return port


@contextmanager
def silent_port() -> Generator[int, None, None]:
    """A port that neither accepts nor refuses connections: its queue is full."""
    with closing(socket.create_server(("127.0.0.1", 0), backlog=0)) as full, ExitStack() as stack:
        for _ in range(2):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        yield full.getsockname()[1]


# ---------------------------------------------------------------------------------- cancellation


@on_asyncio
async def test_server_that_is_cancelled_while_it_begins_listens_no_more() -> None:
    """The port would stay taken and accept clients for as long as the loop runs."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    listening: list[HTTPServer] = []
    serve = serve_http(serve_nothing, port=port, info=INFO, on_listening=listening.append)
    task = asyncio.create_task(serve)
    while not is_open(port):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert not is_open(port)


def is_open(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@on_asyncio
async def test_handler_of_401_that_cancels_itself_is_asked_again() -> None:
    """The refused request, and all later ones, would wait for credentials for ever."""

    def check(headers: object) -> str:
        raise Unauthorized("Bearer")

    async def show(refused: AuthorizationRequired) -> None:
        asked.append(refused.status)
        await cancelled_within()

    asked: list[int] = []
    async with serving(serve_nothing, authenticate=check) as server:
        for number in (1, 2):
            with pytest.raises(RequestRefused):
                async with connecting(server, on_unauthorized=show, revisions=[LEGACY]):
                    pass
            assert len(asked) == number


@on_asyncio
async def test_handlers_of_notifications_that_cancel_themselves_make_room_for_others() -> None:
    """The number of running handlers is limited: each that ended by cancelling itself would take up
    a place for ever.
    """

    async def note(method: str, params: JSONObject) -> None:
        told.append(method)
        await cancelled_within()

    async def handle(call: ServerCall) -> JSONObject:
        for _ in range(150):
            call.log("error", "x")
            await asyncio.sleep(0)
        return text("done")

    told: list[str] = []
    capabilities: JSONObject = {"tools": {}, "logging": {}}
    async with (
        serving(handle, capabilities=capabilities) as server,
        connecting(server, revisions=[LEGACY], on_notification=note) as client,
    ):
        await client.request("tools/call", {"name": "x"})
        await client.request("tools/call", {"name": "x"})
        while len(told) < 300:
            await asyncio.sleep(0.001)  # nothing else tells of it


@on_asyncio
async def test_calls_that_were_given_up_before_their_turn_are_never_sent() -> None:
    """When all callers give up at once, the place that the first one frees must not go to a call
    that was given up too.
    """

    async def handle(call: ServerCall) -> JSONObject:
        called.append(call.params["name"])
        if len(called) == 1:
            return text("at once")
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError("it was not cancelled")

    def note(method: str, params: JSONObject) -> None:
        noted.set()

    called: list[str] = []
    begun, noted = asyncio.Event(), asyncio.Event()
    limits = HTTPClientLimits(requests=1)
    async with (
        serving(handle, capabilities={"tools": {}}, on_notification=note) as server,
        connecting(server, revisions=[LEGACY], limits=limits, get_stream=False) as client,
    ):
        ask = partial(client.request, "tools/call")
        await ask({"name": "first"})
        calls = [asyncio.create_task(ask({"name": "carried"}))]
        await begun.wait()
        client.notify("notifications/x")  # leaves a connection that could be used
        calls += [asyncio.create_task(ask({"name": "waits"})) for _ in range(3)]
        await noted.wait()
        await asyncio.sleep(0.05)  # the response to that
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
    assert called == ["first", "carried"]


@on_asyncio
async def test_request_for_a_task_can_be_given_up() -> None:
    """A request for a task is not cancelled with its caller, and its response must not be delivered
    to a caller that has gone.
    """
    seen: list[object] = []

    async def handle(call: ServerCall) -> JSONObject:
        with suppress(TimeoutError):
            async with asyncio.timeout(0):  # when the request is sent, before any response
                params: JSONObject = {"messages": [], "maxTokens": 1, "task": {}}
                seen.append(await call.request("sampling/createMessage", params))
        return text("given up")

    async def serve(call: Call) -> JSONObject:
        await asyncio.Event().wait()
        return {}

    capabilities: JSONObject = {
        "sampling": {},
        "tasks": {"cancel": {}, "requests": {"sampling": {"createMessage": {}}}},
    }
    options = {"capabilities": capabilities, "on_request": serve, "revisions": [LEGACY]}
    async with (
        serving(handle, capabilities={"tools": {}}) as server,
        connecting(server, **options) as client,
    ):
        assert await client.request("tools/call", {"name": "x"}) == text("given up")
    assert seen == []


# ------------------------------------------------------------------------------------- questions


@on_asyncio
async def test_handler_of_questions_that_cancels_itself_is_a_failure() -> None:
    """Without answers the next round cannot be sent, so the call must fail, although its caller has
    not cancelled it.
    """

    def handle(call: ServerCall) -> JSONObject | RequireInput:
        return RequireInput({name: {"method": "roots/list"} for name in "ab"})

    async def answer(call: Call) -> JSONObject:
        asked.append(call.method)
        if len(asked) == 1:
            await cancelled_within()
        return {"roots": []}

    asked: list[str] = []
    options: dict[str, Any] = {"capabilities": {"roots": {}}, "on_request": answer}
    async with (
        serving(handle, capabilities={"tools": {}}) as server,
        connecting(server, **options) as client,
    ):
        with pytest.raises(McpError, match="internal error"):
            await client.request("tools/call", {"name": "x"})


# -------------------------------------------------------------------------------------- failures


class Exit(SystemExit):
    """The exception with which a handler ends the program."""


async def ask_and_fail() -> float:
    """Let a handler of the client fail during a call; returns the seconds from the failure to the
    end.
    """
    failed_at: list[float] = []

    def leave(call: Call) -> JSONObject:
        failed_at.append(time.monotonic())
        raise Exit

    async def handle(call: ServerCall) -> JSONObject:
        await call.request("roots/list")
        return {}

    options: dict[str, Any] = {"revisions": [LEGACY], "capabilities": {"roots": {}}}
    async with serving(handle, capabilities={"tools": {}}) as server:
        with pytest.raises(Exit):
            async with connecting(server, on_request=leave, **options) as client:
                await client.request("tools/call", {"name": "x"})
        return time.monotonic() - failed_at[0]


@on_asyncio
async def test_failure_is_raised_whatever_was_cancelled_before() -> None:
    """A task that went on after an earlier cancellation keeps it counted, which must not hide the
    failure.
    """

    async def talk() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await ask_and_fail()
        counts.append(ours.cancelling())

    counts: list[int] = []
    ours = asyncio.create_task(talk())
    await asyncio.sleep(0)
    ours.cancel()
    await ours
    assert counts == [1]


@on_asyncio
async def test_failure_ends_the_block_at_once() -> None:
    """The block must not wait for a long stream when the client has already failed."""
    # The shortest of several: others may keep this machine busy.
    assert min([await ask_and_fail() for _ in range(3)]) < 0.9


@on_asyncio
async def test_trace_is_told_of_the_end_of_a_connection_once(certificate: str) -> None:
    """TLS reports the end twice, inside and outside of the encryption; HTTP must see it once."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\nand this is why")
        has_come.clear()
        await has_come.wait()
        writer.close()

    class Trace:
        def sent(self, connection: str, data: bytes) -> None:
            pass

        def received(self, connection: str, data: bytes) -> None:
            told.setdefault(connection, []).append(data)
            has_come.set()

        def happened(self, event: object) -> None:
            pass

    told: dict[str, list[bytes]] = {}
    has_come = asyncio.Event()
    inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inside.load_cert_chain(certificate)
    outside = ssl.create_default_context(cafile=certificate)
    async with await asyncio.start_server(refuse, "127.0.0.1", 0, ssl=inside) as server:
        url = f"https://localhost:{server.sockets[0].getsockname()[1]}/"
        with pytest.raises(RequestRefused):
            async with connect_http(url, info=INFO, tls=outside, trace=Trace()):
                pass
    assert told
    for pieces in told.values():
        assert pieces[-1] == b""
        assert b"".join(pieces).endswith(b"and this is why")
        assert pieces.count(b"") == 1


@pytest.mark.parametrize("steps", range(8))
def test_a_call_beside_the_loss_of_its_session_waits_for_the_next_one(steps: int) -> None:
    """The core knows of the loss before its event is handled: a call made in between was refused,
    as if the program had called too early.
    """
    sessions = iter(("first", "second", "third"))

    async def main() -> None:
        lost = asyncio.Event()

        async def respond(request: httpx2.Request) -> httpx2.Response:
            if request.method == "GET":
                if request.headers["mcp-session-id"] == "first":
                    await lost.wait()
                    return httpx2.Response(404)
                return httpx2.Response(405)
            message: Any = json.loads(request.content or b"{}")
            if message.get("method") == "initialize":
                opened: JSONObject = {
                    "protocolVersion": LEGACY,
                    "capabilities": {"tools": {}},
                    "serverInfo": INFO,
                }
                answer: JSONObject = {"jsonrpc": "2.0", "id": message["id"], "result": opened}
                return httpx2.Response(200, json=answer, headers={"mcp-session-id": next(sessions)})
            if "id" not in message:
                return httpx2.Response(202)
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"tools": []}}
            return httpx2.Response(200, json=answer)

        async with (
            httpx2.AsyncClient(transport=httpx2.MockTransport(respond)) as http,
            connect_http("http://x/mcp", info=INFO, http=http, revisions=[LEGACY]) as client,
        ):
            await client.request("tools/list")
            for _ in range(20):  # until the stream is open
                await asyncio.sleep(0)
            lost.set()
            for _ in range(steps):
                await asyncio.sleep(0)
            assert await client.request("tools/list") == {"tools": []}

    asyncio.run(asyncio.wait_for(main(), 20))
