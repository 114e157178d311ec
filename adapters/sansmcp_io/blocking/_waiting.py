"""Threads that wait share the work: one of them reads and writes for all.

No thread is started for it. One of the threads that wait reads: it selects among the descriptors of
the transport, hands data to the core, and rings the bells of threads whose mailboxes have got
something. The others sleep until their bell rings. A thread that stops waiting, or that runs a
function of the application, wakes one that sleeps, which then reads. Output is written by the
thread that has caused it, as far as that needs no waiting; the thread that reads writes the rest.

One lock guards all of it. It is free while a thread selects, sleeps or runs functions of the
application, so that none of these keeps another thread from anything.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from sansmcp import State

from .._common.errors import ConnectionLost
from .._common.requests import SendState
from ._lock import Guarded
from ._mailbox import Bell, Mailbox

if TYPE_CHECKING:
    from .._common.call import RequestingSide

FORKED: Final = "the connection belongs to the process that has forked this one"
_LONGEST_SECONDS: Final = 86_400.0
"""The longest single sleep: systems have limits of their own."""

_LATE_SECONDS: Final = 1.0
_LATE_PAUSE_SECONDS: Final = 0.1
"""If no thread was reading when a timeout came due, data that comes within the first time, with
pauses no longer than the second, still counts as earlier: a large response, no endless stream."""


class Waiting(Guarded):
    """Where threads wait. The transport says what is read and written, and how."""

    def __init__(self, side: RequestingSide) -> None:
        super().__init__()
        self.side: Final = side
        self._late: deque[Any] = deque()  # to be cancelled when the lock can be had
        self._is_released = False  # nothing is read or written any more
        self._is_closed = False
        self._parked: dict[Bell, None] = {}
        self._is_read = False  # some thread selects
        self._alarm = math.inf  # until when it does
        self._late_until = math.inf  # timeouts that are due wait, if data comes
        self._is_crowded = False  # a thread waits for room in the output
        self.sending: Final = SendState(side)

    def _leave_to_parent(self) -> None:
        super()._leave_to_parent()
        self._is_released = True
        self._is_read = False
        self._parked.clear()

    # ---------------------------------------------------------------- what the transport does

    @property
    def _own_alarm(self) -> float:
        """When the transport has something to do even if nothing comes."""
        raise NotImplementedError  # the transport's

    def _get_ready(self) -> None:
        """A thread is about to select."""
        raise NotImplementedError  # the transport's

    def _select(self, seconds: float) -> Any:
        """Wait until something can be read or written, or for so long. Called without the lock."""
        raise NotImplementedError  # the transport's

    def _pull(self, ready: Any) -> None:
        """Read and write what was selected."""
        raise NotImplementedError  # the transport's

    def _push(self) -> None:
        """Write what can be written without waiting."""
        raise NotImplementedError  # the transport's

    @property
    def _needs_reader(self) -> bool:
        """Whether something new is to be selected, so that the selecting thread has to be woken."""
        raise NotImplementedError  # the transport's

    def _rouse(self) -> None:
        """Let `_select` return."""
        raise NotImplementedError  # the transport's

    def _drop_trace(self) -> None:
        """Use the trace no more: it may have failed."""
        raise NotImplementedError  # the transport's

    def flush(self, *, until_taken: bool = False) -> None:
        """Write output that no caller waits for, if that takes only a moment.

        Args:
            until_taken: Wait until the peer confirms it, where it does so.
        """

    def _finish(self) -> None:
        """End the connection, and return when no thread reads or writes any more."""
        raise NotImplementedError  # the transport's

    def _close(self) -> None:
        """Close the descriptors. A process that has forked this one still uses its own."""
        raise NotImplementedError  # the transport's

    # -------------------------------------------------------------------- what sessions do

    def _dispatch(self) -> None:
        """Handle all events."""
        raise NotImplementedError  # the session's

    def _next_job(self) -> Callable[[], None] | None:
        """Return a function of the application that can be called now, if there is one."""
        raise NotImplementedError  # the session's

    # ---------------------------------------------------------------------------- waiting

    def wait(
        self,
        is_done: Callable[[], object],
        until: float = math.inf,
        mailbox: Mailbox[Any] | None = None,
    ) -> bool:
        """Wait for a condition, and read, write and serve meanwhile.

        Args:
            is_done: The condition; called with the lock held.
            until: The deadline.
            mailbox: The mailbox whose bell rings when the condition may be true.

        Returns:
            Whether the condition is true.
        """
        try:
            while not is_done():
                if (job := self._next_job()) is not None:
                    self._pass_on()
                    job()
                elif time.monotonic() >= until:
                    return False
                elif self._is_read:
                    self._park(until, mailbox)
                else:
                    self._read(until)
            return True
        finally:
            self._pass_on()

    def ring(self, mailbox: Mailbox[Any]) -> None:
        """Wake the thread that waits for this, if it sleeps."""
        bell = mailbox.bell
        if bell is not None and bell in self._parked:
            del self._parked[bell]
            bell.ring()

    def ring_all(self) -> None:
        """Wake all threads that sleep: each looks at its own condition."""
        for bell in self._parked:
            bell.ring()
        self._parked.clear()

    def _pass_on(self) -> None:
        """Let another thread read: this one will not."""
        if not self._is_read:
            self._ring_some(1)

    def _ring_some(self, number: int) -> None:
        """Wake as many threads that sleep, the longest sleepers first."""
        for bell in list(self._parked)[:number]:
            del self._parked[bell]
            bell.ring()

    def _park(self, until: float, mailbox: Mailbox[Any] | None) -> None:
        """Sleep until the bell rings."""
        bell = Bell()
        self._parked[bell] = None
        if mailbox is not None:
            mailbox.bell = bell
        try:
            seconds = min(until - time.monotonic(), _LONGEST_SECONDS)
            self._without_lock(bell.wait, max(seconds, 0.0))
        finally:
            self._parked.pop(bell, None)
            if mailbox is not None:
                mailbox.bell = None

    def look(self) -> None:
        """Read what has come without waiting, unless another thread reads anyway."""
        if not self._is_read and not self._is_released:
            self._read(-math.inf)
            self._pass_on()

    def _read(self, until: float) -> None:
        """Select once, and read and write what is ready."""
        if self.is_forked:
            raise ConnectionLost(FORKED)
        deadline = self.side.next_timeout()
        self._get_ready()
        alarm = min(until, self._own_alarm)
        self._alarm = alarm = alarm if deadline is None else min(alarm, deadline)
        self._is_read = True
        try:
            now = time.monotonic()
            seconds = max(min(alarm - now, _LONGEST_SECONDS), 0.0)
            is_late = deadline is not None and deadline <= now
            if not is_late:
                self._late_until = math.inf
            elif self._late_until == math.inf:
                self._late_until = now + _LATE_SECONDS
            elif until > now:
                seconds = _LATE_PAUSE_SECONDS  # it writes on, since it is read again
            ready = self._without_lock(self._select, seconds)
        finally:
            self._is_read = False
        try:
            self._pull(ready)
            now = time.monotonic()
            # If no thread read when the timeout came due, data that came meanwhile counts first.
            if not (is_late and ready and now < self._late_until):
                self.side.handle_timeout(now)
            self.turn()
        except BaseException:
            self._break_down()
            raise

    # ---------------------------------------------------------------------------- ending

    def finish(self) -> None:
        """End the connection from this side. After that, no thread reads or writes.

        It may be called again, if it is not known whether it was called.
        """
        try:
            if not self._is_released:
                self._is_ending = True
                self._finish()
        finally:
            self._is_released = True
            if not self._is_closed:
                self._is_closed = True
                self._close()

    # ---------------------------------------------------------------------------- turning

    def turn(self) -> None:
        """Handle events, output and deadlines, after a call into the core or after reading."""
        try:
            self._turn()
        except BaseException:
            self._break_down()
            raise

    def cancel_soon(self, handle: Any) -> None:
        """Cancel a listing or subscription that is left; garbage collection may call this."""
        self._late.append(handle)
        if not self._is_mine:
            with self:
                self.turn()

    def _break_down(self) -> None:
        """End the connection, since a trace or a log handler of the application has failed.

        An event may be lost by that, and no caller may wait for it.
        """
        self._drop_trace()
        self.side.close(now=time.monotonic())
        self._dispatch()
        self.ring_all()

    def _turn(self) -> None:
        while self._late:
            self.side.cancel(self._late.popleft(), now=time.monotonic())
        self._dispatch()
        if self._is_released:
            return
        self._push()
        if self._is_read:
            deadline = self.side.next_timeout()
            if self._needs_reader:
                self._rouse()
            elif deadline is not None and deadline < self._alarm:
                self._alarm = deadline
                self._rouse()
        if self.side.state is State.CLOSED:
            self.ring_all()
            self._wake_reader()

    def _wake_reader(self) -> None:
        """Wake the thread that selects, so that it looks again."""
        if self._is_read:
            self._rouse()

    # ------------------------------------------------------------------------------- room

    def wait_for_room(self, until: float) -> bool:
        """Wait until output may be added, or the connection has ended."""
        return self.wait(self._may_go_on, until)

    def _may_go_on(self) -> bool:
        if self.sending.has_room or self.sending.is_hopeless:
            return True
        self._is_crowded = True  # each time: another thread may have taken the room
        return False

    def _look_for_room(self) -> None:
        """Some output was written."""
        if self._is_crowded and self.sending.has_room:
            self._is_crowded = False
            self.ring_all()
            self._wake_reader()
