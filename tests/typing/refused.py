"""Code that type checkers must refuse, each line with the expected error.

Both checkers report an ignore comment that is not needed, so that a line which is accepted is an
error: that is the reason of each of them. Nothing runs this file.
"""

from sansmcp import ClientConnection, JSONObject, ServerConnection
from sansmcp.types import CallToolResult, PaginatedRequestParams, Tool
from sansmcp_io import blocking
from sansmcp_io.asgi import App
from sansmcp_io.trio import Client, Handler, Server, connect_stdio, serve_http


def params_of_a_client(client: ClientConnection) -> None:
    send = client.send_request
    send("tools/call", {"nme": "a"})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("tools/call", {"name": 1})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("tools/call", {"name": "a", "more": 1})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("tools/call", {"name": "a", "arguments": [1]})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("tools/call")  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("tools/list", {"cursor": 1})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("resources/list", {"uri": "a"})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("resources/templates/list", {"uri": "a"})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("resources/read", {"url": "a"})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("resources/subscribe", {"uri": None})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("resources/unsubscribe", {"uri": []})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("prompts/list", {"name": "a"})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("prompts/get", {"name": "a", "arguments": {"b": 1}})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("completion/complete", {"ref": {"type": "ref/other"}, "argument": {}})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("logging/setLevel", {"level": "loud"})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("ping", {"a": 1})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("tasks/get", {"id": "a"})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("tasks/result", {"id": "a"})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("tasks/cancel", {"id": "a"})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("tasks/list", {"taskId": "a"})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("server/discover", {"a": 1})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("subscriptions/listen", {"notifications": {"tools": True}})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("initialize", {"protocolVersion": "x"})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]  # `start` sends it


def params_of_a_server(server: ServerConnection) -> None:
    send = server.send_request
    send("sampling/createMessage", {"messages": []})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("sampling/createMessage", {"messages": [{"role": "me"}], "maxTokens": 1})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("elicitation/create", {"mode": "url", "message": "a"})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("elicitation/create", {"message": "a", "requestedSchema": {"type": "array"}})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("roots/list", {"cursor": "a"})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("ping", {"a": 1})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("tasks/get", {"id": "a"})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    send("tasks/list", {"id": "a"})  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]


def handles_and_options(client: ClientConnection, params: JSONObject) -> None:
    call = client.send_request("tools/call", {"nme": "a"})
    client.cancel(call)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.send_request("tools/list", timout=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    client.send_request("com.example/mine", params, timeout="1")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    client.send_request("com.example/mine", ["a"])  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]


def params_of_another_method(client: ClientConnection, page: PaginatedRequestParams) -> None:
    client.send_request("tools/call", page)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]


async def params_of_adapters(client: Client, server: Server) -> None:
    await client.request("tools/call", {"nme": "a"})  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]
    await client.request("tools/call")  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]
    await client.request("tools/list", {"cursor": 1})  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]
    await client.request("logging/setLevel", {"level": "loud"})  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]
    await server.request("sampling/createMessage", {"messages": []})  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]
    await server.request("elicitation/create", {"mode": "page", "message": "a"})  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]
    await server.request("roots/list", {"a": 1})  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]
    await client.request("tools/list", on_progress=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]


async def params_of_tasks(client: Client, other: blocking.Client) -> None:
    await client.start_task("tools/call", {"nme": "a"})  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]
    await client.start_task("tools/call")  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]
    await client.start_task("tools/call", {"name": "a"}, timout=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    other.start_task("tools/call", {"name": 1}).result()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


async def results(client: Client) -> None:
    result = await client.request("tools/call", {"name": "a"})
    result["contents"]  # type: ignore[typeddict-item]  # pyright: ignore[reportGeneralTypeIssues]
    result["content"][0]["txt"]  # type: ignore[typeddict-item]  # pyright: ignore[reportGeneralTypeIssues]


def definitions(tools: list[Tool], results: list[CallToolResult]) -> None:
    tools.append({"name": "a", "inputSchema": {"type": "object", "$defs": {}}})
    tools.append({"name": "a"})  # type: ignore[typeddict-item]  # pyright: ignore[reportArgumentType]
    results.append({"content": [{"type": "txt", "text": "a"}]})  # type: ignore[typeddict-item]  # pyright: ignore[reportArgumentType]


async def options_of_adapters(command: list[str], handler: Handler) -> None:
    connect_stdio(command)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    connect_stdio(command, info={}, restart=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    connect_stdio(command, info={}, restarts="1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    connect_stdio(command, info={}, on_request=lambda: None)  # type: ignore[arg-type, misc]  # pyright: ignore[reportArgumentType]
    await serve_http(handler, "::1", "80", info={})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    blocking.serve_stdio(handler, info={}, threads=2)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    App(handler, info={}, path=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
