"""The state that all connections of a server over HTTP share, on any loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sansmcp import IncomingRequest, Peer
from sansmcp.http import ServerEndpoint

from .._common.anomalies import LOGGER
from .._common.http_server import HTTPLimits
from .._http1.responses import busy_response
from .._options.servers import ListeningServerOptions
from ..h11 import HTTPConnection
from .http_server_runner import EndpointRunner, SessionTasks
from .loop import Loop
from .server import HTTPServerCall, SessionServer

if TYPE_CHECKING:
    from .http_server_wire import HTTPServerWireBase


class HTTPServiceBase(EndpointRunner):
    """The state that all connections of a server share."""

    def __init__(
        self,
        endpoint: ServerEndpoint,
        options: ListeningServerOptions[Any, Any],
        loop: Loop,
        new_session_tasks: Callable[[Callable[[Any], object], Callable[[Peer], Any]], SessionTasks],
    ) -> None:
        self.loop = loop
        super().__init__(
            endpoint,
            options.for_session(options.handler, HTTPServerCall),
            new_handler_runner=loop.new_handler_runner,
            now=self.loop.now,
            trace=options.trace,
            lookups=options.lookups,
            new_member=options.new_member,
        )
        if options.on_ready is not None:
            self.session_tasks = new_session_tasks(options.on_ready, partial(SessionServer, self))
        self.limits: Final = options.limits or HTTPLimits()
        self.authenticate: Final = options.authenticate
        self.principal_key: Final = options.key_of_principal
        self.access: Final = self._new_access(options)
        self._resource = None if options.access is None else options.access.resource
        self._paths = options.paths
        self._connections: Final[set[Any]] = set()  # wires of this loop
        self.end: Callable[[], object] = _nothing  # as `HTTPServer.close`
        self.failure: BaseException | None = None  # raised at the end
        self._held = 0  # bytes, on all connections
        self._is_overfull = False  # the log says already that they are too many
        self._is_full = False  # the log says already that there are too many connections
        self.busy: Final = busy_response(endpoint)

    # ---------------------------------------------------------------------------- connections

    def admits_more(self) -> bool:
        """Whether another connection is allowed. The first refusal is logged."""
        if len(self._connections) < self.limits.connections:
            self._is_full = False
            return True
        if not self._is_full:
            self._is_full = True
            LOGGER.warning("there are %d connections: more get 503", self.limits.connections)
        return False

    def new_connection(self) -> HTTPConnection:
        """Make the HTTP side of a new connection."""
        return HTTPConnection(
            self.endpoint,
            paths=self._paths,
            authenticates=self.authenticate is not None or self.access is not None,
            documents=None if self._resource is None else self._resource.respond,
            context=self.context,
            limits=self.limits,
            now=self.now(),
        )

    def _end_program(self, request: IncomingRequest, failure: BaseException) -> None:
        if self.failure is None:
            self.failure = failure
        self.end()

    def note_held(self, change: int) -> None:
        """Add a change to the bytes that all connections hold.

        Above the limit, the connection that holds most bytes is closed. If new data were refused
        instead, a few idle clients could shut out all others.
        """
        self._held += change
        if not self._held:
            self._is_overfull = False
        while self._held > self.limits.held_bytes:
            if not self._is_overfull:
                self._is_overfull = True
                LOGGER.warning("%d bytes wait: connections that hold most get 503", self._held)
            max(self._connections, key=_held_by).drop_request()


def _nothing() -> None:
    """Do nothing: the server does not listen yet."""


def _held_by(wire: HTTPServerWireBase) -> int:
    return wire.held
