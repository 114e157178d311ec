"""A server outside of calls: publish, log, notify and ask, on a stream and behind HTTP."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from logging import LogRecord
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from sansmcp import (
    IncomingRequest,
    JSONObject,
    Peer,
    ServerConnection,
)

from .._common.call import ServerCallBase, continued
from .._common.requests import RequestArguments
from .._common.server import AllClients, LogHandlerBase, ServerBase, SessionServerBase, mcp_level
from .call import Call
from .handlers import Result
from .requests import RequestSender

if TYPE_CHECKING:
    from sansmcp.http import ServerEndpoint

    from .._common.typed_requests import AsyncRequests as Requester
    from .http_server_runner import EndpointRunner
else:
    from .._common.requests import Requester


class Server(ServerBase[Coroutine[Any, Any, float]], Requester):
    """An open connection to a client. To be used in the loop's thread, by any number of tasks."""

    def __init__(self, session: RequestSender) -> None:
        self._session = session
        self._connection = cast(ServerConnection, session.side)

    def _verb(self, function: Callable[..., Any], *args: object, **options: Any) -> Any:
        outcome = function(*args, now=self._session.clock(), **options)
        self._session.wake()
        return outcome

    async def wait_ready(self) -> None:
        """Wait until the client has said that the handshake is done.

        Raises:
            ConnectionLost: The connection ended first.
        """
        await self._session.wait_ready()

    def _notify(self, method: str, params: JSONObject | None, meta: JSONObject | None) -> None:
        self._session.notify(method, params, meta)

    async def _send_request(self, arguments: RequestArguments) -> JSONObject:
        return await self._session.request(arguments, None)

    async def _ping(self, timeout: float | None) -> float:
        return await self._session.ping(timeout)

    def _new_messenger(self) -> Callable[[Callable[[], object]], object]:
        """Return a function that calls another one in the loop's thread, from any thread."""
        return self._session.loop.new_messenger()


class ServerCall(Call, ServerCallBase):
    """A client's request that a handler of a server works on."""

    async def _send_request(self, arguments: RequestArguments) -> JSONObject:
        running = continued(self._request)
        if running is not None:
            answer: JSONObject = await running.ask_one(*arguments.of_question())
            return answer
        return await self._session.request(arguments, self._request)

    @property
    def server(self) -> Server:
        """The server's connection, which can be used after the call has ended."""
        return Server(self._session)

    def close_stream(self, *, retry_ms: int | None = None) -> bool:
        """Close the stream of the response; the client reconnects later to get the response.

        Possible over HTTP, in sessions with an event log, from revision 2025-11-25 on.

        Args:
            retry_ms: Milliseconds that the client is to wait before it reconnects.

        Returns:
            Whether the stream was closed. If not, the call goes on as before.
        """
        return False


Handler: TypeAlias = Callable[[ServerCall], Result]
"""Serves a client's requests: returns the result, or raises `McpError`.

An async function gets a task of its own, which ends when the request is cancelled. A plain function
runs inline: no other task and no other message of the connection gets a turn before it returns.
"""

ReadyHandler: TypeAlias = Callable[[Server], object]
"""Called once the client is ready; an async function runs for as long as the connection."""


class LogHandler(LogHandlerBase):
    """A `logging.Handler` that sends records to the client as `notifications/message`.

    It may be used from any thread, and never blocks; the client's level decides what is sent. The
    server must have declared `logging`. Make it in the loop's thread, and remove it from its logger
    when the connection has ended.

    Args:
        server: The connection to send on.
        level: As for any handler.
    """

    def __init__(self, server: Server, level: int | str = 0) -> None:
        super().__init__(level)
        self._server = server
        self._messenger = server._new_messenger()

    def _send(self, record: LogRecord, text: str) -> None:
        self._messenger(partial(self._log, record, text))

    def _log(self, record: LogRecord, text: str) -> None:
        try:
            self._server.log(mcp_level(record.levelno), text, logger=record.name)
        except Exception:  # an exception out of here might end the loop
            self.handleError(record)


class SessionServer(SessionServerBase[Coroutine[Any, Any, float]], Server):
    """The server over HTTP, for the handlers of one client."""

    def __init__(self, service: EndpointRunner, peer: Peer) -> None:
        self._service = service
        self._connection = service.endpoint
        self._peer = peer

    def _verb(self, function: Callable[..., Any], *args: object, **options: Any) -> Any:
        return self._service.verb(function, *args, **options)

    @property
    def _publisher(self) -> Callable[..., Any]:
        return self._service.publish

    async def wait_ready(self) -> None:
        """Return at once: a client that has sent a request is ready."""
        await self._service.loop.pause()

    async def _send_request(self, arguments: RequestArguments) -> JSONObject:
        session = self._service.endpoint.session_to_ask(self._peer, arguments.method)
        return await self._service.request(arguments, serving=None, session=session)

    async def _ping(self, timeout: float | None) -> float:
        return await self._service.ping(
            self._service.endpoint.session_to_ask(self._peer, "ping"), timeout
        )

    def _new_messenger(self) -> Callable[[Callable[[], object]], object]:
        return self._service.loop.new_messenger()


class HTTPServerCall(ServerCall):
    """A client's request that came by HTTP."""

    def __init__(self, service: EndpointRunner, request: IncomingRequest) -> None:
        # The base class is not called, for speed: each message makes one of these.
        self._connection = service.endpoint
        self._request = request
        self._clock = service.now
        self._wake = service.turn
        self._service = service
        self.context: Any = service.context

    @property
    def server(self) -> Server:
        """The server and the client's session, which can be used after the call has ended."""
        return SessionServer(self._service, self._request.peer)

    def close_stream(self, *, retry_ms: int | None = None) -> bool:
        """Close the stream of the response, as `ServerCall.close_stream`."""
        if (running := continued(self._request)) is not None and running.is_restarted:
            return False
        closed = self._service.endpoint.close_stream(
            self._request, retry_ms=retry_ms, now=self._service.now()
        )
        self._service.turn()
        return closed

    async def _send_request(self, arguments: RequestArguments) -> JSONObject:
        running = continued(self._request)
        if running is not None:
            answer: JSONObject = await running.ask_one(*arguments.of_question())
            return answer
        return await self._service.request(arguments, serving=self._request, session=None)


BACKLOG: Final = 1024
"""The number of connections that may wait to be accepted."""
Address: TypeAlias = tuple[str, int]


class HTTPServer(AllClients):
    """A server that is running. To be used in the thread of its loop, by any number of tasks."""

    def __init__(
        self, service: EndpointRunner, addresses: Sequence[Address], close: Callable[[], None]
    ) -> None:
        self._service = service
        self._addresses = tuple(addresses)
        self._close = close

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The addresses and ports on which the server listens."""
        return self._addresses

    @property
    def port(self) -> int:
        """The port on which the server listens; if there are several, the first."""
        return self._addresses[0][1]

    @property
    def _endpoint(self) -> ServerEndpoint:
        return self._service.endpoint

    def _verb(self, function: Callable[..., Any], *args: object, **options: Any) -> Any:
        return self._service.verb(function, *args, **options)

    @property
    def _publisher(self) -> Callable[..., Any]:
        return self._service.publish

    def close(self) -> None:
        """Accept no more connections; `serve_http` returns when open requests have ended."""
        self._close()
