"""The example gateway, with a client and two servers of other projects."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
import trio
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.subscriptions import ToolsListChanged
from mcp.shared.exceptions import MCPError
from pydantic import FileUrl
from trio.testing import wait_all_tasks_blocked

from tests.interop.peers import everything, mcp_server
from tests.support.adapters.on_trio import on_trio
from tests.support.programs.long_names import NAMES as LONG_NAMES
from tests.support.stacks import ROOT, program

MODES = ("legacy", "2026-07-28")


class Person:
    """The user of the client, with all messages and questions received."""

    def __init__(self) -> None:
        self.logged: list[Any] = []
        self.changed = trio.Event()
        self.asked: list[str] = []
        self.hesitates = False

    async def on_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=FileUrl("file:///a/root"))])

    async def on_sampling(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        (message,) = params.messages
        assert isinstance(message.content, types.TextContent)
        self.asked.append(message.content.text)
        if self.hesitates:
            await trio.sleep_forever()
        content = types.TextContent(text=f"a sample of {message.content.text}")
        return types.CreateMessageResult(role="assistant", content=content, model="none")

    async def on_log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.logged.append([params.logger, params.data])

    async def on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.changed.set()

    @asynccontextmanager
    async def client(
        self, folder: Path, mode: str, behind: str, **settings: Any
    ) -> AsyncGenerator[Client]:
        file = folder / "servers.json"
        other = mcp_server().with_arguments(behind)
        commands = {"all": everything().command, "mcp": other.command}
        file.write_text(json.dumps({k: [str(one) for one in v] for k, v in commands.items()}))
        python, *arguments = program("gateway", file)
        if not settings:
            settings = {"list_roots_callback": self.on_roots, "sampling_callback": self.on_sampling}
        parameters = StdioServerParameters(command=python, args=arguments)
        with (folder / "stderr").open("w") as errlog:
            async with Client(
                stdio_client(parameters, errlog=errlog),
                mode=mode,
                logging_callback=self.on_log,
                log_level=None if mode == "legacy" else "debug",
                message_handler=self.on_message,
                **settings,
            ) as client:
                yield client


async def said(client: Client, name: str, progress: Any = None, /, **arguments: Any) -> str:
    result = await client.call_tool(name, arguments, progress_callback=progress)
    return "".join(one.text for one in result.content if isinstance(one, types.TextContent))


async def names(client: Client) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        found += [tool.name for tool in page.tools]
        if (cursor := page.next_cursor) is None:
            return found


crosswise = pytest.mark.parametrize(
    ("mode", "behind"), [("legacy", "modern"), ("2026-07-28", "legacy")]
)


@crosswise
@on_trio()
async def test_lists_and_names_of_both_servers_come_through(
    tmp_path: Path, mode: str, behind: str
) -> None:
    """A client must find the items of both servers page by page, and use them by their names."""
    async with Person().client(tmp_path, mode, behind) as client:
        found = await names(client)
        assert len(set(found)) == len(found)
        assert {"all.echo", "mcp.echo", "mcp.filler_19"} <= set(found)
        assert await said(client, "all.echo", message="a") == "Echo: a"
        assert await said(client, "mcp.echo", text="b") == "b"
        prompt = await client.get_prompt("mcp.greet", {"name": "Ada"})
        assert prompt.messages[0].content == types.TextContent(text="Please greet Ada.")
        resource = "mcp.test://notes/first"
        (read,) = (await client.read_resource(resource)).contents
        assert isinstance(read, types.TextResourceContents)
        assert (str(read.uri), read.text) == (resource, "first note")
        reference = types.PromptReference(name="mcp.greet")
        completed = await client.complete(reference, {"name": "name", "value": "a"})
        assert completed.completion.values == ["ada", "alan"]
        for name, code in (("nobody.echo", -32602), ("mcp.nothing", -32602)):
            with pytest.raises(MCPError) as caught:
                await client.call_tool(name, {})
            assert caught.value.code == code


@crosswise
@on_trio()
async def test_calls_at_once_get_what_is_theirs(tmp_path: Path, mode: str, behind: str) -> None:
    """Ids and tokens of the client and both servers overlap, and must not be mixed up."""
    person, seen = Person(), dict[str, list[float]]()
    async with person.client(tmp_path, mode, behind) as client, trio.open_nursery() as nursery:

        async def echo(prefix: str, member: str, number: int) -> None:
            assert str(number) in await said(client, f"{prefix}.echo", **{member: str(number)})

        async def count(name: str, arguments: Any) -> None:
            async def on_progress(
                progress: float, total: float | None, message: str | None
            ) -> None:
                seen.setdefault(name, []).append(progress)

            await said(client, name, on_progress, **arguments)

        async def ask(prompt: str) -> None:
            assert await said(client, "mcp.ask_sampling", prompt=prompt) == f"a sample of {prompt}"

        nursery.start_soon(count, "mcp.progress", {"steps": 5})
        nursery.start_soon(
            count, "all.trigger-long-running-operation", {"duration": 0.2, "steps": 4}
        )
        nursery.start_soon(ask, "A")
        nursery.start_soon(ask, "B")
        for number in range(10):
            nursery.start_soon(echo, "all", "message", number)
            nursery.start_soon(echo, "mcp", "text", number + 100)

    assert seen == {
        "mcp.progress": [1, 2, 3, 4, 5],
        "all.trigger-long-running-operation": [1, 2, 3, 4],
    }
    assert sorted(person.asked) == ["A", "B"]


@crosswise
@on_trio()
async def test_rounds_of_both_servers_reach_the_person(
    tmp_path: Path, mode: str, behind: str
) -> None:
    """Each answer of the client must reach the server that asked."""
    person = Person()
    async with person.client(tmp_path, mode, behind) as client:
        assert "file:///a/root" in await said(client, "mcp.ask_roots")
        text = await said(client, "all.trigger-sampling-request", prompt="C")
        assert "a sample of" in text


@crosswise
@on_trio()
async def test_servers_are_told_of_no_capability_that_the_client_has_not(
    tmp_path: Path, mode: str, behind: str
) -> None:
    """A server would ask a client that cannot answer."""
    async with Person().client(tmp_path, mode, behind, read_timeout_seconds=30) as client:
        found = await names(client)
        assert "all.trigger-sampling-request" not in found
        try:
            refused = (await client.call_tool("mcp.ask_sampling", {})).is_error
        except MCPError:
            refused = True
        assert refused


@crosswise
@on_trio()
async def test_cancellation_reaches_the_server(tmp_path: Path, mode: str, behind: str) -> None:
    """Cancelled work must stop also behind the gateway."""
    complaints = tmp_path / "stderr"
    # Without capabilities, for which an old server is given one call at a time.
    async with Person().client(tmp_path, mode, behind, read_timeout_seconds=30) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(said, client, "mcp.slow", seconds="60"))
            await wait_all_tasks_blocked()
            await said(client, "mcp.echo", text="the slow one was read before")
            nursery.cancel_scope.cancel()
        while "slow: cancelled" not in complaints.read_text("utf-8"):
            await trio.lowlevel.checkpoint()
        assert await said(client, "mcp.echo", text="still here") == "still here"


@crosswise
@on_trio()
async def test_logs_come_through(tmp_path: Path, mode: str, behind: str) -> None:
    """Log messages of a call must reach the client that made it."""
    person = Person()
    async with person.client(tmp_path, mode, behind) as client:
        await said(client, "mcp.log", level="error", message="burning")
        assert person.logged == [["mcp.peer", "burning"]]


@pytest.mark.parametrize("mode", MODES)
@on_trio()
async def test_changes_come_through(tmp_path: Path, mode: str) -> None:
    """Changes must reach the client in the form of its era."""
    person = Person()
    async with person.client(tmp_path, mode, "modern") as client:
        await said(client, "mcp.echo", text="so that its process is there")
        if mode == "legacy":
            await said(client, "mcp.change")
            await person.changed.wait()
        else:
            async with client.listen(tools_list_changed=True) as changes:
                await said(client, "mcp.change")
                assert isinstance(await anext(changes), ToolsListChanged)


@asynccontextmanager
async def before_long_names(folder: Path) -> AsyncGenerator[Client]:
    """The gateway before a server whose names leave no room for a prefix."""
    file = folder / "servers.json"
    script = str(ROOT / "tests" / "support" / "programs" / "long_names.py")
    file.write_text(json.dumps({"long": [sys.executable, script]}))
    python, *arguments = program("gateway", file)
    async with Client(StdioServerParameters(command=python, args=arguments)) as client:
        yield client


@on_trio()
async def test_names_that_get_too_long_are_cut_and_found_again(tmp_path: Path) -> None:
    """A name of 128 characters leaves no room for a prefix, and must still be unique."""
    async with before_long_names(tmp_path) as client:
        *found, _ = await names(client)
        assert [len(name) for name in found] == [128, 128]
        assert [await said(client, name) for name in found] == LONG_NAMES


@on_trio()
async def test_server_that_ends_is_named_and_started_again(tmp_path: Path) -> None:
    """With several servers behind one, the error must name the one that ended."""
    async with before_long_names(tmp_path) as client:
        with pytest.raises(MCPError, match=r"^long: ") as caught:
            await said(client, "long.die")
        assert caught.value.code == -32603
        assert await said(client, f"long.{'x' * 10}") == "x" * 10  # it was started again
