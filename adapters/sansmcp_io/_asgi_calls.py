"""What handlers below ASGI are given: the call, and the server as the caller has it."""

from __future__ import annotations

import time
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

from sansmcp import Change, IncomingRequest, JSONObject, JSONValue, LocalProtocolError, Peer

from ._call import ServerCallBase
from ._surface import ProgressHandler
from ._typed_requests import typed_request

if TYPE_CHECKING:
    from sansmcp.http import Session

    from ._asgi_runner import Runner

Scope: TypeAlias = MutableMapping[str, Any]
"""What a server of ASGI tells of a request."""


class Server:
    """The server as a handler of one client sees it. To be used in the loop's thread."""

    def __init__(self, runner: Runner, peer: Peer) -> None:
        self._runner = runner
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

    def publish(self, change: Change, *, meta: JSONObject | None = None) -> bool:
        """Tell all clients that are to be told, whoever has caused it. Never blocks.

        Returns:
            Whether anybody is, or will be, told.
        """
        return self._runner.publish(change, meta)

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
        sent = self._runner.endpoint.send_log(
            level, data, logger=logger, session=session, now=time.monotonic()
        )
        self._runner.turn()
        return sent

    def notify(
        self, method: str, params: JSONObject | None = None, *, meta: JSONObject | None = None
    ) -> None:
        """Send any other notification to the client's session."""
        session = self._session_for(method)
        self._runner.endpoint.send_notification(
            method, params, meta=meta, session=session, now=time.monotonic()
        )
        self._runner.turn()

    @typed_request
    async def request(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
        log_level: str | None = None,
        on_progress: ProgressHandler | None = None,
    ) -> JSONObject:
        """Ask the client of a session something that belongs to no call; as `Client.request`."""
        session = self._session_for(method)
        return await self._runner.request(
            method, params, meta, timeout, max_timeout, on_progress, serving=None, session=session
        )

    async def ping(self, *, timeout: float | None = None) -> float:
        """Ping the client of a session; as `Client.ping`."""
        return await self._runner.ping(self._session_for("ping"), timeout)

    def _session_for(self, what: str) -> Session:
        session: Session | None = self._peer.session
        if session is None:
            raise LocalProtocolError("STATE-006", f"{what} needs a session")
        return session


class ServerCall(ServerCallBase):
    """A client's request that a handler works on."""

    def __init__(self, runner: Runner, request: IncomingRequest) -> None:
        self._connection = runner.endpoint
        self._request = request
        self._clock = time.monotonic
        self._wake = runner.turn
        self._runner = runner
        self.context: Any = runner.context

    @property
    def scope(self) -> Scope:
        """The scope of the HTTP request that brought it: with what middleware has put there."""
        scope: Scope = self._request.context
        return scope

    @property
    def server(self) -> Server:
        """The server, and the client's session, for what outlives the call."""
        return Server(self._runner, self._request.peer)

    def close_stream(self, *, retry_ms: int | None = None) -> bool:
        """Let the client go, and come back for the answer: it need not hold a connection.

        In sessions with an event log, from revision 2025-11-25 on.

        Args:
            retry_ms: Milliseconds that the client is to wait before it comes back.

        Returns:
            Whether it was done. Elsewhere it cannot be, and the call goes on as before.
        """
        closed = self._runner.endpoint.close_stream(
            self._request, retry_ms=retry_ms, now=time.monotonic()
        )
        self._runner.turn()
        return closed

    @typed_request
    async def request(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
        log_level: str | None = None,
        on_progress: ProgressHandler | None = None,
    ) -> JSONObject:
        """Ask the client something on behalf of this call; as `Client.request`."""
        return await self._runner.request(
            method,
            params,
            meta,
            timeout,
            max_timeout,
            on_progress,
            serving=self._request,
            session=None,
        )
