"""A client behind HTTP, on asyncio: each exchange of its endpoint on a connection.

An exchange has a task only until it has a connection: from then on the loop calls what carries it.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import ssl
from contextlib import suppress
from typing import Any, Final

from sansmcp import IncomingRequest, Subscription
from sansmcp.http import ClientEndpoint, ClientExchange

from .._async.dispatch import ENDINGS
from .._async.http_client import HTTPClientDispatcher, is_answer, sentence_of
from .._common.callbacks import FLUSH_SECONDS
from .._options.clients import HTTPClientOptions
from ._handlers import EventDispatcher
from ._http_pool import ClientLink, ClientPool
from ._tasks import Tasks, finished


class HTTPSession(HTTPClientDispatcher, EventDispatcher):
    """Moves the exchanges of an endpoint, and tells it the time. It runs once."""

    def __init__(self, endpoint: ClientEndpoint, options: HTTPClientOptions[Any]) -> None:
        super().__init__(endpoint, options)
        self._loop: Final = asyncio.get_running_loop()
        self._context: Final = contextvars.copy_context()  # not that of who calls a verb
        self._tasks = Tasks(self._fail)
        self._pool = ClientPool(options.tls, self._limits.connect, self._trace)
        self._moving: dict[ClientExchange, _ExchangeTask] = {}
        self._turns = self._limits.requests  # so many more may have a connection
        self._waiting: dict[_ExchangeTask, None] = {}
        self._failure: BaseException | None = None
        self._is_woken = False
        self._is_stopping = False
        self._timer: asyncio.TimerHandle | None = None
        self._alarm = math.inf
        self._has_moved = asyncio.Event()  # an exchange is over

    # ---------------------------------------------------------------------------- running

    async def run(self) -> None:
        """Serve and ask until the endpoint is closed, and the server was told."""
        try:
            await self._closed.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    while self._failure is None and (self._moving or self.endpoint.exchanges):
                        self._has_moved.clear()
                        await self._has_moved.wait()
            if self._failure is not None:
                raise self._failure
        finally:
            self._is_stopping = True
            for carrying in list(self._moving.values()):
                carrying.abort()
            if self._timer is not None:
                self._timer.cancel()
            self.endpoint.close(now=self.clock())
            while (event := self._next_event()) is not None:
                if isinstance(event, ENDINGS):
                    self._handle(event)
            self._room.look()
            try:
                await self._tasks.end()
            finally:
                await finished(self._pool.close())

    def finish(self) -> None:
        """End it from this side."""
        self.endpoint.close(now=self.clock())
        self.wake()

    def _end_program(self, request: IncomingRequest, failure: BaseException) -> None:
        self.wake()
        self._tasks.start_soon(self._fail_after_answers, failure)

    async def _fail_after_answers(self, failure: BaseException) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                await asyncio.sleep(0)  # until the turn has begun to send the last one
                while any(map(is_answer, self._moving)):
                    self._has_moved.clear()
                    await self._has_moved.wait()
        self._fail(failure)

    def wake(self) -> None:
        """A verb was called: have what came of it seen to, once for many."""
        if not self._is_woken and not self._is_stopping:
            self._is_woken = True
            self._loop.call_soon(self._guard_turn, context=self._context)

    def _guard_turn(self) -> None:
        self._is_woken = False
        if self._is_stopping or self._failure is not None:
            return
        try:
            self.endpoint.handle_timeout(self.clock())
            self._turn()
        except BaseException as error:
            self._fail(error)
            return
        deadline = self.endpoint.next_timeout()
        if deadline is not None and deadline < self._alarm:
            if self._timer is not None:
                self._timer.cancel()
            self._alarm = deadline
            self._timer = self._loop.call_at(deadline, self._ring, context=self._context)

    def _ring(self) -> None:
        self._timer, self._alarm = None, math.inf
        self._guard_turn()

    def _fail(self, failure: BaseException) -> None:
        """Something has failed where nothing may: have `run` raise it."""
        if self._failure is None:
            self._failure = failure
        self._closed.set()
        self._has_moved.set()

    # ---------------------------------------------------------------------------- exchanges

    def _begin(self, exchange: ClientExchange) -> None:
        carrying = self._moving[exchange] = _ExchangeTask(self, exchange)
        # What is said about others must not wait for them, nor they for what lasts.
        carrying.counts = exchange.awaited and not isinstance(exchange.request, Subscription)
        if carrying.counts and not self._turns:
            self._waiting[carrying] = None
            return
        self._turns -= carrying.counts
        carrying.begin()

    def _abort(self, exchange: ClientExchange) -> None:
        if carrying := self._moving.get(exchange):
            carrying.abort()

    def _forget(self, carrying: _ExchangeTask) -> None:
        """An exchange is carried no further."""
        del self._moving[carrying.exchange]
        if not carrying.has_begun:
            self._waiting.pop(carrying, None)
        elif carrying.counts:
            self._turns += 1
            self._begin_waiting()
        self._has_moved.set()
        self.wake()

    def _begin_waiting(self) -> None:
        while self._turns and self._waiting and not self._is_stopping:
            carrying = next(iter(self._waiting))
            del self._waiting[carrying]
            if not carrying.exchange.over:  # else it is about to be aborted, too
                self._turns -= 1
                carrying.begin()


class _ExchangeTask:
    """One exchange, from its beginning to its end."""

    def __init__(self, session: HTTPSession, exchange: ClientExchange) -> None:
        self.exchange: Final = exchange
        self.counts = False  # among those that have a connection
        self.has_begun = False
        self._session = session
        self._link: ClientLink | None = None
        self._opening: asyncio.Task[None] | None = None
        self._silence: asyncio.TimerHandle | None = None
        self._is_over = False

    def begin(self) -> None:
        """Get a connection, and send it."""
        self.has_begun = True
        link = self._session._pool.take()
        if link is None:
            name = self.exchange.purpose.name
            self._opening = self._session._tasks.start_soon(self._open, name=name)
        else:
            self._send(link)

    def abort(self) -> None:
        """Carry it no further: nobody wants to know more."""
        if self._opening is not None:
            self._opening.cancel()
        self._end()

    async def _open(self) -> None:
        session = self._session
        try:
            link = await session._pool.open(self.exchange.origin)
        except (OSError, ssl.SSLError) as error:
            self.exchange.receive_failure(sentence_of(error), now=session.clock())
            self._opening = None
            self._end()
            return
        self._opening = None
        if self._is_over:
            link.close()
        else:
            self._send(link)

    def _send(self, link: ClientLink) -> None:
        self._link = link
        link.moved = self._moved
        if not self.exchange.awaited:
            self._be_silent_for(self._session._limits.head)
        link.send(self.exchange)

    def _moved(self) -> None:
        """Something has come, or the connection has broken."""
        session, link = self._session, self._link
        assert link is not None  # whose this is
        if link.http.done or self.exchange.over:
            self._end()
        elif link.http.has_head:
            self._be_silent_for(session._limits.silence)
        session.wake()

    def _be_silent_for(self, seconds: float) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None
        if seconds != math.inf:
            self._silence = self._session._loop.call_later(seconds, self._was_silent)

    def _was_silent(self) -> None:
        text = "the server was silent for too long"
        self.exchange.receive_failure(text, now=self._session.clock())
        self._end()

    def _end(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._be_silent_for(math.inf)
        link, self._link = self._link, None
        if link is not None:
            if link.http.done:
                self._session._pool.give_back(link)
            else:
                link.close()
        self._session._forget(self)
