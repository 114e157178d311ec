"""The call and the server that handlers below WSGI use."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeAlias

from sansmcp import (
    IncomingRequest,
    JSONObject,
    Peer,
)

from .._common.call import ServerCallBase, continued
from .._common.requests import RequestArguments
from .._common.server import SessionServerBase

if TYPE_CHECKING:
    from .._common.typed_requests import BlockingRequests as Requester
    from ._runner import ExchangeThread, ThreadRunner
else:
    from .._common.requests import Requester

Environ: TypeAlias = dict[str, Any]
"""The WSGI environment of a request."""


class Server(SessionServerBase[float], Requester):
    """The server, for the handlers of one client. To be used by any number of threads."""

    def __init__(self, runner: ThreadRunner, peer: Peer) -> None:
        self._runner = runner
        self._connection = runner.endpoint
        self._peer = peer

    @property
    def _lock(self) -> AbstractContextManager[object]:
        return self._runner.lock

    def _verb(self, function: Callable[..., Any], *args: object, **options: Any) -> Any:
        return self._runner.verb(function, *args, **options)

    def _send_request(self, arguments: RequestArguments) -> JSONObject:
        session = self._runner.endpoint.session_to_ask(self._peer, arguments.method)
        return self._runner.request(arguments, serving=None, session=session)

    def _ping(self, timeout: float | None) -> float:
        return self._runner.ping(self._runner.endpoint.session_to_ask(self._peer, "ping"), timeout)


class ServerCall(ServerCallBase, Requester):
    """A client's request that a handler works on, in the thread of its WSGI call."""

    def __init__(self, runner: ThreadRunner, request: IncomingRequest, context: Any) -> None:
        self._connection = runner.endpoint
        self._request = request
        self._clock = time.monotonic
        self._wake = self._turn
        self._runner = runner
        self.context: Any = context

    def _turn(self) -> None:
        self._runner.turn()
        self._runner.wake(
            self._exchange_thread
        )  # the state may have been refused, which ends the call

    @property
    def environ(self) -> Environ:
        """The WSGI environment of the HTTP request, with what middleware has added.

        It does not change while the handler runs.
        """
        thread: Any = self._request.context
        environ: Environ = thread.environ
        return environ

    @property
    def server(self) -> Server:
        """The server and the client's session, which can be used after the call has ended."""
        return Server(self._runner, self._request.peer)

    @property
    def is_cancelled(self) -> bool:
        """Whether the call was cancelled, or its client has disconnected.

        For handlers that take long. A disconnect is detected when something is written.
        """
        running: Any = continued(self._request)
        if running is not None:
            return bool(running.is_cancelled)
        with self._runner.lock:
            return not self._request.open

    def sleep(self, seconds: float) -> None:
        """Wait as `time.sleep` does, until the call is cancelled.

        Raises:
            CallCancelled: The client has cancelled the call.
        """
        running: Any = continued(self._request)
        if running is not None:
            running.sleep(seconds)
        else:
            self._runner.sleep(self._request, seconds)

    @property
    def _lock(self) -> AbstractContextManager[object]:
        return self._runner.lock

    def _flush(self) -> None:
        self._exchange_thread.flush()

    def _send_request(self, arguments: RequestArguments) -> JSONObject:
        running = continued(self._request)
        if running is not None:
            answer: JSONObject = running.ask_one(*arguments.of_question())
            return answer
        return self._runner.request(arguments, serving=self._request, session=None)

    @property
    def _exchange_thread(self) -> ExchangeThread:
        thread: ExchangeThread = self._request.context
        return thread
