"""A client over HTTP, on trio: its turns, and its clock.

One task handles events, begins exchanges and keeps time; each exchange has a task of its own. All
tasks are in trio's thread and calls into the core do not wait, so there is no lock.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any, Final

import trio

from sansmcp import IncomingRequest
from sansmcp.http import ClientEndpoint

from .._async.h11_sender import H11ExchangeSender
from .._async.http_client import ExchangeSender, HTTPClientDispatcher
from .._options.clients import HTTPClientOptions
from ._loop import Sleeper, TrioLoop, unwrapped
from ._socket import NoWaitSocket, address_of

if TYPE_CHECKING:
    from .._async.one_shot import H11OneShotSender

BROKEN: Final = (trio.ClosedResourceError, OSError)


class HTTPSession(HTTPClientDispatcher):
    """Sends the exchanges of an endpoint, and keeps time. A session runs once."""

    _tasks: trio.Nursery

    def __init__(self, endpoint: ClientEndpoint, options: HTTPClientOptions[Any]) -> None:
        super().__init__(endpoint, options, TrioLoop())
        self.around: Final[list[trio.CancelScope]] = []  # cancelled if a task of the session fails
        self._pump = Sleeper()
        self._alarm = trio.CancelScope()  # its deadline is not after the endpoint's
        self._stopped = trio.Event()

    def _new_h11_sender(self, tls: ssl.SSLContext | None) -> ExchangeSender:
        return H11ExchangeSender(self.loop, connect, BROKEN, tls, self.limits)

    def _new_one_shot_sender(self, tls: ssl.SSLContext | None) -> H11OneShotSender:
        from .._async.one_shot import H11OneShotSender

        return H11OneShotSender(self.loop, connect, BROKEN, tls)

    async def run(self) -> None:
        """Run until the endpoint is closed, and the session at the server is deleted."""
        try:
            with trio.CancelScope(shield=True):
                async with unwrapped(), trio.open_nursery() as self._tasks:
                    self._tasks.start_soon(self._keep_turning)
                    self._tasks.start_soon(self._keep_time)
                    await self._closed.wait()
                    await self._until_exchanges_end(self._is_idle)
                    self._tasks.cancel_scope.cancel()
        except BaseException:
            # Before the requests end by it: a task that is cancelled raises no other exception.
            for scope in self.around:
                scope.cancel()
            raise
        finally:
            self._end()
            if self._authorization is not None:
                self._authorization.close()
            with trio.CancelScope(shield=True):
                await self._exchange_sender.aclose()
            self._stopped.set()

    async def finish(self) -> None:
        """Close the endpoint, and return when the tasks of the session have ended."""
        self.endpoint.close(now=self.clock())
        self.wake()
        await self._stopped.wait()

    def _end_program(self, request: IncomingRequest, failure: BaseException) -> None:
        self._tasks.start_soon(self._fail_after_answers, failure)

    async def _fail_after_answers(self, failure: BaseException) -> None:
        self.look()
        await self._until_exchanges_end(self._has_answered)
        raise failure

    def wake(self) -> None:
        """Run a turn soon, after a call into the endpoint."""
        self._pump.wake()

    async def _keep_turning(self) -> None:
        while True:
            self.endpoint.handle_timeout(self.clock())
            self.look()
            await self._pump.sleep()

    def look(self) -> None:
        """Run a turn, in a task of this session: an exception of a turn ends the session."""
        self._turn()
        deadline = self.endpoint.next_timeout()
        if deadline is not None and deadline < self._alarm.deadline:
            self._alarm.deadline = deadline

    async def _keep_time(self) -> None:
        """Wake the turning task at the earliest deadline.

        A cancel scope for each sleep of that task would be simpler, and costs more: most deadlines
        belong to requests that are answered long before.
        """
        while True:
            with self._alarm:
                await trio.sleep_forever()
            self._alarm = trio.CancelScope()
            self.wake()


async def connect(host: str, port: int) -> tuple[str, NoWaitSocket]:
    """Open a connection, and return its own address, too."""
    stream = await trio.open_tcp_stream(host, port)
    return address_of(stream), NoWaitSocket(stream)
