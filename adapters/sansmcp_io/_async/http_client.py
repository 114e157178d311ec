"""A client behind HTTP, on any loop: its events, its exchanges, and who is asked about 401."""

from __future__ import annotations

import inspect
import math
import ssl
from abc import abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

from sansmcp import ConnectionClosed, Subscription
from sansmcp.http import (
    AuthorizationRequired,
    ClientEndpoint,
    ClientExchange,
    ClientHTTPEvent,
    ExchangePurpose,
)

from .._common.anomalies import LOGGER
from .._common.bounds import FLUSH_SECONDS
from .._common.http_client_events import handle_http_event
from .._common.http_client_settings import Headers, HTTPClientLimits
from .._options.clients import HTTPClientOptions
from .background import logged
from .call import Call
from .dispatch import ENDINGS, EventDispatcher

_SILENT: Final = "the server was silent for too long"


class HTTPClientDispatcher(EventDispatcher):
    """Hands out the events of an endpoint, and has its exchanges begun and ended.

    The core is called in the loop's thread, and its calls do not wait: there is no lock.
    """

    def __init__(self, endpoint: ClientEndpoint, options: HTTPClientOptions[Any]) -> None:
        super().__init__(
            endpoint,
            options.for_session(Call),
        )
        self.endpoint: Final = endpoint
        self._on_unauthorized = options.on_unauthorized
        self._is_authorizing = False
        self._failed_authorization: Exception | None = None
        self.limits: Final = options.limits or HTTPClientLimits()
        self.trace: Final = options.trace
        self._closed = self.loop.new_event()
        self._carrier = self._new_carrier(options)
        self._moving: dict[ClientExchange, Carrying] = {}
        self._turns = self.limits.requests  # so many more may have a connection
        self._waiting: dict[Carrying, None] = {}
        self._has_moved = self.loop.new_event()  # an exchange is over

    @abstractmethod
    def _new_h11_carrier(self, tls: ssl.SSLContext | None) -> Carrier:
        """What carries exchanges on sockets of this loop."""

    def _new_carrier(self, options: HTTPClientOptions[Any]) -> Carrier:
        client = options.http
        if client is None and options.proxy is None:
            return self._new_h11_carrier(options.tls)
        # Here, since not all have httpx2.
        from .httpx_sender import HTTPXCarrier

        return HTTPXCarrier(self.loop, options, self.limits.connect)

    @abstractmethod
    def look(self) -> None:
        """See to what has come, now or soon."""

    def _turn(self) -> None:
        """Handle all events, and begin and end what the endpoint wants begun and ended."""
        endpoint = self.endpoint
        has_changed = True
        while has_changed:
            has_changed = False
            while (event := self._next_event()) is not None:
                self._handle(event)
                has_changed = True
            for aborted in endpoint.aborts():
                self._abort(aborted)
            while (exchange := endpoint.next_exchange()) is not None:
                self._begin(exchange)
        self._room.look()

    # ------------------------------------------------------------------------------ exchanges

    def _begin(self, exchange: ClientExchange) -> None:
        """Carry an exchange, when it is its turn."""
        carrying = self._moving[exchange] = Carrying(self, exchange)
        # What is said about others must not wait for them, nor they for what lasts.
        carrying.counts = exchange.awaited and not isinstance(exchange.request, Subscription)
        if carrying.counts and not self._turns:
            self._waiting[carrying] = None
        else:
            self._start(carrying)

    def _start(self, carrying: Carrying) -> None:
        self._turns -= carrying.counts
        self._tasks.start_soon(self._carry, carrying, name=carrying.exchange.purpose.name)

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, None]], *args: object) -> None:
        """Have something done beside an exchange."""
        self._tasks.start_soon(function, *args)

    def _abort(self, exchange: ClientExchange) -> None:
        """Carry it no further, if it is carried still."""
        if carrying := self._moving.get(exchange):
            if carrying in self._waiting:
                del self._waiting[carrying], self._moving[exchange]
                self._has_moved.set()
            else:
                carrying.scope.cancel()

    async def _carry(self, carrying: Carrying) -> None:
        """Carry one exchange from its beginning to its end."""
        exchange = carrying.exchange
        with carrying.scope:
            carrying.begin()
            await self._carrier.carry(carrying)
        if not exchange.over:
            exchange.receive_failure(_SILENT, now=self.clock())
        del self._moving[exchange]
        self._turns += carrying.counts
        while self._turns and self._waiting:
            waiting = next(iter(self._waiting))
            del self._waiting[waiting]
            self._start(waiting)
        self._has_moved.set()
        self.look()

    async def _until_moved(self, is_done: Callable[[], bool]) -> None:
        """Wait for exchanges until this is so, for a moment at most."""

        async def wait() -> None:
            while not is_done():
                self._has_moved = self.loop.new_event()
                await self._has_moved.wait()

        await self.loop.wait_until(self.clock() + FLUSH_SECONDS, wait)

    def _is_idle(self) -> bool:
        return not (self._moving or self.endpoint.exchanges)

    def _has_answered(self) -> bool:
        """Whether nothing under way carries what nobody waits for here: answers, notifications."""
        return not any(
            exchange.purpose is ExchangePurpose.POST and not exchange.awaited
            for exchange in self._moving
        )

    def _end(self) -> None:
        """Tell those who wait that nothing more comes."""
        self.endpoint.close(now=self.clock())
        while (event := self._next_event()) is not None:
            if isinstance(event, ENDINGS):
                self._handle(event)
        self._room.look()

    # --------------------------------------------------------------------------------- events

    def _next_event(self) -> ClientHTTPEvent | None:
        event = self.endpoint.next_event()
        if event is not None and self.trace is not None:
            with logged("the trace"):
                self.trace.happened(event)
        return event

    def _handle(self, event: ClientHTTPEvent) -> None:
        if isinstance(event, AuthorizationRequired) and event.kept:
            self._authorize(event)
            return
        failed = self._failed_authorization
        rest = handle_http_event(event, self.sending, self.loop.new_mailbox, failed)
        if rest is not None:
            self._handle_event(rest)
            if isinstance(rest, ConnectionClosed):
                self._closed.set()

    def _authorize(self, event: AuthorizationRequired) -> None:
        """Have the application asked, once for all that is refused meanwhile."""
        if not self._is_authorizing:
            self._is_authorizing = True
            self._failed_authorization = None
            self._tasks.start_soon(self._ask_for_authorization, event)

    async def _ask_for_authorization(self, event: AuthorizationRequired) -> None:
        assert self._on_unauthorized is not None  # else nothing is kept
        headers: Headers | None = None
        try:
            outcome: Any = self._on_unauthorized(event)
            headers = await outcome if inspect.isawaitable(outcome) else outcome
            if headers is not None:
                self.endpoint.authorize(headers, now=self.clock())
        except Exception as error:
            LOGGER.error("on_unauthorized failed", exc_info=error)
            headers, self._failed_authorization = None, error
        finally:  # it may have been cancelled, by itself too
            self._is_authorizing = False
            if headers is None:
                self.endpoint.give_up(now=self.clock())
            self.wake()


