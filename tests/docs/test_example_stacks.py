"""The examples on other stacks, each with a client or server of another project."""

import asyncio
import importlib
import json
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import mcp_types as types
import pytest
import trio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from trio_websocket import open_websocket_url
from twisted.internet.task import Clock
from twisted.internet.testing import MemoryReactorClock, StringTransport

from docs._ext.sizes import code_lines
from sansmcp import ClientConnection, Event, JSONObject, Ready, ResponseReceived
from tests.support.adapters.mcp_streams import over_stream
from tests.support.adapters.on_trio import on_trio
from tests.support.modern import discovered
from tests.support.stacks import ROOT, STACKS, program, serving, waiting
from tests.support.wire import INITIALIZED, call, result

# The package's HTTP client leaves generators to the garbage collector, of which trio complains.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

MODES = ("legacy", "2026-07-28")
PROGRAMS = sorted(STACKS.glob("*.py"))


async def said(client: Client, name: str, **arguments: str) -> str:
    result = await client.call_tool(name, arguments)
    assert not result.is_error
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


async def use_shop(client: Client) -> None:
    """Use each feature of the shop of the examples."""
    seen: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    tools = await client.list_tools()
    assert [tool.name for tool in tools.tools] == ["stock", "count"]
    assert await said(client, "stock", article="lamp") == "17 of lamp"
    result = await client.call_tool("count", {}, progress_callback=on_progress)
    assert not result.is_error
    assert seen == [1, 2, 3]
    with pytest.raises(MCPError) as caught:
        await client.call_tool("nothing", {})
    assert caught.value.code == -32602


def page(url: str) -> bytes:
    """The body of another route of the same program."""
    with urllib.request.urlopen(url.replace("/mcp", "/")) as response:
        return response.read()  # type: ignore[no-any-return]  # typeshed: Any


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["on_aiohttp", "on_tornado", "on_starlette", "on_flask"])
@on_trio()
async def test_other_peoples_stack_serves_the_client_of_the_package(name: str, mode: str) -> None:
    """A server that follows the page must work with other clients, streams included."""
    with serving(name) as url:
        async with Client(url, mode=mode) as client:
            await use_shop(client)
        assert await trio.to_thread.run_sync(page, url) == b"the shop itself\n"


