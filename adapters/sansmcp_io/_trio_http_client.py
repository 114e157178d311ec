"""A client behind HTTP: each exchange of its endpoint on a connection, and what comes of it.

One task hands out events, begins exchanges and keeps time; each exchange has a task of its own. As
all are in trio's thread and calls into the core do not wait, there is no lock.
"""

from __future__ import annotations

import inspect
import math
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import trio

from sansmcp import (
    ConnectionClosed,
    Ready,
    Subscription,
)
from sansmcp.http import (
    AuthorizationRequired,
    ClientEndpoint,
    ClientExchange,
    ClientHTTPEvent,
    MessageRefused,
    MessageUndelivered,
    SessionLost,
    StreamUnavailable,
)

from ._anomalies import LOGGER
from ._errors import Refusal
from ._http_client_limits import Headers, HTTPClientLimits, OnUnauthorized
from ._surface import FLUSH_SECONDS, NotificationHandler
from ._trace import HTTPClientTrace
from ._trio_call import Call
from ._trio_callbacks import logged
from ._trio_dispatching import ENDINGS, Dispatching
from ._trio_http_pool import Link, Pool
from ._trio_mailbox import Mailbox
from ._trio_room import Room
from ._trio_serving import Result
from ._trio_sleeper import Sleeper
from ._trio_unwrap import unwrapped

_BROKEN: Final = (trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError, OSError)


