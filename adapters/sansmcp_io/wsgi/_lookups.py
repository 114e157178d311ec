"""Answers the questions of an endpoint in the threads that its requests came in.

Functions of the application are called without the lock. What one thread has to store or look up
delays no other thread, unless it is for the same session.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from sansmcp.http import (
    EventToStore,
    ReplayWanted,
    ServerEndpoint,
    ServerExchange,
    Session,
    SessionEnded,
    ToolSchemaWanted,
)

from .._common.call import not_async
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

LookupEvent: TypeAlias = ToolSchemaWanted | EventToStore | ReplayWanted | SessionEnded


class LookupHost(Protocol):
    """Runs the endpoint whose questions are answered."""

    @property
    def endpoint(self) -> ServerEndpoint:
        """The endpoint."""
        ...

    @property
    def lock(self) -> AbstractContextManager[object]:
        """Held for calls of the endpoint."""
        ...

    def turn(self) -> None:
        """Handle all events. Called with the lock held."""
        ...

    def wake(self, subject: object) -> None:
        """Wake the threads that wait for an object. Called with the lock held."""
        ...


class _Mine(threading.local):
    """The sessions whose waiting events this thread has to store."""

    def __init__(self) -> None:
        self.sessions: list[Session] = []


class ThreadLookups:
    """Calls the functions of the application, each in the thread that has caused the question."""

    def __init__(self, host: LookupHost, options: LookupOptions) -> None:
        self._host: Final = host
        self._options: Final = options
        self._stores: Final[dict[Session, WaitingEvents]] = {}
        self._mine: Final = _Mine()
        # The questions for stored events that wait behind others, each with its deadline.
        self._replays: Final[dict[ServerExchange, tuple[ReplayWanted, float]]] = {}
        self._has_store_failed = False

    def handle(self, event: LookupEvent) -> None:
        """Leave the work to a thread. Called with the lock held."""
        if isinstance(event, ToolSchemaWanted):
            thread: Any = event.exchange.context
            thread.jobs.append(partial(self._find_schema, event))
            self._host.wake(thread)
            return
        if self._options.event_log is None:
            return  # nothing is stored of the session that has ended
        waiting = self._stores.setdefault(event.session, WaitingEvents())
        if isinstance(event, EventToStore):
            if not waiting.has_room_for(event):
                self._host.endpoint.store_failed(event, NO_ROOM, now=time.monotonic())
                return
            waiting.put_event(event)
        elif isinstance(event, ReplayWanted):
            waiting.items.append(event)
            self._replays[event.exchange] = event, time.monotonic() + self._options.timeout
        else:
            waiting.items.append(None)
        self._mine.sessions.append(event.session)

    @property
    def has_work(self) -> bool:
        """Whether this thread has caused something that is to be stored or looked up."""
        return bool(self._mine.sessions)

    def work(self) -> None:
        """Do the storing and lookups that this thread has caused. Called without the lock."""
        sessions = self._mine.sessions
        while sessions:
            session = sessions.pop()
            while (item := self._next(session)) is not _NOTHING:
                try:
                    self._do(session, item)
                finally:
                    self._has_done(session, item)
                with self._host.lock:
                    self.expire()

    @property
    def deadline(self) -> float:
        """When `expire` is to be called; `math.inf`: not now. Read with the lock held."""
        return min((deadline for _, deadline in self._replays.values()), default=math.inf)

    def expire(self) -> None:
        """Fail the questions that have waited too long behind others. Called with the lock held."""
        now, host = time.monotonic(), self._host
        if self.deadline > now:
            return
        for question, deadline in tuple(self._replays.values()):
            if deadline <= now:
                del self._replays[question.exchange]
                if host.endpoint.fail_lookup(
                    question, LATE, status=503, retry_after=RETRY_SECONDS, now=now
                ):
                    log_failed_lookup(
                        "event_log.replay",
                        LookupTimeout("event_log.replay", self._options.timeout),
                    )
        host.turn()

    def _next(self, session: Session) -> Any:
        """The next item of a session that no thread works on; `_NOTHING` if there is none."""
        with self._host.lock:
            waiting = self._stores.get(session)
            if waiting is None or waiting.is_running:
                return _NOTHING  # the thread that works on it does the rest, too
            if not waiting.items:
                del self._stores[session]
                return _NOTHING
            waiting.is_running = True
            return waiting.items.pop(0)

    def _has_done(self, session: Session, item: Any) -> None:
        with self._host.lock:
            waiting = self._stores[session]
            waiting.is_running = False
            if isinstance(item, EventToStore):
                waiting.stored(item)

    # ---------------------------------------------------------------------------- calling

    def _find_schema(self, wanted: ToolSchemaWanted) -> None:
        tool_schema = self._options.tool_schema
        assert tool_schema is not None  # else the endpoint does not ask
        self._answer(
            wanted,
            "tool_schema",
            partial(tool_schema, wanted.name),
            self._host.endpoint.provide_tool_schema,
        )

    def _answer(
        self,
        question: ToolSchemaWanted | ReplayWanted,
        what: str,
        function: Callable[[], Any],
        verb: Callable[..., object],
    ) -> None:
        """Answer a question by a function of the application, or with an error."""
        host = self._host
        try:
            outcome = not_async(function(), what)
            with host.lock:
                verb(question, outcome, now=time.monotonic())
                host.turn()
        except Exception as error:  # of the application, or of its return value
            log_failed_lookup(what, error)
            with host.lock:
                host.endpoint.fail_lookup(question, now=time.monotonic())
                host.turn()

    def _do(self, session: Session, item: Any) -> None:
        store = self._options.event_log
        assert store is not None  # else the endpoint does not ask
        if item is None:
            self._call("forget", partial(store.forget, session.id))
        elif isinstance(item, EventToStore):
            self._append(item)
        else:
            with self._host.lock:
                is_expected = self._replays.pop(item.exchange, None) is not None
            if is_expected:
                replay = partial(store.replay, session.id, item.stream, item.after)
                self._answer(item, "event_log.replay", replay, self._replay)

    def _replay(self, wanted: ReplayWanted, events: StoredEvents | None, now: float) -> None:
        # The store may return a part of the events, so it is asked until it returns none.
        self._host.endpoint.replay(wanted, events, more=bool(events), now=now)

    def _append(self, event: EventToStore) -> None:
        store, host = self._options.event_log, self._host
        assert store is not None  # else the endpoint does not ask
        append = partial(store.append, event.session.id, event.stream, event.event, event.message)
        failure, dropped = self._call("append", append)
        with host.lock:
            if failure is not None:
                host.endpoint.store_failed(
                    event, str(failure) or repr(failure), now=time.monotonic()
                )
            elif dropped:
                host.endpoint.store_dropped(event.session, dropped, now=time.monotonic())
            host.turn()

    def _call(self, what: str, function: Callable[[], Any]) -> tuple[Exception | None, Any]:
        """Call a method of the store. The first of several failures in a row is logged."""
        try:
            outcome = not_async(function(), f"event_log.{what}")
        except Exception as error:
            if not self._has_store_failed:
                self._has_store_failed = True
                log_failed_lookup(f"event_log.{what}", error)
            return error, None
        self._has_store_failed = False
        return None, outcome


class _Nothing:
    """Stands for a missing item, since None is an item."""


_NOTHING: Final = _Nothing()
