"""A server behind HTTP as its program has it, and how it is set up, on any loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from sansmcp import Change, IncomingRequest, JSONObject

if TYPE_CHECKING:
    from sansmcp.http import Session

    from .http_runner import EndpointRunner

BACKLOG: Final = 1024
"""So many connections may wait to be accepted."""
Address: TypeAlias = tuple[str, int]


class HTTPServer:
    """A server that is running. To be used in the thread of its loop, by any number of tasks."""

    def __init__(
        self, service: EndpointRunner, addresses: Sequence[Address], close: Callable[[], None]
    ) -> None:
        self._service = service
        self._addresses = tuple(addresses)
        self._close = close

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Addresses and ports on which it listens."""
        return self._addresses

    @property
    def port(self) -> int:
        """The port on which it listens; the first one, should there be several."""
        return self._addresses[0][1]

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The open sessions, oldest first."""
        return self._service.endpoint.sessions

    @property
    def open_requests(self) -> tuple[IncomingRequest, ...]:
        """The requests of all clients that handlers work on."""
        return self._service.endpoint.open_requests

    def publish(self, change: Change, *, meta: JSONObject | None = None) -> bool:
        """Tell all clients that are to be told that a list or a resource has changed.

        Returns:
            Whether anybody is, or will be, told.
        """
        return self._service.publish(change, meta)

    def end_session(self, session: Session) -> bool:
        """End a session, and all that is under way in it.

        Returns:
            Whether it was open until now.
        """
        return self._service.end_session(session)

    def close(self) -> None:
        """Accept no more, and have `serve_http` return when what is under way has ended."""
        self._close()
