"""What the shared parts need of a loop, as trio has it."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import trio

from .._common.callbacks import ProgressHandler
from ._mailbox import Mailbox


class TrioLoop:
    """trio, as long as it runs."""

    now = staticmethod(trio.current_time)
    new_event = trio.Event
    new_lock = trio.Lock

    def new_mailbox(self, on_progress: ProgressHandler | None = None) -> Mailbox[Any]:
        """A mailbox that is empty."""
        return Mailbox(on_progress)

    def new_workers(self, deadline: float) -> Workers:
        """Workers that have time until then."""
        return Workers(deadline)

    async def pause(self) -> None:
        """Let others run."""
        await trio.lowlevel.checkpoint()

    async def wait_until(self, deadline: float, wait: Callable[[], Awaitable[object]]) -> bool:
        """Wait for something, and say whether it has come before the deadline."""
        with trio.move_on_at(deadline) as scope:
            await wait()
        return not scope.cancelled_caught

    def new_messenger(self) -> Callable[[Callable[[], object]], object]:
        """What any thread may hand a function to, for this one."""
        here, token = threading.get_ident(), trio.lowlevel.current_trio_token()

        def hand_over(function: Callable[[], object]) -> None:
            if threading.get_ident() == here:
                function()
            else:
                with suppress(trio.RunFinishedError):
                    token.run_sync_soon(function)

        return hand_over


class Workers:
    """Tasks of one caller that work at the same thing."""

    def __init__(self, deadline: float) -> None:
        self._scope = trio.CancelScope(deadline=deadline)

    def cancel(self) -> None:
        """Cancel them all."""
        self._scope.cancel()

    async def run(self, work: Callable[[], Awaitable[None]], number: int) -> None:
        """Have so many tasks do this, and wait for their ends."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                for _ in range(number):
                    nursery.start_soon(work)
