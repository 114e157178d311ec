"""What a server can do outside of calls: publish, log, notify and ask."""

from __future__ import annotations

import math
import time
from logging import LogRecord
from typing import TYPE_CHECKING, cast

from sansmcp import Change, JSONObject, JSONValue, Listener, Peer, ServerConnection

from .._common.call import ServerCallBase
from .._common.requests import RequestArguments
from .._common.server import LogHandlerBase, mcp_level
from ._call import Call
from ._requests import RequestSender

if TYPE_CHECKING:
    from .._common.typed_requests import BlockingRequests as Requester
else:
    from .._common.requests import Requester


class Server(Requester):
    """An open connection to a client. To be used by any number of threads."""

    def __init__(self, session: RequestSender) -> None:
        self._session = session
        self._connection = cast(ServerConnection, session.side)

    @property
    def peer(self) -> Peer:
        """What is known of the client: revision, info, capabilities."""
        with self._session:
            return self._connection.peer

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The URIs that the client is subscribed to."""
        with self._session:
            return self._connection.subscriptions

    def wait_ready(self, timeout: float = math.inf) -> None:
        """Wait until the client has said that the handshake is done.

        Raises:
            RequestTimeout: That took longer than this; in seconds.
            ConnectionLost: The connection ended first.
        """
        self._session.wait_ready(timeout)

    def publish(self, change: Change, *, meta: JSONObject | None = None) -> bool:
        """Tell the client that a list or a resource has changed. Never blocks.

        Returns:
            Whether the client is, or will be, told: not if it has not subscribed, the capability
            is not declared, or the connection is over.
        """
        with self._session:
            told = self._connection.publish(change, meta=meta, now=time.monotonic())
            self._session.turn()
            return told

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The client's open subscriptions of revision 2026-07-28, oldest first."""
        with self._session:
            return self._connection.listeners

    def end_listener(self, listener: Listener) -> bool:
        """End a subscription of the client, which learns of it. Never blocks.

        Returns:
            Whether it was open until now.
        """
        with self._session:
            ended = self._connection.end_listener(listener, now=time.monotonic())
            self._session.turn()
            return ended

    def log(self, level: str, data: JSONValue, *, logger: str | None = None) -> bool:
        """Send a log message that belongs to no call. Never blocks.

        Returns:
            Whether it will be sent: not if it is below the client's level, or there is no client.

        Raises:
            sansmcp.LocalProtocolError: The level is unknown, or `logging` is not declared.
        """
        with self._session:
            sent = self._connection.send_log(level, data, logger=logger, now=time.monotonic())
            self._session.turn()
            return sent

    def notify(
        self, method: str, params: JSONObject | None = None, *, meta: JSONObject | None = None
    ) -> None:
        """Send any other notification, as `Client.notify`."""
        self._session.notify(method, params, meta)

    def _send_request(self, arguments: RequestArguments) -> JSONObject:
        return self._session.request(arguments, None)

    def ping(self, *, timeout: float | None = None) -> float:
        """Ping the client; as `Client.ping`."""
        return self._session.ping(timeout)


class ServerCall(Call, ServerCallBase):
    """A client's request that a handler of a server works on."""

    @property
    def server(self) -> Server:
        """The connection that the call came on, for what outlives the call."""
        return Server(self._session)


class LogHandler(LogHandlerBase):
    """A `logging.Handler` that sends records to the client as `notifications/message`.

    It may be used from any thread, and never blocks; the client's level decides what is sent. The
    server must have declared `logging`. To be taken from its logger when the connection is over.

    Args:
        server: The connection to send on.
        level: As for any handler.
    """

    def __init__(self, server: Server, level: int | str = 0) -> None:
        super().__init__(level)
        self._server = server

    def _send(self, record: LogRecord, text: str) -> None:
        self._server.log(mcp_level(record.levelno), text, logger=record.name)
