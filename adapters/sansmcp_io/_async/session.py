"""Dispatches the events of a stream, as long as there is room for answers.

Calls into the core are synchronous and happen in the loop's thread, so there is no lock.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from sansmcp import (
    ClientConnection,
    ConnectionClosed,
    Event,
    IncomingRequest,
    RequestCancelled,
    RequestReceived,
    ServerConnection,
)

from .._common.bounds import UNSENT_BYTES
from .._common.trace import Trace
from .._options.checks import SessionOptions
from .dispatch import ENDINGS, EventDispatcher


class StreamDispatcher(EventDispatcher):
    """Dispatches the events of one connection, and holds back requests that find no room."""

    def __init__(
        self,
        connection: ClientConnection | ServerConnection,
        options: SessionOptions,
        *,
        trace: Trace | None,
    ) -> None:
        super().__init__(
            connection,
            options,
        )
        self.connection: Final = connection
        self._trace = trace
        self._held_back: OrderedDict[IncomingRequest, None] = OrderedDict()

    def _write_now(self) -> None:
        """Write what can be written without waiting; the rest is written later."""
        raise NotImplementedError  # the transport's

    def _connection_closed(self) -> None:
        """There will be no more events."""
        raise NotImplementedError  # the transport's

    def _dispatch(self) -> None:
        """Handle all events."""
        next_event = self.connection.next_event
        while (event := next_event()) is not None:
            if self._trace is not None:
                self._trace.happened(event)
            if type(event) is RequestReceived:
                self._serve(event.request)
            else:
                self._handle_event(event)

    def _handle_event(self, event: Event) -> None:
        if isinstance(event, RequestCancelled):
            self._held_back.pop(event.request, None)
        super()._handle_event(event)
        if isinstance(event, ConnectionClosed):
            self._connection_closed()

    def _dispatch_endings(self) -> None:
        """Hand endings to callers. No function of the application is called: it may have failed."""
        while (event := self.connection.next_event()) is not None:
            if isinstance(event, ENDINGS):
                self._handle_event(event)

    def _serve(self, request: IncomingRequest) -> None:
        """Begin to serve a request, or hold it back while there is no room for its answer."""
        if self.connection.unsent_bytes > UNSENT_BYTES:
            self._write_now()
            if self.connection.unsent_bytes > UNSENT_BYTES:
                self._held_back[request] = None  # it begins when there is room
                return
        if self._held_back:
            self._held_back[request] = None  # those that came before it are first
        else:
            self._handler_runner.begin(request, self._tasks)

    def _begin_held_back(self) -> bool:
        """Begin what was held back, as long as there is room; return whether something is left."""
        while self._held_back and self.connection.unsent_bytes <= UNSENT_BYTES:
            request, _ = self._held_back.popitem(last=False)
            self._handler_runner.begin(request, self._tasks)
        return bool(self._held_back)
