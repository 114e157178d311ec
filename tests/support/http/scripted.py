"""Runs an HTTP server, on the standard library, that answers each request as a test wants."""

import json
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from sansmcp import LEGACY_REVISIONS, JSONObject

LEGACY = LEGACY_REVISIONS[-1]


class Asked(BaseHTTPRequestHandler):
    """Handles one connection, and calls `answer` for each request on it.

    Attributes:
        message: The message of a POST; `{}` for other methods.
    """

    protocol_version = "HTTP/1.1"
    answer: ClassVar[Callable[["Asked"], object]]
    message: JSONObject

    def reply(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a response, and keep the connection open."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def result(self, result: JSONObject, headers: Mapping[str, str] | None = None) -> None:
        """Answer the request in the body with a result."""
        message = {"jsonrpc": "2.0", "id": self.message["id"], "result": result}
        headers = {"content-type": "application/json", **(headers or {})}
        self.reply(200, json.dumps(message).encode(), headers)

    def error(
        self, code: int, message: str, status: int, headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer the request in the body with an error, and with this HTTP status."""
        error = {"code": code, "message": message}
        body = json.dumps({"jsonrpc": "2.0", "id": self.message.get("id"), "error": error})
        self.reply(status, body.encode(), {"content-type": "application/json", **(headers or {})})

    def hang_up(self) -> None:
        """Close the connection without a response."""
        self.close_connection = True

    def stream(self, *events: str) -> None:
        """Begin a stream of events, which ends when the connection is closed."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in events:
            self.wfile.write(event.encode() + b"\n\n")

    def open_session(self, session: str | None = None) -> bool:
        """Answer an opening request of 2025-11-25; return whether the request was one."""
        match self.command, self.message.get("method"):
            case "POST", "initialize":
                headers = {} if session is None else {"mcp-session-id": session}
                info = {"name": "scripted", "version": "1"}
                capabilities: JSONObject = {"tools": {}}
                self.result(
                    {
                        "protocolVersion": LEGACY,
                        "capabilities": capabilities,
                        "serverInfo": info,
                    },
                    headers,
                )
            case "POST", "notifications/initialized":
                self.reply(202)
            case "GET", _:
                self.reply(405)
            case "DELETE", _:
                self.reply(200)
            case _:
                return False
        return True

    def _serve(self) -> None:
        self.message = {}
        if self.command == "POST":
            body = self.rfile.read(int(self.headers["content-length"]))
            self.message = json.loads(body)
        type(self).answer(self)

    do_POST = do_GET = do_DELETE = _serve

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Quiet(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore that a client has closed its connection."""


@contextmanager
def scripted(
    answer: Callable[[Asked], object], kind: type[Asked] = Asked, *, port: int = 0
) -> Generator[str]:
    """Serve until the block is left, and give the URL."""
    handler = type("Handler", (kind,), {"answer": staticmethod(answer)})
    with Quiet(("127.0.0.1", port), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join(30)
