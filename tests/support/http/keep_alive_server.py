"""Runs a server on real sockets that keeps connections open, and answers as a test wants."""

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
    """A request that the server has read. The names of headers are in lower case."""

    verb: str
    target: str
    fields: dict[str, str]
    body: bytes

    @property
    def message(self) -> Any:
        return json.loads(self.body or b"{}")

    @property
    def method(self) -> str:
        """The method of the message; `""` for a response.

        For a request that is not a POST, the HTTP method.
        """
        method: str = self.message.get("method", "") if self.verb == "POST" else self.verb
        return method

    @property
    def name(self) -> str:
        """The name of the tool that is called."""
        name: str = self.message.get("params", {}).get("name", "")
        return name


def response(
    status: int = 200, body: object = b"", *fields: str, form: str = JSON, size: int | None = None
) -> bytes:
    """A complete response; with `size`, it declares that length instead of the real one."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = (f"content-type: {form}", *fields) if body else fields
    length = f"content-length: {len(body) if size is None else size}"
    head = "\r\n".join([f"HTTP/1.1 {status} x", *lines, length, "", ""])
    return head.encode() + body


def answered(request: Request) -> bytes:
    """The usual response of a server."""
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
"""Gets a connection and a request, and returns the response.

`b""` means that it has sent the response itself; None asks for the usual response.
"""


_MOST_BODY = 1_000_000


async def ordinary(stream: trio.SocketStream, request: Request) -> None:
    """Ask for the usual response to each request."""


@asynccontextmanager
async def keeping(answer: Answer = ordinary) -> AsyncGenerator[int, None]:
    """Serve until the block is left, one request after the other, and give the port.

    A request with a body of more than a million bytes is refused before it is complete.
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
    """A client of such a server, with a handshake by default."""
    settings = {"info": CLIENT_INFO, "revisions": (LEGACY,), **settings}
    return connect_http(f"http://127.0.0.1:{port}/mcp", **settings)


async def call(client: Client, name: str, **how: Any) -> Any:
    """Call a tool."""
    return await client.request("tools/call", {"name": name, "arguments": {}}, **how)
