"""The server of `mcp_server.py` over HTTP, on uvicorn. Its one line of output is its port.

Usage: python -m tests.peers.mcp_http [--json] [--stateless] [--store] [--token TOKEN]

With `--json` it answers with JSON wherever that is possible, with `--stateless` it has no sessions,
with `--store` it keeps events for clients that come back, and with `--token` it serves only those
that have it.
"""

import argparse
import socket
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.streamable_http import GET_STREAM_KEY, EventCallback, EventMessage, EventStore
from pydantic import AnyHttpUrl

from tests.peers.mcp_server import STRING, TOOLS, Arguments, Context, build, invalid

RETRY_MS = 20


class Changed:
    """Lets tasks wait for what other tasks do."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def tell(self) -> None:
        self._event.set()
        self._event = anyio.Event()

    async def wait(self) -> None:
        await self._event.wait()


class Store(EventStore):
    """All events that ever were. One that is asked for a stream stays until its answer is there."""

    def __init__(self) -> None:
        self.replays = 0
        self.changed = Changed()
        self._events: list[tuple[str, types.JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        self._events.append((stream_id, message))
        self.changed.tell()
        return str(len(self._events))

    async def replay_events_after(
        self, last_event_id: str, send_callback: EventCallback
    ) -> str | None:
        last = int(last_event_id)
        stream = self._events[last - 1][0]
        self.replays += 1
        self.changed.tell()
        has_end = stream != GET_STREAM_KEY
        is_answered = False
        while not is_answered:
            while last == len(self._events):
                if not has_end:
                    return stream
                await self.changed.wait()
            found, message = self._events[last]
            last += 1
            if found == stream and message is not None:
                await send_callback(EventMessage(message, str(last)))
                is_answered = isinstance(message, types.JSONRPCResponse | types.JSONRPCError)
        return None


store = Store()
started: set[str] = set()
ended: set[str] = set()
turns = Changed()


async def hang(ctx: Context, arguments: Arguments) -> str:
    """Stay, and remember when cut short: a cancelled request has no answer to tell it by."""
    started.add(arguments["name"])
    turns.tell()
    try:
        await anyio.sleep_forever()
    finally:
        ended.add(arguments["name"])
        turns.tell()
    raise AssertionError


async def await_start(ctx: Context, arguments: Arguments) -> str:
    """Wait until there is a `hang` of that name: requests may overtake each other."""
    while arguments["name"] not in started:
        await turns.wait()
    return "it has started"


async def await_ending(ctx: Context, arguments: Arguments) -> str:
    """Wait until the `hang` of that name was cut short."""
    while arguments["name"] not in ended:
        await turns.wait()
    return "it has ended"


async def fail(ctx: Context, arguments: Arguments) -> str:
    raise invalid("no luck")


async def leave(ctx: Context, arguments: Arguments) -> str:
    """Close the stream of this call, and answer: the client has to come for it."""
    assert ctx.close_sse_stream is not None
    # The stream begins with an event whose id the client needs to come back, sent by another task.
    await anyio.wait_all_tasks_blocked()
    await ctx.close_sse_stream()
    return "left"


async def leave_until_back(ctx: Context, arguments: Arguments) -> str:
    """The same, and answer only when the client is back."""
    assert ctx.close_sse_stream is not None
    replays = store.replays
    await ctx.session.report_progress(1, 2)
    await ctx.close_sse_stream()
    while store.replays == replays:
        await store.changed.wait()
    await ctx.session.report_progress(2, 2)
    return "back"


async def leave_listener(ctx: Context, arguments: Arguments) -> str:
    """Close the stream that belongs to no request, and tell something that belongs there."""
    assert ctx.close_standalone_sse_stream is not None
    await ctx.close_standalone_sse_stream()
    await ctx.session.send_resource_updated("test://notes/first")
    return "left"


NAME: dict[str, Any] = {"name": STRING}
TOOLS.update(
    {
        "hang": (hang, NAME, ["name"]),
        "await_start": (await_start, NAME, ["name"]),
        "await_ending": (await_ending, NAME, ["name"]),
        "fail": (fail, {}, []),
        "leave": (leave, {}, []),
        "leave_until_back": (leave_until_back, {}, []),
        "leave_listener": (leave_listener, {}, []),
    }
)


class Verifier(TokenVerifier):
    """Knows one token."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def verify_token(self, token: str) -> AccessToken | None:
        if token != self._token:
            return None
        return AccessToken(token=token, client_id="ann", scopes=["use"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--stateless", action="store_true")
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--token")
    options = parser.parse_args()
    settings: dict[str, Any] = {}
    if options.store:
        settings |= {"event_store": store, "retry_interval": RETRY_MS}
    if options.token:
        url = AnyHttpUrl("http://127.0.0.1/mcp")
        settings |= {
            "auth": AuthSettings(
                issuer_url=url,
                resource_server_url=url,
                required_scopes=["use"],
                validate_token_resource=False,
            ),
            "token_verifier": Verifier(options.token),
        }
    app = build("both").streamable_http_app(
        json_response=options.json, stateless_http=options.stateless, **settings
    )
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        print(listener.getsockname()[1], flush=True)  # who connects now waits in the backlog
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none"))
        server.run(sockets=[listener])


if __name__ == "__main__":
    main()
