"""HTTP requests written by hand, for clients that may misbehave."""

from __future__ import annotations

import json
from typing import Any, Final

import trio

LEGACY: Final = "2025-11-25"
MODERN: Final = "2026-07-28"
HEAD: Final = (
    b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b"accept: application/json, text/event-stream\r\n"
)
_CLIENT: Final = {"name": "attacker", "version": "1.0"}
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": _CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
_INITIALIZE: Final = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT},
}
_INITIALIZED: Final = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def posted(message: Any, fields: str = "") -> bytes:
    """A whole POST; each field ends with CRLF."""
    body = json.dumps(message).encode()
    return HEAD + b"%bcontent-length: %d\r\n\r\n" % (fields.encode(), len(body)) + body


def tool_call(name: str, *, token: int | None = None, **arguments: Any) -> bytes:
    """A whole call of a tool, of the revision without sessions."""
    meta: dict[str, Any] = _META if token is None else {**_META, "progressToken": token}
    params = {"name": name, "arguments": arguments, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    fields = f"mcp-protocol-version: {MODERN}\r\nmcp-method: tools/call\r\nmcp-name: {name}\r\n"
    return posted(message, fields)


def got(session: bytes, last: bytes = b"") -> bytes:
    """The GET of a session's stream."""
    return (
        b"GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n"
        b"mcp-session-id: %b\r\nmcp-protocol-version: %b\r\n%b\r\n"
        % (session, LEGACY.encode(), last)
    )


def deleted(session: bytes) -> bytes:
    """The DELETE of a session."""
    return (
        b"DELETE /mcp HTTP/1.1\r\nhost: localhost\r\n"
        b"mcp-session-id: %b\r\nmcp-protocol-version: %b\r\n\r\n" % (session, LEGACY.encode())
    )


class Caller:
    """One connection."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._received = bytearray()

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send a request, and return the status and the head of the response, without its body."""
        await self.stream.send_all(request)
        return await self.response()

    async def response(self) -> tuple[int, bytes]:
        """The status and the head of the next response; a body of known length is skipped."""
        head = await self._until(b"\r\n\r\n")
        _, found, length = head.partition(b"content-length: ")
        if found:
            await self._skip(int(length.partition(b"\r\n")[0]))
        return int(head[9:12]), head

    async def event(self) -> bytes:
        """The next event of a stream that has a message."""
        while True:
            event = await self._until(b"\n\n")
            if b"data: {" in event or b"data:{" in event:
                return event

    async def open_session(self) -> bytes | None:
        """Do the handshake, and return the id of the session; None if there is none to be had."""
        status, head = await self.ask(posted(_INITIALIZE))
        if status != 200:
            return None
        session = head.partition(b"mcp-session-id: ")[2].partition(b"\r\n")[0]
        fields = f"mcp-session-id: {session.decode()}\r\nmcp-protocol-version: {LEGACY}\r\n"
        await self.ask(posted(_INITIALIZED, fields))
        return session

    async def _until(self, end: bytes) -> bytes:
        while (at := self._received.find(end)) < 0:
            await self._receive()
        found = bytes(self._received[: at + len(end)])
        del self._received[: at + len(end)]
        return found

    async def _skip(self, size: int) -> None:
        while len(self._received) < size:
            await self._receive()
        del self._received[:size]

    async def _receive(self) -> None:
        data = await self.stream.receive_some()
        if not data:
            raise EOFError("the server has closed the connection")
        self._received += data
