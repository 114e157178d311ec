"""What handlers below WSGI are given: the call, and the server as the caller has it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeAlias

from sansmcp import (
    Change,
    IncomingRequest,
    JSONObject,
    JSONValue,
    Listener,
    Peer,
)

from .._common.call import ServerCallBase
from .._common.requester import RequestArguments

if TYPE_CHECKING:
    from sansmcp.http import Session

    from .._common.typed_requests import BlockingRequests as Requester
    from ._runner import Carrying, Runner
else:
    from .._common.requester import Requester

Environ: TypeAlias = dict[str, Any]
"""What a server of WSGI tells of a request."""


class Server(Requester):
    """The server as a handler of one client sees it. To be used by any number of threads."""

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
        with self._runner.lock:
            return () if session is None else session.subscriptions

    def publish(self, change: Change, *, meta: JSONObject | None = None) -> bool:
        """Tell all clients that are to be told, whoever has caused it. Never blocks.

        Returns:
            Whether anybody is, or will be, told.
        """
        return self._runner.publish(change, meta)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The client's open subscriptions of revision 2026-07-28, oldest first.

        Each is a request of its own: they are those of the same principal, and those of all clients
        that have none where this one has none. A client with a session has no such subscription.
        """
        with self._runner.lock:
            return self._runner.endpoint.listeners_of(self._peer)

    def end_listener(self, listener: Listener) -> bool:
        """End a subscription, whose client learns of it. Never blocks.

        Returns:
            Whether it was open until now.
        """
        ended: bool = self._runner.verb(self._runner.endpoint.end_listener, listener)
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
        send_log = self._runner.endpoint.send_log
        sent: bool = self._runner.verb(send_log, level, data, logger=logger, session=session)
        return sent

    def notify(
        self, method: str, params: JSONObject | None = None, *, meta: JSONObject | None = None
    ) -> None:
        """Send any other notification to the client's session."""
        session = self._runner.endpoint.session_to_notify(self._peer, method)
        send_notification = self._runner.endpoint.send_notification
        self._runner.verb(send_notification, method, params, meta=meta, session=session)

    def _send_request(self, arguments: RequestArguments) -> JSONObject:
        session = self._runner.endpoint.session_to_ask(self._peer, arguments.method)
        return self._runner.request(arguments, serving=None, session=session)

    def ping(self, *, timeout: float | None = None) -> float:
        """Ping the client of a session, and return the seconds that the answer took."""
        return self._runner.ping(self._runner.endpoint.session_to_ask(self._peer, "ping"), timeout)


class ServerCall(ServerCallBase, Requester):
    """A client's request that a handler works on, in the thread that the server has given it."""

    def __init__(self, runner: Runner, request: IncomingRequest, context: Any) -> None:
        self._connection = runner.endpoint
        self._request = request
        self._clock = time.monotonic
        self._wake = self._turn
        self._runner = runner
        self.context: Any = context

    def _turn(self) -> None:
        self._runner.turn()
        self._runner.wake(self._carrying)  # the state may have been refused, which ends the call

    @property
    def environ(self) -> Environ:
        """The environment of the HTTP request that brought it: with what middleware has put there.

        It is changed by nobody while the handler runs.
        """
        carrying: Any = self._request.context
        environ: Environ = carrying.environ
        return environ

    @property
    def server(self) -> Server:
        """The server, and the client's session, for what outlives the call."""
        return Server(self._runner, self._request.peer)

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for the answer any more: a handler that takes long may look.

        That a client is gone is learnt by writing to it, and so not before something is written.
        """
        with self._runner.lock:
            return not self._request.open

    def sleep(self, seconds: float) -> None:
        """Wait: what `time.sleep` does, for handlers.

        Raises:
            CallCancelled: The client has cancelled the call, before or meanwhile.
        """
        self._runner.sleep(self._request, seconds)

    def progress(
        self, progress: float, *, total: float | None = None, message: str | None = None
    ) -> bool:
        """Tell the client how far this has come. It is written at once.

        Returns:
            Whether it will be sent: not if the client asked for no progress, or the call is over.

        Raises:
            LocalProtocolError: `progress` does not increase, or a number is not finite.
        """
        with self._runner.lock:
            will_be_sent = super().progress(progress, total=total, message=message)
        self._carrying.flush()
        return will_be_sent

    def log(self, level: str, data: JSONValue, *, logger: str | None = None) -> bool:
        """Send the client a log message that belongs to this call. It is written at once.

        Args:
            level: One of `sansmcp.LOG_LEVELS`.
            data: What to log, any JSON value. It must hold no credentials.
            logger: The name of the logger.

        Returns:
            Whether it will be sent: not if it is below the client's level, or the call is over.

        Raises:
            LocalProtocolError: The level is unknown, or `logging` is not among the capabilities.
        """
        with self._runner.lock:
            will_be_sent = super().log(level, data, logger=logger)
        self._carrying.flush()
        return will_be_sent

    @property
    def state(self) -> str | None:
        """The state of the `RequireInput` that came before; None at first.

        Where it is sealed and the seal is bad, it is None, the client is told that its request is
        not valid, and what the handler answers is not sent.
        """
        with self._runner.lock:
            return super().state

    def _send_request(self, arguments: RequestArguments) -> JSONObject:
        return self._runner.request(arguments, serving=self._request, session=None)

    @property
    def _carrying(self) -> Carrying:
        carrying: Carrying = self._request.context
        return carrying
