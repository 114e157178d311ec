"""A client over HTTP, on any loop: its events, its exchanges, and its authorization."""

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
from .loop import Loop

_SILENT: Final = "the server was silent for too long"


class HTTPClientDispatcher(EventDispatcher):
    """Hands the events of an endpoint to handlers and callers, and sends its exchanges.

    The core is called in the loop's thread, and its calls do not wait: there is no lock.
    """

    def __init__(
        self, endpoint: ClientEndpoint, options: HTTPClientOptions[Any], loop: Loop
    ) -> None:
        super().__init__(endpoint, options.for_session(Call), loop)
        self.endpoint: Final = endpoint
        self._on_unauthorized = options.on_unauthorized
        self._is_authorizing = False
        self._failed_authorization: Exception | None = None
        self.limits: Final = options.limits or HTTPClientLimits()
        self.trace: Final = options.trace
        self._closed = self.loop.new_event()
        self._exchange_sender = self._new_exchange_sender(options)
        self._running: dict[ClientExchange, RunningExchange] = {}
        self._turns = self.limits.requests  # the number of exchanges that may still begin
        self._waiting: dict[RunningExchange, None] = {}
        self._has_ended = self.loop.new_event()  # set when an exchange ends

    @abstractmethod
    def _new_h11_sender(self, tls: ssl.SSLContext | None) -> ExchangeSender:
        """Return the sender of exchanges on sockets of this loop."""

    def _new_exchange_sender(self, options: HTTPClientOptions[Any]) -> ExchangeSender:
        client = options.http
        if client is None and options.proxy is None:
            return self._new_h11_sender(options.tls)
        # Imported here: httpx2 is an optional dependency.
        from .httpx_sender import HTTPXExchangeSender

        return HTTPXExchangeSender(self.loop, options, self.limits.connect)

    @abstractmethod
    def look(self) -> None:
        """Run a turn, now or soon, after input from the server."""

    def _turn(self) -> None:
        """Handle all events, and begin and abort exchanges as the endpoint asks."""
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
                self._send_or_queue(exchange)
        self._room.look()

    # ------------------------------------------------------------------------------ exchanges

    def _send_or_queue(self, exchange: ClientExchange) -> None:
        """Send an exchange, or let it wait for its turn."""
        running = self._running[exchange] = RunningExchange(self, exchange)
        # Cancellations and responses must not wait for requests; long streams take no turn.
        running.takes_turn = exchange.awaited and not isinstance(exchange.request, Subscription)
        if running.takes_turn and not self._turns:
            self._waiting[running] = None
        else:
            self._send_soon(running)

    def _send_soon(self, running: RunningExchange) -> None:
        self._turns -= running.takes_turn
        self._tasks.start_soon(self._send, running, name=running.exchange.purpose.name)

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, None]], *args: object) -> None:
        """Run a function in a task of its own."""
        self._tasks.start_soon(function, *args)

    def _abort(self, exchange: ClientExchange) -> None:
        """Stop sending an exchange and reading its response. An ended exchange is left alone."""
        if running := self._running.get(exchange):
            if running in self._waiting:
                del self._waiting[running], self._running[exchange]
                self._has_ended.set()
            else:
                running.scope.cancel()

    async def _send(self, running: RunningExchange) -> None:
        """Send one exchange, and hand the response to its object until its end."""
        exchange = running.exchange
        with running.scope:
            running.set_head_deadline()
            await self._exchange_sender.send(running)
        if not exchange.over:
            exchange.receive_failure(_SILENT, now=self.clock())
        del self._running[exchange]
        self._turns += running.takes_turn
        while self._turns and self._waiting:
            waiting = next(iter(self._waiting))
            del self._waiting[waiting]
            self._send_soon(waiting)
        self._has_ended.set()
        self.look()

    async def _until_exchanges_end(self, is_done: Callable[[], bool]) -> None:
        """Wait until exchanges have ended, so that a condition is true, or for `FLUSH_SECONDS`."""

        async def wait() -> None:
            while not is_done():
                self._has_ended = self.loop.new_event()
                await self._has_ended.wait()

        await self.loop.wait_until(self.clock() + FLUSH_SECONDS, wait)

    def _is_idle(self) -> bool:
        return not (self._running or self.endpoint.exchanges)

    def _has_answered(self) -> bool:
        """Whether all responses and notifications of this side were delivered."""
        return not any(
            exchange.purpose is ExchangePurpose.POST and not exchange.awaited
            for exchange in self._running
        )

    def _end(self) -> None:
        """Close the endpoint, and hand the endings of requests to their callers."""
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
        """Begin to ask the application, once for all requests that are refused meanwhile."""
        if not self._is_authorizing:
            self._is_authorizing = True
            self._failed_authorization = None
            self._tasks.start_soon(self._ask_for_authorization, event)

    async def _ask_for_authorization(self, event: AuthorizationRequired) -> None:
        assert self._on_unauthorized is not None  # without it, the endpoint keeps no request
        headers: Headers | None = None
        try:
            outcome: Any = self._on_unauthorized(event)
            headers = await outcome if inspect.isawaitable(outcome) else outcome
            if headers is not None:
                self.endpoint.authorize(headers, now=self.clock())
        except Exception as error:
            LOGGER.error("on_unauthorized failed", exc_info=error)
            headers, self._failed_authorization = None, error
        finally:  # also when the callback is cancelled
            self._is_authorizing = False
            if headers is None:
                self.endpoint.give_up(now=self.clock())
            self.wake()


class RunningExchange:
    """An exchange that is being sent, or waits for its turn.

    Attributes:
        takes_turn: Whether the exchange counts among those that `HTTPClientLimits` allows at once.
        scope: The cancel scope in which the exchange is sent.
    """

    def __init__(self, session: HTTPClientDispatcher, exchange: ClientExchange) -> None:
        self.exchange: Final = exchange
        self.scope: Final = session.loop.new_scope()
        self.takes_turn = False
        self._session: Final = session

    def set_head_deadline(self) -> None:
        """Set the deadline for the head of the response, when sending begins."""
        if not self.exchange.awaited:  # otherwise the timeout of the request runs
            self.scope.deadline = self._session.clock() + self._session.limits.head

    def response_received(self, *, has_head: bool = True) -> None:
        """Move the deadline and run a turn, after the exchange object was given input."""
        if has_head:
            silence = self._session.limits.silence
            if silence != math.inf or self.scope.deadline != math.inf:
                self.scope.deadline = self._session.clock() + silence
        self._session.look()

    def remove_deadline(self) -> None:
        """Let the exchange take any time: it waits for the end of other exchanges."""
        self.scope.deadline = math.inf

    @property
    def is_traced(self) -> bool:
        """Whether the application traces the bytes of exchanges."""
        return self._session.trace is not None

    def sent(self, connection: str, data: bytes) -> None:
        """Trace a request that is about to be written."""
        if (trace := self._session.trace) is not None:
            with logged("the trace"):
                trace.sent(connection, data)

    def received(self, connection: str, data: bytes) -> None:
        """Trace bytes that were read."""
        if (trace := self._session.trace) is not None:
            with logged("the trace"):
                trace.received(connection, data)

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, None]], *args: object) -> None:
        """Run a function in a task of its own, beside the exchange."""
        self._session.start_soon(function, *args)


class ExchangeSender(Protocol):
    """Sends the exchanges of a client to its server, over connections of one kind."""

    async def send(self, running: RunningExchange) -> None:
        """Send an exchange, and hand the response to its object until its end.

        When this is cancelled, the connection of the exchange is closed.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections that are kept open between exchanges."""
        ...
