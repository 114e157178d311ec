"""Answers the questions of an endpoint by functions of the application, plain or async."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from sansmcp.http import (
    EventToStore,
    LookupEnded,
    ReplayWanted,
    ServerEndpoint,
    ServerExchange,
    Session,
    ToolSchemaWanted,
)

from .._common.lookups import (
    LATE,
    NO_ROOM,
    RETRY_SECONDS,
    LookupOptions,
    LookupTimeout,
    StoredEvents,
    WaitingEvents,
    log_failed_lookup,
)
from .loop import Event, Loop, Scope

LookupEvent: TypeAlias = ToolSchemaWanted | EventToStore | ReplayWanted | LookupEnded


class LookupHost(Protocol):
    """Runs the endpoint whose questions are answered.

    Attributes:
        loop: The primitives of the loop.
        tasks: Starts tasks.
    """

    loop: Loop
    tasks: Any

    @property
    def endpoint(self) -> ServerEndpoint:
        """The endpoint."""
        ...

    @property
    def now(self) -> Callable[[], float]:
        """Return the time for calls into the endpoint."""
        ...

    def turn(self) -> None:
        """Handle all events."""
        ...


class _Place:
    """The place of a question for stored events among the events that wait to be stored.

    Attributes:
        reached: Set when all events before it were stored.
        left: Set when the question was answered.
    """

    def __init__(self, loop: Loop) -> None:
        self.reached: Final[Event] = loop.new_event()
        self.left: Final[Event] = loop.new_event()


class LookupRunner:
    """Calls the functions of the application, each in a task and for a limited time.

    Attributes:
        stores: The events that wait to be stored, by session.
    """

    def __init__(self, host: LookupHost, options: LookupOptions) -> None:
        self._host: Final = host
        self._options: Final = options
        self._scopes: Final[dict[ServerExchange, Scope]] = {}
        self.stores: Final[dict[Session, WaitingEvents]] = {}
        self._has_store_failed = False

    async def bounded(self, what: str, awaitable: Awaitable[Any]) -> Any:
        """Await something of the application for a limited time.

        Args:
            what: Its name, for the exception.
            awaitable: The awaitable of the application.

        Raises:
            LookupTimeout: The awaitable took too long, and was cancelled.
        """
        with self._new_scope():
            return await awaitable
        raise LookupTimeout(what, self._options.timeout)

    def _new_scope(self) -> Scope:
        loop = self._host.loop
        scope = loop.new_scope()
        scope.deadline = loop.now() + self._options.timeout
        return scope

    # ----------------------------------------------------------------------------- events

    def handle(self, event: LookupEvent) -> None:
        """Begin the lookup that an event asks for."""
        match event:
            case ToolSchemaWanted():
                self._host.tasks.start_soon(self._find_schema, event)
            case EventToStore():
                waiting = self._waiting(event.session)
                if waiting.has_room_for(event):
                    waiting.put_event(event)
                    self._work_on(event.session, waiting)
                else:
                    self._host.endpoint.store_failed(event, NO_ROOM, now=self._host.now())
            case ReplayWanted():
                waiting = self._waiting(event.session)
                place = _Place(self._host.loop)
                waiting.items.append(place)
                self._host.tasks.start_soon(self._replay_in_place, event, place)
                self._work_on(event.session, waiting)
            case LookupEnded():
                scope = self._scopes.get(event.exchange)
                if scope is not None:
                    scope.cancel()

    def session_ended(self, session: Session) -> None:
        """Have the store forget a session."""
        if self._options.event_log is not None:
            waiting = self._waiting(session)
            waiting.items.append(None)
            self._work_on(session, waiting)

    # ----------------------------------------------------------------------------- questions

    async def _find_schema(self, wanted: ToolSchemaWanted) -> None:
        tool_schema = self._options.tool_schema
        assert tool_schema is not None  # else the endpoint does not ask
        await self._answer(
            wanted,
            "tool_schema",
            partial(tool_schema, wanted.name),
            self._host.endpoint.provide_tool_schema,
        )

    async def _answer(
        self,
        question: ToolSchemaWanted | ReplayWanted,
        what: str,
        function: Callable[[], Any],
        verb: Callable[..., object],
    ) -> None:
        """Answer a question by a function of the application, or with an error."""
        host = self._host
        scope = self._scopes[question.exchange] = self._new_scope()
        outcome: Any = None
        is_done = False
        try:
            with scope:
                outcome = function()
                if inspect.isawaitable(outcome):
                    outcome = await outcome
                is_done = True
            if is_done:
                verb(question, outcome, now=host.now())
            elif host.endpoint.fail_lookup(
                question, LATE, status=503, retry_after=RETRY_SECONDS, now=host.now()
            ):
                log_failed_lookup(what, LookupTimeout(what, self._options.timeout))
        except Exception as error:  # of the application, or of its return value
            log_failed_lookup(what, error)
            host.endpoint.fail_lookup(question, now=host.now())
        finally:
            del self._scopes[question.exchange]
        host.turn()

    # ----------------------------------------------------------------------------- the store

    def _waiting(self, session: Session) -> WaitingEvents:
        waiting = self.stores.get(session)
        if waiting is None:
            waiting = self.stores[session] = WaitingEvents()
        return waiting

    def _work_on(self, session: Session, waiting: WaitingEvents) -> None:
        if not waiting.is_running:
            waiting.is_running = True
            self._host.tasks.start_soon(self._work, session, waiting)

    async def _work(self, session: Session, waiting: WaitingEvents) -> None:
        """Do the waiting work of a session, in order."""
        store = self._options.event_log
        assert store is not None  # else the endpoint does not ask
        try:
            while waiting.items:
                item = waiting.items.pop(0)
                if item is None:
                    await self._call("forget", partial(store.forget, session.id))
                elif isinstance(item, EventToStore):
                    await self._append(item)
                    waiting.stored(item)
                else:
                    place: _Place = item
                    place.reached.set()
                    await place.left.wait()
        finally:  # if it is cancelled, the server ends
            del self.stores[session]
        self._host.turn()

    async def _replay_in_place(self, wanted: ReplayWanted, place: _Place) -> None:
        """Answer the question for stored events. The time for it runs while it waits."""
        store = self._options.event_log
        assert store is not None  # else the endpoint does not ask

        async def look_up() -> Any:
            await place.reached.wait()
            found = store.replay(wanted.session.id, wanted.stream, wanted.after)
            return await found if inspect.isawaitable(found) else found

        try:
            await self._answer(wanted, "event_log.replay", look_up, self._replay)
        finally:
            place.left.set()

    def _replay(self, wanted: ReplayWanted, events: StoredEvents | None, now: float) -> None:
        # The store may return a part of the events, so it is asked until it returns none.
        self._host.endpoint.replay(wanted, events, more=bool(events), now=now)

    async def _append(self, event: EventToStore) -> None:
        store, host = self._options.event_log, self._host
        assert store is not None  # else the endpoint does not ask
        append = partial(store.append, event.session.id, event.stream, event.event, event.message)
        failure, dropped = await self._call("append", append)
        if failure is not None:
            host.endpoint.store_failed(event, str(failure) or repr(failure), now=host.now())
            host.turn()
        elif dropped:
            host.endpoint.store_dropped(event.session, dropped, now=host.now())
            host.turn()

    async def _call(self, what: str, function: Callable[[], Any]) -> tuple[Exception | None, Any]:
        """Call a method of the store. The first of several failures in a row is logged."""
        outcome: Any = None
        try:
            outcome = function()
            if inspect.isawaitable(outcome):
                outcome = await self.bounded(f"event_log.{what}", outcome)
        except Exception as error:
            if not self._has_store_failed:
                self._has_store_failed = True
                log_failed_lookup(f"event_log.{what}", error)
            return error, None
        self._has_store_failed = False
        return None, outcome
