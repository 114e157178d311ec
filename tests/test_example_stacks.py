"""The examples on other people's stacks, each against a client or server that is not ours."""

import urllib.request

import mcp_types as types
import pytest
import trio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from .support.on_trio import on_trio
from .support.stacks import program, serving

# The package's HTTP client leaves generators to the garbage collector, of which trio complains.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

MODES = ("legacy", "2026-07-28")


async def said(client: Client, name: str, **arguments: str) -> str:
    result = await client.call_tool(name, arguments)
    assert not result.is_error
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


async def use_shop(client: Client) -> None:
    """All that the shop of the examples can do."""
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
    """What another route of the same program serves."""
    with urllib.request.urlopen(url.replace("/mcp", "/")) as response:
        return response.read()  # type: ignore[no-any-return]  # typeshed: Any


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["on_aiohttp", "on_tornado"])
@on_trio(seconds=60)
async def test_loop_of_another_stack_serves_the_client_of_the_package(name: str, mode: str) -> None:
    """Whoever follows the page on this stack has a server that others can use, streams included."""
    with serving(name) as url:
        async with Client(url, mode=mode) as client:
            await use_shop(client)
        assert await trio.to_thread.run_sync(page, url) == b"the shop itself\n"


@pytest.mark.parametrize("mode", MODES)
@on_trio(seconds=60)
async def test_reactor_of_twisted_serves_the_client_of_the_package_on_stdio(mode: str) -> None:
    """The connection object needs nothing of a loop but calls: Twisted's does as well."""
    command, *arguments = program("twisted_stdio")
    async with Client(StdioServerParameters(command=command, args=arguments), mode=mode) as client:
        await use_shop(client)
