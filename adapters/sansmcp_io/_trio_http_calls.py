"""What handlers behind HTTP are given on trio."""

from __future__ import annotations

import trio

from ._http_calls import HTTPServerCallBase, SessionServerBase
from ._trio_server import Server, ServerCall


class SessionServer(SessionServerBase, Server):
    """The server as a handler of one client sees it."""

    async def wait_ready(self) -> None:
        """Return at once: whoever has sent a request is ready."""
        await trio.lowlevel.checkpoint()


class HTTPServerCall(HTTPServerCallBase, ServerCall):
    """A client's request that came by HTTP."""

    @property
    def server(self) -> Server:
        """The server, and the client's session, for what outlives the call."""
        return SessionServer(self._service, self._request.peer)