class HTTPSession(Dispatching):
    """Moves the exchanges of an endpoint, and tells it the time. It runs once."""

    def __init__(
        self,
        endpoint: ClientEndpoint,
        *,
        handler: Callable[[Any], Result],
        on_notification: NotificationHandler | None,
        on_unauthorized: OnUnauthorized | None,
        context: Any,
        request_timeout: float,
        tls: ssl.SSLContext | None,
        limits: HTTPClientLimits,
        trace: HTTPClientTrace | None,
    ) -> None:
        super().__init__(
            endpoint,
            handler=handler,
            call_type=Call,
            on_notification=on_notification,
            context=context,
            request_timeout=request_timeout,
        )
        self.endpoint: Final = endpoint
        self._on_unauthorized = on_unauthorized
        self._is_authorizing = False
        self._limits = limits
        self._trace = trace
        self._pool = Pool(tls, limits.connect)
        self._turns = trio.CapacityLimiter(limits.requests)
        self._room = Room(endpoint)
        self._moving: dict[ClientExchange, trio.CancelScope] = {}
        self._pump = Sleeper()
        self._clock = trio.CancelScope()  # its deadline is not after the endpoint's
        self._closed = trio.Event()
        self._has_moved = trio.Event()  # an exchange is over
        self._stopped = trio.Event()

    # ---------------------------------------------------------------------------- running

    async def run(self) -> None:
        """Serve and ask until the endpoint is closed, and the server was told."""
        try:
            with trio.CancelScope(shield=True):
                async with unwrapped(), trio.open_nursery() as self._tasks:
                    self._tasks.start_soon(self._keep_turning)
                    self._tasks.start_soon(self._keep_time)
                    await self._closed.wait()
                    with trio.move_on_after(FLUSH_SECONDS):
                        while self._moving or self.endpoint.exchanges:
                            self._has_moved = trio.Event()
                            await self._has_moved.wait()
                    self._tasks.cancel_scope.cancel()
        finally:
            self.endpoint.close(now=trio.current_time())
            while (event := self._next_event()) is not None:
                if isinstance(event, ENDINGS):
                    self._handle(event)
            self._room.look()
            with trio.CancelScope(shield=True):
                await self._pool.aclose()
            self._stopped.set()

    async def finish(self) -> None:
        """End it from this side, and return when its tasks have ended."""
        self.endpoint.close(now=trio.current_time())
        self.wake()
        await self._stopped.wait()

    def wake(self) -> None:
        """A verb was called: have what came of it seen to."""
        self._pump.wake()

    async def _until_room(self) -> None:
        if self._room.is_short:
            await self._room.wait()

    async def _keep_turning(self) -> None:
        endpoint = self.endpoint
        while True:
            endpoint.handle_timeout(trio.current_time())
            self._turn()
            deadline = endpoint.next_timeout()
            if deadline is not None and deadline < self._clock.deadline:
                self._clock.deadline = deadline
            await self._pump.sleep()

    async def _keep_time(self) -> None:
        """Have it looked what is due, at the earliest time that there was to look at.

        A scope for every sleep of the other task would do, but costs more than all it is for: most
        deadlines are those of requests that are answered long before.
        """
        while True:
            with self._clock:
                await trio.sleep_forever()
            self._clock = trio.CancelScope()
            self.wake()

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
                if scope := self._moving.get(aborted):
                    scope.cancel()
            while (exchange := endpoint.next_exchange()) is not None:
                scope = self._moving[exchange] = trio.CancelScope()
                self._tasks.start_soon(self._move, exchange, scope, name=exchange.purpose.name)
        self._room.look()

    # ---------------------------------------------------------------------------- exchanges

    async def _move(self, exchange: ClientExchange, scope: trio.CancelScope) -> None:
        """Carry one exchange from its beginning to its end."""
        try:
            with scope:
                if exchange.awaited and not isinstance(exchange.request, Subscription):
                    if self._turns.available_tokens:
                        self._turns.acquire_nowait()  # without a detour through the scheduler
                    else:
                        await self._turns.acquire()
                    try:
                        await self._carry(exchange, scope)
                    finally:
                        self._turns.release()
                else:  # what is said about others must not wait for them, nor they for what lasts
                    await self._carry(exchange, scope)
        except _BROKEN as error:
            exchange.receive_failure(_sentence(error), now=trio.current_time())
        if scope.cancelled_caught and not exchange.over:
            exchange.receive_failure("the server was silent for too long", now=trio.current_time())
        del self._moving[exchange]
        self._has_moved.set()
        self.wake()

    async def _carry(self, exchange: ClientExchange, scope: trio.CancelScope) -> None:
        link = await self._pool.take(exchange.origin)
        try:
            data = link.http.send(exchange)
            if self._trace is not None:
                with logged("the trace"):
                    self._trace.sent(link.name, data)
            sent = link.stream.send_now(data)
            if sent == len(data):
                await self._read(exchange, scope, link)
            else:
                async with unwrapped(), trio.open_nursery() as both:
                    # A server may answer, and read no more, while this is written.
                    both.start_soon(_send_rest, link, memoryview(data)[sent:])
                    await self._read(exchange, scope, link)
                    both.cancel_scope.cancel()
        except BaseException:
            with trio.CancelScope(shield=True):
                await link.aclose()
            raise
        await self._pool.give_back(link)

    async def _read(self, exchange: ClientExchange, scope: trio.CancelScope, link: Link) -> None:
        http, stream, limits = link.http, link.stream, self._limits
        if not exchange.awaited:
            _end_at(scope, trio.current_time() + limits.head)
        while not http.done:
            data = await stream.receive_some()
            if self._trace is not None:
                with logged("the trace"):
                    self._trace.received(link.name, data)
            now = trio.current_time()
            http.receive(data, now=now, at=time.time())
            if http.has_head:
                _end_at(scope, now + limits.silence)
            self._pump.wake()
        _end_at(scope, math.inf)

    # ---------------------------------------------------------------------------- events

    def _next_event(self) -> ClientHTTPEvent | None:
        event = self.endpoint.next_event()
        if event is not None and self._trace is not None:
            with logged("the trace"):
                self._trace.happened(event)
        return event

    def _handle(self, event: ClientHTTPEvent) -> None:
        match event:
            case AuthorizationRequired(kept=True):
                self._authorize(event)
            case AuthorizationRequired():
                _tell(event, Refusal(event.status, event.challenges))
            case MessageRefused():
                _tell(event, Refusal(event.status, retry_after=event.retry_after))
                if event.request is None:
                    LOGGER.warning("the server has refused a message: HTTP %d", event.status)
            case MessageUndelivered():
                LOGGER.info("a message was lost with its connection")
            case StreamUnavailable():
                LOGGER.info("%s", event.text)
            case SessionLost():
                self._room.is_closed = True  # whoever asks waits until it is open again
                event.start.data = Mailbox[Any]()  # nobody waits for it there
            case _:
                self._handle_event(event)
                if isinstance(event, Ready):
                    self._room.is_closed = False
                elif isinstance(event, ConnectionClosed):
                    self._closed.set()

    def _authorize(self, event: AuthorizationRequired) -> None:
        """Have the application asked, once for all that is refused meanwhile."""
        if not self._is_authorizing:
            self._is_authorizing = True
            self._tasks.start_soon(self._ask_for_authorization, event)

    async def _ask_for_authorization(self, event: AuthorizationRequired) -> None:
        assert self._on_unauthorized is not None  # else nothing is kept
        headers: Headers | None = None
        try:
            outcome: Any = self._on_unauthorized(event)
            headers = await outcome if inspect.isawaitable(outcome) else outcome
            if headers is not None:
                self.endpoint.authorize(headers, now=trio.current_time())
        except Exception as error:
            LOGGER.error("the handler of 401 and 403 failed", exc_info=error)
            headers = None
        self._is_authorizing = False
        if headers is None:
            self.endpoint.give_up(now=trio.current_time())
        self.wake()


def _tell(event: AuthorizationRequired | MessageRefused, refusal: Refusal) -> None:
    """Have whoever waits for the ending know what it comes of."""
    if event.request is not None:
        event.request.data.refusal = refusal


def _end_at(scope: trio.CancelScope, deadline: float) -> None:
    if scope.deadline != deadline:  # mostly there is none, and to say so again is not free
        scope.deadline = deadline


async def _send_rest(link: Link, data: memoryview) -> None:
    link.is_writing = True
    with suppress(*_BROKEN):  # what was said before it broke can still be read
        while data:
            data = data[await link.stream.send_some(data) :]
        link.is_writing = False


def _sentence(error: BaseException) -> str:
    """What went wrong, for events: without anything that the peer wrote."""
    cause = error.__cause__ if isinstance(error, trio.BrokenResourceError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the server's certificate is not valid: {cause.verify_message}"
    return f"the connection has failed: {cause or error}"
