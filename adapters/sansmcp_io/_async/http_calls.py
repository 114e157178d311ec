"""What handlers behind HTTP are given: the call, and the server as its caller has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sansmcp import (
    IncomingRequest,
    JSONObject,
    Peer,
)

from .._common.requester import RequestArguments
from .._common.session_server import SessionServerBase
from .server import Server, ServerCall

if TYPE_CHECKING:
    from sansmcp.http import ServerEndpoint

    from .http_runner import EndpointRunner


class SessionServer(SessionServerBase, Server):
    """The server as a handler of one client sees it."""

    def __init__(self, service: EndpointRunner, peer: Peer) -> None:
        self._service = service
        self._peer = peer

    @property
    def _endpoint(self) -> ServerEndpoint:
        return self._service.endpoint

    def _verb(self, function: Callable[..., Any], *args: object, **options: Any) -> Any:
        return self._service.verb(function, *args, **options)

    async def wait_ready(self) -> None:
        """Return at once: whoever has sent a request is ready."""
        await self._service.loop.pause()

    async def _send_request(self, arguments: RequestArguments) -> JSONObject:
        session = self._service.endpoint.session_to_ask(self._peer, arguments.method)
        return await self._service.request(arguments, serving=None, session=session)

    async def ping(self, *, timeout: float | None = None) -> float:
        """Ping the client of a session; as `Client.ping`."""
        return await self._service.ping(
            self._service.endpoint.session_to_ask(self._peer, "ping"), timeout
        )

    def _new_messenger(self) -> Callable[[Callable[[], object]], object]:
        return self._service.loop.new_messenger()


class HTTPServerCall(ServerCall):
    """A client's request that came by HTTP."""

    def __init__(self, service: EndpointRunner, request: IncomingRequest) -> None:
        # Not by way of the base class: there is one for each message.
        self._connection = service.endpoint
        self._request = request
        self._clock = service.now
        self._wake = service.turn
        self._service = service
        self.context: Any = service.context

    @property
    def server(self) -> Server:
        """The server, and the client's session, for what outlives the call."""
        return SessionServer(self._service, self._request.peer)

    def close_stream(self, *, retry_ms: int | None = None) -> bool:
        """Let the client go, and come back for the answer; as `ServerCall.close_stream`."""
        closed = self._service.endpoint.close_stream(
            self._request, retry_ms=retry_ms, now=self._service.now()
        )
        self._service.turn()
        return closed

    async def _send_request(self, arguments: RequestArguments) -> JSONObject:
        return await self._service.request(arguments, serving=self._request, session=None)
