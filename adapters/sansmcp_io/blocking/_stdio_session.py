"""A conversation on two descriptors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sansmcp import ClientConnection, IncomingRequest, ServerConnection

from .._common.callbacks import NotificationHandler
from .._common.descriptors import Sink, Source
from .._common.trace import Trace
from ._requests import Asking
from ._session import Result
from ._wire import Watched, Wire


class StdioSession(Wire, Asking):
    """A connection on a wire, on which callers ask."""

    def __init__(
        self,
        connection: ClientConnection | ServerConnection,
        source: Source,
        sink: Sink,
        *,
        handler: Callable[[Any], Result],
        call_type: Callable[[Any, IncomingRequest], object],
        on_notification: NotificationHandler | None,
        context: Any,
        request_timeout: float,
        drain: float,
        trace: Trace | None,
        watched: Watched | None = None,
    ) -> None:
        Asking.__init__(
            self,
            connection,
            handler=handler,
            call_type=call_type,
            on_notification=on_notification,
            context=context,
            request_timeout=request_timeout,
        )
        Wire.__init__(self, connection, source, sink, drain=drain, trace=trace, watched=watched)
