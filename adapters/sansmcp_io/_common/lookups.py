"""Lookups of a server by functions of the application, which may need I/O."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import attrs

from sansmcp import JSONObject

from .anomalies import LOGGER
from .call import is_async
from .task_stores import TaskStore

if TYPE_CHECKING:
    from sansmcp.http import EventToStore, Sessions

DEFAULT_LOOKUP_TIMEOUT: Final = 10.0
"""Seconds that a lookup may take, where nothing else is said."""
RETRY_SECONDS: Final = 5
"""How long a client is told to wait whose request needs a lookup that took too long."""
LATE: Final = "the server could not look up in time what this request needs: try again later"
"""The text of the error for such a request."""
MOST_EVENTS: Final = 1_000
"""Events of a session that may wait to be stored; with one more, that one is lost."""
MOST_BYTES: Final = 4 * 1024 * 1024
"""Bytes of their messages."""

NO_ROOM: Final = "too many events of the session wait to be stored"
"""Why an event over these limits is lost."""

StoredEvents: TypeAlias = Sequence[tuple[int, bytes]]
"""Number and message of each event, oldest first."""

AnyToolSchema: TypeAlias = Callable[[str], JSONObject | Awaitable[JSONObject | None] | None]
"""From the name of a tool to its `inputSchema`; None where there is no such tool."""


class EventStore(Protocol):
    """Stores the events of all sessions, so that clients can resume their streams.

    The methods are plain or async (on a loop). Those for one session are called one after the
    other, in the order of its events; those for several sessions at the same time. A session is
    named by its id, which is a secret: a store may keep a digest of it instead.
    """

    def append(
        self, session: str, stream: int, event: int, message: bytes
    ) -> int | Awaitable[int | None] | None:
        """Store one event.

        Args:
            session: The id of the session.
            stream: The number of the stream within the session.
            event: The number of the event within the stream; they rise.
            message: The message; empty where the event is a mark to resume from.

        Returns:
            How many of the oldest events of the session were dropped to make room; None: none.
        """
        ...

    def replay(
        self, session: str, stream: int, after: int
    ) -> StoredEvents | Awaitable[StoredEvents | None] | None:
        """Return the next events of a stream after that one, with their numbers, oldest first.

        A portion of them is enough, such as 100: it is called again, until there are none.

        Returns:
            The events; empty where there are no more; None where nothing is known of the stream,
            up to that event and beyond.
        """
        ...

    def forget(self, session: str) -> object:
        """Remove the events of a session, which has ended."""
        ...


class LookupTimeout(TimeoutError):
    """A function of the application took longer than `lookup_timeout`."""

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(f"{what} took more than {seconds:g} s")


def log_failed_lookup(what: str, error: Exception) -> None:
    """Log that a function of the application has failed, or was late.

    The traceback of a function that was late would show where it was cancelled, and no mistake.

    Args:
        what: The name of the function.
        error: The exception.
    """
    if isinstance(error, LookupTimeout):
        LOGGER.error("%s", error)
    else:
        LOGGER.error("%s failed", what, exc_info=error)


@attrs.frozen(kw_only=True)
class LookupOptions:
    """The functions that a server looks things up by.

    Attributes:
        tool_schema: Returns the schema of a tool; None: the endpoint does not ask.
        event_log: Stores events; None: the endpoint does not ask.
        timeout: Seconds that each call may take.
        task_store: Keeps tasks; None: the endpoint does not ask, or the cluster answers.
        shares_tasks: Whether the cluster keeps the tasks.
        most_tasks: The number of tasks that the server may work on.
    """

    tool_schema: AnyToolSchema | None
    event_log: EventStore | None
    timeout: float
    task_store: TaskStore | None = None
    shares_tasks: bool = False
    most_tasks: int = 0


class WaitingEvents:
    """The events of a session that wait to be stored, with the replays and the end behind them.

    Attributes:
        items: Events, questions, and None for the end of the session.
        is_running: Whether a task or thread works on the items.
    """

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.is_running = False
        self._events = 0
        self._bytes = 0

    def has_room_for(self, event: EventToStore) -> bool:
        """Whether one more event may wait."""
        return self._events < MOST_EVENTS and self._bytes + len(event.message) <= MOST_BYTES

    def put_event(self, event: EventToStore) -> None:
        """Let an event wait."""
        self.items.append(event)
        self._events += 1
        self._bytes += len(event.message)

    def stored(self, event: EventToStore) -> None:
        """The event waits no more."""
        self._events -= 1
        self._bytes -= len(event.message)


def check_event_log(event_log: object, *, on_loop: bool = True) -> None:
    """Raise `ValueError` or `TypeError` unless this can store events, or is None.

    Args:
        event_log: The option.
        on_loop: Whether its methods may be async.
    """
    if event_log is None:
        return
    for name in ("append", "replay", "forget"):
        method = getattr(event_log, name, None)
        if not callable(method):
            raise ValueError(f"event_log needs a method {name}, unlike {event_log!r:.80}")
        if not on_loop and is_async(method):
            raise TypeError(
                f"{name} of {event_log!r:.80} is async, and below WSGI there is no event loop for "
                "it: use a plain method, or sansmcp_io.asgi"
            )


def check_asks_nothing(sessions: Sessions | None) -> None:
    """Refuse settings by which an endpoint would ask questions that adapters do not answer.

    Raises:
        ValueError: The settings have `"ask"`.
    """
    if sessions is None:
        return
    for name in ("event_log", "opening", "unknown"):
        if getattr(sessions, name) == "ask":
            raise ValueError(f"Sessions({name}='ask') is for endpoints that are driven by hand")
