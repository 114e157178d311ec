"""The answer to one POST outside of any session: the route of the requests that it brought."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._sse import encode_event

if TYPE_CHECKING:
    from ..._wire.values import RequestId
    from .connection import RoutedConnection
    from .exchange import ServerExchange


class Reply:
    """Where the messages for one exchange go. Nobody can come back for them.

    Attributes:
        closing: The next message is the last one.
        context: As the exchange was given it.
        exchange: The exchange; None when it is over, or its client is gone.
        held: Changes that wait for room, as messages, each once.
        id: Of its request, as it came; of those in a batch, a tuple of all.
        over: Nothing more goes out on it.
        principal: Who sent the request.
        principal_key: What stands for the principal in a seal.
        request_id: Of the request whose answer is the last message; None for a batch.
        status: Of the answer, where it is no stream.
    """

    __slots__ = (
        "_connection",
        "_unsent",
        "closing",
        "context",
        "exchange",
        "held",
        "id",
        "over",
        "principal",
        "principal_key",
        "request_id",
        "status",
    )

    def __init__(self, exchange: ServerExchange, connection: RoutedConnection, id: Any) -> None:
        self._connection = connection
        self.exchange: ServerExchange | None = exchange
        self.principal: Any = exchange.principal
        self.principal_key = exchange.principal_key
        self.context: Any = exchange.context
        self.id: Any = id
        self.request_id: RequestId | None = None
        self.status = 200
        self.closing = False
        self.over = False
        self.held: dict[bytes, None] | None = None
        self._unsent = 0  # bytes that wait to be taken off the exchange
        exchange._route = exchange._ledger = self

    def takes(self) -> bool:
        """Whether a message before the last one would arrive."""
        return self.exchange is not None and self.exchange._takes_stream

    def deliver(self, message: bytes) -> bool:
        """Send one message; False: it is lost."""
        exchange = self.exchange
        if exchange is None:
            return False
        if self.closing and not exchange.is_stream and (exchange._json_first or self.status >= 400):
            self.over = True
            self.exchange = exchange._ledger = None
            exchange._answer(self.status, message)
            return True
        if not exchange._takes_stream:
            return False
        if not exchange.is_stream:
            exchange._start_stream()
        exchange._write(encode_event(message))
        if self.closing:
            self.finish()
        return True

    def start(self) -> None:
        """Turn the answer into a stream."""
        assert self.exchange is not None
        self.exchange._start_stream()

    def taken(self, size: int) -> None:
        """So many bytes were taken off the exchange: what waits for that follows."""
        self._unsent -= size
        if self.held is not None and self._unsent <= self._connection.core.config.soft_unsent_bytes:
            self.release_held()

    def waits(self, size: int) -> None:
        """So many bytes wait to be taken off the exchange."""
        self._unsent += size

    def release_held(self) -> None:
        """What waited for room follows, before the last message at the latest."""
        exchange, held, self.held = self.exchange, self.held, None
        if exchange is not None and exchange._takes_stream:
            for message in held or ():
                exchange._write(encode_event(message))

    # -------------------------------------------------------------------------------- ending

    def refuse(self, status: int, body: bytes) -> None:
        """Answer with an error that is no message of the conversation."""
        assert self.exchange is not None  # its message has just come
        self.exchange._answer(status, body)
        self.finish()

    def finish(self, status: int = 200, id: RequestId | None = None) -> None:
        """Nothing more goes out on it. An error status names the request with this id."""
        self.over = True
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange._end(status, id)

    def drop(self) -> None:
        """Forget what waits: nobody reads it."""
        assert self.exchange is not None  # nothing waits for a client that is gone
        self.exchange._drop()

    def detach(self) -> None:
        """The client is gone."""
        self.exchange = None
