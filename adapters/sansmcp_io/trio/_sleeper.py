"""One task that sleeps until it is woken: what `trio.Event` does, for less."""

from __future__ import annotations

import trio


class Sleeper:
    """A place for one task to wait in. Waking it while nobody waits is remembered."""

    def __init__(self) -> None:
        self._task: trio.lowlevel.Task | None = None
        self._was_woken = False

    def wake(self) -> None:
        """Wake the task, or keep it from falling asleep."""
        task = self._task
        if task is None:
            self._was_woken = True
        else:
            self._task = None
            trio.lowlevel.reschedule(task)

    async def sleep(self) -> None:
        """Wait until somebody wakes."""
        if self._was_woken:
            self._was_woken = False
            await trio.lowlevel.checkpoint()
            return
        self._task = trio.lowlevel.current_task()

        def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
            self._task = None
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
        self._was_woken = False  # again before it ran: it sees all of that now
