"""A server on real sockets that keeps its connections, and answers as a test says."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import attrs
import trio

from sansmcp import JSONObject
from sansmcp_io.trio import Client, connect_http
from tests.support.http.server_endpoint import JSON, LEGACY
from tests.support.modern import discovered
from tests.support.wire import CLIENT_INFO, SERVER_CAPABILITIES, SERVER_INFO, result

OK: JSONObject = {"content": []}


@attrs.frozen
class Request:
    """What has come: names of fields are in lower case."""

    verb: str
    target: str
    fields: dict[str, str]
    body: bytes

    @property
    def message(self) -> Any:
        return json.loads(self.body or b"{}")

    @property
    def method(self) -> str:
        """That of the message; for what is no POST, that of HTTP; `""` for an answer."""
        method: str = self.message.get("method", "") if self.verb == "POST" else self.verb
        return method

    @property
    def name(self) -> str:
        """Which tool is called."""
        name: str = self.message.get("params", {}).get("name", "")
        return name


def response(
    status: int = 200, body: object = b"", *fields: str, form: str = JSON, size: int | None = None
) -> bytes:
    """A whole response, or one that says that it is longer than it is."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = (f"content-type: {form}", *fields) if body else fields
    length = f"content-length: {len(body) if size is None else size}"
    head = "\r\n".join([f"HTTP/1.1 {status} x", *lines, length, "", ""])
    return head.encode() + body


def answered(request: Request) -> bytes:
    """What a server answers that has no surprises."""
    id = request.message.get("id")
    if request.method == "initialize":
        agreed = {
            "protocolVersion": LEGACY,
            "capabilities": SERVER_CAPABILITIES,
            "serverInfo": SERVER_INFO,
        }
        return response(200, result(id, agreed), "mcp-session-id: s")
    if request.method == "server/discover":
        return response(200, result(id, discovered()))
    if request.verb == "GET":
        return response(405)
    return response(202) if id is None else response(200, result(id, OK))


Answer = Callable[[trio.SocketStream, Request], Awaitable[bytes | None]]
"""Gets the connection and a request; returns the answer, `b""` if it has given one, None if there
is nothing special about it."""


_MOST_BODY = 1_000_000


async def ordinary(stream: trio.SocketStream, request: Request) -> None:
    """Treats each request in the same way."""


@asynccontextmanager
async def keeping(answer: Answer = ordinary) -> AsyncGenerator[int, None]:
    """The port of a server that reads one request after the other.

    One with a body of more than a million bytes is refused before it is complete.
    """

    async def serve(stream: trio.SocketStream) -> None:
        data = b""
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while True:
                while (request := _request_in(data)) is None:
                    if len(data) > _MOST_BODY:
                        await stream.send_all(response(413))
                        data = b""
                    data += (more := await stream.receive_some())
                    if not more:
                        return
                data = data.partition(b"\r\n\r\n")[2][len(request.body) :]
                said = await answer(stream, request)
                await stream.send_all(answered(request) if said is None else said)

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        yield listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


def _request_in(data: bytes) -> Request | None:
    head, end, rest = data.partition(b"\r\n\r\n")
    if not end:
        return None
    first, *lines = head.decode().split("\r\n")
    pairs = (line.partition(":") for line in lines)
    fields = {name.lower(): value.strip() for name, _, value in pairs}
    size = int(fields.get("content-length", 0))
    verb, target, _ = first.split(" ")
    return None if len(rest) < size else Request(verb, target, fields, rest[:size])


def client_of(port: int, **settings: Any) -> AbstractAsyncContextManager[Client]:
    """A client of such a server, with a handshake if nothing else is said."""
    settings = {"info": CLIENT_INFO, "revisions": (LEGACY,), **settings}
    return connect_http(f"http://127.0.0.1:{port}/mcp", **settings)


async def call(client: Client, name: str, **how: Any) -> Any:
    """Call a tool."""
    return await client.request("tools/call", {"name": name, "arguments": {}}, **how)
