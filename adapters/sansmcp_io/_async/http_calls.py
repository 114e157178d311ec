"""What handlers behind HTTP are given: the call, and the server as its caller has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sansmcp import (
    Change,
    IncomingRequest,
    JSONObject,
    JSONValue,
    Listener,
    Peer,
)

from .._common.requester import RequestArguments
from .server import Server, ServerCall

if TYPE_CHECKING:
    from sansmcp.http import Session

    from .http_runner import EndpointRunner


class SessionServer(Server):
    """The server as a handler of one client sees it."""

    def __init__(self, service: EndpointRunner, peer: Peer) -> None:
        self._service = service
        self._peer = peer

    @property
    def peer(self) -> Peer:
        """What is known of the client: revision, info, capabilities."""
        return self._peer

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The URIs that the client's session is subscribed to."""
        session: Session | None = self._peer.session
        return () if session is None else session.subscriptions

    async def wait_ready(self) -> None:
        """Return at once: whoever has sent a request is ready."""
        await self._service.loop.pause()

    def publish(self, change: Change, *, meta: JSONObject | None = None) -> bool:
        """Tell all clients that are to be told, whoever has caused it. Never blocks.

        Returns:
            Whether anybody is, or will be, told.
        """
        return self._service.publish(change, meta)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The client's open subscriptions of revision 2026-07-28, oldest first.

        Each is a request of its own: they are those of the same principal, and those of all clients
        that have none where this one has none. A client with a session has no such subscription.
        """
        return self._service.endpoint.listeners_of(self._peer)

    def end_listener(self, listener: Listener) -> bool:
        """End a subscription, whose client learns of it. Never blocks.

        Returns:
            Whether it was open until now.
        """
        ended = self._service.endpoint.end_listener(listener, now=self._service.now())
        self._service.turn()
        return ended

    def log(self, level: str, data: JSONValue, *, logger: str | None = None) -> bool:
        """Send a log message that belongs to no call, to the client's session. Never blocks.

        Returns:
            Whether it will be sent: not if it is below the client's level, or there is no session.

        Raises:
            sansmcp.LocalProtocolError: The level is unknown, or `logging` is not declared.
        """
        session: Session | None = self._peer.session
        if session is None:
            return False
        sent = self._service.endpoint.send_log(
            level, data, logger=logger, session=session, now=self._service.now()
        )
        self._service.turn()
        return sent

    def notify(
        self, method: str, params: JSONObject | None = None, *, meta: JSONObject | None = None
    ) -> None:
        """Send any other notification to the client's session."""
        session = self._service.endpoint.session_to_notify(self._peer, method)
        self._service.endpoint.send_notification(
            method, params, meta=meta, session=session, now=self._service.now()
        )
        self._service.turn()

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
