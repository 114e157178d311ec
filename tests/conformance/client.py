"""A client for the official conformance suite: `python -m tests.conformance.client URL`.

The suite starts a server for each scenario and this with its URL. It says in variables which
scenario that is, which revision is spoken, and with what tools are to be called.
"""

import json
import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeAlias

import trio

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, ErrorCode, JSONObject
from sansmcp_io.trio import Call, Client, PeerError, connect_http

INFO: Final = {"name": "sansmcp-conformance", "version": "1.0"}
CAPABILITIES: Final[JSONObject] = {"elicitation": {"form": {}}}
Answer: TypeAlias = Callable[[Call], Coroutine[Any, Any, JSONObject]]


async def fill_in_defaults(call: Call) -> JSONObject:
    """A user who agrees to what a form has in it already (SEP-1034)."""
    fields: Any = call.params.get("requestedSchema", {}).get("properties", {})
    content = {name: field["default"] for name, field in fields.items() if "default" in field}
    return {"action": "accept", "content": content or {"confirmed": True}}


async def everything(client: Client, context: Mapping[str, Any]) -> None:
    """List what there is, and ask for each of it once."""
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
    """List the tools, and do nothing with what stands in them."""
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
    """Be asked before the answers come; meanwhile another tool is called (see `main`)."""
    await listing(client, context)
    for name in ("test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_no_result_type"):
        await client.request("tools/call", {"name": name, "arguments": {}})


SCENARIOS: Final[Mapping[str, Callable[[Client, Mapping[str, Any]], Coroutine[Any, Any, None]]]] = {
    "json-schema-ref-no-deref": listing,
    "json-schema-2020-12-preservation": echoing,
    "sep-2322-client-request-state": answering,
}


class Stream:
    """Sees the stream of a session open: what a server asks there before may be lost."""

    def __init__(self) -> None:
        self.answered = trio.Event()
        self._asked: set[str] = set()

    def sent(self, connection: str, data: bytes) -> None:
        if data.startswith(b"GET "):
            self._asked.add(connection)

    def received(self, connection: str, data: bytes) -> None:
        if connection in self._asked:
            self.answered.set()

    def happened(self, event: object) -> None:
        """The stream is no event."""


async def main(url: str) -> None:
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
        async with connect_http(
            url,
            info=INFO,
            capabilities=CAPABILITIES,
            revisions=MODERN_REVISIONS if version in MODERN_REVISIONS else LEGACY_REVISIONS,
            on_request=on_request,
            # To this scenario every GET is the call's: one that opens a stream of its own is taken
            # for a call that was resumed too early.
            get_stream=scenario != "sse-retry",
            request_timeout=20.0,
            trace=stream,
        ) as client:
            if scenario.startswith("elicitation-"):
                await stream.answered.wait()
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
    if os.environ.get("MCP_CONFORMANCE_SCENARIO", "").startswith("auth/"):
        sys.exit("where tokens come from is not attempted")
    trio.run(main, sys.argv[1])
