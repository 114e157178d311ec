"""Records one side of a conversation by its events, and compares the record with the connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sansmcp import (
    ClientConnection,
    ConnectionClosed,
    ConnectionFailed,
    ErrorReceived,
    Event,
    IncomingRequest,
    InputRequired,
    Listener,
    ListenerAdded,
    ListenerRemoved,
    ListingEnded,
    LocalProtocolError,
    NotificationReceived,
    OutgoingRequest,
    PageReceived,
    PingEnded,
    ProgressReceived,
    Ready,
    RequestAnswered,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    State,
    SubscriptionAcknowledged,
    SubscriptionEnded,
)
from sansmcp.testing import Handle, canonical, drain, plain
from tests.support.machines.promises import demand


class Books:
    """The record of one side: the requests, listeners and other handles that are open."""

    def __init__(self, connection: ClientConnection | ServerConnection) -> None:
        self.connection = connection
        self.waiting: list[Handle] = list(connection.pending_requests)
        self.handling: list[IncomingRequest] = list(connection.open_requests)
        self.answered: list[IncomingRequest] = []
        self.questioned: list[OutgoingRequest] = []
        self.between_rounds: list[IncomingRequest] = []
        self.listeners: list[Listener] = (
            list(connection.listeners) if isinstance(connection, ServerConnection) else []
        )
        self.tasks: list[OutgoingRequest] = []
        self.closed: bool = connection.state is State.CLOSED

    # ------------------------------------------------------------------------------- calling

    def attempt(
        self, call: Callable[[], Any], *handles: IncomingRequest
    ) -> Any:  # the type of the call's result, or LocalProtocolError
        """Call a verb; if it raises `LocalProtocolError`, it must have changed nothing.

        Args:
            call: The verb with its arguments.
            handles: Handles in its arguments, which must not have changed either.

        Returns:
            What the verb returned or raised.
        """
        before = canonical(self.connection, *handles)
        try:
            return call()
        except LocalProtocolError as error:
            demand(
                canonical(self.connection, *handles) == before,
                f"a call that raised has changed something: {error}",
            )
            return error

    def _lost_race(self, call: Callable[[], Any], *handles: IncomingRequest) -> bool:
        """Call a verb for a handle that has ended: it must return False and change nothing.

        Returns:
            False.
        """
        before = canonical(self.connection, *handles)
        demand(call() is False, "a verb did not return False for an ended handle")
        demand(
            canonical(self.connection, *handles) == before,
            "a verb returned False and has changed something",
        )
        return False

    # ------------------------------------------------------------------------------- looking

    def take_events(self) -> list[Event]:
        """Take all events, record them, and compare the record with the connection."""
        events = drain(self.connection)
        for event in events:
            self._see(event)
        self.check()
        return events

    def _see(self, event: Event) -> None:
        demand(not self.closed, f"{plain([event])} came after the last event")
        match event:
            case ResponseReceived() | ErrorReceived() | InputRequired() | RequestFailed():
                self._ended(event.request, event)
                if isinstance(event, InputRequired):
                    self.questioned.append(event.request)
                elif isinstance(event, ResponseReceived) and "task" in event.result:
                    self.tasks.append(event.request)
            case ListingEnded():
                self._ended(event.listing, event)
            case SubscriptionEnded():
                self._ended(event.subscription, event)
            case PingEnded():
                self._ended(event.ping, event)
            case ConnectionFailed():
                self._ended(event.start, event)
            case Ready():
                if event.start is not None:
                    self._ended(event.start, event)
            case ProgressReceived():
                self._still_waited_for(event.request, event)
            case PageReceived():
                self._still_waited_for(event.listing, event)
            case SubscriptionAcknowledged():
                self._still_waited_for(event.subscription, event)
            case NotificationReceived():
                if event.subscription is not None:
                    self._still_waited_for(event.subscription, event)
            case ConnectionClosed():
                self.closed = True
            case _:
                self._see_of_peer(event)

    def _see_of_peer(self, event: Event) -> None:
        """Record the requests of the peer, and their cancellations."""
        match event:
            case RequestReceived():
                self._next_round(event.request)
                self.handling.append(event.request)
            case RequestAnswered():
                if not remove(self.between_rounds, event.request):
                    self.answered.append(event.request)
            case RequestCancelled():
                demand(
                    remove(self.handling, event.request)
                    or remove(self.between_rounds, event.request),
                    f"{plain([event])} names a request that was not being handled",
                )
            case ListenerAdded():
                request = event.listener.request
                known = [*self.answered, *(one.request for one in self.listeners)]
                if not any(request is other for other in known):  # else `acknowledge` was called
                    self.listeners.append(event.listener)
            case ListenerRemoved():
                demand(
                    remove(self.listeners, event.listener),
                    f"{plain([event])} names a subscription that was not served",
                )
            case _:
                pass

    def _next_round(self, request: IncomingRequest) -> None:
        """Record that a request is the next round of one that was answered with questions."""
        for earlier in self.between_rounds:
            if type(earlier.id) is type(request.id) and earlier.id == request.id:
                demand(
                    earlier.method == request.method,
                    f"{request!r} is not the next round of {earlier!r}",
                )
                self.between_rounds.remove(earlier)
                return

    def _ended(self, handle: Handle, event: Event) -> None:
        demand(
            remove(self.waiting, handle),
            f"{plain([event])} ends a handle that was not open",
        )
        demand(not handle.open, f"{handle!r} has ended, and is still open")

    def _still_waited_for(self, handle: Handle, event: Event) -> None:
        demand(
            any(handle is other for other in (*self.waiting, *self.tasks)),
            f"{plain([event])} names a handle that is not open",
        )

    def check(self) -> None:
        """Compare the record with the connection, after all events have been taken."""
        connection = self.connection
        demand(connection.next_event() is None, "events were left")
        demand(
            (connection.state is State.CLOSED) == self.closed,
            f"the connection is {connection.state.name}, and its last event "
            f"{'has' if self.closed else 'has not'} come",
        )
        demand(all(handle.open for handle in self.waiting), "a handle was closed without an ending")
        calls = [handle for handle in self.waiting if isinstance(handle, OutgoingRequest)]
        demand(
            _same(calls, connection.pending_requests),
            f"{calls} are waited for, but {connection.pending_requests} are pending",
        )
        demand(
            _same(self.handling, connection.open_requests),
            f"{self.handling} are being handled, but {connection.open_requests} are open",
        )
        if isinstance(connection, ServerConnection):
            demand(
                _same(self.listeners, connection.listeners),
                f"{self.listeners} are served, but {connection.listeners} are listeners",
            )
        left = [*self.waiting, *self.handling, *self.between_rounds, *self.listeners]
        demand(not (self.closed and left), f"closed, but these have no ending: {left}")
        demand(not self.closed or connection.next_timeout() is None, "closed, but a timer is set")


def remove(handles: list[Any], handle: object) -> bool:
    """Take a handle out of a list, and return whether it was there."""
    for at, other in enumerate(handles):
        if other is handle:
            del handles[at]
            return True
    return False


def _same(left: list[Any], right: tuple[Any, ...]) -> bool:
    return sorted(map(id, left)) == sorted(map(id, right))
