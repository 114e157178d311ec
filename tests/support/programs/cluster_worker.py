"""One worker of a cluster: an application below uvicorn, or a server on asyncio or trio.

Usage: python -m tests.support.programs.cluster_worker HOW DESCRIPTOR REDIS-URL [OPTION=NUMBER ...]

It serves on the listening socket of that descriptor. HOW is asgi, asyncio or trio; the options are
those of `Cluster`.
"""

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

import redis

from sansmcp import Config, JSONObject, ResourceUpdated, ToolsListChanged
from sansmcp.http import OldPaths
from sansmcp_io import McpError, Unauthorized
from sansmcp_io.asyncio import RequireInput
from sansmcp_io.redis import Cluster

KEYS: Final = [b"a secret of all workers, 32 bytes long"]
INFO: Final[JSONObject] = {"name": "worker", "version": "1"}
CAPABILITIES: Final[JSONObject] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True},
    "logging": {},
}


def text(value: object) -> JSONObject:
    return {"content": [{"type": "text", "text": str(value)}]}


calls = 0
sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


async def handle(call: Any) -> Any:
    """Do what the name of the tool says."""
    global calls
    if call.method == "resources/subscribe":
        return {}
    if call.method != "tools/call":
        return {"tools": []} if call.method == "tools/list" else {}
    calls += 1
    arguments: JSONObject = call.params.get("arguments") or {}
    match call.params.get("name"):
        case "echo":
            return text(arguments["text"])
        case "once":
            count = await asyncio.to_thread(_note, arguments["ledger"], arguments["text"])
            await sleep(arguments.get("seconds", 0))
            return text(f"{arguments['text']} {count}")
        case "pid":
            return text(os.getpid())
        case "who":
            return text(call.principal)
        case "calls":
            return text(calls)
        case "progress":
            for step in range(arguments["steps"]):
                call.progress(step + 1, total=arguments["steps"])
                await sleep(arguments.get("pause", 0))
            return text("done")
        case "big":
            return text("x" * arguments["bytes"])
        case "flood":
            for step in range(arguments["steps"]):
                call.progress(step + 1, message="x" * arguments["bytes"])
                await sleep(0)
            return text("done")
        case "wait":
            await sleep(arguments["seconds"])
            return text("waited")
        case "block":
            time.sleep(arguments["seconds"])  # nothing else of this worker moves
            return text("blocked")
        case "sample":
            answer = await call.request("sampling/createMessage", {"messages": [], "maxTokens": 1})
            return text(answer["content"]["text"])
        case "input":
            if not call.input_responses:
                question = {"method": "elicitation/create", "params": _FORM}
                return RequireInput({"name": question}, state=arguments["text"])
            return text(f"{call.state} {call.input_responses['name']['content']['name']}")
        case "publish":
            if arguments.get("uri"):
                call.server.publish(ResourceUpdated(arguments["uri"]))
            else:
                call.server.publish(ToolsListChanged())
            return text("published")
        case name:
            raise McpError(-32602, f"no tool {name}")


def _note(port: int, call: str) -> int:
    """Note that a call is served, where no fault of a test reaches; return how often it was."""
    ledger = _ledgers.get(port)
    if ledger is None:
        ledger = _ledgers[port] = redis.Redis(port=port)
    return int(ledger.hincrby("calls", call, 1))


_ledgers: Final[dict[int, Any]] = {}
_FORM: Final[JSONObject] = {
    "mode": "form",
    "message": "your name",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
}


def named(headers: Mapping[str, str]) -> str | None:
    """The user is whoever the header says; everybody without one is nobody."""
    name = headers.get("authorization")
    if name == "nobody":
        raise Unauthorized("Bearer")
    return name


def scoped(scope: Any) -> str | None:
    fields = dict(scope["headers"])
    name = fields.get(b"authorization")
    return named({} if name is None else {"authorization": name.decode()})


def settings(url: str, options: list[str]) -> dict[str, Any]:
    """The arguments of the server."""
    numbers: dict[str, Any] = {"lease": 5.0}
    for option in options:
        name, _, number = option.partition("=")
        numbers[name] = float(number) if name in ("lease", "keep_events") else int(number)
    return {
        "info": INFO,
        "capabilities": CAPABILITIES,
        "config": Config(state_keys=KEYS),
        "principal_key": str,
        "cluster": Cluster(url, **numbers),
        "drain": 2.0,
        "old_paths": OldPaths(stream="/sse", post="/messages"),
    }


def main(how: str, number: str, url: str, *options: str) -> None:
    listener = socket.socket(fileno=int(number))
    arguments = settings(url, list(options))
    if how == "asgi":
        import uvicorn

        from sansmcp_io.asgi import App

        app = App(handle, path="/mcp", authenticate=scoped, **arguments)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)
        uvicorn.Server(config).run([listener])
        return
    port = listener.getsockname()[1]
    listener.close()
    if how == "asyncio":
        from sansmcp_io.asyncio import serve_http

        async def serve() -> None:
            loop = asyncio.get_running_loop()
            await serve_http(
                handle,
                "127.0.0.1",
                port,
                authenticate=named,
                on_listening=lambda server: loop.add_signal_handler(signal.SIGTERM, server.close),
                **arguments,
            )

        asyncio.run(serve())
    else:
        import trio

        from sansmcp_io import trio as ours

        async def serve_on_trio() -> None:
            async with trio.open_nursery() as nursery:
                serve = partial(ours.serve_http, authenticate=named, **arguments)
                server = await nursery.start(serve, handle, "127.0.0.1", port)
                with trio.open_signal_receiver(signal.SIGTERM) as signals:
                    async for _ in signals:
                        server.close()
                        return

        global sleep
        sleep = trio.sleep
        trio.run(serve_on_trio)


if __name__ == "__main__":
    main(*sys.argv[1:])
