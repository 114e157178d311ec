"""One worker of a cluster: an application on uvicorn, or a server on asyncio or trio.

Usage: python -m tests.support.programs.cluster_worker HOW DESCRIPTOR REDIS-URL [OPTION=NUMBER ...]

It serves on the listening socket with this descriptor. HOW is asgi, asyncio or trio. The options
are `drain`, and those of `Cluster`.
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
from sansmcp_io.asyncio import CreateTask, RequireInput, RunningTask
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
    """Run the tool."""
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
            time.sleep(arguments["seconds"])  # blocks the whole worker
            return text("blocked")
        case "task":
            return _begin_task(call, arguments)
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


def _begin_task(call: Any, arguments: JSONObject) -> CreateTask:
    """A task of so many seconds, whose result is the text.

    With a ledger, the result has the number of the run, and only the first run takes the seconds.
    The names in `asks` are the keys of questions.
    """

    async def work(task: RunningTask) -> JSONObject:
        seconds, said = arguments["seconds"], [arguments["text"]]
        for key in arguments.get("asks", ()):
            answers = await task.ask({key: {"method": "elicitation/create", "params": _FORM}})
            said.append(answers[key]["content"]["name"])
        if port := arguments.get("ledger"):
            count = _note(port, arguments["text"])
            said += [call.principal or "", str(count)]
            seconds *= count == 1
        await sleep(seconds)
        return text(" ".join(said))

    ttl_ms: int = arguments.get("ttl_ms", 600_000)
    return CreateTask(work, ttl_ms=ttl_ms, may_restart=arguments.get("may_restart", False))


def _note(port: int, call: str) -> int:
    """Count the runs of a call, and return the count.

    The counts are in a Redis of their own, which tests do not disturb.
    """
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
    """The principal, which is the value of the header. Without the header there is none."""
    name = headers.get("authorization")
    if name == "nobody":
        raise Unauthorized("Bearer")
    return name


def scoped(scope: Any) -> str | None:
    fields = dict(scope["headers"])
    name = fields.get(b"authorization")
    return named({} if name is None else {"authorization": name.decode()})


_SECONDS: Final = ("lease", "keep_events", "drain")


def settings(url: str, options: list[str]) -> dict[str, Any]:
    """The arguments for the server."""
    numbers: dict[str, Any] = {"lease": 5.0, "drain": 2.0}
    for option in options:
        name, _, number = option.partition("=")
        numbers[name] = float(number) if name in _SECONDS else int(number)
    drain = numbers.pop("drain")
    return {
        "info": INFO,
        "capabilities": CAPABILITIES,
        "config": Config(state_keys=KEYS),
        "principal_key": str,
        "cluster": Cluster(url, **numbers),
        "tasks": True,
        "drain": drain,
        "old_paths": OldPaths(stream="/sse", post="/messages"),
    }


def main(how: str, number: str, url: str, *options: str) -> None:
    listener = socket.socket(fileno=int(number))
    arguments = settings(url, list(options))
    if how == "asgi":
        import uvicorn

        from sansmcp_io.asgi import App

        app = App(handle, path="/mcp", authenticate=scoped, **arguments)
        config = uvicorn.Config(
            app, log_level="warning", timeout_graceful_shutdown=int(arguments["drain"])
        )
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
