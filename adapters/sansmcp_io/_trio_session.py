"""One connection on one trio stream: its events come to the handlers, and to the callers that ask.

Calls into the core are synchronous and happen in trio's thread, so there is no lock.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Final, assert_never

import trio

from sansmcp import (
    ClientConnection,
    ConnectionClosed,
    ConnectionFailed,
    ErrorReceived,
    ErrorWithoutIdReceived,
    Event,
    IncomingRequest,
    InputRequired,
    LimitReached,
    ListenerAdded,
    ListenerRemoved,
    ListingEnded,
    MessageIgnored,
    NotificationReceived,
    PageReceived,
    PingEnded,
    ProgressReceived,
    ProtocolViolation,
    Ready,
    RequestAnswered,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    SubscriptionAcknowledged,
    SubscriptionEnded,
)

from ._anomalies import AnomalyLog
from ._trace import Trace
from ._trio_asking import Asking
from ._trio_call import Call
from ._trio_callbacks import NotificationHandler, Notifications, call_back, logged
from ._trio_mailbox import ProgressHandler
from ._trio_room import UNSENT_BYTES
from ._trio_serving import Result, Serving
from ._trio_stream import ByteStream

_ENDINGS: Final = (
    ConnectionClosed,
    ConnectionFailed,
    ErrorReceived,
    InputRequired,
    ListingEnded,
    PageReceived,
    PingEnded,
    RequestFailed,
    ResponseReceived,
    SubscriptionAcknowledged,
    SubscriptionEnded,
)
"""The events that somebody may wait for outside of the wire's own tasks."""


class Session(Asking):
    """What clients and servers share: it hands out the events of its connection."""

    def __init__(
        self,
        connection: ClientConnection | ServerConnection,
        stream: ByteStream,
        *,
        handler: Callable[[Any], Result],
        call_type: Callable[[Any, IncomingRequest], Call],
        on_notification: NotificationHandler | None,
        context: Any,
        request_timeout: float,
        drain: float,
        trace: Trace | None,
    ) -> None:
        super().__init__(
            connection,
            stream,
            handler=handler,
            context=context,
            request_timeout=request_timeout,
            drain=drain,
            trace=trace,
        )
        self._serving = Serving(
            connection,
            handler,
            partial(call_type, self),
            until_room=self._until_room,
            wake=self.wake,
        )
        self._held_back: OrderedDict[IncomingRequest, None] = OrderedDict()
        self._notifications = None if on_notification is None else Notifications(on_notification)
        self._anomalies = AnomalyLog()

    def _dispatch(self) -> None:
        next_event = self.connection.next_event
        while (event := next_event()) is not None:
            if self._trace is not None:
                self._trace.happened(event)
            if type(event) is RequestReceived:
                self._serve(event.request)
            else:
                self._handle_event(event)

    def _handle_event(self, event: Event) -> None:
        match event:
            case RequestReceived():
                self._serve(event.request)
            case RequestCancelled():
                self._held_back.pop(event.request, None)
                self._serving.cancel(event.request)
            case NotificationReceived():
                if event.subscription is not None:
                    event.subscription.data.put(event)
                elif self._notifications is not None:
                    self._notifications.handle(event, self._tasks)
            case ResponseReceived() | ErrorReceived() | RequestFailed() | InputRequired():
                event.request.data.put(event)
            case ProgressReceived():
                self._progressed(event)
            case PageReceived() | ListingEnded():
                event.listing.data.put(event)
            case Ready():
                self._ready.set()
                on_ready, self._on_ready = self._on_ready, None  # a handshake may follow requests
                if on_ready is not None:
                    call_back(self._tasks, "the handler of readiness", on_ready)
                if event.start is not None:
                    event.start.data.put(event)
            case ConnectionFailed():
                event.start.data.put(event)
            case ConnectionClosed():
                self._closed.set()
                self._ready.set()  # whoever waits for it learns that it will not be
                self._writer.wake()
                self._room.look()  # there will be none
                self._questions.cancel()
            case PingEnded():
                event.ping.data.put(event)
            case SubscriptionAcknowledged() | SubscriptionEnded():
                event.subscription.data.put(event)
            case RequestAnswered() | ListenerAdded() | ListenerRemoved():
                pass
            case ProtocolViolation() | MessageIgnored() | LimitReached() | ErrorWithoutIdReceived():
                self._anomalies.note(event, trio.current_time())
            case _:
                assert_never(event)

    def _dispatch_endings(self) -> None:
        """Tell those who wait. No function of the application is called: it may have failed."""
        while (event := self.connection.next_event()) is not None:
            if isinstance(event, _ENDINGS):
                self._handle_event(event)

    def _serve(self, request: IncomingRequest) -> None:
        """Begin to serve a request, or hold it back while there is no room for its answer."""
        if self.connection.unsent_bytes > UNSENT_BYTES:
            self._write_now()
        if self._held_back or self.connection.unsent_bytes > UNSENT_BYTES:
            self._held_back[request] = None  # the writer is awake, and comes back to it
        else:
            self._serving.begin(request, self._tasks)

    def _begin_held_back(self) -> bool:
        while self._held_back and self.connection.unsent_bytes <= UNSENT_BYTES:
            request, _ = self._held_back.popitem(last=False)
            self._serving.begin(request, self._tasks)
        return bool(self._held_back)

    def _progressed(self, event: ProgressReceived) -> None:
        on_progress: ProgressHandler | None = event.request.data.on_progress
        if on_progress is not None:
            with logged("the handler of progress"):
                on_progress(event.progress, event.total, event.message)
