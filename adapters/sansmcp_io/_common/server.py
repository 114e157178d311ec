"""What a server does outside of calls: its verbs, and logging as messages of the protocol."""

from __future__ import annotations

import logging
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from sansmcp import Change, JSONObject, JSONValue, Listener, Peer

if TYPE_CHECKING:
    from sansmcp.http import ServerEndpoint, Session

_NO_LOCK: Final = nullcontext()


class SessionServerBase:
    """The server as a handler of one client sees it."""

    _peer: Peer

    @property
    @abstractmethod
    def _endpoint(self) -> ServerEndpoint:
        """What serves all clients."""

    @abstractmethod
    def _verb(self, function: Callable[..., Any], *args: object, **options: Any) -> Any:
        """Call into the endpoint, with the time, and see to what comes of it."""

    @property
    def _lock(self) -> AbstractContextManager[object]:
        """Held while something is looked up; nothing, where there is one thread."""
        return _NO_LOCK

    @property
    def peer(self) -> Peer:
        """What is known of the client: revision, info, capabilities."""
        return self._peer

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The URIs that the client's session is subscribed to."""
        session: Session | None = self._peer.session
        with self._lock:
            return () if session is None else session.subscriptions

    def publish(self, change: Change, *, meta: JSONObject | None = None) -> bool:
        """Tell all clients that are to be told, whoever has caused it. Never blocks.

        Returns:
            Whether anybody is, or will be, told.
        """
        told: bool = self._verb(self._endpoint.publish, change, meta=meta)
        return told

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The client's open subscriptions of revision 2026-07-28, oldest first.

        Each is a request of its own: they are those of the same principal, and those of all clients
        that have none where this one has none. A client with a session has no such subscription.
        """
        with self._lock:
            return self._endpoint.listeners_of(self._peer)

    def end_listener(self, listener: Listener) -> bool:
        """End a subscription, whose client learns of it. Never blocks.

        Returns:
            Whether it was open until now.
        """
        ended: bool = self._verb(self._endpoint.end_listener, listener)
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
        send_log = self._endpoint.send_log
        sent: bool = self._verb(send_log, level, data, logger=logger, session=session)
        return sent

    def notify(
        self, method: str, params: JSONObject | None = None, *, meta: JSONObject | None = None
    ) -> None:
        """Send any other notification to the client's session."""
        session = self._endpoint.session_to_notify(self._peer, method)
        self._verb(self._endpoint.send_notification, method, params, meta=meta, session=session)


_FROM: Final = (logging.INFO, 25, logging.WARNING, logging.ERROR, logging.CRITICAL)
_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical")


def mcp_level(level: int) -> str:
    """The protocol's name for a level of `logging`; `notice` is between INFO and WARNING."""
    return _LEVELS[bisect_right(_FROM, level)]


class LogHandlerBase(logging.Handler):
    """Sends records as `notifications/message`, and never waits.

    Without a formatter only the message is sent: a traceback is not the client's business. What
    the library itself logs is not sent, since sending may be what it complains of.
    """

    lock: Any  # None; how it is typed differs between versions of Python

    def createLock(self) -> None:
        """None: whoever held it would wait for the connection, and who has that may log."""
        self.lock = None

    def handle(self, record: logging.LogRecord) -> bool:
        """As any handler, but several threads at once."""
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
        """Hand it to the connection, from whatever thread this is.

        What goes wrong later than this call is for `handleError`, too.
        """
