"""`sansmcp_io.asgi` on real ASGI servers and sockets: slow clients, disconnects and shutdown."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import httpx2
import pytest

from sansmcp import JSONObject
from sansmcp_io import Unauthorized
from sansmcp_io.asgi import Scope, ServerCall
from tests.support.http.asgi import new_app
from tests.support.http.server_endpoint import POST, modern_headers
from tests.support.modern import modern
from tests.support.processes import ROOT

SECONDS: Final = 20
COMMANDS: Final = {
    "uvicorn": ("uvicorn", "--fd={}", "--timeout-graceful-shutdown=1"),
    # Without workers it serves by itself, and nothing of it is left when it is killed.
    "hypercorn": ("hypercorn", "--bind=fd://{}", "--graceful-timeout=1", "--workers=0"),
}


def handle(call: ServerCall) -> JSONObject:
    return {"tools": []}


def authenticate(scope: Scope) -> str:
    if b"authorization" not in dict(scope["headers"]):
        raise Unauthorized("Bearer")
    return "ann"


app: Final = new_app(handle, authenticate=authenticate, path="/mcp")


@contextmanager
def serving(name: str) -> Generator[tuple[int, subprocess.Popen[str]], None, None]:
    """A server of another project that serves `app`: its port and its process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number, port = listener.fileno(), listener.getsockname()[1]
        options = [option.format(number) for option in COMMANDS[name]]
        command = [sys.executable, "-m", *options, "tests.adapters.asgi.test_servers:app"]
        process = subprocess.Popen(
            command, cwd=ROOT, pass_fds=[number], stderr=subprocess.PIPE, text=True
        )
    with process:
        try:
            yield port, process
        finally:
            process.kill()


def test_client_that_is_refused_keeps_its_connection_of_http_2() -> None:
    """A client whose token has expired must be able to read the 401 without losing all streams:
    hypercorn ends the connection where a part of a body comes after the response.
    """
    with serving("hypercorn") as (port, _):
        url = f"http://127.0.0.1:{port}/mcp"
        with httpx2.Client(http1=False, http2=True, timeout=SECONDS) as client:
            for size in range(1, 30_000, 1_000):
                response = client.post(url, content=b"x" * size, headers=dict(POST))
                assert (response.http_version, response.status_code) == ("HTTP/2", 401)


@pytest.mark.parametrize("name", COMMANDS)
def test_server_that_is_told_to_end_ends_though_a_stream_is_open(name: str) -> None:
    """The server must keep its limit for the shutdown, and end the remaining handlers and streams
    properly.
    """
    listen: Any = modern(1, "subscriptions/listen", {"notifications": {}})
    body = json.dumps(listen).encode()
    fields = {**POST, **modern_headers(listen), "authorization": "Bearer 1", "host": "localhost"}
    lines = "".join(f"{field}: {value}\r\n" for field, value in fields.items())
    head = f"POST /mcp HTTP/1.1\r\n{lines}content-length: {len(body)}\r\n\r\n".encode()
    with (
        serving(name) as (port, process),
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection,
    ):
        connection.sendall(head + body)
        received = b""
        while b"acknowledged" not in received:
            received += connection.recv(65536)
        process.terminate()
        while connection.recv(65536):
            pass
        _, said = process.communicate(timeout=SECONDS)
    assert process.returncode in (0, -signal.SIGTERM)
    assert "LifespanTimeout" not in said
    assert "LifespanFailure" not in said
    if name == "uvicorn":
        assert "Application shutdown complete" in said
