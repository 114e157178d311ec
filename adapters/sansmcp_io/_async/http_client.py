"""A client over HTTP, on any loop: its events, its exchanges, and its authorization."""

from __future__ import annotations

import inspect
import math
import ssl
from abc import abstractmethod
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Protocol

from sansmcp import ConnectionClosed, State, Subscription
from sansmcp.http import (
    AuthorizationRequired,
    ClientEndpoint,
    ClientExchange,
    ClientHTTPEvent,
    ExchangePurpose,
)

from .._common.anomalies import LOGGER
from .._common.bounds import FLUSH_SECONDS
from .._common.errors import AuthorizationError
from .._common.http_client_events import handle_http_event
from .._common.http_client_settings import Headers, HTTPClientLimits
from .._options.clients import HTTPClientOptions
from .background import logged
from .call import Call
from .dispatch import ENDINGS, EventDispatcher
from .loop import Loop

if TYPE_CHECKING:
    from ..oauth._authorization import ClientAuthorization
    from .authorization import Authorizer
    from .one_shot import H11OneShotSender

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
        self._on_unauthorized: Callable[[AuthorizationRequired], Any] | None
        self._on_unauthorized = options.on_unauthorized
        self._authorization = options.new_authorization()
        self._authorizer: Authorizer | None = None
        self._is_authorizing = False
        self._is_refreshing = False
        self._is_renewed = False  # the token is new, however soon it ends
        self._refused: AuthorizationRequired | None = None  # while the token was refreshed
        self._failed_authorization: Exception | None = None
        self.limits: Final = options.limits or HTTPClientLimits()
        self.trace: Final = options.trace
        self._closed = self.loop.new_event()
        self._exchange_sender = self._new_exchange_sender(options)
        if self._authorization is not None:
            self._use(self._authorization, options)
        self._running: dict[ClientExchange, RunningExchange] = {}
        self._free_slots = self.limits.requests  # how many more requests may have a connection
        self._waiting_for_slot: dict[RunningExchange, None] = {}
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
    def _new_one_shot_sender(self, tls: ssl.SSLContext | None) -> H11OneShotSender:
        """Return the sender of single requests on sockets of this loop."""

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
            while (
                not self._waits_for_token() and (exchange := endpoint.next_exchange()) is not None
            ):
                self._send_or_queue(exchange)
        self._is_renewed = False
        self._room.look()

    # ------------------------------------------------------------------------------ exchanges

    def _send_or_queue(self, exchange: ClientExchange) -> None:
        """Send an exchange now, or when a connection is free, by `HTTPClientLimits.requests`."""
        running = self._running[exchange] = RunningExchange(self, exchange)
        # Cancellations and responses must not wait for requests; long streams take no slot.
        running.takes_slot = exchange.awaited and not isinstance(exchange.request, Subscription)
        if running.takes_slot and not self._free_slots:
            self._waiting_for_slot[running] = None
        else:
            self._send_soon(running)

    def _send_soon(self, running: RunningExchange) -> None:
        self._free_slots -= running.takes_slot
        self._tasks.start_soon(self._send, running, name=running.exchange.purpose.name)

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, None]], *args: object) -> None:
        """Run a function in a task of its own."""
        self._tasks.start_soon(function, *args)

    def _abort(self, exchange: ClientExchange) -> None:
        """Stop sending an exchange and reading its response. An ended exchange is left alone."""
        if running := self._running.get(exchange):
            if running in self._waiting_for_slot:
                del self._waiting_for_slot[running], self._running[exchange]
                self._has_ended.set()
            else:
                running.scope.cancel()

    async def _send(self, running: RunningExchange) -> None:
        """Send one exchange, and hand the response to its object until its end."""
        exchange = running.exchange
        with running.scope:
            running.set_head_deadline()
            if self._authorization is not None:
                self._authorization.sign(exchange)
            await self._exchange_sender.send(running)
        if not exchange.over:
            exchange.receive_failure(_SILENT, now=self.clock())
        del self._running[exchange]
        self._free_slots += running.takes_slot
        while self._free_slots and self._waiting_for_slot:
            waiting = next(iter(self._waiting_for_slot))
            del self._waiting_for_slot[waiting]
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

    # -------------------------------------------------------------------------- authorization

    def _use(self, authorization: ClientAuthorization, options: HTTPClientOptions[Any]) -> None:
        """Let an authorization supply the headers."""
        # Imported here: programs without authorization do not need it.
        from .authorization import Authorizer
        from .one_shot import ClientOneShotSender

        direct = self._new_one_shot_sender(options.tls)
        sender = ClientOneShotSender(self.loop, options, direct)
        self._authorizer = authorizer = Authorizer(self.loop, sender, authorization)

        async def supply(event: AuthorizationRequired) -> Headers:
            return await authorizer.run(event, self.endpoint.revision)

        self._on_unauthorized = supply

    async def restore_credentials(self) -> None:
        """Use the credentials that are stored, before the conversation is opened.

        Raises:
            AuthorizationError: The storage cannot be read.
        """
        if self._authorizer is not None and self._authorization is not None:
            await self._authorizer.restore()
            self.endpoint.authorize(self._authorization.headers, now=self.clock())

    def head_received(self, exchange: ClientExchange) -> None:
        """Let the authorization learn from the head of a response."""
        if self._authorization is not None:
            self._authorization.head_received(exchange)

    def _waits_for_token(self) -> bool:
        """Whether messages wait until the token is refreshed, which begins here."""
        authorization = self._authorization
        if authorization is None or self.endpoint.state is State.CLOSED:
            return False
        if (
            not (self._is_refreshing or self._is_authorizing or self._is_renewed)
            and self.endpoint.unsent_bytes
            and authorization.needs_refresh
        ):
            self._is_refreshing = True
            self._tasks.start_soon(self._refresh)
        return self._is_refreshing

    async def _refresh(self) -> None:
        """Get a new token before the old one ends. Without one, the server decides."""
        assert self._authorizer is not None
        assert self._authorization is not None
        try:
            headers = await self._authorizer.run(None, self.endpoint.revision)
            self.endpoint.authorize(headers, now=self.clock())
            self._is_renewed = True
            self._refused = None  # all that was refused is sent again
        except Exception as error:
            self._authorization.fail_in_advance(error)
        finally:
            self._is_refreshing = False
            self.wake()
        if (refused := self._refused) is not None:
            self._refused = None
            self._authorize(refused)

    def _authorize(self, event: AuthorizationRequired) -> None:
        """Begin to ask the application, once for all requests that are refused meanwhile.

        While the token is refreshed, a refusal is kept: the server may have refused the old token.
        """
        if self._is_refreshing:
            self._refused = event
        elif not self._is_authorizing:
            self._is_authorizing = True
            self._failed_authorization = None
            self._tasks.start_soon(self._ask_for_authorization, event)

    async def _ask_for_authorization(self, event: AuthorizationRequired) -> None:
        assert self._on_unauthorized is not None  # without it, the endpoint keeps no request
        headers: Headers | None = None
        try:
            if self._authorization is not None:
                self._authorization.check_advance()
            outcome: Any = self._on_unauthorized(event)
            headers = await outcome if inspect.isawaitable(outcome) else outcome
            if headers is not None:
                self.endpoint.authorize(headers, now=self.clock())
                self._is_renewed = True
        except AuthorizationError as error:
            LOGGER.info("the client was not authorized: %s", error)
            headers, self._failed_authorization = None, error
        except Exception as error:
            LOGGER.error("on_unauthorized failed", exc_info=error)
            headers, self._failed_authorization = None, error
        finally:  # also when the callback is cancelled
            self._is_authorizing = False
            if headers is None:
                self.endpoint.give_up(now=self.clock())
            self.wake()


class RunningExchange:
    """An exchange that is being sent, or waits for a free connection.

    Attributes:
        takes_slot: Whether the exchange counts for `HTTPClientLimits.requests`, and so waits for a
            free connection when as many are sent.
        scope: The cancel scope in which the exchange is sent.
    """

    def __init__(self, session: HTTPClientDispatcher, exchange: ClientExchange) -> None:
        self.exchange: Final = exchange
        self.scope: Final = session.loop.new_scope()
        self.takes_slot = False
        self._has_head = False
        self._session: Final = session

    def set_head_deadline(self) -> None:
        """Set the deadline for the head of the response, when sending begins."""
        if not self.exchange.awaited:  # otherwise the timeout of the request runs
            self.scope.deadline = self._session.clock() + self._session.limits.head

    def response_received(self, *, has_head: bool = True) -> None:
        """Move the deadline and run a turn, after the exchange object was given input."""
        if has_head and not self._has_head:
            self._has_head = True
            self._session.head_received(self.exchange)
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
