"""Requests that another process serves: how they are carried there, and their responses back."""

from __future__ import annotations

import enum
from typing import Any, Final, Protocol, final

import attrs

from ..._connection.events import ProtocolViolation
from ..._spec.errors import ErrorCode, LocalProtocolError
from ..._wire.values import Record
from .._headers import Headers
from .events import RelayEnded
from .exchange import LookupEnd, ServerExchange, ServerExchangeCore

_LENGTH: Final = b"content-length"
_OF_CONNECTION: Final = frozenset(
    {_LENGTH, b"connection", b"date", b"keep-alive", b"server", b"trailer", b"transfer-encoding"}
)
"""Headers of a response that belong to a connection or a server, and not to the message."""
_CORS: Final = b"access-control-"
_UNANSWERED: Final = (
    "the process that serves this session has not answered: whether the request was served is not "
    "known"
)


@final
@attrs.frozen(kw_only=True)
class CarriedRequest(Record):
    """A whole request, as plain data, for another process: see `ServerEndpoint.carry`.

    Attributes:
        method: The method.
        target: Path and query.
        headers: The headers, with names in lower case. They may hold secrets.
        body: The body.
        principal: Who sent it.
        principal_key: A string that stands for the principal.
    """

    method: str
    target: str
    headers: Headers = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)
    principal: Any = None
    principal_key: str | None = attrs.field(default=None, repr=False)


class RelayState(enum.Enum):
    """How far a relayed response has come."""

    WAITING = "no part of the response is there"
    OPEN = "the head is there"
    ENDED = "the response is complete"
    LOST = "the exchange was ended without the rest"


class RelayOwner(Protocol):
    """The table that open relays are kept in.

    Attributes:
        relays: The open relays.
    """

    relays: dict[Relay, None]


@final
class Relay:
    """The response to a request that was carried away, while it comes back piece by piece.

    A response of known length is sent when it is complete, so that a client never gets a part of
    one whose other part was lost. A stream is sent as it comes.

    Attributes:
        exchange: The exchange.
        handle: The exchange, as the application knows it.
        over: Whether nothing more goes out on it.
    """

    __slots__ = (
        "_headers",
        "_left",
        "_state",
        "_status",
        "_table",
        "_unsent",
        "exchange",
        "handle",
        "over",
    )

    def __init__(
        self, table: RelayOwner, exchange: ServerExchangeCore, handle: ServerExchange
    ) -> None:
        self._table = table
        self.handle: ServerExchange = handle
        self._state = RelayState.WAITING
        self._left: int | None = None  # bytes of the body to come, where that is known
        self._status = 0
        self._headers: Headers = ()
        self._unsent = 0
        self.exchange: ServerExchangeCore = exchange
        self.over: bool = False
        exchange.route = exchange.ledger = self
        table.relays[self] = None

    # ------------------------------------------------------------------------- from elsewhere

    def head(self, status: int, headers: Headers) -> bool:
        """Take the head of the response; False: the exchange was ended.

        Keeps OWN-064.
        """
        if not self._may_go_on(RelayState.WAITING, "relay_head"):
            return False
        exchange = self.exchange
        given = dict(headers)
        length = given.get(_LENGTH, b"")
        # Pages may read the response by what this endpoint says of them, and once.
        ours = {name for name, _ in exchange.common}
        self._status = status
        self._headers = tuple(
            (name, value)
            for name, value in headers
            if name not in _OF_CONNECTION and name not in ours and not name.startswith(_CORS)
        )
        self._state = RelayState.OPEN
        if status in (204, 304):
            self._left = 0
        elif length.isdigit():
            self._left = int(length)
            self._headers += ((_LENGTH, b"%d" % self._left),)
        else:
            exchange.start_relayed(status, self._headers)
        return True

    def body(self, data: bytes) -> bool:
        """Take bytes of the body; False: the exchange was ended.

        Keeps OWN-012.
        """
        if not self._may_go_on(RelayState.OPEN, "relay_body"):
            return False
        if self._left is not None:
            if len(data) > self._left:
                text = f"the body is longer than its length says, by {len(data) - self._left} bytes"
                raise LocalProtocolError("OWN-064", text)
            self._left -= len(data)
        core = self.exchange.core
        if self._unsent + len(data) > core.config.max_unsent_bytes:
            text = f"the client does not read: {self._unsent} bytes wait for it"
            core.events.append(ProtocolViolation(rule="OWN-012", text=text, fatal=True))
            self.exchange.drop()
            self.fail(LookupEnd.UNREAD, _UNANSWERED)
            return False
        if data:
            self.exchange.keep(data)
        return True

    def end(self) -> bool:
        """The response is complete; False: it is not, or the exchange was ended before.

        Keeps OWN-064.
        """
        if not self._may_go_on(RelayState.OPEN, "relay_end"):
            return False
        if self._left:
            self.fail(LookupEnd.FAILED, _UNANSWERED)
            return False
        if self._left is not None:
            self.exchange.start_relayed(self._status, self._headers)
        self._close(RelayState.ENDED)
        self.exchange.end()
        return True

    def fail(
        self, cause: LookupEnd, text: str, status: int = 503, retry_after: int | None = None
    ) -> bool:
        """End the exchange without the rest of the response: an error where nothing was sent.

        Returns:
            Whether it was open until now.
        """
        if self.over:
            return False
        exchange = self.exchange
        self._lose(cause)
        if exchange.status:
            exchange.end()
        else:
            exchange.drop()
            id = None if exchange.lookup is None else exchange.lookup.id
            code = ErrorCode.INTERNAL_ERROR if status == 503 else ErrorCode.INVALID_REQUEST
            body = exchange.core.error_body(text, code, id)
            more = () if retry_after is None else ((b"retry-after", b"%d" % retry_after),)
            exchange.answer(status, body, more)
        return True

    def _may_go_on(self, state: RelayState, verb: str) -> bool:
        """Whether a verb has its place now; raise where the caller has lost count."""
        if self._state is RelayState.LOST:
            return False
        if self._state is not state:
            raise LocalProtocolError("OWN-064", f"{verb} has no place here: {self._state.value}")
        return True

    def _close(self, state: RelayState) -> None:
        self.over = True
        self._state = state
        self.exchange.route = None
        del self._table.relays[self]

    def _lose(self, cause: LookupEnd) -> None:
        self._close(RelayState.LOST)
        self.exchange.core.events.append(RelayEnded(exchange=self.handle, cause=cause))

    # ----------------------------------------------------------------------- of the exchange

    def waits(self, size: int) -> None:
        """So many bytes wait to be taken off the exchange. They count as held by its request."""
        self._unsent += size
        self.exchange.core.held.bytes += size

    def taken(self, size: int) -> None:
        """So many bytes were taken off the exchange, perhaps after the relay was over."""
        self._unsent -= size
        self.exchange.core.held.bytes -= size

    def drop(self) -> None:
        """Forget the output that waits: no one will read it."""
        self.exchange.drop()

    def disconnected(self) -> None:
        """The client is gone."""
        self._lose(LookupEnd.DISCONNECTED)

    def answer_lost(self) -> None:
        """The response was complete, and was never taken: nothing here is lost with it."""
