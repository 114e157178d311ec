"""A server over HTTP on asyncio: it accepts connections, and waits for their ends."""

from __future__ import annotations

import asyncio
import ssl
from functools import partial
from typing import Any, Final

from sansmcp.http import ServerEndpoint

from .._async.http_service import HTTPServiceBase
from .._async.server import BACKLOG, Address
from .._options.servers import ListeningServerOptions
from ._http_server_runner import AsyncioRunner, AsyncioSessionTasks
from ._http_server_wire import HTTPServerWire
from ._loop import AsyncioLoop

_READ_BYTES: Final = 65_536


class HTTPService(AsyncioRunner, HTTPServiceBase):
    """The state that all connections of a server share. A service runs once."""

    def __init__(self, endpoint: ServerEndpoint, options: ListeningServerOptions[Any, Any]) -> None:
        super().__init__(endpoint, options, AsyncioLoop(), AsyncioSessionTasks)
        self._enter(asyncio.get_running_loop())
        # One for all connections: a new buffer for each read would cost a tenth of a request.
        self.buffer: Final = memoryview(bytearray(_READ_BYTES))
        self._listener: asyncio.Server
        self._is_closing = False

    async def listen(
        self, host: str | None, port: int, tls: ssl.SSLContext | None
    ) -> list[Address]:
        """Accept connections and serve them, until `shut_down` has come to its end.

        Returns:
            The addresses.

        Raises:
            OSError: Listening at this address has failed.
        """
        await self.join_cluster()
        new_wire = partial(HTTPServerWire, self, tls)
        # Started below: if this call were cancelled, the sockets would stay open.
        self._listener = await asyncio.get_running_loop().create_server(
            new_wire, host, port, backlog=BACKLOG, start_serving=False
        )
        try:
            await self._listener.start_serving()
        except BaseException:
            self._listener.close()
            raise
        return [socket.getsockname()[:2] for socket in self._listener.sockets]

    def add(self, wire: HTTPServerWire) -> bool:
        """Add a new connection, and return whether there is room for it."""
        if self._is_closing or not self.admits_more():
            return False
        self._connections.add(wire)
        return True

    def remove(self, wire: HTTPServerWire) -> None:
        """Remove a connection that is closed."""
        self._connections.discard(wire)
        self._has_changed.set()

    async def shut_down(self, drain: float) -> None:
        """Accept no more, give open requests `drain` seconds to finish, then end them."""
        self._is_closing = True
        self._listener.close()
        for wire in list(self._connections):
            wire.close()
        await self._end_requests(drain)
        await self._flush(self._connections)
        await self._flush(self.wires)  # which has those of other workers, too
        await self.leave_cluster()
        for wire in self._connections:
            wire.abort()
        while self._connections:
            await self._change()
        await self._end_tasks()
