"""The methods of a server outside of calls, and a handler that sends log records to clients."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from sansmcp import (
    Change,
    IncomingRequest,
    JSONObject,
    JSONValue,
    Listener,
    Peer,
    ServerConnection,
)

from .call import ServerSide

if TYPE_CHECKING:
    from sansmcp.http import ServerEndpoint, Session

SecondsT = TypeVar("SecondsT")

_NO_LOCK: Final = nullcontext()


class Verbs(ABC):
    """Calls into the core, with its lock where threads share it, and with the time."""

    @property
    def _lock(self) -> AbstractContextManager[object]:
        """Held while something is looked up; nothing, where there is one thread."""
        return _NO_LOCK

    @abstractmethod
    def _verb(self, function: Callable[..., Any], *args: object, **options: Any) -> Any:
        """Call a method of the core with the time, and handle its events and output."""


class ServerBase(Verbs, Generic[SecondsT]):
    """The methods of a server for one client, outside of calls."""

    _connection: ServerSide

    @property
    def peer(self) -> Peer:
        """The client, as far as it is known: revision, info, capabilities."""
        with self._lock:
            return cast(ServerConnection, self._connection).peer

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The URIs that the client is subscribed to; behind HTTP, those of its session."""
        with self._lock:
            return cast(ServerConnection, self._connection).subscriptions

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The client's open subscriptions of revision 2026-07-28, oldest first.

        Behind HTTP, each is a request of its own: these are the subscriptions of the same
        principal, or those of all clients without a principal where this client has none. A client
        with a session has no such subscription.
        """
        with self._lock:
            return cast(ServerConnection, self._connection).listeners

    def publish(self, change: Change, *, meta: JSONObject | None = None) -> bool:
        """Tell the client that a list or a resource has changed. Never blocks.

        Behind HTTP, this tells all clients, whichever of them has caused the change.

        Returns:
            Whether a client is, or will be, told: not if none has subscribed, the capability is not
            declared, or the connection has ended.
        """
        told: bool = self._verb(self._publisher, change, meta=meta)
        return told

    @property
    def _publisher(self) -> Callable[..., Any]:
        """The function that tells clients of a change."""
        return self._connection.publish

    def end_listener(self, listener: Listener) -> bool:
        """End a subscription of the client, and notify the client. Never blocks.

        Returns:
            Whether it was open until now.
        """
        ended: bool = self._verb(self._connection.end_listener, listener)
        return ended

    def log(self, level: str, data: JSONValue, *, logger: str | None = None) -> bool:
        """Send a log message that belongs to no call. Never blocks.

        Returns:
            Whether it will be sent: not if it is below the client's level, or there is no client
            or, behind HTTP, no session.

        Raises:
            sansmcp.LocalProtocolError: The level is unknown, or `logging` is not declared.
        """
        return self._log(level, data, logger)

    def notify(
        self, method: str, params: JSONObject | None = None, *, meta: JSONObject | None = None
    ) -> None:
        """Send any other notification, as `Client.notify`; behind HTTP, to the client's session."""
        self._notify(method, params, meta)

    def ping(self, *, timeout: float | None = None) -> SecondsT:
        """Ping the client, as `Client.ping`; behind HTTP, in its session."""
        return self._ping(timeout)

    def _log(self, level: str, data: JSONValue, logger: str | None) -> bool:
        sent: bool = self._verb(self._connection.send_log, level, data, logger=logger)
        return sent

    @abstractmethod
    def _notify(self, method: str, params: JSONObject | None, meta: JSONObject | None) -> None:
        """Do the work of `notify`."""

    @abstractmethod
    def _ping(self, timeout: float | None) -> SecondsT:
        """Do the work of `ping`."""


class SessionServerBase(ServerBase[SecondsT]):
    """The server behind HTTP, for one client: what belongs to no request goes to its session."""

    _peer: Peer

    @property
    def _endpoint(self) -> ServerEndpoint:
        return cast("ServerEndpoint", self._connection)

    @property
    def peer(self) -> Peer:
        """The client, as far as it is known: revision, info, capabilities."""
        return self._peer

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The URIs that the client's session is subscribed to."""
        session: Session | None = self._peer.session
        with self._lock:
            return () if session is None else session.subscriptions

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The client's open subscriptions of revision 2026-07-28, oldest first."""
        with self._lock:
            return self._endpoint.listeners_of(self._peer)

    def _log(self, level: str, data: JSONValue, logger: str | None) -> bool:
        session: Session | None = self._peer.session
        if session is None:
            return False
        send_log = self._endpoint.send_log
        sent: bool = self._verb(send_log, level, data, logger=logger, session=session)
        return sent

    def _notify(self, method: str, params: JSONObject | None, meta: JSONObject | None) -> None:
        session = self._endpoint.session_to_notify(self._peer, method)
        self._verb(self._endpoint.send_notification, method, params, meta=meta, session=session)


class AllClients(Verbs):
    """The methods of a server over HTTP that concern all its clients."""

    @property
    @abstractmethod
    def _endpoint(self) -> ServerEndpoint:
        """The endpoint that serves the clients."""

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The open sessions, oldest first."""
        with self._lock:
            return self._endpoint.sessions

    @property
    def open_requests(self) -> tuple[IncomingRequest, ...]:
        """The requests of all clients that handlers work on."""
        with self._lock:
            return self._endpoint.open_requests

    def publish(self, change: Change, *, meta: JSONObject | None = None) -> bool:
        """Tell all clients that have subscribed that a list or a resource has changed.

        These are the clients of this process, in sessions or with open streams; in a cluster,
        those of all workers.

        Returns:
            Whether a client of this process is, or will be, told.
        """
        told: bool = self._verb(self._publisher, change, meta=meta)
        return told

    @property
    def _publisher(self) -> Callable[..., Any]:
        """The function that tells clients of a change."""
        return self._endpoint.publish

    def end_session(self, session: Session) -> bool:
        """End a session, and all requests and streams in it.

        Returns:
            Whether it was open until now.
        """
        ended: bool = self._verb(self._endpoint.end_session, session)
        return ended


_FROM: Final = (logging.INFO, 25, logging.WARNING, logging.ERROR, logging.CRITICAL)
_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical")


def mcp_level(level: int) -> str:
    """The protocol's name for a level of `logging`; `notice` is between INFO and WARNING."""
    return _LEVELS[bisect_right(_FROM, level)]


class LogHandlerBase(logging.Handler):
    """Sends records as `notifications/message`, and never waits.

    Without a formatter only the message is sent, and no traceback. Records of the library itself
    are not sent, since they may be about a failure to send.
    """

    lock: Any  # None; how it is typed differs between versions of Python

    def createLock(self) -> None:
        """Use no lock: its holder would wait for the connection, whose holder may log."""
        self.lock = None

    def handle(self, record: logging.LogRecord) -> bool:
        """Handle a record, in several threads at once."""
        kept: Any = self.filter(record)
        if kept:  # another record, perhaps, since Python 3.12
            self.emit(kept if isinstance(kept, logging.LogRecord) else record)
        return bool(kept)

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record, if the client wants it."""
        if record.name == "sansmcp" or record.name.startswith("sansmcp."):
            return
        try:
            text = record.getMessage() if self.formatter is None else self.format(record)
            self._send(record, text)
        except Exception:
            self.handleError(record)

    @abstractmethod
    def _send(self, record: logging.LogRecord, text: str) -> None:
        """Send one record. Called in any thread.

        A failure after this call is reported to `handleError`, too.
        """