@pytest.mark.parametrize("name", ["on_aiohttp", "on_tornado"])
def test_handler_of_a_client_that_leaves_is_cancelled(name: str) -> None:
    """Handlers of clients that have left would pile up."""
    meta: JSONObject = {
        "progressToken": "p",
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params: JSONObject = {"name": "count", "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = {
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "count",
    }
    with waiting(name) as (url, output):
        request = urllib.request.Request(url, body.encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as response:
            assert b"notifications/progress" in response.readline() + response.readline()
        assert output.readline() == b"cancelled\n"


@pytest.mark.parametrize("mode", MODES)
@on_trio()
async def test_view_of_django_serves_the_users_that_the_project_knows(mode: str) -> None:
    """The project authenticates users once; a tool must get the user, and others be refused."""
    with serving("on_django") as url:
        async with (
            httpx2.AsyncClient(headers={"authorization": "Bearer 6f1e"}) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            assert await said(client, "stock", article="lamp") == "17 of lamp for ann"
            accept = {"accept": "application/json, text/event-stream"}
            told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            accepted = await http.post(url, json=told, headers=accept)
            assert accepted.status_code == 202
            assert "content-type" not in accepted.headers
        async with httpx2.AsyncClient() as http:
            refused = await http.post(url, json={})
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
        assert await trio.to_thread.run_sync(page, url) == b"the shop itself\n"


@pytest.mark.parametrize("mode", MODES)
@on_trio()
async def test_reactor_of_twisted_serves_the_client_of_the_package_on_stdio(mode: str) -> None:
    """The connection object needs only calls from a loop, so Twisted's must do."""
    command, *arguments = program("twisted_stdio")
    async with Client(StdioServerParameters(command=command, args=arguments), mode=mode) as client:
        await use_shop(client)


def test_call_that_twisted_gives_up_closes_its_connection() -> None:
    """In 2026-07-28 only the disconnect cancels the call, before a response has begun."""

    def asked(peer: socket.socket) -> JSONObject:
        """The message of the next request."""
        with peer.makefile("rb") as lines:
            head = dict(
                line.split(b": ") for line in iter(lines.readline, b"\r\n") if b": " in line
            )
            length = {name.lower(): value for name, value in head.items()}[b"content-length"]
            message: JSONObject = json.loads(lines.read(int(length)))
        return message

    command = [
        sys.executable,
        "-m",
        "tests.support.programs.twisted_cancelling_client",
        str(STACKS),
    ]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        with subprocess.Popen(
            [*command, url], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            with listener.accept()[0] as peer:
                peer.settimeout(30)
                probe = asked(peer)
                body = json.dumps(result(probe["id"], discovered())).encode()
                fields = b"Content-Type: application/json\r\nConnection: close\r\n"
                peer.sendall(
                    b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n" % (fields, len(body))
                )
                peer.sendall(body)
                assert client.stdout.readline() == b"2026-07-28\n"
            with listener.accept()[0] as peer:
                peer.settimeout(30)
                assert asked(peer)["method"] == "tools/list"
                with suppress(ConnectionResetError):  # which is an end, too
                    assert peer.recv(1) == b""
            assert client.stdout.readline() == b"ConnectionError\n"
            client.stdin.close()


def unix_socket(path: Path) -> bool:
    """Whether a server listens on this socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        return peer.connect_ex(str(path)) == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "command",
    [("over_unix_socket", "serve"), ("asyncio_unix_socket", "serve"), ("asyncio_protocol",)],
)
@on_trio()
async def test_unix_socket_carries_both_clients(command: tuple[str, ...], mode: str) -> None:
    """Any stream of bytes must work, for our client and for that of the official package."""
    with TemporaryDirectory() as directory:  # pytest's own may be too long for a socket's name
        path = Path(directory) / "mcp"
        server = await trio.lowlevel.open_process(program(*command, path))
        try:
            while not unix_socket(path):
                await trio.lowlevel.checkpoint()
            relay = str(ROOT / "tests" / "peers" / "relay.py")
            through = StdioServerParameters(command=sys.executable, args=[relay, str(path)])
            async with Client(through, mode=mode) as client:
                await use_shop(client)
            asker = command[0] if command[1:] else "over_unix_socket"
            asked = await trio.run_process(program(asker, "ask", path), capture_stdout=True)
            assert b"17 of lamp" in asked.stdout
        finally:
            server.terminate()
            await server.wait()


@pytest.mark.parametrize("mode", MODES)
@on_trio()
async def test_memory_carries_the_client_of_the_package(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server must behave in memory as it does in a process."""
    monkeypatch.setattr(sys, "path", [str(STACKS), *sys.path])
    in_process = importlib.import_module("in_process")
    async with (
        in_process.server_in_memory() as stream,
        Client(over_stream(stream), mode=mode) as client,
    ):
        await use_shop(client)


def test_memory_carries_our_client() -> None:
    """The pair in one process must do what its page shows."""
    run = subprocess.run(program("in_process"), capture_output=True, text=True, timeout=60)

    assert run.stderr == ""
    assert run.stdout == (STACKS / "in_process.out").read_text("utf-8")


@on_trio(seconds=60)
async def test_websocket_carries_our_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says that its class carries either side, and no other client speaks 2026-07-28."""
    monkeypatch.setattr(sys, "path", [str(STACKS), *sys.path])
    over_websocket = importlib.import_module("over_websocket")
    seen: list[object] = []

    def on_event(event: Event) -> None:
        if isinstance(event, Ready):
            seen.append(event.revision)
            client.send_request("tools/list")
        elif isinstance(event, ResponseReceived):
            seen.append([tool["name"] for tool in event.result["tools"]])
            client.close()

    with serving("over_websocket") as url:
        address = url.replace("http://", "ws://")
        async with open_websocket_url(address, subprotocols=["mcp"]) as web_socket:
            carrier = over_websocket.Carrier(web_socket, on_event)
            info: JSONObject = {"name": "by hand", "version": "1.0"}
            client = carrier.connection = ClientConnection(info=info, wake=carrier.turn)
            client.start()
            await carrier.run()
    assert seen == ["2026-07-28", ["stock", "count"]]


def conversation_that_ends_slowly() -> bytes:
    """Many slow calls, and then the end of input, which sets a deadline."""
    info = {"name": "by hand", "version": "1.0"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    messages: list[JSONObject] = [
        call(0, "initialize", params),
        INITIALIZED,
        *(call(id, "tools/call", {"name": "count"}) for id in range(1, 21)),
    ]
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def test_protocol_of_asyncio_has_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message and each response started one more timer, which was never cancelled."""
    monkeypatch.setattr(sys, "path", [str(STACKS), *sys.path])
    example = importlib.import_module("asyncio_protocol")
    timers: list[asyncio.TimerHandle] = []
    most = 0

    class Loop(asyncio.SelectorEventLoop):
        def call_at(  # type: ignore[override]  # typeshed: generic over `args`
            self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None
        ) -> asyncio.TimerHandle:
            nonlocal most
            handle = super().call_at(when, callback, *args, context=context)
            if getattr(callback, "__name__", "") == "keep_time":
                timers.append(handle)
                now = self.time()
                most = max(most, sum(one.when() > now and not one.cancelled() for one in timers))
            return handle

    async def talk() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(example.MCPServer, ours)
            theirs.setblocking(False)
            await loop.sock_sendall(theirs, conversation_that_ends_slowly())
            theirs.shutdown(socket.SHUT_WR)
            while await loop.sock_recv(theirs, 65_536):
                pass

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(talk())
    assert timers
    assert most == 1


def timers(reactor: Any, example: Any) -> int:
    return sum(each.func == example.keep_time for each in reactor.getDelayedCalls())


def test_protocol_of_twisted_has_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on the other kind of loop."""
    monkeypatch.setattr(sys, "path", [str(STACKS), *sys.path])
    example: Any = importlib.import_module("twisted_stdio")
    reactor = Clock()
    server = example.MCPServer(reactor)
    new_transport: Any = StringTransport  # Twisted has no types for it
    server.makeConnection(transport := new_transport())
    server.dataReceived(conversation_that_ends_slowly())
    server.readConnectionLost()
    assert timers(reactor, server) == 1
    while not transport.disconnecting:
        reactor.advance(0.01)
    assert timers(reactor, server) == 0
    answers = [json.loads(line) for line in transport.value().splitlines()]
    assert sum("result" in answer for answer in answers) == 21


def test_client_of_twisted_has_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadlines of all calls must share one timer."""
    monkeypatch.setattr(sys, "path", [str(STACKS), *sys.path])
    example: Any = importlib.import_module("twisted_client")
    new_reactor: Any = MemoryReactorClock  # Twisted has no types for it
    reactor = new_reactor()
    client = example.MCPClient(reactor, "http://127.0.0.1:1/mcp")
    started = client.start()
    failures: list[object] = []
    started.addErrback(failures.append)
    for _ in range(4):  # the deadline of the probe comes before that of the start
        assert timers(reactor, client) == (0 if failures else 1)
        reactor.advance(10)
    assert len(failures) == 1


def without_handler(source: str) -> str:
    """A program without the sections that are only about what its server or client does."""
    flags = re.MULTILINE | re.DOTALL
    return re.sub(r"^ *# -- handler\n.*?(?=^ *# -- |\Z)", "", source, flags=flags)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_example_is_shown_on_a_page(path: Path) -> None:
    """A reader cannot find an example that no page shows."""
    pages = (ROOT / "docs" / "howto").glob("*.md")

    assert any(f"examples/stacks/{path.name}" in page.read_text("utf-8") for page in pages)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_example_is_short(path: Path) -> None:
    """An integration of more than a page shows that the library does not fit the stack."""
    limit = {"gateway": 220, "framework": 150, "twisted_client": 65}.get(path.stem, 60)

    assert code_lines(without_handler(path.read_text("utf-8"))) <= limit
