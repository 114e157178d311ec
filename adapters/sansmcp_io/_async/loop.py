"""The primitives that shared code needs of a loop, which each loop provides.

Shared code awaits only these, so it is written once and imports no loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, Protocol

from sansmcp import TaskUpdated

from .._common.call import ProgressHandler
from .handlers import HandlerRunner


class Event(Protocol):
    """An event that is set once, and that any number of tasks may wait for."""

    def set(self) -> object:
        """Set the event, and wake all tasks that wait."""
        ...

    def is_set(self) -> bool:
        """Whether the event is set."""
        ...

    async def wait(self) -> object:
        """Wait until the event is set."""
        ...


class Lock(Protocol):
    """A lock. Tasks get the lock in the order in which they called `acquire`."""

    def locked(self) -> bool:
        """Whether a task holds the lock."""
        ...

    async def acquire(self) -> object:
        """Wait until no task holds the lock, and take the lock."""
        ...

    def release(self) -> object:
        """Release the lock."""
        ...


class Mailbox(Protocol):
    """Items from the dispatcher for one caller that waits.

    Attributes:
        on_progress: Called with the progress of the request.
        is_closed: The caller no longer waits.
    """

    on_progress: ProgressHandler | None
    is_closed: bool

    def put(self, item: Any) -> None:
        """Leave an item and wake the caller."""
        ...

    def update(self, event: TaskUpdated) -> None:
        """Take a change of the task that the request has become."""
        ...

    def fail(self, error: BaseException) -> None:
        """Let `take` raise an exception, and wake the caller."""
        ...

    async def take(self) -> Any:
        """Wait for and return the oldest item, or raise the exception that `fail` was given."""
        ...


class Workers(Protocol):
    """Tasks that share the work of one caller. They end with it, or at a deadline."""

    def cancel(self) -> None:
        """Cancel them all; `run` returns."""
        ...

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]], number: int) -> None:
        """Run `work` in `number` tasks, and wait until all have ended or were cancelled."""
        ...


class Scope(Protocol):
    """A block of one task. The block ends at a deadline, or when it is cancelled."""

    @property
    def deadline(self) -> float:
        """The time at which the block ends; `math.inf`: never."""
        ...

    @deadline.setter
    def deadline(self, deadline: float, /) -> None: ...

    def cancel(self) -> object:
        """End the block. If the block has not begun, it ends at once."""
        ...

    def __enter__(self) -> object:
        """Begin the block."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> bool:
        """End the block."""
        ...


class Tasks(Protocol):
    """Tasks that run until the connection has ended. No caller waits for one of them."""

    def start_soon(
        self, function: Callable[..., Coroutine[Any, Any, Any]], /, *args: Any, name: object = None
    ) -> object:
        """Start one more."""
        ...


class Loop(Protocol):
    """The primitives of one loop."""

    @property
    def now(self) -> Callable[[], float]:
        """Tells the time: seconds, never decreasing."""
        ...

    @property
    def new_handler_runner(self) -> type[HandlerRunner]:
        """The class that runs async handlers in tasks of this loop."""
        ...

    async def pause(self) -> None:
        """Let other tasks run."""
        ...

    def new_event(self) -> Event:
        """An event that has not happened yet."""
        ...

    def new_lock(self) -> Lock:
        """A lock that is free."""
        ...

    def new_mailbox(self, on_progress: ProgressHandler | None = None) -> Mailbox:
        """A mailbox that is empty."""
        ...

    def new_workers(self, deadline: float) -> Workers:
        """Workers with a deadline; `math.inf`: none."""
        ...

    def new_scope(self) -> Scope:
        """A scope without a deadline."""
        ...

    async def wait_until(self, deadline: float, wait: Callable[[], Awaitable[object]]) -> bool:
        """Await `wait()` until the deadline, and return whether it returned before."""
        ...

    async def finish(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Await `work()` to its end. A cancellation that comes meanwhile is raised after it."""
        ...

    def new_messenger(self) -> Callable[[Callable[[], object]], object]:
        """Return a function that calls another one in the thread of this loop, from any thread.

        In the thread of the loop, it calls at once. After the loop has ended, nothing happens.
        """
        ...

    def new_postman(self) -> Callable[[Callable[[], object]], object]:
        """Return a function that calls another one in a later step of this loop.

        It may be called from any thread, and within any other code, as finalizers are. After the
        loop has ended, nothing happens.
        """
        ...
