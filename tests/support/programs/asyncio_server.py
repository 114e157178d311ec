"""A server on asyncio with tools that handle cancellation oddly: `python -m ... [loop]`."""

import asyncio
import logging
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from sansmcp import JSONObject
from sansmcp_io.asyncio import LogHandler, ServerCall, serve_stdio
from tests.support.adapters.loops import ASYNCIO

SEEN: list[str] = []


def text(value: str) -> JSONObject:
    return {"content": [{"type": "text", "text": value}]}


async def swallow(call: ServerCall) -> JSONObject:
    """Ignore a cancellation, and return a result."""
    call.progress(1)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        SEEN.append("swallowed")
    return text("nobody wants this")


async def ignore(call: ServerCall) -> JSONObject:
    """Ignore the first cancellation, and go on waiting."""
    call.progress(1)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        SEEN.append("ignored")
        await asyncio.Event().wait()
    return text("")


async def cancel_itself(call: ServerCall) -> JSONObject:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return text("")


async def log_from_a_thread(call: ServerCall) -> JSONObject:
    handler = LogHandler(call.server)
    logger = logging.getLogger("threaded")
    logger.addHandler(handler)
    thread = threading.Thread(target=logger.warning, args=("out of a thread",))
    thread.start()
    while thread.is_alive():
        await asyncio.sleep(0.001)  # the end of a thread does not wake the loop
    logger.warning("out of the loop")
    logger.removeHandler(handler)
    return text("logged")


class Later:
    """An awaitable that is not a coroutine."""

    def __await__(self) -> Any:
        yield from asyncio.sleep(0).__await__()
        return text("later")


TOOLS: dict[str, Callable[[ServerCall], Awaitable[JSONObject]]] = {
    "swallow": swallow,
    "ignore": ignore,
    "cancel itself": cancel_itself,
    "log": log_from_a_thread,
    "later": lambda call: Later(),
}


def handle(call: ServerCall) -> JSONObject | Awaitable[JSONObject]:
    name = call.params["name"]
    if name == "exit":
        sys.exit(3)
    if name == "seen":
        return text(" ".join(SEEN))
    return TOOLS[name](call)


async def main() -> None:
    # Callbacks that take long on a busy machine are no fault, and would be lines on stderr.
    asyncio.get_running_loop().slow_callback_duration = 60
    info: JSONObject = {"name": "asyncio", "version": "1.0"}
    await serve_stdio(handle, info=info, capabilities={"tools": {}, "logging": {}})
    print("served", file=sys.stderr, flush=True)


if __name__ == "__main__":
    new_loop = ASYNCIO[sys.argv[1] if sys.argv[1:] else "asyncio"]
    with asyncio.Runner(debug=True, loop_factory=new_loop) as runner:
        runner.run(main())
