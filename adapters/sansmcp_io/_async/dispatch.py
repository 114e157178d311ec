"""Handles each event of a conversation, on any transport and any loop."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, Final, assert_never

from sansmcp import (
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
    SubscriptionAcknowledged,
    SubscriptionEnded,
    TaskCancelled,
    TaskInputReceived,
    TaskInputRequired,
    TasksWanted,
    TaskToStore,
    TaskUpdated,
    TaskWanted,
)

from .._common.anomalies import AnomalyLog
from .._common.call import RequestingSide
from .._options.checks import SessionOptions
from .background import NotificationRunner, call_back, call_on_progress
from .loop import Loop
from .requests import RequestSender

ENDINGS: Final = (
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
"""The events that callers may still wait for after the last turn."""


class EventDispatcher(RequestSender):
    """Hands events to handlers and to callers that wait."""

    _tasks: Any  # the tasks of the loop, which the subclass starts

    def __init__(self, side: RequestingSide, options: SessionOptions, loop: Loop) -> None:
        super().__init__(side, options, loop)
        self._handler_runner = loop.new_handler_runner(
            side,
            options.handler,
            partial(options.call_type, self),
            clock=self.clock,
            most_running=options.most_running,
            until_room=self._until_room,
            wake=self.wake,
            end_program=self._end_program,
        )
        on_notification = options.on_notification
        self._notifications = (
            None if on_notification is None else NotificationRunner(on_notification)
        )
        self._anomalies = AnomalyLog()

    @abstractmethod
    def _end_program(self, request: IncomingRequest, failure: BaseException) -> None:
        """End the connection, and raise the exception of a handler that ends the program.

        Args:
            request: The request of the handler, which was answered.
            failure: SystemExit, KeyboardInterrupt, or a group with one of them.
        """

    def _serve(self, request: IncomingRequest) -> None:
        """Call the handler of a request, now or later."""
        self._handler_runner.begin(request, self._tasks)

    def _handle_event(self, event: Event) -> None:
        match event:
            case RequestReceived():
                self._serve(event.request)
            case RequestCancelled():
                self._handler_runner.cancel(event.request)
            case NotificationReceived():
                if event.subscription is not None:
                    event.subscription.data.put(event)
                elif self._notifications is not None:
                    self._notifications.handle(event, self._tasks)
            case ResponseReceived() | ErrorReceived() | RequestFailed() | InputRequired():
                event.request.data.put(event)
                if event.request.task_id is not None:
                    self._questions.drop(event.request)
            case ProgressReceived():
                call_on_progress(event)
            case PageReceived() | ListingEnded():
                event.listing.data.put(event)
            case Ready():
                self._ready.set()
                on_ready, self._on_ready = self._on_ready, None  # a handshake may follow requests
                if on_ready is not None:
                    call_back(self._tasks, "on_ready", on_ready)
                if event.start is not None:
                    event.start.data.put(event)
            case ConnectionFailed():
                event.start.data.put(event)
            case ConnectionClosed():
                self.sending.ended_by = event.cause
                self._ready.set()  # callers of `wait_ready` raise
                self._room.look()  # callers that wait for room raise
                self._questions.cancel()
            case PingEnded():
                event.ping.data.put(event)
            case SubscriptionAcknowledged() | SubscriptionEnded():
                event.subscription.data.put(event)
            case RequestAnswered() | ListenerAdded() | ListenerRemoved():
                pass
            case TaskInputReceived():
                self._handler_runner.answered(event)
            case TaskCancelled():
                self._handler_runner.ended(event)
            case TaskWanted() | TasksWanted() | TaskToStore():
                pass  # tasks are kept in memory here
            case TaskUpdated():
                event.request.data.update(event)
            case TaskInputRequired():
                self._tasks.start_soon(self._questions.answer_task, event)
            case ProtocolViolation() | MessageIgnored() | LimitReached() | ErrorWithoutIdReceived():
                self._anomalies.note(event, self.clock())
            case _:
                assert_never(event)
