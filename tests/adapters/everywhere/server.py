"""The server of these tests: `python -m tests.adapters.everywhere.server ADAPTER TRANSPORT`.

Over HTTP, it prints its port as soon as it listens.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Protocol

import attrs
import trio

import sansmcp_io.asyncio
import sansmcp_io.blocking
import sansmcp_io.trio
from sansmcp import JSONObject, LocalProtocolError, ToolsListChanged, paginate
from sansmcp_io import McpError, RequestTimeout
from sansmcp_io.blocking import CallCancelled, RequireInput
from sansmcp_io.trio import HTTPServer

INFO = {"name": "everywhere", "version": "1.0"}
CAPABILITIES: JSONObject = {"tools": {"listChanged": True}, "logging": {}}
NAMES = [f"tool {number:02}" for number in range(25)]
HINTS: JSONObject = {"ttlMs": 600_000, "cacheScope": "public"}
TOOLS: list[JSONObject] = [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]


RAISED: dict[str, Callable[[], BaseException]] = {
    "GeneratorExit": GeneratorExit,
    "asyncio.CancelledError": asyncio.CancelledError,
    "BaseException": BaseException,
    "BaseExceptionGroup": lambda: BaseExceptionGroup("two", [GeneratorExit(), ValueError()]),
    "SystemExit": lambda: SystemExit(5),
    "KeyboardInterrupt": KeyboardInterrupt,
    "group of SystemExit": lambda: BaseExceptionGroup("two", [SystemExit(5), ValueError()]),
}
"""What a handler can raise that is no `Exception`."""

HANGING: list["AnyCall"] = []
"""The calls of `hang` in this process that have begun and not ended."""


@attrs.frozen
class Shown:
    """A result as a class of the program."""

    content: list[object]
    isError: bool | None = None


Returned = JSONObject | RequireInput | Shown


class AnyServer(Protocol):
    def publish(self, change: ToolsListChanged) -> bool: ...


class AnyCall(Protocol):
    """The members of a call that the handler uses, on every adapter."""

    @property
    def method(self) -> str: ...
    @property
    def params(self) -> JSONObject: ...
    @property
    def revision(self) -> str | None: ...
    @property
    def input_responses(self) -> JSONObject: ...
    @property
    def server(self) -> AnyServer: ...
    def progress(self, progress: float, *, total: float | None = None) -> bool: ...
    def log(self, level: str, data: Any) -> bool: ...


class Waiting(Protocol):
    """The waits of the handler, on one adapter."""

    async def ask(self, call: Any, method: str, **options: Any) -> JSONObject: ...
    async def until_cancelled(self, call: Any) -> None: ...


class OnTrio:
    async def ask(self, call: Any, method: str, **options: Any) -> JSONObject:
        result: JSONObject = await call.request(method, **options)
        return result

    async def until_cancelled(self, call: Any) -> None:
        await trio.sleep_forever()


class OnAsyncio(OnTrio):
    async def until_cancelled(self, call: Any) -> None:
        await asyncio.Event().wait()


class Blocking:
    async def ask(self, call: Any, method: str, **options: Any) -> JSONObject:
        result: JSONObject = call.request(method, **options)
        return result

    async def until_cancelled(self, call: Any) -> None:
        call.sleep(60)


def text(value: str) -> JSONObject:
    return {"content": [{"type": "text", "text": value}]}


async def handle(waiting: Waiting, seen: list[str], call: AnyCall) -> Returned:
    """Do what the name of the tool says, such as fail, ask or hang."""
    if call.method == "tools/list":
        page, cursor = paginate(
            TOOLS, call.params.get("cursor"), key=lambda tool: tool["name"], size=10
        )
        listed: JSONObject = {"tools": page, **(HINTS if call.revision == "2026-07-28" else {})}
        return listed if cursor is None else {**listed, "nextCursor": cursor}
    arguments: JSONObject = call.params.get("arguments") or {}
    match call.params["name"]:
        case "echo":
            return text(arguments["text"])
        case "object":
            return Shown(text("shown")["content"])
        case "odd object":
            return Shown([arguments, b"a secret of the server"])
        case "revision":
            return text(str(call.revision))
        case "fail":
            return {**text("it failed"), "isError": True}
        case "break":
            raise ValueError("a secret of the server")
        case "count":
            for number in range(1, 4):
                call.progress(number, total=3)
            return text("3")
        case "hang":
            return await hang(waiting, seen, call)
        case "seen":
            return text(" ".join(seen))
        case "hanging":
            return text(str(len(HANGING)))
        case "ask":
            roots = await waiting.ask(call, "roots/list")
            return text(roots["roots"][0]["uri"])
        case "fail on progress":
            return text(await failure_of_on_progress(waiting, call, arguments["is_async"]))
        case "lose patience":
            try:
                await waiting.ask(call, "roots/list", timeout=0.2)
            except RequestTimeout:
                return text("lost patience")
            raise AssertionError
        case "ask in vain":
            return text(json.dumps([await refusal(waiting, way) for way in (call, call.server)]))
        case "notify":
            return text(notify(call.server))
        case "require":
            if not call.input_responses:
                return RequireInput({"where": {"method": "roots/list"}})
            return text(call.input_responses["where"]["roots"][0]["uri"])
        case "change":
            return text(str(call.server.publish(ToolsListChanged())))
        case "log":
            return text(str(call.log("info", "hello")))
        case "raise":
            raise RAISED[arguments["what"]]()
        case "pid":
            return text(str(os.getpid()))
        case "die":
            print("last words", file=sys.stderr, flush=True)
            os._exit(7)
        case name:
            raise McpError(-32602, f"unknown tool: {name}")


async def refusal(waiting: Waiting, way: Any) -> str:
    """The text of the error with which `call.request` refuses."""
    try:
        await waiting.ask(way, "roots/list")
    except LocalProtocolError as error:
        return str(error)
    return "it was asked"


def notify(server: Any) -> str:
    """The text of the error with which `call.notify` refuses."""
    try:
        server.notify("notifications/custom")
    except LocalProtocolError as error:
        return str(error)
    return "it was told"


async def failure_of_on_progress(waiting: Waiting, call: Any, is_async: bool) -> str:
    """Ask with an `on_progress` that raises, and return the exception that the call raised."""

    async def run(progress: float, total: float | None, message: str | None) -> None:
        raise AssertionError("this is not to be called")

    def fail(progress: float, total: float | None, message: str | None) -> None:
        raise ZeroDivisionError

    try:
        await waiting.ask(call, "roots/list", on_progress=run if is_async else fail)
    except (ZeroDivisionError, TypeError) as error:
        return type(error).__name__
    return "nothing"


async def hang(waiting: Waiting, seen: list[str], call: AnyCall) -> JSONObject:
    """Wait until the client cancels, and count the cancellation."""
    HANGING.append(call)
    call.progress(1)
    try:
        await waiting.until_cancelled(call)
    except (trio.Cancelled, asyncio.CancelledError, CallCancelled):
        seen.append("cancelled")
        raise
    finally:
        HANGING.remove(call)
    return text("nobody gave up")


def step(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("a body of the blocking adapter has suspended")


class Listening:
    """Prints the port of the server as soon as it listens, in the way of each loop."""

    def started(self, server: HTTPServer) -> None:
        print(server.port, flush=True)


def main(adapter: str, transport: str) -> None:
    seen: list[str] = []
    on_trio: Callable[[AnyCall], Awaitable[Any]] = partial(handle, OnTrio(), seen)
    options: Any = {"info": INFO, "capabilities": CAPABILITIES}
    on_asyncio = partial(handle, OnAsyncio(), seen)
    if transport == "http":
        options |= {"port": 0, "drain": 0.01}
    match adapter, transport:
        case "trio", "http":
            options["task_status"] = Listening()
            trio.run(partial(sansmcp_io.trio.serve_http, on_trio, **options))
        case "asyncio", "http":
            options["on_listening"] = Listening().started
            asyncio.run(sansmcp_io.asyncio.serve_http(on_asyncio, **options))
        case "trio", _:
            trio.run(partial(sansmcp_io.trio.serve_stdio, on_trio, **options))
        case "asyncio", _:
            asyncio.run(sansmcp_io.asyncio.serve_stdio(on_asyncio, **options))
        case "blocking", _:

            def blocking(call: AnyCall) -> Any:
                return step(handle(Blocking(), seen, call))

            sansmcp_io.blocking.serve_stdio(blocking, **options)
        case _:
            raise ValueError(adapter)
    print("served", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
