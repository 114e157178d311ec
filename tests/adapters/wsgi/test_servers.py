"""`sansmcp_io.wsgi` on real WSGI servers and sockets, strict ones and careless ones."""

import json
import re
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest

from sansmcp import Config, JSONObject
from sansmcp_io.wsgi import App, ServerCall
from tests.support.http.server_endpoint import GET, POST, modern_headers, modern_tool_call
from tests.support.modern import BOTH, modern
from tests.support.processes import ROOT
from tests.support.wire import (
    CLIENT_CAPABILITIES,
    INITIALIZED,
    SERVER_CAPABILITIES,
    SERVER_INFO,
    initialize,
)

SECONDS: Final = 20
TEXT: Final[JSONObject] = {"content": [{"type": "text", "text": "hi"}]}


def handle(call: ServerCall) -> JSONObject:
    call.progress(1)
    return TEXT


def new_app(**settings: Any) -> App:
    return App(
        handle,
        info=SERVER_INFO,
        capabilities=SERVER_CAPABILITIES,
        revisions=BOTH,
        keep_alive=None,
        **settings,
    )


class Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def serving(app: App) -> Generator[int, None, None]:
    """wsgiref with threads: its address. It answers 500 where the rules of WSGI are broken."""
    with make_server("127.0.0.1", 0, app, Server, Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            app.close()
            server.shutdown()
            thread.join()


@contextmanager
def sent(
    port: int, method: str, fields: Any, body: bytes = b"", *, length: str | None = ""
) -> Generator[socket.socket, None, None]:
    """A request on a socket of its own; a length of None means no Content-Length."""
    if length is not None:
        fields = {**fields, "content-length": length or str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    head = f"{method} /mcp HTTP/1.1\r\nhost: localhost\r\n{lines}\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        connection.sendall(head.encode() + body)
        yield connection


def read(connection: socket.socket, until: bytes | None = None) -> bytes:
    found = b""
    while until is None or until not in found:
        data = connection.recv(65536)
        if not data:
            break
        found += data
    return found


def exchange(port: int, method: str, fields: Any, body: bytes = b"", **about: Any) -> bytes:
    with sent(port, method, fields, body, **about) as connection:
        return read(connection)


def status(response: bytes) -> int:
    return int(response.split(b" ", 2)[1])


def open_session(port: int, revision: str) -> dict[str, str]:
    opening = json.dumps(initialize("hello", revision, CLIENT_CAPABILITIES)).encode()
    answer = exchange(port, "POST", POST, opening)
    (id,) = [line[16:] for line in answer.split(b"\r\n") if line.startswith(b"Mcp-Session-Id: ")]
    fields = {"mcp-session-id": id.decode(), "mcp-protocol-version": revision}
    assert status(exchange(port, "POST", {**POST, **fields}, json.dumps(INITIALIZED).encode())) == (
        202
    )
    return fields


def test_all_kinds_of_responses_are_as_servers_may_demand() -> None:
    """A header or a type that one server accepts, and a strict one refuses, would fail in
    production only.
    """
    call = modern_tool_call()
    call["params"]["_meta"]["progressToken"] = 1
    body = json.dumps(call).encode()
    with serving(new_app(sessions=True)) as port:
        streamed = exchange(port, "POST", {**POST, **modern_headers(call)}, body)
        assert status(streamed) == 200
        assert streamed.count(b"data: ") == 2
        session = open_session(port, BOTH[0])
        for method, fields, expected in (
            ("GET", {**GET, **session}, 405),
            ("HEAD", GET, 405),
            ("PUT", {}, 405),
            ("OPTIONS", {}, 204),
            ("DELETE", session, 204),
            ("POST", {**POST, "origin": "https://evil.example"}, 403),
        ):
            assert status(exchange(port, method, fields)) == expected


@pytest.mark.parametrize(
    ("length", "expected"),
    [("-1", 400), ("1,1", 400), ("0" * 30, 400), ("1e3", 400), ("99999999999999999999", 413)],
)
def test_length_that_is_none_is_refused(length: str, expected: int) -> None:
    """Some servers pass any length on, and reading `-1` bytes would hold a thread for ever."""
    with serving(new_app()) as port:
        assert status(exchange(port, "POST", POST, length=length)) == expected


def test_body_that_is_too_long_is_refused_by_its_head() -> None:
    """A body over the limit must be refused before the client sends it."""
    with serving(new_app(config=Config(max_message_bytes=1024))) as port:
        assert status(exchange(port, "POST", POST, length="1025")) == 413


def test_body_without_length_is_refused_where_the_server_cannot_tell_its_end() -> None:
    """The body would look empty, and the error would say that it is not JSON."""
    with serving(new_app()) as port:
        fields = {**POST, "transfer-encoding": "chunked"}
        response = exchange(port, "POST", fields, b"2\r\n{}\r\n0\r\n\r\n", length=None)
        assert status(response) == 411


def test_client_that_stops_in_its_body_is_told_so(capfd: pytest.CaptureFixture[str]) -> None:
    """The client may still read a response; the log of the server must have no error."""
    with serving(new_app()) as port, sent(port, "POST", POST, b"{", length="10") as connection:
        connection.shutdown(socket.SHUT_WR)
        assert status(read(connection)) == 400
    assert "Traceback" not in capfd.readouterr().err


def test_stream_begins_before_there_is_anything_to_be_sent() -> None:
    """Servers send the head with the first piece of the body, so a stream needs an early piece, or
    its client would wait.
    """
    app = new_app(sessions=True, streams=True)
    with serving(app) as port:
        session = open_session(port, "2025-06-18")
        with sent(port, "GET", {**GET, **session}) as connection:
            assert status(read(connection, b"\r\n\r\n")) == 200
            app.close()
            assert read(connection) == b""


SHOP = """
from tests.adapters.wsgi.test_servers import new_app

mcp = new_app(streams=True)
"""


def test_gunicorn_that_is_told_to_end_ends_streams_as_the_guide_says(tmp_path: Path) -> None:
    """Streams must end at a deployment, so that no worker has to be killed."""
    guide = (ROOT / "docs/howto/wsgi.md").read_text("utf-8")
    (settings,) = re.findall(r"```python\n(# gunicorn.*?)```", guide, re.DOTALL)
    (tmp_path / "gunicorn.conf.py").write_text(settings, "utf-8")
    (tmp_path / "shop.py").write_text(SHOP, "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        command = ["gunicorn", f"--bind=fd://{listener.fileno()}", "--threads=4", "shop:mcp"]
        options = ["--no-control-socket", "--graceful-timeout=60", f"--pythonpath={ROOT}"]
        process = subprocess.Popen(
            [sys.executable, "-m", *command, *options],
            cwd=tmp_path,
            pass_fds=[listener.fileno()],
            stderr=subprocess.PIPE,
            text=True,
        )
    with process:
        try:
            listen = modern(1, "subscriptions/listen", {"notifications": {}})
            body = json.dumps(listen).encode()
            with sent(port, "POST", {**POST, **modern_headers(listen)}, body) as connection:
                read(connection, b"acknowledged")
                process.terminate()
                assert b'"resultType":"complete"' in read(connection)
            _, said = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert process.returncode == 0
    assert "Traceback" not in said
    assert "SIGKILL" not in said
