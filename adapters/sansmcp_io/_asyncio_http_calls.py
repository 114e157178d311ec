"""What handlers behind HTTP are given on asyncio."""

from __future__ import annotations

from ._http_calls import HTTPServerCallBase, SessionServerBase


class SessionServer(SessionServerBase):
    """The server as a handler of one client sees it."""


from ._call import ServerCallBase, CallBase
class HTTPServerCall(HTTPServerCallBase, ServerCallBase, CallBase):
    """A client's request that came by HTTP."""

    @property
    def server(self):
        """The server, and the client's session, for what outlives the call."""
        return SessionServer(self._service, self._request.peer)
