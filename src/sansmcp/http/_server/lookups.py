"""Exchanges that wait for the application to look something up, and those that it carries away.

Whatever may need I/O is asked for by an event and given by a verb. Between the two the exchange
waits here, as plain data: one question at a time, which ends once. It is answered by its verb, or
refused, its client is gone, or the endpoint closes.
"""

from __future__ import annotations

from typing import Any, Final, final

from ..._spec.errors import ErrorCode, LocalProtocolError
from .._headers import NO_FIELDS, Fields
from .core import ServerEndpointCore
from .events import LookupEnded, Question
from .exchange import (
    RETRY_AFTER,
    ExchangeRelay,
    LookupEnd,
    ServerExchange,
    ServerExchangeCore,
    core_of,
)
from .head import CLOSING
from .relay import Relay

_ENTRY_BYTES: Final = 512
"""What an exchange that waits takes beside its body, at least."""


@final
class Lookup:
    """One question about an exchange, and what is needed to go on when it is answered.

    Attributes:
        at: The time in Unix seconds at which the body was complete; None where it was not told.
        body: The body of the request, where it is complete and is needed; else empty.
        exchange: The exchange that waits.
        fields: The headers of the request, which the exchange gets back when it goes on.
        id: The id of the request, where it is known; else None.
        is_answered: Whether the application has given the answer.
        is_waiting: Whether the exchange still waits.
        message: The message in the body, where it is needed; else None.
        relay: The response, where the request was carried away; else None.
        question: The event by which the application was asked; None when it waits no more.
        size: Bytes of memory that it counts for.
        upto: The last event of which the application was told before it was asked to replay.
    """

    __slots__ = (
        "_table",
        "at",
        "body",
        "exchange",
        "fields",
        "id",
        "is_answered",
        "is_waiting",
        "message",
        "question",
        "relay",
        "size",
        "upto",
    )

    def __init__(
        self,
        table: Lookups,
        exchange: ServerExchangeCore,
        question: Question,
        id: Any,
        body: bytes | bytearray,
        message: Any,
        upto: int,
    ) -> None:
        self._table = table
        self.at: float | None = exchange.core.at
        self.body: bytes | bytearray = body
        self.exchange: ServerExchangeCore = exchange
        self.fields: Fields = exchange.fields
        self.id: Any = id
        self.is_answered: bool = False
        self.is_waiting: bool = False
        self.message: Any = message
        self.question: Question | None = question
        self.relay: ExchangeRelay | None = None
        self.size: int = 0
        self.upto: int = upto

    def keep_body(self, body: bytes | bytearray, at: float | None) -> None:
        """The body of the request is complete, and the exchange waits."""
        self.at = at
        self.body = body
        self._table.grow(self, len(body))

    def ended(self, cause: LookupEnd) -> None:
        """The exchange does not wait any more. Spare calls do nothing."""
        self._table.end(self, cause)


