"""Dispatches the events of a connection on a byte stream, as long as there is room for responses.

Calls into the core are synchronous and happen in the loop's thread, so there is no lock.
"""

from __future__ import annotations

from abc import abstractmethod
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
from .loop import Loop


class StreamDispatcher(EventDispatcher):
    """Dispatches the events of one connection, and holds requests back while output is unsent."""

    def __init__(
        self,
        connection: ClientConnection | ServerConnection,
        options: SessionOptions,
        loop: Loop,
        *,
        trace: Trace | None,
    ) -> None:
        super().__init__(connection, options, loop)
        self.connection: Final = connection
        self._trace = trace
        self._held_back: OrderedDict[IncomingRequest, None] = OrderedDict()

    @abstractmethod
    def _write_now(self) -> None:
        """Write output as far as that needs no waiting; the rest is written later."""

    @abstractmethod
    def _connection_closed(self) -> None:
        """Note that the connection is closed: there are no more events."""

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

    def _end_tasks(self) -> None:
        """Let the tasks of the client fail: the connection ends before them."""
        if isinstance(self.connection, ServerConnection):
            self._handler_runner.end_tasks()

    def _dispatch_endings(self) -> None:
        """Hand endings to callers. Handlers are not called, since one of them may have failed."""
        while (event := self.connection.next_event()) is not None:
            if isinstance(event, ENDINGS):
                self._handle_event(event)

    def _serve(self, request: IncomingRequest) -> None:
        """Call the handler of a request, or hold it back while there is no room for a response."""
        if self.connection.unsent_bytes > UNSENT_BYTES:
            self._write_now()
            if self.connection.unsent_bytes > UNSENT_BYTES:
                self._held_back[request] = None  # begins when there is room
                return
        if self._held_back:
            self._held_back[request] = None  # after the requests that came before
        else:
            self._handler_runner.begin(request, self._tasks)

    def _begin_held_back(self) -> bool:
        """Begin held requests as long as there is room, and return whether some are left."""
        while self._held_back and self.connection.unsent_bytes <= UNSENT_BYTES:
            request, _ = self._held_back.popitem(last=False)
            self._handler_runner.begin(request, self._tasks)
        return bool(self._held_back)
