"""Code that type checkers must accept. They read this file with the others; nothing runs it."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, assert_type

import attrs

from sansmcp import (
    ClientConnection,
    JSONObject,
    JSONValue,
    OutgoingRequest,
    ServerConnection,
    content,
)
from sansmcp.types import (
    CallToolRequestParams,
    CallToolResult,
    CancelTaskResult,
    CompleteResult,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateTaskResult,
    DiscoverResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    EmptyResult,
    GetPromptResult,
    GetTaskResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListRootsResult,
    ListTasksResult,
    ListToolsResult,
    ReadResourceResult,
    SubscriptionsListenResult,
)
from sansmcp_io import asgi, blocking
from sansmcp_io.trio import (
    Call,
    Client,
    ClientTask,
    Handler,
    RequestHandler,
    Server,
    ServerCall,
    connect_stdio,
    serve_http,
    serve_stdio,
)

MESSAGES: CreateMessageRequestParams = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "?"}}],
    "maxTokens": 1,
}
FORM: ElicitRequestFormParams = {
    "message": "Who are you?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string", "format": "email"}, "age": {"type": "integer"}},
        "required": ["name"],
    },
}


# ------------------------------------------------------------------------------ connections


def requests_of_a_client(client: ClientConnection) -> None:
    send = client.send_request
    assert_type(send("tools/call", {"name": "a"}), OutgoingRequest)
    send("tools/call", {"name": "a", "arguments": {"x": [1]}, "task": {"ttl": 1}}, timeout=1)
    send("tools/call", {"name": "a", "_meta": {"com.example/anything": 1}}, id="a", now=1.0)
    send("tools/list")
    send("tools/list", {})
    send("tools/list", {"cursor": "c"}, meta={}, progress=True, data=object())
    send("resources/list", None, max_timeout=3)
    send("resources/templates/list", request=None)
    send("resources/read", {"uri": "file:///a"})
    send("resources/subscribe", {"uri": "file:///a"})
    send("resources/unsubscribe", {"uri": "file:///a"})
    send("prompts/list")
    send("prompts/get", {"name": "a", "arguments": {"b": "c"}})
    send(
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "b", "value": "c"}},
    )
    send("logging/setLevel", {"level": "warning"})
    send("ping")
    send("tasks/get", {"taskId": "a"})
    send("tasks/result", {"taskId": "a"})
    send("tasks/cancel", {"taskId": "a"})
    send("tasks/list")
    send("server/discover")
    send("subscriptions/listen", {"notifications": {"toolsListChanged": True}})


def requests_of_a_server(server: ServerConnection) -> None:
    send = server.send_request
    assert_type(send("sampling/createMessage", MESSAGES), OutgoingRequest)
    send("sampling/createMessage", {"messages": [], "maxTokens": 1, "temperature": 0.5})
    send("elicitation/create", FORM)
    send("elicitation/create", {"mode": "url", "message": "a", "url": "b", "elicitationId": "c"})
    send("roots/list")
    send("ping", {}, timeout=1)
    send("tasks/get", {"taskId": "a"})
    send("tasks/list", {"cursor": "a"})


def params_that_are_not_checked(
    client: ClientConnection, method: str, params: JSONObject, anything: Any
) -> None:
    """Params of methods without a TypedDict must be accepted: gateways pass them on."""
    assert_type(client.send_request(method, params), OutgoingRequest)
    assert_type(client.send_request("tools/call", params), OutgoingRequest)
    assert_type(client.send_request("com.example/mine", {"a": 1}), OutgoingRequest)
    assert_type(client.send_request(method, {"a": 1}), OutgoingRequest)
    assert_type(client.send_request(method, anything), OutgoingRequest)
    inferred = {"name": "a"}
    assert_type(client.send_request("tools/call", inferred), OutgoingRequest)
    client.send_request("tools/call", {})  # the gap that the guide tells of
    for listing in ("tools/list", "prompts/list"):
        assert_type(client.send_request(listing), OutgoingRequest)


def optional_options(client: ClientConnection, timeout: float | None) -> None:
    """mypy resolves overloads in another way when an argument has a union type."""
    assert_type(client.send_request("tools/call", {"name": "a"}, timeout=timeout), OutgoingRequest)


def either_side(peer: ClientConnection | ServerConnection, params: JSONObject) -> None:
    assert_type(peer.send_request("com.example/mine", params), OutgoingRequest)


# --------------------------------------------------------------------------------- adapters


async def results_of_a_client(client: Client, typed: CallToolRequestParams) -> None:
    ask = client.request
    assert_type(await ask("tools/call", {"name": "a"}), CallToolResult)
    assert_type(await ask("tools/call", typed, timeout=1), CallToolResult)
    assert_type(await ask("tools/call", {"name": "a", "task": {}}), CreateTaskResult)
    assert_type(await ask("tools/list"), ListToolsResult)
    assert_type(await ask("resources/list", {"cursor": "c"}), ListResourcesResult)
    assert_type(await ask("resources/templates/list"), ListResourceTemplatesResult)
    assert_type(await ask("resources/read", {"uri": "a"}), ReadResourceResult)
    assert_type(await ask("resources/subscribe", {"uri": "a"}), EmptyResult)
    assert_type(await ask("resources/unsubscribe", {"uri": "a"}), EmptyResult)
    assert_type(await ask("prompts/list"), ListPromptsResult)
    assert_type(await ask("prompts/get", {"name": "a"}), GetPromptResult)
    assert_type(
        await ask(
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "a"}, "argument": {"name": "b", "value": ""}},
        ),
        CompleteResult,
    )
    assert_type(await ask("logging/setLevel", {"level": "debug"}), EmptyResult)
    assert_type(await ask("ping", meta={}), EmptyResult)
    assert_type(await ask("server/discover"), DiscoverResult)
    listening = await ask("subscriptions/listen", {"notifications": {}})
    assert_type(listening, SubscriptionsListenResult)


async def results_of_tasks(client: Client) -> None:
    assert_type(await client.request("tasks/get", {"taskId": "a"}), GetTaskResult)
    assert_type(await client.request("tasks/cancel", {"taskId": "a"}), CancelTaskResult)
    assert_type(await client.request("tasks/list"), ListTasksResult)
    assert_type(await client.request("tasks/result", {"taskId": "a"}), JSONObject)


async def tasks_of_a_client(
    client: Client, other: blocking.Client, params: JSONObject, typed: CallToolRequestParams
) -> None:
    assert_type(await client.start_task("tools/call", {"name": "a"}), ClientTask)
    assert_type(await client.start_task("tools/call", typed, task=3600, timeout=1), ClientTask)
    assert_type(await client.start_task("tools/call", params), ClientTask)
    assert_type(await client.start_task("com.example/mine", {"a": 1}), ClientTask)
    assert_type(other.start_task("tools/call", {"name": "a"}), blocking.ClientTask)
    assert_type(other.start_task("tools/call", params, max_timeout=9), blocking.ClientTask)


async def results_of_a_server(server: Server, question: ElicitRequestParams) -> None:
    ask = server.request
    assert_type(await ask("sampling/createMessage", MESSAGES), CreateMessageResult)
    task = await ask("sampling/createMessage", {"messages": [], "maxTokens": 1, "task": {}})
    assert_type(task, CreateTaskResult)
    assert_type(await ask("elicitation/create", FORM), ElicitResult)
    assert_type(await ask("elicitation/create", question), ElicitResult)
    assert_type(
        await ask("elicitation/create", {"mode": "url", "message": "", "url": "", "task": {}}),
        CreateTaskResult,
    )
    assert_type(await ask("roots/list"), ListRootsResult)


async def results_in_a_call(call: Call, server_call: ServerCall, params: JSONObject) -> None:
    assert_type(await call.request("tools/call", {"name": "a"}), CallToolResult)
    assert_type(await server_call.request("roots/list"), ListRootsResult)
    assert_type(await server_call.request("elicitation/create", params), ElicitResult)


async def results_that_are_not_known(client: Client, method: str, params: JSONObject) -> None:
    assert_type(await client.request(method, params), JSONObject)
    assert_type(await client.request("com.example/mine", {"a": 1}), JSONObject)
    assert_type(await client.request("tools/call", params), CallToolResult)
    assert_type(client.items("tools/list"), AsyncGenerator[JSONValue, None])


def reading(result: CallToolResult) -> list[str]:
    """Literal types tell the members of a union apart."""
    return [block["text"] for block in result["content"] if block["type"] == "text"]


# -------------------------------------------------------------------------- options of adapters


async def options_of_clients(command: list[str], answer: RequestHandler) -> None:
    async with connect_stdio(command, info={}, on_request=answer, restarts=1) as client:
        assert_type(client, Client)
    async with connect_stdio(command=command, info={}, env={"A": "b"}) as client:
        assert_type(client, Client)
    with blocking.connect_http("http://localhost", info={}, get_stream=False) as other:
        assert_type(other, blocking.Client)


@dataclass
class Shown:
    content: list[object]


@attrs.frozen
class Found:
    content: list[object]


def typed_result(call: ServerCall) -> CallToolResult:
    return {"content": []}


async def object_result(call: ServerCall) -> Shown | Found:
    return Shown([]) if call.params else Found([])


async def results_of_handlers() -> None:
    await serve_stdio(typed_result, info={})
    await serve_stdio(object_result, info={})
    blocking.serve_stdio(lambda call: content.structured({"a": 1}), info={})


async def options_of_servers(handler: Handler) -> None:
    assert_type(await serve_stdio(handler, info={}, drain=2.0), None)
    assert_type(await serve_http(handler, "::1", 0, info={}, hosts=["a"]), None)
    assert_type(asgi.App(lambda call: {}, info={}, path="/mcp"), asgi.App)
