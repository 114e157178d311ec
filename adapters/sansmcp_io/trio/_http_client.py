"""A client behind HTTP: each exchange of its endpoint on a connection, and what comes of it.

One task hands out events, begins exchanges and keeps time; each exchange has a task of its own. As
all are in trio's thread and calls into the core do not wait, there is no lock.
"""

from __future__ import annotations

import math
import ssl
import time
from contextlib import suppress
from typing import Any, Final

import trio

from sansmcp import IncomingRequest, Subscription
from sansmcp.http import ClientEndpoint, ClientExchange

from .._async.background import logged
from .._async.dispatch import ENDINGS
from .._async.http_client import HTTPClientDispatcher, is_answer, sentence_of
from .._common.callbacks import FLUSH_SECONDS
from .._options.clients import HTTPClientOptions
from ._handlers import EventDispatcher
from ._http_pool import ClientLink, ClientPool
from ._loop import Sleeper
from ._unwrap import unwrapped

_BROKEN: Final = (trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError, OSError)


class HTTPSession(HTTPClientDispatcher, EventDispatcher):
    """Moves the exchanges of an endpoint, and tells it the time. It runs once."""

    _tasks: trio.Nursery

    def __init__(self, endpoint: ClientEndpoint, options: HTTPClientOptions[Any]) -> None:
        super().__init__(endpoint, options)
        self.around: Final[list[trio.CancelScope]] = []  # cancelled if one of the tasks fails
        self._pool = ClientPool(options.tls, self._limits.connect)
        self._turns = trio.CapacityLimiter(self._limits.requests)
        self._moving: dict[ClientExchange, trio.CancelScope] = {}
        self._pump = Sleeper()
        self._clock = trio.CancelScope()  # its deadline is not after the endpoint's
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
        except BaseException:
            # Before the requests are lost by it: who is cancelled anyway raises nothing of his own.
            for scope in self.around:
                scope.cancel()
            raise
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

    def _end_program(self, request: IncomingRequest, failure: BaseException) -> None:
        self._tasks.start_soon(self._fail_after_answers, failure)

    async def _fail_after_answers(self, failure: BaseException) -> None:
        self._see_to_it()
        with trio.move_on_after(FLUSH_SECONDS):
            while any(map(is_answer, self._moving)):
                self._has_moved = trio.Event()
                await self._has_moved.wait()
        raise failure

    def wake(self) -> None:
        """A verb was called: have what came of it seen to."""
        self._pump.wake()

    async def _keep_turning(self) -> None:
        while True:
            self.endpoint.handle_timeout(trio.current_time())
            self._see_to_it()
            await self._pump.sleep()

    def _see_to_it(self) -> None:
        """Do what there is to be done: in a task of this session, which ends if that fails."""
        self._turn()
        deadline = self.endpoint.next_timeout()
        if deadline is not None and deadline < self._clock.deadline:
            self._clock.deadline = deadline

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

    # ---------------------------------------------------------------------------- exchanges

    def _begin(self, exchange: ClientExchange) -> None:
        scope = self._moving[exchange] = trio.CancelScope()
        self._tasks.start_soon(self._move, exchange, scope, name=exchange.purpose.name)

    def _abort(self, exchange: ClientExchange) -> None:
        if scope := self._moving.get(exchange):
            scope.cancel()

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
            exchange.receive_failure(_sentence_of(error), now=trio.current_time())
        if scope.cancelled_caught and not exchange.over:
            exchange.receive_failure("the server was silent for too long", now=trio.current_time())
        del self._moving[exchange]
        self._has_moved.set()
        self._see_to_it()

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
        except BaseException as error:
            if isinstance(error, _BROKEN):
                link.http.fail(_sentence_of(error), now=trio.current_time())
            with trio.CancelScope(shield=True):
                await link.aclose()
            raise
        await self._pool.give_back(link)

    async def _read(
        self, exchange: ClientExchange, scope: trio.CancelScope, link: ClientLink
    ) -> None:
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
            self._see_to_it()  # another task for that would cost more than all it does
        _end_at(scope, math.inf)


def _sentence_of(error: BaseException) -> str:
    cause = error.__cause__ if isinstance(error, trio.BrokenResourceError) else None
    return sentence_of(cause or error)


def _end_at(scope: trio.CancelScope, deadline: float) -> None:
    if scope.deadline != deadline:  # mostly there is none, and to say so again is not free
        scope.deadline = deadline


async def _send_rest(link: ClientLink, data: memoryview) -> None:
    link.is_writing = True
    with suppress(*_BROKEN):  # what was said before it broke can still be read
        while data:
            data = data[await link.stream.send_some(data) :]
        link.is_writing = False
