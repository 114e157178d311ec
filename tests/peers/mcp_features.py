"""A client on the official `mcp` package that uses every feature of the server it is given.

In contrast to `mcp_client.py` it leaves the choice of the era to the package where MODE is `auto`,
and it expects the features that `tests/interop/hand_driven_server.py` has.

Usage: python tests/peers/mcp_features.py MODE COMMAND...

MODE is `auto`, `legacy`, or a revision without a handshake. It prints one JSON object: what came of
each step, for the caller to judge.
"""

import json
import sys
from typing import Any

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import FileUrl

NOTE = "test://notes/1"
TIMEOUT = 10.0

told: dict[str, list[Any]] = {"faults": [], "logs": [], "updated": [], "tools_changed": []}


async def on_message(message: IncomingMessage) -> None:
    match message:
        case Exception():
            told["faults"].append(repr(message))
        case types.ResourceUpdatedNotification():
            told["updated"].append(str(message.params.uri))
        case types.ToolListChangedNotification():
            told["tools_changed"].append(True)
        case _:
            pass


async def on_log(params: types.LoggingMessageNotificationParams) -> None:
    told["logs"].append([params.level, params.logger, params.data])


async def on_elicitation(
    context: ClientRequestContext, params: types.ElicitRequestParams
) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def on_sampling(
    context: ClientRequestContext, params: types.CreateMessageRequestParams
) -> types.CreateMessageResult:
    content = types.TextContent(text="a sample")
    return types.CreateMessageResult(role="assistant", content=content, model="none")


async def on_roots(context: ClientRequestContext) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri=FileUrl("file:///a/root"))])


def is_modern(client: Client) -> bool:
    return client.protocol_version in MODERN_PROTOCOL_VERSIONS


async def call(
    client: Client, name: str, meta: types.RequestParamsMeta | None = None, **arguments: Any
) -> str:
    result = await client.call_tool(name, arguments, meta=meta)
    return "".join(one.text for one in result.content if isinstance(one, types.TextContent))


async def read(client: Client, uri: str) -> str | int:
    """The text of a resource, or the code of the error."""
    try:
        result = await client.read_resource(uri)
    except MCPError as error:
        return error.code
    return "".join(
        one.text for one in result.contents if isinstance(one, types.TextResourceContents)
    )


async def list_resources(client: Client) -> list[str]:
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = await client.list_resources(cursor=cursor)
        names += [resource.name for resource in page.resources]
        if (cursor := page.next_cursor) is None:
            return names


async def subscribe(client: Client) -> list[str]:
    """The server's messages about a change before, during and after a subscription."""
    # Put together by hand, because the package's own methods warn: the newest revision drops them.
    params = types.SubscribeRequestParams(uri=NOTE)
    before = await call(client, "touch", uri=NOTE)
    if is_modern(client):
        async with client.listen(resource_subscriptions=[NOTE], tools_list_changed=True) as changes:
            during = await call(client, "touch", uri=NOTE)
            await call(client, "change")
            told["events"] = [repr(await anext(changes)) for _ in range(2)]
        while await call(client, "subscriptions") != "0":
            pass  # the package says that it does not listen any more when it comes to it
        after = await call(client, "touch", uri=NOTE)
        async with client.listen(tools_list_changed=True) as changes:
            told["hung_up"] = [await call(client, "hang_up"), [one async for one in changes]]
        return [before, during, after]
    await client.session.send_request(types.SubscribeRequest(params=params), types.EmptyResult)
    during = await call(client, "touch", uri=NOTE)
    await client.session.send_request(
        types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=NOTE)),
        types.EmptyResult,
    )
    return [before, during, await call(client, "touch", uri=NOTE)]


async def log(client: Client) -> list[str]:
    if is_modern(client):
        asked: Any = {types.LOG_LEVEL_META_KEY: "warning"}
        below, above = [await call(client, "log", asked, level=one) for one in ("info", "error")]
        return [await call(client, "log", level="error"), below, above]
    params = types.SetLevelRequestParams(level="warning")
    await client.session.send_request(types.SetLevelRequest(params=params), types.EmptyResult)
    return [await call(client, "log", level=level) for level in ("info", "error")]


async def cancel(client: Client) -> str:
    """Cancel a call as soon as it has begun, and ask the server whether it noticed."""
    begun = anyio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        begun.set()

    async def wait() -> None:
        await client.call_tool("wait", {}, progress_callback=on_progress)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await begun.wait()
        tasks.cancel_scope.cancel()
    return await call(client, "cancellations")


async def complete(client: Client) -> list[str]:
    ref = types.PromptReference(name="greet")
    result = await client.complete(ref, {"name": "name", "value": "a"})
    return result.completion.values


async def prompt(client: Client) -> str:
    result = await client.get_prompt("greet", {"name": "Ada"})
    content = result.messages[0].content
    return content.text if isinstance(content, types.TextContent) else content.type


async def main(mode: str, server: StdioServerParameters) -> None:
    async with Client(
        server,
        mode=mode,
        logging_callback=on_log,
        message_handler=on_message,
        elicitation_callback=on_elicitation,
        sampling_callback=on_sampling,
        list_roots_callback=on_roots,
        read_timeout_seconds=TIMEOUT,
    ) as client:
        templates = await client.list_resource_templates()
        report: dict[str, Any] = {
            "revision": client.protocol_version,
            "resources": await list_resources(client),
            "templates": [one.uri_template for one in templates.resource_templates],
            "read": [
                await read(client, uri) for uri in (NOTE, "test://greetings/Ada", "test://missing")
            ],
            "prompts": [one.name for one in (await client.list_prompts()).prompts],
            "prompt": await prompt(client),
            "completion": await complete(client),
            "subscription": await subscribe(client),
            "logging": await log(client),
            "asked": await call(client, "ask"),
            "change": await call(client, "change"),
            "cancellations": await cancel(client),
        }
    print(json.dumps({**report, **told}))


if __name__ == "__main__":
    mode, command, *arguments = sys.argv[1:]
    anyio.run(main, mode, StdioServerParameters(command=command, args=arguments))
