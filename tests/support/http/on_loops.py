"""Servers on real sockets, and a client that writes HTTP/1.1 by hand."""

import json
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import attrs
import h11

import sansmcp_io.asyncio
import sansmcp_io.trio
from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, JSONObject
from sansmcp.http import ServerSentEvent, SSEDecoder
from sansmcp_io.trio import Client, Handler, HTTPServer
from tests.support.adapters import loops
from tests.support.http.h11_client import Received, posted, posted_modern

BOTH = (*LEGACY_REVISIONS, *MODERN_REVISIONS)
INFO: JSONObject = {"name": "test-server", "version": "1.0"}
CAPABILITIES: JSONObject = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True},
    "logging": {},
}


@asynccontextmanager
async def serving(handler: Handler, **settings: Any) -> AsyncGenerator[HTTPServer, None]:
    """Serve on a free port until the block is left."""
    settings = {
        "info": INFO,
        "capabilities": CAPABILITIES,
        "revisions": BOTH,
        "drain": 0.0001,
        **settings,
    }
    async with loops.open_nursery() as nursery:

        async def serve(started: Callable[[HTTPServer], object]) -> None:
            await serve_http(handler, port=0, started=started, **settings)

        server: HTTPServer = await nursery.start(serve)
        yield server
        server.close()


async def serve_http(
    handler: Handler,
    *where: Any,
    started: Callable[[HTTPServer], object] | None = None,
    **settings: Any,
) -> None:
    """Serve on the current loop. `started` is called when the server listens."""
    if not loops.is_trio():
        await sansmcp_io.asyncio.serve_http(handler, *where, on_listening=started, **settings)
        return
    if started is not None:
        settings["task_status"] = Status(started)
    await sansmcp_io.trio.serve_http(handler, *where, **settings)


def connect_http(url: str, **settings: Any) -> AbstractAsyncContextManager[Client]:
    """A client on the current loop."""
    if loops.is_trio():
        return sansmcp_io.trio.connect_http(url, **settings)
    return sansmcp_io.asyncio.connect_http(url, **settings)


@attrs.frozen
class Status:
    """The status object of trio, on which a task calls `started`."""

    started: Callable[[HTTPServer], object]


@attrs.define
class Talk:
    """One connection of a client."""

    stream: loops.Stream
    _parser: h11.Connection = attrs.field(factory=lambda: h11.Connection(h11.CLIENT))
    _decoder: SSEDecoder = attrs.field(factory=SSEDecoder)
    _waiting: list[Any] = attrs.field(factory=list[Any])

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def receive_head(self, method: str = "POST") -> Received:
        """Read the head of the response to a request that was written by hand."""
        if self._parser.our_state is h11.DONE:
            self._parser.start_next_cycle()
        request = h11.Request(method=method, target="/", headers=[("host", "localhost")])
        self._parser.send(request)
        self._parser.send(h11.EndOfMessage())
        while not isinstance(event := await self._next(), h11.Response):
            assert isinstance(event, h11.InformationalResponse)
        headers = {name.decode(): value.decode() for name, value in event.headers}
        return Received(event.status_code, headers, b"")

    async def receive_body(self) -> bytes | None:
        """Read the next piece of the body. None is the end of the body."""
        event = await self._next()
        if isinstance(event, h11.Data):
            return bytes(event.data)
        assert isinstance(event, h11.EndOfMessage)
        return None

    async def receive(self, method: str = "POST") -> Received:
        """Read a complete response."""
        response = await self.receive_head(method)
        body = b""
        while (data := await self.receive_body()) is not None:
            body += data
        return attrs.evolve(response, body=body)

    async def event(self) -> ServerSentEvent:
        """Read the next event of a stream."""
        event = await self._event_or_end()
        assert event is not None
        return event

    async def message(self) -> Any:
        """Read the next message of a stream. Events without a message are skipped."""
        while not (event := await self.event()).data:
            pass
        return json.loads(event.data)

    async def messages(self) -> list[Any]:
        """Read all messages until the stream ends."""
        found: list[Any] = []
        while (event := await self._event_or_end()) is not None:
            if event.data:
                found.append(json.loads(event.data))
        return found

    async def _event_or_end(self) -> ServerSentEvent | None:
        while not self._waiting:
            data = await self.receive_body()
            if data is None:
                self._decoder = SSEDecoder()
                return None
            self._waiting.extend(self._decoder.feed(data))
        event = self._waiting.pop(0)
        assert isinstance(event, ServerSentEvent)
        return event

    async def _next(self) -> Any:
        while (event := self._parser.next_event()) is h11.NEED_DATA:
            self._parser.receive_data(bytes(await self.stream.receive_some()))
        return event

    async def call(self, message: JSONObject) -> Any:
        """POST a message of 2026-07-28, and return the response in it."""
        await self.send(posted_modern(message))
        return last(await self.receive())

    async def post(self, message: object, fields: dict[str, str] | None = None) -> Received:
        """POST any message."""
        await self.send(posted(message, fields))
        return await self.receive()

    async def ended(self) -> bool:
        """Wait until the server has closed the connection."""
        try:
            while await self.stream.receive_some():
                pass
        except loops.BROKEN:
            pass
        return True


def last(response: Received) -> Any:
    """The message in the body, or the last message of the stream."""
    if response.headers["content-type"] == "application/json":
        return json.loads(response.body)
    events = SSEDecoder().feed(response.body)
    assert isinstance(events[-1], ServerSentEvent)
    return json.loads(events[-1].data)


@asynccontextmanager
async def talking(
    server: HTTPServer, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Talk, None]:
    """Open a connection to the server."""
    async with loops.open_stream(server.port, tls) as stream:
        yield Talk(stream)
