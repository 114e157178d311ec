"""A client behind HTTP, on trio: its turns, and its clock.

One task hands out events, begins exchanges and keeps time; each exchange has a task of its own. As
all are in trio's thread and calls into the core do not wait, there is no lock.
"""

from __future__ import annotations

import ssl
from typing import Any, Final

import trio

from sansmcp import IncomingRequest
from sansmcp.http import ClientEndpoint

from .._async.h11_sender import H11Carrier
from .._async.http_client import Carrier, HTTPClientDispatcher
from .._options.clients import HTTPClientOptions
from ._handlers import EventDispatcher
from ._loop import Sleeper, unwrapped
from ._socket import NoWaitSocket, address_of

_BROKEN: Final = (trio.ClosedResourceError, OSError)


class HTTPSession(HTTPClientDispatcher, EventDispatcher):
    """Moves the exchanges of an endpoint, and tells it the time. It runs once."""

    _tasks: trio.Nursery

    def __init__(self, endpoint: ClientEndpoint, options: HTTPClientOptions[Any]) -> None:
        super().__init__(endpoint, options)
        self.around: Final[list[trio.CancelScope]] = []  # cancelled if one of the tasks fails
        self._pump = Sleeper()
        self._alarm = trio.CancelScope()  # its deadline is not after the endpoint's
        self._stopped = trio.Event()

    def _new_h11_carrier(self, tls: ssl.SSLContext | None) -> Carrier:
        return H11Carrier(self.loop, _connect, _BROKEN, tls, self.limits)

    async def run(self) -> None:
        """Serve and ask until the endpoint is closed, and the server was told."""
        try:
            with trio.CancelScope(shield=True):
                async with unwrapped(), trio.open_nursery() as self._tasks:
                    self._tasks.start_soon(self._keep_turning)
                    self._tasks.start_soon(self._keep_time)
                    await self._closed.wait()
                    await self._until_moved(self._is_idle)
                    self._tasks.cancel_scope.cancel()
        except BaseException:
            # Before the requests are lost by it: who is cancelled anyway raises nothing of his own.
            for scope in self.around:
                scope.cancel()
            raise
        finally:
            self._end()
            with trio.CancelScope(shield=True):
                await self._carrier.aclose()
            self._stopped.set()

    async def finish(self) -> None:
        """End it from this side, and return when its tasks have ended."""
        self.endpoint.close(now=self.clock())
        self.wake()
        await self._stopped.wait()

    def _end_program(self, request: IncomingRequest, failure: BaseException) -> None:
        self._tasks.start_soon(self._fail_after_answers, failure)

    async def _fail_after_answers(self, failure: BaseException) -> None:
        self.look()
        await self._until_moved(self._has_answered)
        raise failure

    def wake(self) -> None:
        """A verb was called: have what came of it seen to."""
        self._pump.wake()

    async def _keep_turning(self) -> None:
        while True:
            self.endpoint.handle_timeout(self.clock())
            self.look()
            await self._pump.sleep()

    def look(self) -> None:
        """See to what there is: in a task of this session, which ends if that fails."""
        self._turn()
        deadline = self.endpoint.next_timeout()
        if deadline is not None and deadline < self._alarm.deadline:
            self._alarm.deadline = deadline

    async def _keep_time(self) -> None:
        """Have it looked what is due, at the earliest time that there was to look at.

        A scope for every sleep of the other task would do, but costs more than all it is for: most
        deadlines are those of requests that are answered long before.
        """
        while True:
            with self._alarm:
                await trio.sleep_forever()
            self._alarm = trio.CancelScope()
            self.wake()


async def _connect(host: str, port: int) -> tuple[str, NoWaitSocket]:
    stream = await trio.open_tcp_stream(host, port)
    return address_of(stream), NoWaitSocket(stream)
