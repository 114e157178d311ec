"""What the parts that all loops with `async` share need of a loop: each brings these primitives.

A part that waits for something awaits what it is given here. So it is written once, and none of
them imports a loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, Protocol

from .._common.call import ProgressHandler


class Event(Protocol):
    """Something that happens once, and that any number of tasks may wait for."""

    def set(self) -> object:
        """It has happened."""
        ...

    def is_set(self) -> bool:
        """Whether it has."""
        ...

    async def wait(self) -> object:
        """Wait until it has."""
        ...


class Lock(Protocol):
    """Lets in one task at a time, in the order in which they come."""

    def locked(self) -> bool:
        """Whether somebody is in."""
        ...

    async def acquire(self) -> object:
        """Wait until nobody is in, and go in."""
        ...

    def release(self) -> object:
        """Come out."""
        ...


class Mailbox(Protocol):
    """Where one caller waits for what the dispatcher has for it.

    Attributes:
        on_progress: Called with the progress of what the caller waits for.
        is_closed: The caller takes nothing out any more.
    """

    on_progress: ProgressHandler | None
    is_closed: bool

    def put(self, item: Any) -> None:
        """Leave an item and wake the caller."""
        ...

    def fail(self, error: BaseException) -> None:
        """Have `take` raise this, and wake the caller."""
        ...

    async def take(self) -> Any:
        """The oldest item, as soon as there is one, or raise what `fail` was given."""
        ...


class Workers(Protocol):
    """Tasks of one caller that work at the same thing; they end with it, or with the deadline."""

    def cancel(self) -> None:
        """Cancel them all; `run` returns."""
        ...

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]], number: int) -> None:
        """Have so many tasks do this, and wait until all have ended or were cancelled."""
        ...


class Scope(Protocol):
    """A block of one task that ends at its deadline, or when somebody cancels it."""

    @property
    def deadline(self) -> float:
        """When it ends; `math.inf`: never."""
        ...

    @deadline.setter
    def deadline(self, deadline: float, /) -> None: ...

    def cancel(self) -> object:
        """End the block, or keep it from beginning."""
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
    """Tasks that nobody waits for, until the connection has ended."""

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

    async def pause(self) -> None:
        """Let others run."""
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
        """Workers that have time until then; `math.inf`: for ever."""
        ...

    def new_scope(self) -> Scope:
        """A scope without a deadline."""
        ...

    async def wait_until(self, deadline: float, wait: Callable[[], Awaitable[object]]) -> bool:
        """Wait for something, and say whether it has come before the deadline."""
        ...

    def new_messenger(self) -> Callable[[Callable[[], object]], object]:
        """What other threads may hand a function to, which then runs in the thread of this loop.

        Here it is called at once. When the loop has ended, nothing happens.
        """
        ...
