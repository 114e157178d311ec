"""A server behind HTTP, on asyncio: who comes is accepted, and the end is waited for."""

from __future__ import annotations

import asyncio
import math
import ssl
from contextlib import suppress
from functools import partial
from typing import Any, Final

from ._anomalies import LOGGER
from ._asyncio_http_wire import HTTPWire
from ._asyncio_loop import AsyncioLoop
from ._asyncio_serving import Serving
from ._asyncio_tasks import Tasks
from ._http_server import BACKLOG, Address
from ._http_service import HTTPServiceBase
from ._surface import FLUSH_SECONDS

_READ_BYTES: Final = 65_536


class HTTPService(HTTPServiceBase):
    """What all connections of a server share. It runs once."""

    tasks: Tasks
    _new_loop = AsyncioLoop
    _new_serving = Serving

    def __init__(self, *about: Any, **options: Any) -> None:
        super().__init__(*about, **options)
        self._loop = asyncio.get_running_loop()
        self.tasks = Tasks(self._failed)
        # One for all: to have each read make its own costs as much as a tenth of a request.
        self.buffer: Final = memoryview(bytearray(_READ_BYTES))
        self._listener: asyncio.Server
        self._clock: asyncio.TimerHandle | None = None
        self._alarm = math.inf  # when the clock goes off
        self._is_closing = False
        self._has_changed = asyncio.Event()  # a connection has ended, or a turn has passed

    async def listen(
        self, host: str | None, port: int, tls: ssl.SSLContext | None
    ) -> list[Address]:
        """Accept connections and serve them, until `shut_down` has come to its end.

        Returns:
            Where.

        Raises:
            OSError: It is not possible to listen there.
        """
        new_wire = partial(HTTPWire, self, tls)
        # Begun later: it would wait with sockets that nobody would close, were it cancelled then.
        self._listener = await self._loop.create_server(
            new_wire, host, port, backlog=BACKLOG, start_serving=False
        )
        try:
            await self._listener.start_serving()
        except BaseException:
            self._listener.close()
            raise
        return [socket.getsockname()[:2] for socket in self._listener.sockets]

    def add(self, wire: HTTPWire) -> bool:
        """A client has come; whether there is room for it."""
        if self._is_closing or not self.admits_more():
            return False
        self._connections.add(wire)
        return True

    def remove(self, wire: HTTPWire) -> None:
        """A client has gone."""
        self._connections.discard(wire)
        self._has_changed.set()

    async def shut_down(self, drain: float) -> None:
        """Accept no more, let what is under way end within `drain` seconds, then end it."""
        self._is_closing = True
        self._listener.close()
        for wire in list(self._connections):
            wire.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(drain):
                while self.endpoint.open_requests:
                    await self._change()
        self.endpoint.close(now=self._loop.time())
        self.turn()
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                while self._connections:
                    await self._change()
        for wire in self._connections:
            wire.abort()
        while self._connections:
            await self._change()
        await self.tasks.end()
        if self._clock is not None:
            self._clock.cancel()

    def _failed(self, error: BaseException) -> None:
        LOGGER.error("a task of the server failed", exc_info=error)

    async def _change(self) -> None:
        self._has_changed.clear()
        await self._has_changed.wait()

    def _keep_time(self) -> None:
        self._clock, self._alarm = None, math.inf
        self.endpoint.handle_timeout(self._loop.time())
        self.turn()

    def _turned(self) -> None:
        self._has_changed.set()
        deadline = self.endpoint.next_timeout()
        if deadline is not None and deadline < self._alarm:
            if self._clock is not None:
                self._clock.cancel()
            self._alarm = deadline
            self._clock = self._loop.call_at(deadline, self._keep_time)
