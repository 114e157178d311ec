"""The request that a handler works on, as far as no loop is involved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sansmcp import (
    ClientConnection,
    ErrorCode,
    IncomingRequest,
    JSONObject,
    JSONValue,
    LocalProtocolError,
    ServerConnection,
)

from ._anomalies import LOGGER
from ._errors import McpError

INTERNAL_ERROR = "internal error"
"""All that the peer is told of an exception which is no `McpError`."""


class CallBase:
    """A request of the peer, and what can be said about it while it is being handled.

    Attributes:
        context: What the application gave to be handed to every call.
    """

    context: Any
    # The adapters of the loops set these, each in its own `__init__`.
    _connection: ClientConnection | ServerConnection
    _request: IncomingRequest
    _clock: Callable[[], float]
    _wake: Callable[[], None]

    @property
    def method(self) -> str:
        """The method name."""
        return self._request.method

    @property
    def params(self) -> JSONObject:
        """The params object, `{}` where there was none. It belongs to the handler."""
        return self._request.params

    @property
    def revision(self) -> str | None:
        """The revision that the request is served at."""
        return self._request.revision

    @property
    def capabilities(self) -> JSONObject:
        """The capabilities of the peer."""
        return self._request.peer_capabilities

    @property
    def principal(self) -> object:
        """Who the peer is, as the transport found out; None where it did not."""
        return self._request.principal

    def progress(
        self, progress: float, *, total: float | None = None, message: str | None = None
    ) -> bool:
        """Tell the peer how far this has come. Never blocks.

        Returns:
            Whether it will be sent: not if the peer asked for no progress, or the call is over.

        Raises:
            LocalProtocolError: `progress` does not increase, or a number is not finite.
        """
        will_be_sent = self._connection.send_progress(
            self._request, progress, total=total, message=message, now=self._clock()
        )
        self._wake()
        return will_be_sent

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._request!r}>"


class ServerCallBase(CallBase):
    """A client's request. Only servers send log messages."""

    def log(self, level: str, data: JSONValue, *, logger: str | None = None) -> bool:
        """Send the client a log message that belongs to this call. Never blocks.

        Args:
            level: One of `sansmcp.LOG_LEVELS`.
            data: What to log, any JSON value. It must hold no credentials.
            logger: The name of the logger.

        Returns:
            Whether it will be sent: not if it is below the client's level, or the call is over.

        Raises:
            LocalProtocolError: The level is unknown, or `logging` is not among the capabilities.
        """
        assert isinstance(self._connection, ServerConnection)
        will_be_sent = self._connection.send_log(
            level, data, logger=logger, request=self._request, now=self._clock()
        )
        self._wake()
        return will_be_sent


def answer(
    connection: ClientConnection | ServerConnection,
    request: IncomingRequest,
    result: JSONObject,
) -> None:
    """Send what a handler returned. A result that cannot be sent is the handler's fault."""
    try:
        connection.send_result(request, result)
    except LocalProtocolError as error:
        answer_failure(connection, request, error)


def answer_failure(
    connection: ClientConnection | ServerConnection,
    request: IncomingRequest,
    failure: Exception,
) -> None:
    """Send what a handler raised: an `McpError` as it is, of anything else only that it was."""
    if isinstance(failure, McpError):
        try:
            connection.send_error(request, failure.code, failure.message, failure.data)
        except LocalProtocolError as error:  # its code, message or data have no JSON form
            failure = error
        else:
            return
    LOGGER.error("the handler of %.80r failed", request.method, exc_info=failure)
    connection.send_error(request, ErrorCode.INTERNAL_ERROR, INTERNAL_ERROR)
