"""Clients that disconnect early leave no errors in the logs of common servers."""

import asyncio
import importlib
import json
import logging
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

import hypercorn.asyncio as hypercorn_asyncio
import pytest
import uvicorn
from hypercorn.config import Config as HypercornConfig
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.routing import Route

from sansmcp import JSONObject
from sansmcp_io import asgi, wsgi
from tests.support.adapters import loops
from tests.support.adapters.loops import on_each_loop
from tests.support.http.on_loops import serving, talking
from tests.support.http.server_endpoint import POST, modern_headers, modern_tool_call
from tests.support.modern import BOTH, modern
from tests.support.processes import ROOT
from tests.support.wire import SERVER_CAPABILITIES, SERVER_INFO

SECONDS: Final = 30
SERVERS: Final = (
    "uvicorn",
    "uvicorn below middleware",
    "hypercorn",
    "hypercorn below middleware",
    "waitress",
)
ENDING: Final = {"waitress": signal.SIGINT}
"""What lets a server finish what it is at, where SIGTERM does not."""
ABOUT: Final[dict[str, Any]] = {
    "info": SERVER_INFO,
    "capabilities": SERVER_CAPABILITIES,
    "revisions": BOTH,
}
TEXT: Final[JSONObject] = {"content": [{"type": "text", "text": "hi"}]}
LISTS: Final[dict[str, JSONObject]] = {
    "resources/list": {"resources": []},
    "tools/list": {"tools": []},
}

# ------------------------------------------------------------------------------------ servers


class Handler:
    """A tool that runs until it is cancelled; other methods report its progress."""

    def __init__(
        self, event: Callable[[], loops.Event], forever: Callable[[], Awaitable[None]]
    ) -> None:
        self._begun = event()
        self._left = event()
        self._forever = forever

    async def __call__(self, call: Any) -> JSONObject:
        if call.method == "resources/list":
            await self._begun.wait()
        elif call.method == "tools/list":
            await self._left.wait()
        else:
            self._begun.set()
            try:
                await self._forever()
            finally:
                self._left.set()
        return LISTS[call.method]


class BlockingHandler:
    """No thread can be cancelled, so this tool ends once its progress is asked for."""

    def __init__(self) -> None:
        self._begun = threading.Event()
        self._free = threading.Event()
        self._left = threading.Event()

    def __call__(self, call: wsgi.ServerCall) -> JSONObject:
        if call.method == "resources/list":
            self._begun.wait(SECONDS)
        elif call.method == "tools/list":
            self._free.set()
            self._left.wait(SECONDS)
        else:
            self._begun.set()
            self._free.wait(SECONDS)
            self._left.set()
            return TEXT
        return LISTS[call.method]


async def pass_on(request: Any, call_next: Any) -> Any:
    return await call_next(request)


def run(name: str, listener: socket.socket) -> None:
    """Serve until a signal comes."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    if name == "waitress":
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # how busy it is
        waitress: Any = importlib.import_module("waitress")  # which has no types
        waitress.serve(wsgi.App(BlockingHandler(), **ABOUT), sockets=[listener], threads=4)
        return
    app: Any = asgi.App(Handler(asyncio.Event, loops.sleep_forever), **ABOUT)
    server, _, around = name.partition(" below ")
    if around:
        middleware = [Middleware(BaseHTTPMiddleware, dispatch=pass_on)]
        # It raises where an application returns without a response.
        app = Starlette(routes=[Route("/mcp", app)], middleware=middleware)
    if server == "uvicorn":
        uvicorn.Server(uvicorn.Config(app)).run([listener])
    else:
        config = HypercornConfig()
        config.bind = [f"fd://{listener.detach()}"]
        hypercorn: Any = hypercorn_asyncio  # whose types are not complete
        asyncio.run(hypercorn.serve(app, config))


@contextmanager
def serving_outside(name: str) -> Generator[tuple[int, list[str]], None, None]:
    """A server process: its port, and its output after the end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number, port = listener.fileno(), listener.getsockname()[1]
        command = [
            sys.executable,
            "-m",
            "tests.adapters.http_server.test_clients_that_leave",
            name,
            str(number),
        ]
        process = subprocess.Popen(
            command, cwd=ROOT, pass_fds=[number], stderr=subprocess.PIPE, text=True
        )
    written: list[str] = []
    with process:
        try:
            yield port, written
            process.send_signal(ENDING.get(name, signal.SIGTERM))
            written += process.communicate(timeout=SECONDS)[1].splitlines()
        finally:
            process.kill()


# ------------------------------------------------------------------------------------ clients

CALL: Final = modern_tool_call()


def head_of(message: Any, length: int) -> bytes:
    fields = {**POST, **modern_headers(message), "content-length": str(length)}
    lines = "".join(f"{field}: {value}\r\n" for field, value in fields.items())
    return f"POST /mcp HTTP/1.1\r\nhost: localhost\r\n{lines}\r\n".encode()


def begun(port: int, message: Any) -> socket.socket:
    """A connection on which a whole request was sent."""
    body = json.dumps(message).encode()
    connection = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
    connection.sendall(head_of(message, len(body)) + body)
    return connection


def break_off_in_a_body(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        connection.sendall(head_of(CALL, 500) + b"{")


def answered(port: int, method: str) -> None:
    """Wait for the response to this request."""
    with begun(port, modern(2, method)) as connection:
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("name", SERVERS)
def test_client_that_leaves_early_is_no_error_of_the_server(name: str) -> None:
    """Case c286: an error in the server's log would make its operator look for a fault that does
    not exist.
    """
    with serving_outside(name) as (port, written):
        break_off_in_a_body(port)
        with begun(port, CALL):
            answered(port, "resources/list")
        answered(port, "tools/list")
    log = [line for line in written if "INFO" not in line]
    assert log == []


@on_each_loop()
async def test_client_that_leaves_early_is_nothing_to_log(caplog: pytest.LogCaptureFixture) -> None:
    """Neighbour of case c286: the same for our own servers."""
    handler = Handler(loops.new_event, loops.sleep_forever)
    async with serving(handler) as server, talking(server) as talk:
        break_off_in_a_body(server.port)
        with begun(server.port, CALL):
            await talk.call(modern(2, "resources/list"))
        await talk.call(modern(2, "tools/list"))
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []


if __name__ == "__main__":
    run(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
