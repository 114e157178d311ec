"""A client over HTTP, on asyncio: its turns, and its clock."""

from __future__ import annotations

import asyncio
import contextvars
import math
import ssl
from typing import TYPE_CHECKING, Any, Final

from sansmcp import IncomingRequest
from sansmcp.http import ClientEndpoint

from .._async.h11_sender import H11ExchangeSender
from .._async.http_client import ExchangeSender, HTTPClientDispatcher
from .._options.clients import HTTPClientOptions
from ._client_stream import ClientStreams
from ._loop import AsyncioLoop
from ._tasks import Tasks, finished

if TYPE_CHECKING:
    from .._async.one_shot import H11OneShotSender


class HTTPSession(HTTPClientDispatcher):
    """Sends the exchanges of an endpoint, and keeps time. A session runs once."""

    def __init__(self, endpoint: ClientEndpoint, options: HTTPClientOptions[Any]) -> None:
        self._streams: Final = ClientStreams()
        super().__init__(endpoint, options, AsyncioLoop())
        self._loop: Final = asyncio.get_running_loop()
        self._context: Final = contextvars.copy_context()  # not that of a caller of `wake`
        self._tasks = Tasks(self._fail)
        self._failure: BaseException | None = None
        self._is_woken = False
        self._is_stopping = False
        self._timer: asyncio.TimerHandle | None = None
        self._alarm = math.inf

    def _new_h11_sender(self, tls: ssl.SSLContext | None) -> ExchangeSender:
        return H11ExchangeSender(self.loop, self._streams.connect, (OSError,), tls, self.limits)

    def _new_one_shot_sender(self, tls: ssl.SSLContext | None) -> H11OneShotSender:
        from .._async.one_shot import H11OneShotSender

        return H11OneShotSender(self.loop, self._streams.connect, (OSError,), tls)

    async def run(self) -> None:
        """Run until the endpoint is closed, and the session at the server is deleted."""
        try:
            await self._closed.wait()
            await self._until_exchanges_end(lambda: self._failure is not None or self._is_idle())
            if self._failure is not None:
                raise self._failure
        finally:
            self._is_stopping = True
            if self._timer is not None:
                self._timer.cancel()
            self._end()
            try:
                await self._tasks.end()
            finally:
                await finished(self._close())

    async def _close(self) -> None:
        if self._authorization is not None:
            self._authorization.close()
        await self._exchange_sender.aclose()
        await self._streams.close()

    def finish(self) -> None:
        """Close the endpoint; `run` returns soon."""
        self.endpoint.close(now=self.clock())
        self.wake()

    def _end_program(self, request: IncomingRequest, failure: BaseException) -> None:
        self.wake()
        self._tasks.start_soon(self._fail_after_answers, failure)

    async def _fail_after_answers(self, failure: BaseException) -> None:
        await asyncio.sleep(0)  # until the turn has begun to send the last one
        await self._until_exchanges_end(self._has_answered)
        self._fail(failure)

    def wake(self) -> None:
        """Run one turn soon, after one or more calls into the endpoint."""
        if not self._is_woken and not self._is_stopping:
            self._is_woken = True
            self._loop.call_soon(self._guard_turn, context=self._context)

    look = wake

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
        """End the session; `run` raises this exception."""
        if self._failure is None:
            self._failure = failure
        self._closed.set()
        self._has_ended.set()
