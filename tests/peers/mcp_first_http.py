"""A server on version 1 of the `mcp` package over HTTP. Its one line of output is its port.

Usage: .peers/python/bin/python tests/peers/mcp_first_http.py [--sse] [--json] [--stateless]
    [--store]

With `--sse` it speaks HTTP+SSE of 2024-11-05 at `/sse`, and else Streamable HTTP at `/mcp`: with
`--json` it answers with JSON, with `--stateless` it has no sessions, and with `--store` it keeps
events for clients that come back.
"""

import argparse
import socket
from importlib import import_module
from typing import Any, Final

import anyio
import uvicorn
from pydantic import AnyUrl, BaseModel

NOTE: Final = "test://note"
RETRY_MS: Final = 200

# Not imported by name: where types are checked, there is version 2.
fastmcp: Any = import_module("mcp.server.fastmcp")
streamable_http: Any = import_module("mcp.server.streamable_http")
types: Any = import_module("mcp.types")


class Store:
    """Keeps all events: the `EventStore` of the package."""

    def __init__(self) -> None:
        self._events: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str:
        last = int(last_event_id)
        stream = self._events[last - 1][0]
        for id, (found, message) in enumerate(self._events[last:], last + 1):
            if found == stream and message is not None:
                await send_callback(streamable_http.EventMessage(message, str(id)))
        return stream


parser = argparse.ArgumentParser()
parser.add_argument("--sse", action="store_true")
parser.add_argument("--json", action="store_true")
parser.add_argument("--stateless", action="store_true")
parser.add_argument("--store", action="store_true")
options = parser.parse_args()
server: Any = fastmcp.FastMCP(
    "first",
    json_response=options.json,
    stateless_http=options.stateless,
    event_store=Store() if options.store else None,
    retry_interval=RETRY_MS if options.store else None,
    log_level="CRITICAL",
)


class Name(BaseModel):
    name: str


started: set[str] = set()
ended: set[str] = set()
turn = anyio.Event()


def tell() -> None:
    """Wake the calls that wait for another one."""
    global turn
    turn.set()
    turn = anyio.Event()


async def echo(text: str) -> str:
    return text


async def steps() -> str:
    ctx = server.get_context()
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3)
        await ctx.info(f"step {step}")
    return "done"


async def fail() -> str:
    raise ValueError("no luck")


async def ask() -> str:
    """Ask the client every kind of question."""
    ctx = server.get_context()
    answer = await ctx.elicit("What is your name?", Name)
    content = types.TextContent(type="text", text="Say something.")
    question = types.SamplingMessage(role="user", content=content)
    sample = await ctx.session.create_message([question], max_tokens=50)
    roots = await ctx.session.list_roots()
    return f"{answer.data.name}: {sample.content.text}, {roots.roots[0].uri}"


async def touch() -> str:
    """Send a notification of a change, which belongs to no request."""
    ctx = server.get_context()
    await ctx.session.send_resource_updated(AnyUrl(NOTE))
    return "told"


def note() -> str:
    return "a note"


async def hang(name: str) -> str:
    """Hang, and record the cancellation: a cancelled request has no response to show it."""
    started.add(name)
    tell()
    try:
        await anyio.sleep_forever()
    finally:
        ended.add(name)
        tell()
    return "never"


async def await_start(name: str) -> str:
    """Wait until there is a `hang` of that name: requests may overtake each other."""
    while name not in started:
        await turn.wait()
    return "it has started"


async def await_ending(name: str) -> str:
    """Wait until the `hang` of that name was cut short."""
    while name not in ended:
        await turn.wait()
    return "it has ended"


async def leave() -> str:
    """Close the stream of this call, and answer: the client has to resume for the response."""
    ctx = server.get_context()
    # The stream begins with an event whose id the client needs to come back, sent by another task.
    await anyio.wait_all_tasks_blocked()
    await ctx.close_sse_stream()
    return "left"


def main() -> None:
    for tool in (echo, steps, fail, ask, touch, hang, await_start, await_ending, leave):
        server.tool()(tool)
    server.resource(NOTE)(note)
    app = server.sse_app() if options.sse else server.streamable_http_app()
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        print(listener.getsockname()[1], flush=True)  # who connects now waits in the backlog
        uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listener])


if __name__ == "__main__":
    main()
