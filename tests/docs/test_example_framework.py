"""The example framework and the tracing example, with a client on the official package."""

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from sansmcp import JSONObject
from sansmcp_io.trio import PeerError, connect_stdio
from tests.support.adapters.on_trio import on_trio
from tests.support.stacks import ROOT, STACKS, program


@pytest.fixture
def parameters_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The framework's schema of the parameters of a function."""
    monkeypatch.setattr(sys, "path", [str(STACKS), *sys.path])
    function: Callable[..., Any] = import_module("framework").parameters_of
    return function


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@on_trio()
async def test_framework_serves_the_client_of_the_package(mode: str) -> None:
    """A framework that is built as the page shows must work with other clients."""
    seen: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    command, *arguments = program("framework_app")
    async with Client(StdioServerParameters(command=command, args=arguments), mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["convert"].description == "Convert a temperature."
        assert tools["convert"].input_schema == {
            "type": "object",
            "properties": {
                "degrees": {"type": "number"},
                "to": {"enum": ["celsius", "fahrenheit"], "default": "celsius"},
            },
            "required": ["degrees"],
            "additionalProperties": False,
        }
        converted = await client.call_tool("convert", {"degrees": 212})
        assert converted.content == [types.TextContent(text="100.0")]
        cities = {"cities": ["Rome", "Oslo"]}
        forecast = await client.call_tool("forecast", cities, progress_callback=on_progress)
        assert forecast.structured_content == {"Rome": "rain", "Oslo": "rain"}
        assert seen == [1, 2]
        for name, given in (("convert", {"degrees": "hot"}), ("convert", {}), ("none", {})):
            with pytest.raises(MCPError) as caught:
                await client.call_tool(name, given)
            assert caught.value.code == -32602
        assert (await client.list_resource_templates()).resource_templates == []
        (resource,) = (await client.list_resources()).resources
        (read,) = (await client.read_resource(str(resource.uri))).contents
        assert isinstance(read, types.TextResourceContents)
        assert read.text == "rain"
        prompt = await client.get_prompt("ask", {"city": "Rome"})
        assert prompt.messages[0].content == types.TextContent(text="What is the weather in Rome?")


@on_trio(seconds=60)
async def test_framework_says_what_it_does_not_serve() -> None:
    """In the first revision completion needs no capability, so the framework gets the request."""
    params: JSONObject = {
        "ref": {"type": "ref/prompt", "name": "ask"},
        "argument": {"name": "city", "value": ""},
    }
    info = {"name": "by hand", "version": "1.0"}
    async with connect_stdio(
        program("framework_app"), info=info, revisions=["2024-11-05"]
    ) as client:
        with pytest.raises(PeerError) as caught:
            await client.request("completion/complete", params)
    assert caught.value.code == -32601


def test_framework_makes_a_schema_of_each_annotation(parameters_of: Callable[..., Any]) -> None:
    """A schema that is too loose lets values through that the function cannot use."""

    def function(
        number: int, flag: bool, maybe: str | None, table: dict[str, list[float]]
    ) -> None: ...

    assert parameters_of(function)["properties"] == {
        "number": {"type": "integer"},
        "flag": {"type": "boolean"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "table": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "number"}},
        },
    }


def test_framework_refuses_what_has_no_schema(parameters_of: Callable[..., Any]) -> None:
    """The error must come when the function is defined, and not in a call of a client."""

    def function(unknown: bytes) -> None: ...

    with pytest.raises(TypeError, match="has no JSON schema"):
        parameters_of(function)


def test_tracing_prints_what_its_page_shows() -> None:
    """The page shows the nesting of the spans."""
    run = subprocess.run(program("tracing"), capture_output=True, text=True, timeout=60)

    assert run.stderr == ""
    assert run.stdout == (STACKS / "tracing.out").read_text("utf-8")


def test_trace_goes_on_from_the_client_of_the_package() -> None:
    """Both implementations must use the same members, so that there is one trace."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.peers.mcp_tracing", STACKS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.stderr == ""
    spans = [json.loads(line) for line in run.stdout.splitlines()]
    (served,) = [
        one for one in spans if one["name"] == "tools/call stock" and one["by"] == "sansmcp"
    ]
    (asked,) = [one for one in spans if one["id"] == served["above"]]

    assert asked["by"] == "mcp-python-sdk"
    assert asked["trace"] == served["trace"]
