"""The server of `mcp_server.py` over HTTP, on uvicorn. Its one line of output is its port.

Usage: python -m tests.peers.mcp_http [--json] [--stateless] [--store]
                                      [--token TOKEN | --introspect ENDPOINT CLIENT SECRET]

With `--json` it answers with JSON wherever that is possible, with `--stateless` it has no sessions,
with `--store` it keeps events for clients that come back, and with `--token` it serves only those
that have it. With `--introspect` it serves those whose token the introspection endpoint calls
active, which it asks with the credentials of a client.
"""

import argparse
import socket
from typing import Any
from urllib.parse import quote_plus, urljoin

import anyio
import httpx2
import mcp_types as types
import uvicorn
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.streamable_http import GET_STREAM_KEY, EventCallback, EventMessage, EventStore

from tests.peers.mcp_server import STRING, TOOLS, Arguments, Context, build, invalid

RETRY_MS = 20


class Changed:
    """Lets tasks wait for changes by other tasks."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def tell(self) -> None:
        self._event.set()
        self._event = anyio.Event()

    async def wait(self) -> None:
        await self._event.wait()


class Store(EventStore):
    """Keeps all events. A replay stays open until the response of its stream is there."""

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
    """Hang, and record the cancellation: a cancelled request has no response to show it."""
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
    """Close the stream of this call, and answer: the client has to resume for the response."""
    assert ctx.close_sse_stream is not None
    # The stream begins with an event whose id the client needs to come back, sent by another task.
    await anyio.wait_all_tasks_blocked()
    await ctx.close_sse_stream()
    return "left"


async def leave_until_back(ctx: Context, arguments: Arguments) -> str:
    """The same, but answer only after the client has resumed."""
    assert ctx.close_sse_stream is not None
    replays = store.replays
    await ctx.session.report_progress(1, 2)
    await ctx.close_sse_stream()
    while store.replays == replays:
        await store.changed.wait()
    await ctx.session.report_progress(2, 2)
    return "back"


async def leave_listener(ctx: Context, arguments: Arguments) -> str:
    """Close the GET stream, and send a notification that belongs there."""
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
    """Accepts one token."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def verify_token(self, token: str) -> AccessToken | None:
        if token != self._token:
            return None
        return AccessToken(token=token, client_id="ann", scopes=["use"])


class Introspector(TokenVerifier):
    """Asks the authorization server about each token."""

    def __init__(self, endpoint: str, client: str, secret: str) -> None:
        self._endpoint = endpoint
        # RFC 6749, section 2.3.1: both are encoded before they are joined.
        self._credentials = (quote_plus(client), quote_plus(secret))

    async def verify_token(self, token: str) -> AccessToken | None:
        async with httpx2.AsyncClient(auth=self._credentials) as http:
            response = await http.post(self._endpoint, data={"token": token})
        said = response.raise_for_status().json()
        if not said["active"]:
            return None
        return AccessToken(
            token=token,
            client_id=said["client_id"],
            scopes=said["scope"].split(),
            expires_at=said["exp"],
            resource=said["aud"],
            subject=said["sub"],
            claims={"iss": said["iss"]},
        )


def protect(settings: dict[str, Any], issuer: str, server: str, verifier: TokenVerifier) -> None:
    """Serve only those whose tokens are verified, and are for this server."""
    # Not by an `AnyHttpUrl` of ours, which would put a slash behind an issuer without a path.
    given = {
        "issuer_url": issuer,
        "resource_server_url": server,
        "required_scopes": ["use"],
        "validate_token_resource": isinstance(verifier, Introspector),
    }
    settings |= {"auth": AuthSettings.model_validate(given), "token_verifier": verifier}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--stateless", action="store_true")
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--token")
    parser.add_argument("--introspect", nargs=3)
    options = parser.parse_args()
    settings: dict[str, Any] = {}
    if options.store:
        settings |= {"event_store": store, "retry_interval": RETRY_MS}
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        port = listener.getsockname()[1]
        url = f"http://127.0.0.1:{port}/mcp"
        if options.token:
            protect(settings, url, url, Verifier(options.token))
        elif options.introspect:
            verifier = Introspector(*options.introspect)
            protect(settings, urljoin(options.introspect[0], "/").rstrip("/"), url, verifier)
        app = build("both").streamable_http_app(
            json_response=options.json, stateless_http=options.stateless, **settings
        )
        print(port, flush=True)  # who connects now waits in the backlog
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none"))
        server.run(sockets=[listener])


if __name__ == "__main__":
    main()
