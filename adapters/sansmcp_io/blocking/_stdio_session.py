"""A conversation on two descriptors."""

from __future__ import annotations

from sansmcp import ClientConnection, ServerConnection

from .._common.descriptors import Sink, Source
from .._common.trace import Trace
from .._options.sessions import SessionOptions
from ._requests import Asking
from ._wire import Watched, Wire


class StdioSession(Wire, Asking):
    """A connection on a wire, on which callers ask."""

    def __init__(
        self,
        connection: ClientConnection | ServerConnection,
        source: Source,
        sink: Sink,
        options: SessionOptions,
        *,
        drain: float,
        trace: Trace | None,
        watched: Watched | None = None,
    ) -> None:
        Asking.__init__(
            self,
            connection,
            options,
        )
        Wire.__init__(self, connection, source, sink, drain=drain, trace=trace, watched=watched)