class Carrying:
    """One exchange under way, for what carries it.

    Attributes:
        counts: It is one of those that need a turn.
        scope: What it is carried in.
    """

    def __init__(self, session: HTTPClientDispatcher, exchange: ClientExchange) -> None:
        self.exchange: Final = exchange
        self.scope: Final = session.loop.new_scope()
        self.counts = False
        self._session: Final = session

    def begin(self) -> None:
        """It is about to be sent."""
        if not self.exchange.awaited:  # else the timeout of its request runs
            self.scope.deadline = self._session.clock() + self._session.limits.head

    def came(self, *, has_head: bool = True) -> None:
        """Something of the response was told to the exchange: see to what comes of it."""
        if has_head:
            silence = self._session.limits.silence
            if silence != math.inf or self.scope.deadline != math.inf:
                self.scope.deadline = self._session.clock() + silence
        self._session.look()

    def wait_for_ever(self) -> None:
        """It is not sent before something else has ended."""
        self.scope.deadline = math.inf

    @property
    def is_traced(self) -> bool:
        """Whether somebody wants to know the bytes of it."""
        return self._session.trace is not None

    def sent(self, connection: str, data: bytes) -> None:
        """Trace a request that is about to be written."""
        if (trace := self._session.trace) is not None:
            with logged("the trace"):
                trace.sent(connection, data)

    def received(self, connection: str, data: bytes) -> None:
        """Trace what was read."""
        if (trace := self._session.trace) is not None:
            with logged("the trace"):
                trace.received(connection, data)

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, None]], *args: object) -> None:
        """Have something done beside it."""
        self._session.start_soon(function, *args)


class Carrier(Protocol):
    """Carries exchanges to a server, and what comes back."""

    async def carry(self, carrying: Carrying) -> None:
        """Send an exchange, and tell it all that comes of it. Cancelled, it leaves nothing open."""
        ...

    async def aclose(self) -> None:
        """Close what is kept open between exchanges."""
        ...
