"""The shared handler, on ASGI and WSGI servers of other projects.

To start it: `python -m tests.adapters.everywhere.hosted SERVER PORT`.

It is mounted at `/mcp` of an application that has a route of its own: `/forget`, by which tests
that share a process begin anew.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from sansmcp import JSONObject
from sansmcp_io.asgi import App as ASGIApp
from sansmcp_io.wsgi import App as WSGIApp
from tests.adapters.everywhere.server import CAPABILITIES, INFO, Blocking, handle, step

SEEN: list[str] = []
PATH: Final = "/mcp"
FORGET: Final = "/forget"
KEEP_ALIVE: Final = 0.1  # a server that has threads learns by writing that a client is gone


class OnAsyncio:
    async def ask(self, call: Any, method: str, **options: Any) -> JSONObject:
        result: JSONObject = await call.request(method, **options)
        return result

    async def until_cancelled(self, call: Any) -> None:
        await asyncio.sleep(3600)  # for ever, but for the cancellation


def blocking(call: Any) -> Any:
    return step(handle(Blocking(), SEEN, call))


OPTIONS: Final[dict[str, Any]] = {
    "info": INFO,
    "capabilities": CAPABILITIES,
    "keep_alive": KEEP_ALIVE,
    "path": PATH,
}
MCP: Final = ASGIApp(partial(handle, OnAsyncio(), SEEN), **OPTIONS)
PLAIN: Final = WSGIApp(blocking, **OPTIONS)
WHOLE: Final = WSGIApp(blocking, sessions=True, streams=True, **OPTIONS)


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    """An application with another route, and a lifespan that is the whole application's."""
    if scope["type"] == "http" and scope["path"] == FORGET:
        SEEN.clear()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"forgotten"})
    else:
        await MCP(scope, receive, send)


def wsgi(app: WSGIApp, environ: Any, start_response: Any) -> Iterable[bytes]:
    if environ["PATH_INFO"] == FORGET:
        SEEN.clear()
        start_response("200 OK", [("Content-Length", "9")])
        return [b"forgotten"]
    return app(environ, start_response)


plain: Final = partial(wsgi, PLAIN)
whole: Final = partial(wsgi, WHOLE)


def on_uvicorn(port: int) -> None:
    import uvicorn

    uvicorn.run(asgi, port=port, log_level="warning", timeout_graceful_shutdown=1)


def on_hypercorn(port: int) -> None:
    import hypercorn.asyncio
    from hypercorn.config import Config

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.accesslog = None
    server: Any = hypercorn.asyncio  # whose types are not complete
    asyncio.run(server.serve(asgi, config))


def threads_server(port: int, app: Any) -> Any:
    """A server of the standard library, with a thread for each connection."""
    import socketserver
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

    class Server(socketserver.ThreadingMixIn, WSGIServer):
        daemon_threads = True
        request_queue_size = 64

    class Quiet(WSGIRequestHandler):
        def log_message(self, format: str, *args: object) -> None: ...

    return make_server("127.0.0.1", port, app, Server, Quiet)


def on_threads(port: int) -> None:
    threads_server(port, whole).serve_forever()


def on_waitress(port: int) -> None:
    become(
        "waitress",
        f"--listen=127.0.0.1:{port}",
        "--threads=16",
        "tests.adapters.everywhere.hosted:whole",
    )


def on_gunicorn(port: int, *options: str) -> None:
    become(
        "gunicorn",
        f"--bind=127.0.0.1:{port}",
        "--log-level=error",
        "--no-control-socket",
        "--graceful-timeout=1",
        *options,
    )


def become(module: str, *options: str) -> None:
    """Replace this process by another program."""
    os.execv(sys.executable, [sys.executable, "-m", module, *options])


SERVERS: Final[dict[str, Callable[[int], None]]] = {
    "uvicorn": on_uvicorn,
    "hypercorn": on_hypercorn,
    "threads": on_threads,
    "waitress": on_waitress,
    "gunicorn-gthread": lambda port: on_gunicorn(
        port, "--threads=16", "tests.adapters.everywhere.hosted:whole"
    ),
    "gunicorn-sync": lambda port: on_gunicorn(port, "tests.adapters.everywhere.hosted:plain"),
}


if __name__ == "__main__":
    logging.basicConfig()
    SERVERS[sys.argv[1]](int(sys.argv[2]))
