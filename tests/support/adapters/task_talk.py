"""A client that follows its tasks by hand, over HTTP and on a stream, on each loop."""

import asyncio
import itertools
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

import attrs
import trio

import sansmcp_io.asyncio
import sansmcp_io.trio
from sansmcp import FailureReason, JSONObject, RequestFailed
from sansmcp_io.trio import Handler
from tests.support.adapters import loops
from tests.support.http import on_loops
from tests.support.http.server_endpoint import modern_headers
from tests.support.modern import BOTH, LEGACY, envelope, modern
from tests.support.tasks import WITH_TASKS
from tests.support.wire import INITIALIZED, SERVER_INFO, call, initialize

TEXT: Final[JSONObject] = {"content": [{"type": "text", "text": "done"}]}
FINAL: Final = ("completed", "failed", "cancelled")
ACCEPTED: Final[JSONObject] = {"action": "accept", "content": {"name": "Ann"}}
HTTP: Final = "http"
STREAM: Final = "stream"


class Lines:
    """One end of a stream, driven by hand."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self._data = b""

    async def send(self, message: JSONObject) -> None:
        await self.stream.send_all(json.dumps(message).encode() + b"\n")

    async def receive(self) -> Any:
        """The next message; None at the end."""
        while b"\n" not in self._data:
            data = await self.stream.receive_some()
            if not data:
                return None
            self._data += data
        line, _, self._data = self._data.partition(b"\n")
        return json.loads(line)


@attrs.define
class TaskTalk:
    """A client.

    Attributes:
        lines: Its end of a stream; None: it speaks HTTP, by `post`.
        post: Sends a request by HTTP, and returns the response.
        server: The server, over HTTP.
        close: Ends its side of the stream.
        is_legacy: Whether it speaks 2025-11-25.
        capabilities: What it declares with each request of 2026-07-28.
        seen: All messages of the server that were no response to `ask`.
    """

    lines: Lines | None = None
    post: Callable[[JSONObject], Awaitable[Any]] | None = None
    server: Any = None
    close: Callable[[], Awaitable[None]] | None = None
    is_legacy: bool = False
    capabilities: JSONObject = attrs.field(factory=lambda: WITH_TASKS)
    seen: list[Any] = attrs.field(factory=list[Any])
    _ids: Any = attrs.field(factory=lambda: itertools.count(100), init=False)

    def request(self, method: str, params: JSONObject) -> JSONObject:
        id = next(self._ids)
        if self.is_legacy:
            return call(id, method, params)
        return modern(id, method, params, envelope(self.capabilities))

    async def ask(self, method: str, params: JSONObject | None = None) -> Any:
        """The response to a request."""
        message = self.request(method, params or {})
        if self.post is not None:
            return await self.post(message)
        assert self.lines is not None
        await self.lines.send(message)
        return await self.response(message["id"])

    async def response(self, id: object) -> Any:
        """The response to this request; messages that come before are kept in `seen`."""
        assert self.lines is not None
        while True:
            message = await self.lines.receive()
            assert message is not None, "the stream has ended"
            if message.get("id") == id and "method" not in message:
                return message
            self.seen.append(message)

    async def tool(self, name: str, **members: Any) -> Any:
        """The result of a call, which a legacy client wants as a task."""
        if self.is_legacy:
            members = {"task": {}, **members}
        answer = await self.ask("tools/call", {"name": name, "arguments": {}, **members})
        assert "result" in answer, answer
        return answer["result"]

    async def begun(self, name: str = "slow", **members: Any) -> str:
        """The id of a new task."""
        result = await self.tool(name, **members)
        task_id: str = (result["task"] if self.is_legacy else result)["taskId"]
        return task_id

    async def get(self, task_id: str) -> Any:
        answer = await self.ask("tasks/get", {"taskId": task_id})
        return answer["result"]

    async def until(self, task_id: str, *statuses: str) -> Any:
        """The task once it has one of these statuses."""
        while (task := await self.get(task_id))["status"] not in statuses:
            assert task["status"] not in FINAL, task
            await loops.sleep(0.001)
        return task

    async def over(self, task_id: str) -> Any:
        """The task once it has ended."""
        return await self.until(task_id, *FINAL)

    async def update(self, task_id: str, **answers: Any) -> None:
        """Answer questions (2026-07-28)."""
        params: JSONObject = {"taskId": task_id, "inputResponses": answers}
        assert "result" in await self.ask("tasks/update", params)


async def post_to(http: on_loops.Talk, message: JSONObject) -> Any:
    """The response to a request of 2026-07-28, on one connection."""
    return on_loops.last(await http.post(message, headers_of(message)))


def headers_of(message: JSONObject) -> dict[str, str]:
    """The headers of a request of 2026-07-28, those of requests about tasks among them."""
    params = message["params"]
    named = {"mcp-name": params["taskId"]} if "taskId" in params else {}
    return {**modern_headers(message), **named}


@asynccontextmanager
async def _streams() -> AsyncGenerator[tuple[Any, Any], None]:
    """Both ends of a connection: what `serve` takes, and a stream."""
    theirs, ours = socket.socketpair()
    if loops.is_trio():
        far, near = (
            trio.SocketStream(trio.socket.from_stdlib_socket(one)) for one in (theirs, ours)
        )
        async with near, far:
            yield (far,), near
        return
    far_streams = await asyncio.open_unix_connection(sock=theirs)
    reader, writer = await asyncio.open_unix_connection(sock=ours)

    class Near:
        async def send_all(self, data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        async def receive_some(self) -> bytes:
            return await reader.read(65_536)

        async def send_eof(self) -> None:
            writer.write_eof()

    try:
        yield far_streams, Near()
    finally:
        for end in (far_streams[1], writer):
            end.transport.abort()
            with suppress(OSError):
                await end.wait_closed()


@asynccontextmanager
async def talking(
    handler: Handler,
    transport: str,
    *,
    legacy: bool = False,
    client: JSONObject | None = None,
    **options: Any,
) -> AsyncGenerator[TaskTalk, None]:
    """A client of a server that has tasks."""
    capabilities = WITH_TASKS if client is None else client
    served: dict[str, Any] = {
        "info": SERVER_INFO,
        "capabilities": {"tools": {}},
        "revisions": BOTH,
        "tasks": True,
        **options,
    }
    if transport == HTTP:
        async with on_loops.serving(handler, **served) as server, on_loops.talking(server) as http:
            post = partial(post_to, http)
            yield TaskTalk(server=server, post=post, capabilities=capabilities)
        return
    async with _streams() as (far, near), loops.open_nursery() as nursery:
        serve: Any = sansmcp_io.trio.serve if loops.is_trio() else sansmcp_io.asyncio.serve
        nursery.start_soon(partial(serve, *far, handler, **served))
        talk = TaskTalk(
            lines=Lines(near),
            close=near.send_eof,
            capabilities=capabilities,
            is_legacy=legacy,
        )
        assert talk.lines is not None
        if legacy:
            await talk.lines.send(initialize("hello", LEGACY, capabilities))
            await talk.response("hello")
            await talk.lines.send(INITIALIZED)
        yield talk
        await near.send_eof()


class Endings:
    """A trace that notes why requests of its client have failed."""

    def __init__(self) -> None:
        self.reasons: list[FailureReason] = []

    def sent(self, connection: str, data: bytes) -> None: ...
    def received(self, connection: str, data: bytes) -> None: ...
    def happened(self, event: object) -> None:
        if isinstance(event, RequestFailed):
            self.reasons.append(event.reason)


__all__ = [
    "ACCEPTED",
    "HTTP",
    "STREAM",
    "TEXT",
    "Endings",
    "TaskTalk",
    "headers_of",
    "post_to",
    "talking",
]
