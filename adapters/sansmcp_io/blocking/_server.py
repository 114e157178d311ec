"""A server outside of calls, without a loop: publish, log, notify and ask."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from logging import LogRecord
from typing import TYPE_CHECKING, Any, cast

from sansmcp import JSONObject, ServerConnection

from .._common.call import ServerCallBase, continued
from .._common.requests import RequestArguments
from .._common.server import LogHandlerBase, ServerBase, mcp_level
from ._call import Call
from ._requests import RequestSender

if TYPE_CHECKING:
    from .._common.typed_requests import BlockingRequests as Requester
else:
    from .._common.requests import Requester


class Server(ServerBase[float], Requester):
    """An open connection to a client. To be used by any number of threads."""

    def __init__(self, session: RequestSender) -> None:
        self._session = session
        self._connection = cast(ServerConnection, session.side)

    @property
    def _lock(self) -> AbstractContextManager[object]:
        return self._session

    def _verb(self, function: Callable[..., Any], *args: object, **options: Any) -> Any:
        with self._session:
            outcome = function(*args, now=time.monotonic(), **options)
            self._session.turn()
        return outcome

    def wait_ready(self, timeout: float = math.inf) -> None:
        """Wait until the client has said that the handshake is done.

        Raises:
            RequestTimeout: That took longer than this; in seconds.
            ConnectionLost: The connection ended first.
        """
        self._session.wait_ready(timeout)

    def _notify(self, method: str, params: JSONObject | None, meta: JSONObject | None) -> None:
        self._session.notify(method, params, meta)

    def _send_request(self, arguments: RequestArguments) -> JSONObject:
        return self._session.request(arguments, None)

    def _ping(self, timeout: float | None) -> float:
        return self._session.ping(timeout)


class ServerCall(Call, ServerCallBase):
    """A client's request that a handler of a server works on."""

    def _send_request(self, arguments: RequestArguments) -> JSONObject:
        running = continued(self._request)
        if running is not None:
            answer: JSONObject = running.ask_one(*arguments.of_question())
            return answer
        return super()._send_request(arguments)

    @property
    def is_cancelled(self) -> bool:
        """Whether the call was cancelled, or its client has disconnected; see `Call`."""
        running: Any = continued(self._request)
        if running is not None:
            return bool(running.is_cancelled)
        return super().is_cancelled

    def sleep(self, seconds: float) -> None:
        """Wait as `time.sleep` does, and read and serve meanwhile.

        Raises:
            CallCancelled: The client has cancelled the call.
        """
        running: Any = continued(self._request)
        if running is not None:
            running.sleep(seconds)
        else:
            super().sleep(seconds)

    @property
    def server(self) -> Server:
        """The server's connection, which can be used after the call has ended."""
        return Server(self._session)


class LogHandler(LogHandlerBase):
    """A `logging.Handler` that sends records to the client as `notifications/message`.

    It may be used from any thread, and never blocks; the client's level decides what is sent. The
    server must have declared `logging`. Remove it from its logger when the connection has ended.

    Args:
        server: The connection to send on.
        level: As for any handler.
    """

    def __init__(self, server: Server, level: int | str = 0) -> None:
        super().__init__(level)
        self._server = server

    def _send(self, record: LogRecord, text: str) -> None:
        self._server.log(mcp_level(record.levelno), text, logger=record.name)
