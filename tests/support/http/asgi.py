"""Plays an ASGI server without a socket: requests go in, and messages of responses come out."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, Final, ParamSpec

from sansmcp import JSONObject
from sansmcp.http import ServerSentEvent, SSEDecoder
from sansmcp_io.asgi import App
from tests.support.http.server_endpoint import GET, LEGACY, NO_FIELDS, POST, body_of, modern_headers
from tests.support.modern import BOTH
from tests.support.wire import (
    CLIENT_CAPABILITIES,
    INITIALIZED,
    SERVER_CAPABILITIES,
    SERVER_INFO,
    initialize,
)

Params = ParamSpec("Params")
SECONDS: Final = 20
"""The number of seconds after which a test fails because it hangs."""


def on_asyncio(test: Callable[Params, Awaitable[None]]) -> Callable[Params, None]:
    """Make a synchronous test of an async one."""

    @wraps(test)
    def run(*args: Params.args, **kwargs: Params.kwargs) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(SECONDS):
                await test(*args, **kwargs)

        asyncio.run(bounded())

    return run


async def until(condition: Callable[[], object]) -> None:
    """Let other tasks run until the condition holds."""
    while not condition():
        await asyncio.sleep(0)


def new_app(handler: Callable[..., Any], **settings: Any) -> App:
    """An application of both eras."""
    settings = {
        "info": SERVER_INFO,
        "capabilities": SERVER_CAPABILITIES,
        "revisions": BOTH,
        **settings,
    }
    return App(handler, **settings)


class Request:
    """One HTTP request that a server passes to an application."""

    def __init__(
        self, app: Any, method: str, fields: Mapping[str, str], body: bytes | None, **scope: Any
    ) -> None:
        self._inbox: asyncio.Queue[Any] = asyncio.Queue()
        self._decoder = SSEDecoder()
        self.sent: list[Any] = []
        self.reads = asyncio.Event()  # whether the client reads
        self.reads.set()
        self.failure: Exception | None = None  # the exception that `send` raises
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": method,
            "path": "/mcp",
            "root_path": "",
            "query_string": b"",
            "headers": [
                (name.lower().encode(), value.encode("latin-1"))
                for name, value in {"host": "localhost", **fields}.items()
            ],
            **scope,
        }
        if body is not None:
            self.receive_body(body)
        self.task = asyncio.create_task(app(self.scope, self._receive, self._send))

    def receive_body(self, body: bytes, *, more: bool = False) -> None:
        self._inbox.put_nowait({"type": "http.request", "body": body, "more_body": more})

    def disconnect(self, failure: Exception | None = None) -> None:
        """Disconnect the client. The application gets a message, or this exception."""
        self._inbox.put_nowait(failure or {"type": "http.disconnect"})

    async def _receive(self) -> Any:
        message = await self._inbox.get()
        if isinstance(message, Exception):
            raise message
        return message

    async def _send(self, message: Any) -> None:
        await self.reads.wait()
        if self.failure is not None:
            raise self.failure
        self.sent.append(message)

    async def ended(self) -> "Request":
        """Wait until the application has returned, and return this request."""
        await self.task
        return self

    async def begun(self) -> "Request":
        """Wait until the application has sent a head, and return this request."""
        await until(lambda: self.sent)
        return self

    @property
    def status(self) -> int:
        status: int = self.sent[0]["status"]
        return status

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])

    @property
    def is_complete(self) -> bool:
        return bool(self.sent[1:]) and not self.sent[-1].get("more_body")

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def messages(self) -> list[Any]:
        """The messages in the events of the stream."""
        items = SSEDecoder().feed(self.body)
        return [json.loads(i.data) for i in items if isinstance(i, ServerSentEvent) and i.data]


def post(app: Any, message: object, more: Mapping[str, str] = NO_FIELDS, **scope: Any) -> Request:
    return Request(app, "POST", {**POST, **more}, body_of(message), **scope)


def post_modern(app: Any, message: JSONObject, **scope: Any) -> Request:
    return post(app, message, modern_headers(message), **scope)


class Session:
    """A client after the handshake."""

    def __init__(self, app: Any, fields: Mapping[str, str], **scope: Any) -> None:
        self._app = app
        self._fields = fields
        self._scope = scope

    @classmethod
    async def open(cls, app: Any, **scope: Any) -> "Session":
        opening = initialize("hello", LEGACY, CLIENT_CAPABILITIES)
        response = await post(app, opening, **scope).ended()
        assert response.status == 200
        fields = {
            "mcp-session-id": response.headers["mcp-session-id"],
            "mcp-protocol-version": LEGACY,
        }
        session = cls(app, fields, **scope)
        assert (await session.post(INITIALIZED).ended()).status == 202
        return session

    def post(self, message: object) -> Request:
        return post(self._app, message, self._fields, **self._scope)

    def get(self, more: Mapping[str, str] = NO_FIELDS) -> Request:
        return Request(self._app, "GET", {**GET, **self._fields, **more}, b"", **self._scope)