class Lookups:
    """All exchanges that wait for the application, and those that it has carried away.

    Args:
        core: What all parts of the endpoint share.

    Attributes:
        relays: The exchanges whose responses come from elsewhere, oldest first.
    """

    __slots__ = ("_core", "_waiting", "relays")

    def __init__(self, core: ServerEndpointCore) -> None:
        self._core = core
        self._waiting: dict[Lookup, None] = {}
        self.relays: dict[Relay, None] = {}

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions that wait for an answer, oldest first."""
        asked = (lookup.question for lookup in self._waiting)
        return tuple(question for question in asked if question is not None)

    @property
    def carried(self) -> tuple[ServerExchange, ...]:
        """The exchanges whose responses come from elsewhere, oldest first."""
        return tuple(relay.handle for relay in self.relays)

    # -------------------------------------------------------------------------------- asking

    def ask(
        self,
        exchange: ServerExchangeCore,
        question: Question,
        *,
        id: Any = None,
        body: bytes | bytearray = b"",
        message: Any = None,
        size: int = 0,
        upto: int = 0,
    ) -> bool:
        """Ask the application, and have the exchange wait.

        Args:
            exchange: The exchange, which has no part of a response yet, or is a stream.
            question: The event by which the application is asked.
            id: The id of the request, where it is known.
            body: The body of the request, where it is needed to go on.
            message: The message in it, where that is needed to go on.
            size: Bytes of memory that the message takes, where that is known.
            upto: The last event of which the application was told before.

        Returns:
            Whether it waits. False: too many do, or there is no memory, and the exchange was ended.

        Keeps OWN-061.
        """
        core = self._core
        limit = core.config.max_requests
        if len(self._waiting) + len(self.relays) >= limit:
            text = f"{limit} requests wait for the application, which is the limit"
            core.limit_reached("OWN-061", text)
            if exchange.status:
                exchange.end()
            else:
                exchange.drop_body()
                body = core.error_body("too many requests", ErrorCode.INTERNAL_ERROR, id)
                exchange.answer(503, body, RETRY_AFTER)
            return False
        exchange.lookup = lookup = Lookup(self, exchange, question, id, body, message, upto)
        self._waiting[lookup] = None
        lookup.is_waiting = True
        if self.grow(lookup, _ENTRY_BYTES + max(size, len(body))):
            core.events.append(question)
        return lookup.is_waiting

    def grow(self, lookup: Lookup, size: int) -> bool:
        """Count what an exchange that waits holds; False: there was no room, and it was refused."""
        if not self._core.held.has_room_for(size):
            lookup.question = lookup.question if lookup.size else None  # it was not asked yet
            lookup.exchange.refuse_for_memory(lookup.id)
            return False
        lookup.size += size
        self._core.held.bytes += size
        return True

    # ------------------------------------------------------------------------------ answering

    def take(self, question: Question) -> Lookup | None:
        """The lookup that is answered now; None: its exchange was ended meanwhile.

        Raises:
            LocalProtocolError: The question was answered already, or is none of this endpoint.

        Keeps OWN-063.
        """
        exchange = core_of(question.exchange)
        lookup: Any = exchange.lookup
        if exchange.core is not self._core or lookup is None:
            raise LocalProtocolError("OWN-022", f"{question!r} was not asked by this endpoint")
        if lookup.is_answered or (lookup.is_waiting and lookup.question is not question):
            raise LocalProtocolError("OWN-063", f"{question!r} was answered already")
        if not lookup.is_waiting:
            return None
        found: Lookup = lookup
        self._forget(found)
        found.is_answered = True
        exchange.fields, found.fields = found.fields, NO_FIELDS
        self._core.held.arriving = found.size  # for what is served now
        return found

    def end(self, lookup: Lookup, cause: LookupEnd) -> None:
        """End a lookup without an answer, if it waits still."""
        question = lookup.question
        if lookup.is_waiting:
            self._forget(lookup)
            self.release(lookup)
            if question is not None:
                self._core.events.append(LookupEnded(exchange=question.exchange, cause=cause))

    def _forget(self, lookup: Lookup) -> None:
        del self._waiting[lookup]
        self._core.held.bytes -= lookup.size
        lookup.is_waiting = False
        lookup.question = None

    def release(self, lookup: Lookup) -> None:
        """Forget the request of a lookup that was answered, and has been gone on with."""
        lookup.body, lookup.message = b"", None
        lookup.exchange.fields = NO_FIELDS  # the response may be open for long

    def close(self) -> None:
        """End all that waits, and all that is carried: the endpoint closes."""
        for lookup in tuple(self._waiting):
            exchange = lookup.exchange
            self.end(lookup, LookupEnd.CLOSED)
            if exchange.status == 0:
                exchange.refuse(503, CLOSING, lookup.id)
        for relay in tuple(self.relays):
            relay.fail(LookupEnd.CLOSED, CLOSING.text)
