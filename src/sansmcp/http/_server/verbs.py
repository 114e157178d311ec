"""What an application says on an endpoint by itself: the verbs of a server, found by their handle.

What belongs to a request goes out on the stream of its answer. What belongs to none, in a session,
goes to the newest of its GET streams, and where none is open waits in its event log.
"""

from __future__ import annotations

from typing import Any

from ..._connection.changes import Change
from ..._connection.events import CancelCause
from ..._connection.handles import IncomingRequest, Listener, Listing, OutgoingRequest, Ping
from ..._connection.input_required_server import needs_session
from ..._rules.conversation import Peer
from ..._rules.sending import server_request_error, unrelated_notification_error
from ..._spec.errors import LocalProtocolError
from ..._spec.registry import MODERN_REVISIONS
from ..._wire.values import JSONObject, JSONValue
from .answers import Answers
from .connection import SessionConnection
from .events import SessionEnd
from .sessions import Session
from .shared_connections import SharedConnection


class Verbs(Answers):
    """The application's side of `ServerEndpoint`."""

    __slots__ = ()

    # ---------------------------------------------------------------------- asking and telling

    def send_request(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        request: IncomingRequest | None = None,
        session: Session | None = None,
        meta: JSONObject | None = None,
        progress: bool = False,
        timeout: float | None = None,
        max_timeout: float | None = None,
        id: int | str | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> OutgoingRequest:
        """Ask a client of a legacy session: as `ServerConnection.send_request`.

        One of `request` and `session` says whom. Where no stream of the client could carry it,
        it ends at once in `RequestFailed(NO_STREAM)`.

        Raises:
            LocalProtocolError: As there; and where there is no session.
        """
        connection = self._connection_for(request, session, now, method)
        if not isinstance(connection, SessionConnection):
            assert request is not None  # a session has a connection of its own
            raise _not_asked(request.peer, method)
        call = connection.machine.outgoing.send(
            method, params, meta, progress, timeout, max_timeout, None, id, request, data, None
        )
        self._settle()
        return call

    def session_to_ask(self, peer: Peer, method: str) -> Session:
        """The session in which a client can be sent a request that belongs to none of its own.

        Args:
            peer: The client: `IncomingRequest.peer`.
            method: What it is to be asked, for the message.

        Raises:
            LocalProtocolError: There is none. The message says what can be done instead.
        """
        session: Session | None = peer.session
        if session is None:
            raise _not_asked(peer, method)
        return session

    def session_to_notify(self, peer: Peer, method: str) -> Session:
        """The session in which a client can be sent a notification that belongs to no request.

        Args:
            peer: The client: `IncomingRequest.peer`.
            method: The method of the notification, for the message.

        Raises:
            LocalProtocolError: There is none. The message says what can be done instead.
        """
        session: Session | None = peer.session
        if session is None:
            raise _not_notified(peer, method)
        return session

    def ping(
        self,
        session: Session,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> Ping:
        """Ping the client of a session: as `ServerConnection.ping`."""
        connection = self._at_session(session, now)
        ping = connection.machine.pings.send(meta, timeout, data, None)
        self._settle()
        return ping

    def cancel(
        self,
        call: OutgoingRequest | Listing | Ping,
        *,
        reason: str | None = None,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Cancel a request of ours: as `ServerConnection.cancel`."""
        if not call.open:
            return False
        inner = call if isinstance(call, OutgoingRequest) else call._call
        route: Any = None if inner is None else inner._route
        connection = self._own(None if route is None else route._connection, call, now)
        done = connection.machine.cancel(call, reason, meta, None)
        self._settle()
        return done

    def send_notification(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        request: IncomingRequest | None = None,
        session: Session | None = None,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> None:
        """Tell a client something: as `ServerConnection.send_notification`.

        One of `request` and `session` says whom.
        """
        connection = self._connection_for(request, session, now, method)
        connection.machine.notifications.send(method, params, meta, request, None)
        self._settle()

    def send_log(
        self,
        level: str,
        data: JSONValue,
        *,
        request: IncomingRequest | None = None,
        session: Session | None = None,
        logger: str | None = None,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Send a log message: as `ServerConnection.send_log`.

        One of `request` and `session` says to whom.
        """
        connection = self._connection_for(request, session, now, "a log message")
        done = connection.send_log(level, data, logger, meta, request)
        self._settle()
        return done

    def publish(
        self, change: Change, *, meta: JSONObject | None = None, now: float | None = None
    ) -> bool:
        """Tell all clients that are to be told that a list or a resource has changed.

        As `ServerConnection.publish`, in every session and to every subscription. What finds no
        stream open in a session waits there, each change once.

        Returns:
            Whether anybody is, or will be, told.
        """
        if now is not None:
            self._tell(now)
        whole = self._whole_connection  # which has the listeners, and judges the change in any case
        whole.core.now = self._now
        told = whole.machine.publisher.publish(change, meta, None)
        for connection in () if self._table is None else self._table.told_of(change):
            connection.core.now = self._now
            told = connection.machine.publisher.publish(change, meta, None) or told
        self._settle()
        return told

    # -------------------------------------------------------------------------- subscriptions

    def acknowledge(
        self,
        request: IncomingRequest,
        notifications: JSONObject | None = None,
        *,
        now: float | None = None,
    ) -> Listener | None:
        """Take a subscription: as `ServerConnection.acknowledge`."""
        connection = self._enter(request, now)
        listener = connection.machine.listeners.acknowledge(request, notifications, None)
        self._settle()
        return listener

    def end_listener(self, listener: Listener, *, now: float | None = None) -> bool:
        """End a subscription: as `ServerConnection.end_listener`. Its stream ends, too."""
        connection = self._enter(listener._request, now)
        done = connection.machine.listeners.end_listener(listener, None)
        self._settle()
        return done

    # --------------------------------------------------------------------------------- ending

    def end_session(self, session: Session, *, now: float | None = None) -> bool:
        """End a session: all that is open in it has its ending, then comes `SessionEnded`.

        Returns:
            Whether it was open until now.
        """
        self._at_session(session, now)
        if not session.open:
            return False
        session._table.end(session, SessionEnd.CLOSED)
        self._settle()
        return True

    def close(self, *, now: float | None = None) -> None:
        """Serve nobody any more: new requests get 503, and what is open ends.

        Subscriptions are answered with their result, other requests cancelled, sessions and
        streams ended. Output queued before may still be sent. A second call does nothing.
        """
        if now is not None:
            self._tell(now)
        self._closing = True
        self._whole()._heads.forget()
        for connection in self._connections():
            connection.core.now = self._now
            if isinstance(connection, SharedConnection):
                for listener in connection.machine.listeners.open:
                    connection.machine.listeners.end_listener(listener, None)
                for request in list(connection.core.requests.values()):
                    connection.machine.incoming.cancel(request, CancelCause.CLOSED)
        for session in self.sessions:
            self.end_session(session)
        self._settle()


def _not_asked(peer: Peer, method: str) -> LocalProtocolError:
    if peer.revision in MODERN_REVISIONS:
        return server_request_error(method)
    return LocalProtocolError("STATE-006", needs_session(method, peer))


def _not_notified(peer: Peer, method: str) -> LocalProtocolError:
    if peer.revision in MODERN_REVISIONS:
        return unrelated_notification_error(method)
    return LocalProtocolError(
        "OWN-038",
        f"{method} needs a session: without one, a client of revision {peer.revision} is told of "
        "its request by progress messages only",
    )
