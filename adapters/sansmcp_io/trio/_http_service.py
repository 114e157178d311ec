"""A server over HTTP on trio: it accepts connections, and waits for their ends."""

from __future__ import annotations

import math
from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import trio

from sansmcp.http import ServerEndpoint, Session

from .._async.http_server_runner import SessionTasks
from .._async.http_service import HTTPServiceBase
from .._common.bounds import FLUSH_SECONDS
from .._common.tls import TLS
from .._options.servers import ListeningServerOptions
from ._http_server_wire import HTTPServerWire
from ._loop import Sleeper, TrioLoop
from ._socket import NoWaitSocket, TLSSocket, client_of

if TYPE_CHECKING:
    from .._async.one_shot import OneShotSender


class TrioSessionTasks(SessionTasks):
    """Starts a task, with a cancel scope, for each session whose function is async."""

    def _start(
        self, awaitable: Awaitable[object], session: Session, tasks: trio.Nursery
    ) -> trio.CancelScope:
        scope = trio.CancelScope()

        async def run() -> None:
            with scope:
                await self._run(awaitable, session)

        tasks.start_soon(run)
        return scope


class HTTPService(HTTPServiceBase):
    """The state that all connections of a server share. A service runs once."""

    tasks: trio.Nursery

    def __init__(self, endpoint: ServerEndpoint, options: ListeningServerOptions[Any, Any]) -> None:
        super().__init__(endpoint, options, TrioLoop(), TrioSessionTasks)
        self._clock = Sleeper()
        self._alarm = math.inf  # when the clock wakes by itself
        self._accepting = trio.CancelScope()
        self._has_changed = trio.Event()  # a connection has ended, or a turn has passed

    def _new_one_shot_sender(self) -> OneShotSender:
        from .._async.one_shot import H11OneShotSender
        from ._http_client import BROKEN, connect

        return H11OneShotSender(self.loop, connect, BROKEN, None)

    async def run(self, listeners: list[trio.SocketListener], tls: Any) -> None:
        """Accept connections and serve them, until `shut_down` has come to its end."""
        async with trio.open_nursery() as self.tasks:
            self.tasks.start_soon(self._keep_time)
            with self._accepting:

                async def accept(stream: trio.SocketStream) -> None:
                    await self._accept(stream, tls)

                await trio.serve_listeners(accept, listeners, handler_nursery=self.tasks)
            for listener in listeners:
                await listener.aclose()

    async def _accept(self, stream: trio.SocketStream, tls: Any) -> None:
        """Serve one client."""
        client = "" if self.trace is None else client_of(stream)
        socket: NoWaitSocket | TLSSocket
        socket = NoWaitSocket(stream) if tls is None else TLSSocket(NoWaitSocket(stream), TLS(tls))
        if not self.admits_more():
            with suppress(OSError):
                socket.send_now(self.busy)
            await socket.aclose()
            return
        wire = HTTPServerWire(self, socket, self.new_connection(), client)
        self._connections.add(wire)
        try:
            await wire.run()
        finally:
            self._connections.discard(wire)
            self._has_changed.set()

    async def shut_down(self, drain: float) -> None:
        """Accept no more, give open requests `drain` seconds to finish, then end them."""
        self._accepting.cancel()
        for wire in list(self._connections):
            wire.close()
        self.drain_cluster()
        with trio.move_on_after(drain):
            while self.is_busy:
                await self._wait_for_change()
        self.close_endpoint()
        with trio.move_on_after(FLUSH_SECONDS):
            while self._connections or self.lookups.stores or self.wires or self.is_storing:
                await self._wait_for_change()
        await self.leave_cluster()
        self.tasks.cancel_scope.cancel()

    async def _wait_for_change(self) -> None:
        self._has_changed = trio.Event()
        await self._has_changed.wait()

    async def _keep_time(self) -> None:
        endpoint = self.endpoint
        while True:
            self._alarm = -math.inf  # a clock that is awake needs no wake-up
            endpoint.handle_timeout(trio.current_time())
            self.turn()
            deadline = endpoint.next_timeout()
            self._alarm = math.inf if deadline is None else deadline
            with trio.move_on_at(self._alarm):
                await self._clock.sleep()

    def _turned(self) -> None:
        self._has_changed.set()
        deadline = self.endpoint.next_timeout()
        if deadline is not None and deadline < self._alarm:
            self._alarm = deadline
            self._clock.wake()
