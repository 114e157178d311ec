"""A server whose handler knows nothing of tasks, and which has them turned on.

Usage: python -m tests.support.programs.taskless_server HOW

HOW is asgi, wsgi, asyncio, trio or stdio. Over HTTP, the first line of the output is the port.
"""

import asyncio
import socket
import sys
from functools import partial
from typing import Any, Final

from sansmcp import JSONObject
from sansmcp_io import McpError
from sansmcp_io.asyncio import RequireInput
from tests.support.modern import FORM

OPTIONS: Final[dict[str, Any]] = {
    "info": {"name": "taskless", "version": "1"},
    "capabilities": {"tools": {}, "logging": {}},
    "tasks": True,
}


def text(value: object) -> JSONObject:
    return {"content": [{"type": "text", "text": str(value)}]}


def _begin(call: Any) -> Any:
    """The result of a tool that asks nothing; None: it asks."""
    if call.method != "tools/call":
        return {"tools": []}
    match call.params["name"]:
        case "plain":
            call.log("info", "hello")
            call.progress(1, total=2, message="half")
            return text(call.revision)
        case "rounds":
            if not call.input_responses:
                return RequireInput({"who": FORM}, state="asked")
            return text(f"{call.state} {call.input_responses['who']['content']['name']}")
        case "fail":
            raise McpError(-32001, "no room")
        case _:
            return None


async def on_loop(call: Any) -> Any:
    result = _begin(call)
    if result is None:
        answer = await call.request(FORM["method"], FORM["params"], timeout=30)
        return text(answer["content"]["name"])
    await call_again_soon()
    return result


async def call_again_soon() -> None:
    """Let other tasks run, on any loop."""
    if "trio" in sys.modules:
        import trio

        await trio.sleep(0.01)
    else:
        await asyncio.sleep(0.01)


def in_thread(call: Any) -> Any:
    result = _begin(call)
    if result is None:
        answer = call.request(FORM["method"], FORM["params"], timeout=30)
        return text(answer["content"]["name"])
    call.sleep(0.01)
    return result


def _say(port: int) -> None:
    print(port, flush=True)


def main(how: str) -> None:
    match how:
        case "stdio":
            from sansmcp_io.blocking import serve_stdio

            serve_stdio(in_thread, **OPTIONS)
        case "asgi":
            import uvicorn

            from sansmcp_io.asgi import App

            listener = socket.create_server(("127.0.0.1", 0))
            _say(listener.getsockname()[1])
            config = uvicorn.Config(App(on_loop, path="/mcp", **OPTIONS), log_level="warning")
            uvicorn.Server(config).run([listener])
        case "wsgi":
            from sansmcp_io.wsgi import App as WSGIApp
            from tests.adapters.everywhere.hosted import threads_server

            app = WSGIApp(in_thread, path="/mcp", sessions=True, streams=True, **OPTIONS)
            server = threads_server(0, app)
            _say(server.server_port)
            server.serve_forever()
        case "asyncio":
            from sansmcp_io.asyncio import HTTPServer, serve_http

            def listening(server: HTTPServer) -> None:
                _say(server.port)

            asyncio.run(serve_http(on_loop, port=0, on_listening=listening, **OPTIONS))
        case _:
            import trio

            from sansmcp_io import trio as ours

            async def serve() -> None:
                async with trio.open_nursery() as nursery:
                    server = await nursery.start(
                        partial(ours.serve_http, on_loop, port=0, **OPTIONS)
                    )
                    _say(server.port)

            trio.run(serve)


if __name__ == "__main__":
    main(sys.argv[1])
