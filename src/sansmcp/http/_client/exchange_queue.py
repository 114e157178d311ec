"""The exchanges of an endpoint: those that wait, those under way, and those that are held back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import Final

from ..._connection.timers import Timed
from ..._rules.state_tables import State
from .._headers import Headers
from .core import EndpointCore
from .events import AuthorizationRequired
from .exchange import ClientExchange, ExchangeCore, ExchangeOwner, HeadJudge
from .headers import RequestHeaders

_SPARE: Final = 8
"""Streams that may be open beside the exchanges of requests and other messages."""
_LINGER: Final = 5.0
"""Seconds that an exchange has to end by itself when everything of use has come.

The connection of an exchange that ended by itself can be used again."""
_TRAILING: Final = 2.0
"""Seconds for which the stream of a request that was given up is read on."""
_MAX_TRAILING: Final = 8
"""Such streams that are read on. With one more, the oldest is closed."""


class ExchangeQueue:
    """The exchanges of an endpoint.

    Attributes:
        barrier: The message that is sent before all others: `notifications/initialized`, until the
            server has it.
        core: What all parts of the endpoint share.
        headers: The headers of all requests.
        held: Owners whose exchange waits until the application supplies credentials.
        judge: Decides what responses mean.
        moved: Requests of a lost session that wait for the next session.
        standalone: The stream for messages that belong to no request; None: there is none.
    """

    __slots__ = (
        "_aborted",
        "_live",
        "_trailing",
        "_waiting",
        "barrier",
        "core",
        "headers",
        "held",
        "judge",
        "moved",
        "standalone",
    )

    judge: HeadJudge

    def __init__(self, core: EndpointCore, headers: RequestHeaders) -> None:
        self.core: EndpointCore = core
        self.headers: RequestHeaders = headers
        self.held: dict[ExchangeOwner, AuthorizationRequired] = {}
        self.moved: dict[ExchangeOwner, None] = {}
        self.standalone: ExchangeOwner | None = None
        self.barrier: ExchangeOwner | None = None
        self._waiting: OrderedDict[ExchangeCore, None] = OrderedDict()
        self._live: dict[ExchangeCore, ClientExchange] = {}
        self._trailing: dict[ExchangeCore, None] = {}  # streams of requests that were given up
        self._aborted: list[ClientExchange] = []
        core.work = self

    # -------------------------------------------------------------------------- to the caller

    def take(self) -> ClientExchange | None:
        """Give out the next exchange; None: there is none now."""
        if not self._has_next():
            if not self._aborted:
                self.core.told_work = False
            return None
        exchange, _ = self._waiting.popitem(last=False)
        core = self.core.machine.core
        core.unsent -= len(exchange.body)
        exchange.is_given_out = True
        exchange.version = self.headers.version
        exchange.headers = self._headers_of(exchange)
        self._live[exchange] = face = ClientExchange(exchange)
        return face

    def take_aborted(self) -> list[ClientExchange]:
        """Return the exchanges that were given out and aborted since the last call."""
        aborted, self._aborted = self._aborted, []
        if not self._has_next():
            self.core.told_work = False
        return aborted

    def is_there(self) -> bool:
        """Whether `take` or `take_aborted` has something for the caller now."""
        return bool(self._aborted) or self._has_next()

    @property
    def under_way(self) -> tuple[ClientExchange, ...]:
        """The exchanges that were given out and are not over, oldest first."""
        return tuple(self._live.values())

    def _has_next(self) -> bool:
        """Whether an exchange may be given out now, which is the first that waits."""
        waiting = self._waiting
        return (
            bool(waiting)
            and (self.barrier is None or next(iter(waiting)).owner is self.barrier)
            # Each request has one, and so may as many other messages, and a few streams.
            and len(self._live) < 2 * self.core.config.max_requests + _SPARE
        )

    def _headers_of(self, exchange: ExchangeCore) -> Headers:
        fields = exchange.owner.fields(exchange)
        if exchange.owner.is_modern:
            return self.headers.modern(fields)
        revision = self.core.machine.core.peer.revision
        return self.headers.legacy(fields, revision, self.core.session_id)

    # ----------------------------------------------------------------------------- for owners

    def add(self, exchange: ExchangeCore) -> None:
        """Put an exchange in line; it becomes the current one of its owner."""
        owner = exchange.owner
        owner.exchange = exchange
        self.core.machine.core.unsent += len(exchange.body)
        self._waiting[exchange] = None
        if owner is self.barrier:
            self._waiting.move_to_end(exchange, last=False)

    def remove(self, exchange: ExchangeCore) -> None:
        """Take an exchange that is over out of all tables."""
        self.core.timers.drop(exchange)
        self._trailing.pop(exchange, None)
        if exchange.is_given_out:
            face = self._live.pop(exchange)
            if exchange.aborted:
                self._aborted.append(face)
        else:
            del self._waiting[exchange]
            self.core.machine.core.unsent -= len(exchange.body)
        if exchange.owner.exchange is exchange:
            exchange.owner.exchange = None

    def passed(self, owner: ExchangeOwner) -> None:
        """Send what waits for a message that the server has, or will never have."""
        if self.barrier is owner:
            self.barrier = None

    def drop(self, owner: ExchangeOwner) -> None:
        """End an owner, whatever still comes."""
        owner.over = True
        self.held.pop(owner, None)
        if owner.retries is not None:
            owner.retries.stop()
        if owner.exchange is not None:
            owner.exchange.abort()

    def drop_all(self, but: Collection[ExchangeOwner] = ()) -> None:
        """End all exchanges and owners except `but`: nothing else is of use any more."""
        self.barrier = None
        for exchange in [*self._live, *self._waiting]:
            if exchange.owner not in but:
                self.drop(exchange.owner)
                exchange.abort()
        owners = [*self.held] if self.standalone is None else [*self.held, self.standalone]
        self.standalone = None
        for owner in owners:
            self.drop(owner)

    def undecided(self) -> list[ExchangeOwner]:
        """Return the owners of requests under way to which no response has come."""
        return [exchange.owner for exchange in self._live if exchange.is_undecided]

    def unsent(self) -> list[ExchangeOwner]:
        """Return the owners of the exchanges that were not given out yet."""
        return [exchange.owner for exchange in self._waiting]

    # ------------------------------------------------------------------------------- responses

    def close_later(self, exchange: ExchangeCore) -> None:
        """Close an exchange that nothing waits for, unless it ends by itself before."""
        now = self.core.now
        if now is not None and not exchange.over:
            self.core.timers.arm(self, exchange, now + _LINGER)

    def read_on(self, exchange: ExchangeCore) -> None:
        """Read the stream of a request that was given up a little longer, in a legacy session.

        Some servers and gateways send the next notifications on it. Nothing waits for its end, so
        only a few are kept, and each for a short time.
        """
        core = self.core.machine.core
        if core.now is None or core.state is not State.OPEN:
            exchange.abort()
            return
        if len(self._trailing) == _MAX_TRAILING:
            next(iter(self._trailing)).abort()
        self._trailing[exchange] = None
        self.core.timers.arm(self, exchange, core.now + _TRAILING)

    def _timer_fired(self, subject: Timed) -> None:
        assert isinstance(subject, ExchangeCore)  # an owner that waits has its own deadline
        subject.expire()
