"""One side of a conversation whose every call is checked against the promises of the library.

A `Checker` is the application: it keeps its own books of what it asked and was asked, from events
and from what verbs return, and compares them with what the connection says.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar

from sansmcp import (
    ClientConnection,
    Config,
    ConnectionClosed,
    ConnectionFailed,
    ErrorReceived,
    Event,
    IncomingRequest,
    Listing,
    ListingEnded,
    LocalProtocolError,
    OutgoingRequest,
    PageReceived,
    Ping,
    PingEnded,
    ProgressReceived,
    Ready,
    RequestAnswered,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    Start,
    State,
)

from ._pair import drain
from ._plain import canonical, plain, state_of

Handle: TypeAlias = OutgoingRequest | Listing | Ping | Start
"""What this side has asked for; each has one ending."""

HandleT = TypeVar("HandleT", bound=Handle)


class InvariantBroken(AssertionError):
    """The library has broken a promise of its own."""


def demand(holds: object, text: str) -> None:
    """Raise `InvariantBroken` with this text unless the promise holds."""
    if not holds:
        raise InvariantBroken(text)


class Checker:
    """The application of one side.

    Args:
        connection: The connection to use and to check. Listings, pings and the opening that began
            before are not known here; requests are.

    Attributes:
        waiting: What was asked and has not ended, oldest first.
        handling: What the peer asked and has been neither answered nor cancelled, oldest first.
        answered: What was answered, by this side or by the library itself.
        tasks: What was asked and became a task: it has ended, and its progress may go on.
        closed: Whether the last event came.
    """

    def __init__(self, connection: ClientConnection | ServerConnection) -> None:
        self.connection = connection
        self.waiting: list[Handle] = list(connection.pending_requests)
        self.handling: list[IncomingRequest] = list(connection.open_requests)
        self.answered: list[IncomingRequest] = []
        self.tasks: list[OutgoingRequest] = []
        self.closed: bool = connection.state is State.CLOSED

    # -------------------------------------------------------------------------------- asking

    def ask(self, send: Callable[[], HandleT]) -> HandleT | LocalProtocolError:
        """Call a verb that sends and returns a handle, whose one ending is waited for.

        Returns:
            The handle, or what the verb raised.
        """
        handle: HandleT | LocalProtocolError = self.attempt(send)
        if not isinstance(handle, LocalProtocolError):
            demand(not self.closed, f"{handle!r} was sent after the last event")
            self.waiting.append(handle)
        return handle

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
        """Call a verb for something that is over: False, and nothing has changed."""
        before = canonical(self.connection, *handles)
        demand(call() is False, "a verb did not return False for what is over")
        demand(
            canonical(self.connection, *handles) == before,
            "a verb returned False and has changed something",
        )
        return False

    def cancel(self, handle: OutgoingRequest | Listing, reason: str | None = None) -> Any:
        """Cancel something; True exactly if it was still waited for.

        Returns:
            What the verb returned, or raised because that must not be cancelled.
        """

        def call() -> bool:
            return self.connection.cancel(handle, reason=reason)

        if not any(handle is other for other in self.waiting):
            return self._lost_race(call)
        done = self.attempt(call)
        demand(done is not False, f"{handle!r} waits, and could not be cancelled")
        return done

    # ----------------------------------------------------------------------------- answering

    def answer(self, request: IncomingRequest, call: Callable[[], bool]) -> Any:
        """Call a verb that answers a request.

        It returns True if the request waits, returns False if it was cancelled, and raises if it
        was answered before; it may also raise, and leave it open, for what is wrong in the answer.

        Returns:
            What the verb returned or raised.
        """
        if any(request is other for other in self.answered):
            raised = self.attempt(call, request)
            demand(
                isinstance(raised, LocalProtocolError),
                f"{request!r} could be answered a second time",
            )
            return raised
        if not any(request is other for other in self.handling):
            return self._lost_race(call, request)
        done = self.attempt(call, request)
        if isinstance(done, LocalProtocolError):
            demand(request.open, f"{request!r} was closed by a call that raised: {done}")
            return done
        demand(done is True, f"{request!r} waits, and could not be answered")
        demand(not request.open, f"{request!r} was answered, and is still open")
        _remove(self.handling, request)
        self.answered.append(request)
        return done

    def progress(self, request: IncomingRequest, call: Callable[[], bool]) -> Any:
        """Call `send_progress`, with a good number or for a request that waits.

        It returns False if the request is over or has no token; but a request for a task may go
        on after its answer. For one that waits it may also return False, to drop it, or raise for
        a number that is no progress.

        Returns:
            What the verb returned or raised.
        """
        waits = any(request is other for other in self.handling)
        if "task" not in request.params and not (waits and request.progress_token is not None):
            return self._lost_race(call, request)
        return self.attempt(call, request)

    # ------------------------------------------------------------------------------- looking

    def take_events(self) -> list[Event]:
        """Take all events, keep the books, and compare them with what the connection says."""
        events = drain(self.connection)
        for event in events:
            self._see(event)
        self.check()
        return events

    def _see(self, event: Event) -> None:
        demand(not self.closed, f"{plain([event])} came after the last event")
        match event:
            case ResponseReceived() | ErrorReceived() | RequestFailed():
                self._ended(event.request, event)
                if isinstance(event, ResponseReceived) and "task" in event.result:
                    self.tasks.append(event.request)
            case ListingEnded():
                self._ended(event.listing, event)
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
            case RequestReceived():
                self.handling.append(event.request)
            case RequestAnswered():
                self.answered.append(event.request)
            case RequestCancelled():
                demand(
                    _remove(self.handling, event.request),
                    f"{plain([event])} names a request that was not being handled",
                )
            case ConnectionClosed():
                self.closed = True
            case _:
                pass

    def _ended(self, handle: Handle, event: Event) -> None:
        demand(
            _remove(self.waiting, handle),
            f"{plain([event])} ends something that is not waited for",
        )
        demand(not handle.open, f"{handle!r} has ended, and is still open")

    def _still_waited_for(self, handle: Handle, event: Event) -> None:
        demand(
            any(handle is other for other in (*self.waiting, *self.tasks)),
            f"{plain([event])} is about something that is not waited for",
        )

    def check(self) -> None:
        """Compare the books with what the connection says; all events have been taken."""
        connection = self.connection
        demand(connection.next_event() is None, "events were left")
        demand(
            (connection.state is State.CLOSED) == self.closed,
            f"the connection is {connection.state.name}, and its last event "
            f"{'has' if self.closed else 'has not'} come",
        )
        demand(all(handle.open for handle in self.waiting), "something is over without an ending")
        calls = [handle for handle in self.waiting if isinstance(handle, OutgoingRequest)]
        demand(
            _same(calls, connection.pending_requests),
            f"{calls} are waited for, but {connection.pending_requests} are pending",
        )
        demand(
            _same(self.handling, connection.open_requests),
            f"{self.handling} are being handled, but {connection.open_requests} are open",
        )
        demand(
            not (self.closed and (self.waiting or self.handling)),
            f"closed, and without an ending: {self.waiting}, {self.handling}",
        )
        demand(
            not self.closed or connection.next_timeout() is None, "closed, and still keeping time"
        )
        check_bounds(connection)


def _remove(handles: list[Any], handle: object) -> bool:
    for at, other in enumerate(handles):
        if other is handle:
            del handles[at]
            return True
    return False


def _same(left: list[Any], right: tuple[Any, ...]) -> bool:
    return sorted(map(id, left)) == sorted(map(id, right))


# ------------------------------------------------------------------------------------- bounds

# Each table of a connection with what bounds it: settings of `Config` that add up. Requests that
# the library sends of its own accord come on top of `max_requests`: at most one ping, or one
# `initialize`, at a time. Tokens outlive their request where it became a task.
_BOUNDS: Final[dict[str, tuple[str, ...]]] = {
    "_outgoing": ("max_requests",),
    "_late": ("max_late_answers",),
    "_tokens": ("max_requests", "max_requests"),
    "_task_calls": ("max_requests",),
    "_own_names": ("max_used_ids",),
    "_incoming": ("max_requests",),
    "_peer_tokens": ("max_requests", "max_requests"),
    "_peer_tasks": ("max_requests",),
    "_subscriptions": ("max_subscriptions",),
    "_on_demand": ("max_requests",),
    "_held": ("max_held_changes",),
}
# By advice; by their bytes; by what the caller has declared; by the methods that there are.
_BOUNDED_OTHERWISE: Final = frozenset({"_events", "_output", "_capabilities", "_fresh"})


@cache
def _bounds(config: Config) -> dict[str, int]:
    bounds = {name: sum(getattr(config, limit) for limit in _BOUNDS[name]) for name in _BOUNDS}
    bounds["_outgoing"] += 1
    return bounds


def check_tables(connection: ClientConnection | ServerConnection) -> None:
    """Demand that it is known of every table what bounds it; a new one has to be entered here."""
    for name, table in state_of(connection).items():
        if isinstance(table, dict | list | set):
            demand(name in _BOUNDS or name in _BOUNDED_OTHERWISE, f"what bounds {name}?")


def check_bounds(connection: ClientConnection | ServerConnection) -> None:
    """Demand that every table and buffer is within its limit of `Config`."""
    config = connection._config
    for name, bound in _bounds(config).items():
        n_entries = len(getattr(connection, name))
        demand(n_entries <= bound, f"{name} holds {n_entries}, above {bound}")
    n_listings = sum(map(len, connection._fresh.values()))
    demand(n_listings <= config.max_requests, f"{n_listings} listings are kept")
    unsent = sum(len(message) for message, _ in connection._output)
    demand(unsent == connection.unsent_bytes, f"unsent_bytes is not {unsent}")
    demand(unsent <= config.max_unsent_bytes, f"{unsent} unsent bytes")
    demand(len(connection._lines._partial) <= config.max_message_bytes, "a long line is kept")
    ids = connection._used
    for table in (ids._starts, ids._names):
        demand(len(table) <= config.max_used_ids, f"{len(table)} used ids are kept")
    timers = connection._timers._heap
    if len(timers) <= 66:
        return
    live = sum(entry[3]._deadline is not None for entry in timers)
    # Deadlines that were dropped stay until they are the greater part, and some more.
    demand(len(timers) <= 2 * live + 66, f"{len(timers)} timers for {live} deadlines")


# ----------------------------------------------------------------------------------- messages


def check_message(message: bytes) -> Any:
    """Demand that this is one line of JSON, and a JSON-RPC 2.0 message or batch of answers.

    Returns:
        The decoded value.

    Source: JSON-RPC 2.0, sections 4 to 6; MCP 2025-11-25, basic/index, Messages.
    """
    demand(b"\n" not in message, f"a message of several lines: {message!r}")
    try:
        value: Any = json.loads(message.decode(), parse_constant=_refuse)
    except ValueError as error:
        raise InvariantBroken(f"no JSON: {error}") from None
    if value.__class__ is list:
        demand(value, "an empty batch")
        for item in value:
            _check_object(item)
            demand("method" not in item, f"a batch holds more than answers: {item}")
    else:
        _check_object(value)
    return value


def _check_object(value: Any) -> None:
    is_object = value.__class__ is dict
    demand(is_object and value.get("jsonrpc") == "2.0", f"no message: {value}")
    body: Any
    if "method" in value:
        members = {"jsonrpc", "id", "method", "params"}
        body = value.get("params", {})
        good = isinstance(value["method"], str) and body.__class__ is dict
    elif "result" in value:
        members = {"jsonrpc", "id", "result"}
        body = value["result"]
        good = "id" in value and body.__class__ is dict
    else:
        members = {"jsonrpc", "id", "error"}
        body = value.get("error")
        good = (
            body.__class__ is dict
            and body.get("code").__class__ is int
            and isinstance(body.get("message"), str)
        )
    good = good and value.get("id", 0).__class__ in (int, float, str) and set(value) <= members
    demand(good, f"not well formed: {value}")


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not allowed")
