"""What all parts of a client endpoint share: clock, events, deadlines, and where the server is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import attrs

from ..._connection.config import Config
from ..._connection.events import EventQueue
from ..._connection.machine import ClientMachine
from ..._connection.timers import Timers
from ..._rules.sending import Breach
from .urls import URL


class Work(Protocol):
    """The exchanges of an endpoint, as far as `ClientEndpointCore` asks for them."""

    def is_there(self) -> bool:
        """Whether `next_exchange` or `aborts` has something for the caller now."""
        ...


@attrs.define(eq=False, repr=False)
class ClientEndpointCore:
    """What all parts of a client endpoint share.

    Attributes:
        at: The Unix time that was told last; None: it was never told.
        config: Limits and policies.
        events: Events that the application has not taken yet, oldest first.
        machine: The protocol machine of the current session; each new session has another one.
        old_post_url: Where messages are POSTed on the transport HTTP+SSE; None on any other.
        session_id: The session id that the server gave; None without a session.
        timers: All deadlines of the endpoint and of its machine.
        told_work: Whether the caller knows that there are exchanges to take.
        url: The URL of the server. A permanent redirect changes it.
        wake: The caller's callback for news.
        work: The queue of exchanges, which sets this when it is made.
    """

    url: URL
    config: Config
    wake: Callable[[], None] | None
    at: float | None = attrs.field(default=None, init=False)
    events: EventQueue[Any] = attrs.field(factory=EventQueue[Any], init=False)
    machine: ClientMachine = attrs.field(init=False)
    old_post_url: URL | None = attrs.field(default=None, init=False)
    session_id: bytes | None = attrs.field(default=None, init=False)
    timers: Timers = attrs.field(factory=Timers, init=False)
    told_work: bool = attrs.field(default=False, init=False)
    work: Work = attrs.field(init=False)
    _told_deadline: float | None = attrs.field(default=None, init=False)
    _told_events: bool = attrs.field(default=False, init=False)
    _waking: bool = attrs.field(default=False, init=False)

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """All state is plain data, except the caller's `wake`, which copies do without."""
        state = {
            field.name: getattr(self, field.name) for field in attrs.fields(ClientEndpointCore)
        }
        state["wake"] = None
        return None, state

    @property
    def now(self) -> float | None:
        """The largest time that was told, in seconds; None before any."""
        return self.machine.core.now

    def tell(self, now: float) -> None:
        """Take the caller's clock."""
        self.machine.core.tell(now)

    def report(self, breach: Breach, **about: Any) -> None:
        """Report a breach of a rule, as `Core.report` of the connection does."""
        self.machine.core.report(breach, **about)

    def next_event(self) -> Any:
        """Take the oldest event; None means that there is none now."""
        events = self.events
        if not events:
            return None
        event = events.take()
        if not events:
            self._told_events = False
        return event

    def settle(self) -> None:
        """The last act of every call: end what has overflowed, then run `wake` if there is news."""
        core = self.machine.core
        if core.needs_settle:
            core.settle()
        if self.wake is None or self._waking:
            return
        while self._has_news():
            self._waking = True
            try:
                self.wake()
            finally:
                self._waking = False

    def _has_news(self) -> bool:
        """Whether an exchange, an event or an earlier deadline appeared where none was."""
        deadline, earliest = self._told_deadline, self.timers.earliest()
        work, events = self.told_work, self._told_events
        self.told_work = self.work.is_there()
        self._told_events = bool(self.events)
        self._told_deadline = earliest
        return (
            self.told_work > work
            or self._told_events > events
            or (earliest is not None and (deadline is None or earliest < deadline))
        )
