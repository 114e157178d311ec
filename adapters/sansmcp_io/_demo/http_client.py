"""The client of the demo over HTTP: only what is needed to show a server.

It knows HTTP and event streams, and no rule of the protocol. Each request has a connection of its
own. Everything is written into the transcript.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import h11
import trio

from sansmcp import JSONObject
from sansmcp.http import ServerSentEvent, SSEDecoder

from .transcript import Kind, Transcript, TranscriptLine

JSON: Final = "application/json"
SSE: Final = "text/event-stream"


class Exchange:
    """A response that is being received."""

    def __init__(
        self, status: int, headers: dict[str, str], client: HTTPClient, stream: trio.SocketStream
    ) -> None:
        self.status: Final = status
        self.headers: Final = headers
        self.last_event_id = ""
        self._client = client
        self._stream = stream
        self._decoder = SSEDecoder()
        self._events: list[ServerSentEvent] = []

    async def message(self) -> Any:
        """The next message of a stream, or the body as one message; None: there is no more."""
        if self.headers.get("content-type") == SSE:
            text = await self._next_data()
        else:
            text = b"".join([part async for part in self._client.body(self._stream)])
        if not text:
            return None
        self._client.note(Kind.RECEIVED, text.decode())
        return json.loads(text)

    async def last(self) -> Any:
        """The last message that comes."""
        found: Any = None
        while (message := await self.message()) is not None:
            found = message
            if self.headers.get("content-type") != SSE:
                break
        return found

    async def _next_data(self) -> bytes:
        while True:
            while self._events:
                event = self._events.pop(0)
                self.last_event_id = self._decoder.last_event_id or self.last_event_id
                if event.data:
                    return event.data
            async for part in self._client.body(self._stream):
                found = self._decoder.feed(part)
                self._events += [one for one in found if isinstance(one, ServerSentEvent)]
                break
            else:
                return b""


class HTTPClient:
    """Sends requests to one server."""

    def __init__(self, port: int, transcript: Transcript) -> None:
        self._port = port
        self._transcript = transcript
        self._parsers: dict[trio.SocketStream, h11.Connection] = {}

    def note(self, kind: Kind, text: str) -> None:
        """Write into the transcript."""
        self._transcript.add(TranscriptLine(time.monotonic(), "client", kind, text))

    @asynccontextmanager
    async def send(
        self, method: str, fields: Mapping[str, str], body: bytes = b""
    ) -> AsyncGenerator[Exchange, None]:
        """Send a request, and receive the head of the response; leaving the block closes both."""
        given = {"host": f"127.0.0.1:{self._port}", **fields, "content-length": str(len(body))}
        shown = " ".join(f"{name}:{value}" for name, value in fields.items())
        self.note(Kind.SENT, f"{method} /mcp {shown}")
        if body:
            self.note(Kind.SENT, body.decode())
        parser = h11.Connection(h11.CLIENT)
        data = parser.send(h11.Request(method=method, target="/mcp", headers=[*given.items()]))
        data = (data or b"") + (parser.send(h11.Data(data=body)) or b"")
        data += parser.send(h11.EndOfMessage()) or b""
        async with await trio.open_tcp_stream("127.0.0.1", self._port) as stream:
            self._parsers[stream] = parser
            try:
                await stream.send_all(data)
                head = await self._next(stream)
                assert isinstance(head, h11.Response)
                headers = {name.decode(): value.decode() for name, value in head.headers}
                kind = headers.get("content-type", "no body")
                self.note(Kind.RECEIVED, f"{head.status_code} {kind}")
                yield Exchange(head.status_code, headers, self, stream)
            finally:
                del self._parsers[stream]

    async def body(self, stream: trio.SocketStream) -> AsyncGenerator[bytes, None]:
        """The pieces of a body, as they come."""
        while isinstance(event := await self._next(stream), h11.Data):
            yield bytes(event.data)

    async def _next(self, stream: trio.SocketStream) -> Any:
        parser = self._parsers[stream]
        while (event := parser.next_event()) is h11.NEED_DATA:
            parser.receive_data(bytes(await stream.receive_some()))
        return event

    @asynccontextmanager
    async def post(
        self, message: JSONObject, fields: Mapping[str, str]
    ) -> AsyncGenerator[Exchange, None]:
        """POST a message."""
        given = {"content-type": JSON, "accept": f"{JSON}, {SSE}", **fields}
        async with self.send("POST", given, json.dumps(message).encode()) as exchange:
            yield exchange
