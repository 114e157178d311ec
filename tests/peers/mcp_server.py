"""A stdio MCP server on the official `mcp` package, as an independent peer to test against.

It serves both eras, the one that the client opens with, and offers at least one instance of every
server feature in each, so that a client under test meets answers it did not write itself.  The
low-level `Server` is used because it leaves pagination, subscriptions and the questions to the
client in this file, where they can be read.

Usage: python tests/peers/mcp_server.py [legacy|modern]    (ends with status 0 at end of input)

With `legacy` it knows the handshake only, with `modern` it refuses the handshake.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import anyio
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS, is_version_at_least

Context: TypeAlias = ServerRequestContext[dict[str, Any], Any]
Arguments: TypeAlias = Mapping[str, Any]
Answer = TypeVar("Answer", types.CreateMessageResult, types.ElicitResult, types.ListRootsResult)

PAGE_SIZE = 10
FILLERS = 20
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
RESOURCES = {"test://notes/first": "first note", "test://notes/second": "second note"}
TEMPLATE = "test://greetings/{name}"
TEMPLATE_PREFIX = "test://greetings/"
NAMES = ("ada", "alan", "barbara")

subscribed: set[str] = set()
threshold: types.LoggingLevel = "debug"
bus = InMemorySubscriptionBus()
listeners = ListenHandler(bus)


def is_modern(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def invalid(message: str) -> MCPError:
    """The error for a request that is well formed but names something that is not here."""
    return MCPError(code=types.INVALID_PARAMS, message=message)


async def echo(ctx: Context, arguments: Arguments) -> str:
    return str(arguments["text"])


async def progress(ctx: Context, arguments: Arguments) -> str:
    """Report each step; the package sends nothing when the request carried no token."""
    steps = int(arguments["steps"])
    with_message = is_version_at_least(ctx.protocol_version, "2025-03-26")
    for step in range(1, steps + 1):
        await ctx.session.report_progress(step, steps, f"step {step}" if with_message else None)
    return f"{steps} steps"


async def slow(ctx: Context, arguments: Arguments) -> str:
    """Sleep, and report a cancellation on stderr: a cancelled request has no response to show
    it."""
    seconds = float(arguments["seconds"])
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        print("slow: cancelled", file=sys.stderr, flush=True)
        raise
    return f"slept {seconds:g} s"


class InputNeeded(Exception):
    """Raised where a call without handshake needs another round; None: only with the state."""

    def __init__(self, request: types.InputRequest | None) -> None:
        super().__init__()
        self.request = request

    def result(self) -> types.InputRequiredResult:
        requests = None if self.request is None else {"question": self.request}
        return types.InputRequiredResult(input_requests=requests, request_state="asked")


async def ask(ctx: Context, request: types.InputRequest, answer: type[Answer]) -> Answer:
    """Ask the client in the way of its era: during this call, or as the result of this round."""
    if not is_modern(ctx):
        return await ctx.session.send_request(request, answer)
    params = types.CallToolRequestParams.model_validate(ctx.params, by_name=False)
    if params.input_responses is None:
        raise InputNeeded(request)
    given = params.input_responses["question"]
    if params.request_state != "asked" or not isinstance(given, answer):
        raise invalid(f"unexpected answer: {given!r}, {params.request_state!r}")
    return given


async def ask_sampling(ctx: Context, arguments: Arguments) -> str:
    content = types.TextContent(text=str(arguments.get("prompt", "Say something.")))
    request = types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(
            messages=[types.SamplingMessage(role="user", content=content)], max_tokens=50
        )
    )
    result = await ask(ctx, request, types.CreateMessageResult)
    return (
        result.content.text
        if isinstance(result.content, types.TextContent)
        else result.content.type
    )


async def ask_roots(ctx: Context, arguments: Arguments) -> str:
    result = await ask(ctx, types.ListRootsRequest(), types.ListRootsResult)
    return "\n".join(str(root.uri) for root in result.roots)


async def ask_elicit(ctx: Context, arguments: Arguments) -> str:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    params = types.ElicitRequestFormParams(message="What is your name?", requested_schema=schema)
    result = await ask(ctx, types.ElicitRequest(params=params), types.ElicitResult)
    return f"{result.action}: {result.content['name']}" if result.content else result.action


async def pause(ctx: Context, arguments: Arguments) -> str:
    """Answer the first round with a state and no question, which only modern clients know."""
    params = types.CallToolRequestParams.model_validate(ctx.params, by_name=False)
    if params.request_state is None:
        raise InputNeeded(None)
    return params.request_state


async def log(ctx: Context, arguments: Arguments) -> str:
    """Send one log message unless it is below the level that the client asked for."""
    level = arguments["level"]
    if level not in LEVELS:
        raise invalid(f"unknown level: {level}")
    if is_modern(ctx):
        data = arguments.get("message", "a log message")
        # Nothing else looks at the level in the request.
        send = ctx.session.send_log_message  # pyright: ignore[reportDeprecated]  # as all of logging
        await send(level, data, "peer", ctx.request_id)
        return "left to the package"
    if LEVELS.index(level) < LEVELS.index(threshold):
        return "suppressed"
    params = types.LoggingMessageNotificationParams(
        level=level, logger="peer", data=arguments.get("message", "a log message")
    )
    await ctx.session.send_notification(types.LoggingMessageNotification(params=params))
    return "sent"


async def touch(ctx: Context, arguments: Arguments) -> str:
    """Pretend that a resource changed; only subscribers must be notified."""
    uri = str(arguments["uri"])
    if is_modern(ctx):
        await bus.publish(ResourceUpdated(uri))
        return "published"
    if uri not in subscribed:
        return "not subscribed"
    await ctx.session.send_resource_updated(uri)
    return "notified"


async def change(ctx: Context, arguments: Arguments) -> str:
    """Pretend that the list of tools changed."""
    await bus.publish(ToolsListChanged())
    return "published"


async def hang_up(ctx: Context, arguments: Arguments) -> str:
    """End all subscriptions."""
    listeners.close()
    return "closed"


async def revision(ctx: Context, arguments: Arguments) -> str:
    return ctx.protocol_version


async def filler(ctx: Context, arguments: Arguments) -> str:
    """One of many tools whose only purpose is a list of several pages."""
    return "filler"


Handler: TypeAlias = Callable[[Context, Arguments], Awaitable[str]]
STRING: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}

# name: handler, argument schemas, names of the arguments that are required
TOOLS: dict[str, tuple[Handler, dict[str, dict[str, Any]], list[str]]] = {
    "echo": (echo, {"text": STRING}, ["text"]),
    "progress": (progress, {"steps": {"type": "integer"}}, ["steps"]),
    "slow": (slow, {"seconds": NUMBER}, ["seconds"]),
    "ask_sampling": (ask_sampling, {"prompt": STRING}, []),
    "ask_roots": (ask_roots, {}, []),
    "ask_elicit": (ask_elicit, {}, []),
    "log": (log, {"level": {"type": "string", "enum": list(LEVELS)}, "message": STRING}, ["level"]),
    "touch": (touch, {"uri": STRING}, ["uri"]),
    "change": (change, {}, []),
    "hang_up": (hang_up, {}, []),
    "pause": (pause, {}, []),
    "revision": (revision, {}, []),
    **{f"filler_{number:02}": (filler, {}, []) for number in range(FILLERS)},
}


async def list_tools(
    ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    """Serve one page; the cursor is the offset, which a client has to treat as opaque."""
    cursor = params.cursor if params is not None else None
    if cursor is not None and not (
        cursor.isascii() and cursor.isdigit() and int(cursor) < len(TOOLS)
    ):
        raise invalid(f"unknown cursor: {cursor}")
    start = int(cursor or "0")
    end = start + PAGE_SIZE
    page = [
        types.Tool(
            name=name,
            description=f"The tool {name}",
            input_schema={"type": "object", "properties": properties, "required": required},
        )
        for name, (_, properties, required) in list(TOOLS.items())[start:end]
    ]
    return types.ListToolsResult(tools=page, next_cursor=str(end) if end < len(TOOLS) else None)


async def call_tool(
    ctx: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    """Run a tool; a client that refuses a request from within it makes the result an error."""
    if params.name not in TOOLS:
        raise invalid(f"unknown tool: {params.name}")
    handler, _, required = TOOLS[params.name]
    arguments = params.arguments or {}
    if missing := [name for name in required if name not in arguments]:
        raise invalid(f"missing arguments: {', '.join(missing)}")
    try:
        text, failed = await handler(ctx, arguments), False
    except InputNeeded as needed:
        return needed.result()
    except MCPError as error:
        text, failed = f"{error.code}: {error.message}", True
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=failed)


async def list_resources(
    ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListResourcesResult:
    resources = [
        types.Resource(uri=uri, name=uri.rsplit("/", 1)[1], mime_type="text/plain", size=len(text))
        for uri, text in RESOURCES.items()
    ]
    return types.ListResourcesResult(resources=resources)


async def list_templates(
    ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(
        name="greeting", uri_template=TEMPLATE, mime_type="text/plain"
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(
    ctx: Context, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    uri = params.uri
    if uri in RESOURCES:
        text = RESOURCES[uri]
    elif uri.startswith(TEMPLATE_PREFIX):
        text = f"Hello, {uri.removeprefix(TEMPLATE_PREFIX)}!"
    else:
        # -32002 is the code of the handshake revisions, which the package does not name.
        code = types.INVALID_PARAMS if is_modern(ctx) else -32002
        raise MCPError(code=code, message="Resource not found", data={"uri": uri})
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)]
    )


async def subscribe(ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
    subscribed.add(params.uri)
    return types.EmptyResult()


async def unsubscribe(ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    subscribed.discard(params.uri)
    return types.EmptyResult()


async def list_prompts(
    ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListPromptsResult:
    argument = types.PromptArgument(name="name", description="Whom to greet", required=True)
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet", arguments=[argument])])


async def get_prompt(ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    name = (params.arguments or {}).get("name")
    if params.name != "greet" or name is None:
        raise invalid("expected the prompt greet with the argument name")
    content = types.TextContent(text=f"Please greet {name}.")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


async def complete(ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    """Complete the one argument of the prompt and of the template, which are both a name."""
    values = [name for name in NAMES if name.startswith(params.argument.value)]
    return types.CompleteResult(
        completion=types.Completion(values=values, total=len(values), has_more=False)
    )


async def set_level(ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    global threshold
    threshold = params.level
    return types.EmptyResult()


async def refuse_handshake(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Make a server of one era from a server of both, for which the package has no setting."""
    if ctx.method == "initialize":
        supported = list(MODERN_PROTOCOL_VERSIONS)
        raise MCPError(
            code=types.UNSUPPORTED_PROTOCOL_VERSION,
            message="this server knows no handshake",
            data={"supported": supported, "requested": (ctx.params or {}).get("protocolVersion")},
        )
    return await call_next(ctx)


def build(era: str) -> Server[dict[str, Any]]:
    """The server; its era is as on the command line, or `both`."""
    server: Server[dict[str, Any]] = Server(
        "mcp-peer",
        version="1.0",
        instructions="A peer for interoperation tests.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_subscriptions_listen=listeners,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
    )
    # Not a constructor argument, since that one warns: the newest revision drops logging.
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
    server.middleware.append(
        RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=server.name)
    )
    if era == "modern":
        server.middleware.append(refuse_handshake)
    return server


async def main(era: str) -> None:
    server = build(era)
    options = server.create_initialization_options(NotificationOptions())
    async with stdio_server() as (read_stream, write_stream):
        if era != "legacy":
            await server.run(read_stream, write_stream, options)
            return
        async with server.lifespan(server) as state:
            await serve_loop(
                server, read_stream, write_stream, lifespan_state=state, init_options=options
            )


if __name__ == "__main__":
    anyio.run(main, sys.argv[1] if len(sys.argv) > 1 else "both")
