"""Threads that wait share the work: one of them reads and writes for all.

No thread is started for reading. One of the threads that wait reads: it selects among the
descriptors of the wire, hands data to the core, and rings the bells of threads whose mailboxes got
an event. The other threads sleep until their bell rings. A thread that stops waiting, or that runs
a function of the application, wakes a sleeping thread, which then reads. A thread that causes
output writes it as far as that needs no waiting; the reading thread writes the rest.

One lock guards the state of a session. The lock is free while a thread selects, sleeps or runs a
function of the application, so that no other thread is held up.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from sansmcp import State

from .._common.errors import ConnectionLost
from .._common.requests import SendState
from ._lock import Guarded
from ._mailbox import Bell, Mailbox

if TYPE_CHECKING:
    from sansmcp import OutgoingRequest

    from .._common.call import RequestingSide

FORKED: Final = "the connection belongs to the process that has forked this one"
_LONGEST_SECONDS: Final = 86_400.0
"""The longest single sleep: systems have limits of their own."""

_LATE_SECONDS: Final = 1.0
_LATE_PAUSE_SECONDS: Final = 0.1
"""If no thread was reading when a timeout came due, data that comes within the first time, with
pauses no longer than the second, still counts as earlier: a large response, no endless stream."""


class WaitingThreads(Guarded):
    """Lets threads wait, of which one reads and writes for all. Base class of all sessions.

    The classes of a session are `RequestSender`, `EventDispatcher`, this class, `Guarded` and
    `Forkable`, and beside them a wire, `StdioWire` or `HTTPClientWire`, which reads and writes.
    """

    def __init__(self, side: RequestingSide) -> None:
        super().__init__()
        self.side: Final = side
        # What is to be done when the lock is free: a method of the core, and a handle for it.
        self._late: deque[tuple[Callable[..., bool], Any]] = deque()
        self._is_released = False  # reading and writing have ended
        self._is_closed = False
        self._parked: dict[Bell, None] = {}
        self._is_read = False  # a thread selects
        self._alarm = math.inf  # the time until which that thread selects
        self._late_until = math.inf  # until this time, arriving data holds back timeouts
        self._is_crowded = False  # a thread waits for room in the output
        self.sending: Final = SendState(side)

    def _leave_to_parent(self) -> None:
        super()._leave_to_parent()
        self._is_released = True
        self._is_read = False
        self._parked.clear()

    # ------------------------------------------------------------------ provided by the wire

    @property
    @abstractmethod
    def _wire_deadline(self) -> float:
        """The time at which the wire has to act even if no data comes; `math.inf`: never."""

    @abstractmethod
    def _prepare_select(self) -> None:
        """Prepare for `_select`. Called with the lock."""

    @abstractmethod
    def _select(self, seconds: float) -> Any:
        """Wait until data can be read or written, or for `seconds`. Called without the lock."""

    @abstractmethod
    def _handle_ready(self, ready: Any) -> None:
        """Read and write on the descriptors that `_select` has returned."""

    @abstractmethod
    def _write_output(self) -> None:
        """Write output as far as that needs no waiting."""

    @property
    @abstractmethod
    def _needs_reader(self) -> bool:
        """Whether the thread in `_select` has to be woken, to select other descriptors."""

    @abstractmethod
    def _wake_select(self) -> None:
        """Make `_select` return in the thread that is in it."""

    @abstractmethod
    def _stop_tracing(self) -> None:
        """Stop using the trace, which may have failed."""

    def flush(self, *, until_taken: bool = False) -> None:
        """Write the output of which no caller awaits a response, if that takes only a moment.

        Args:
            until_taken: Wait until the peer has confirmed the output, if the transport has that.
        """

    @abstractmethod
    def _finish(self) -> None:
        """End the connection, and return when no thread reads or writes any more."""

    @abstractmethod
    def _close(self) -> None:
        """Close the descriptors. If this is a forked process, its parent still uses its own."""

    # ------------------------------------------------------ provided by `EventDispatcher`

    @abstractmethod
    def _dispatch(self) -> None:
        """Handle all events."""

    @abstractmethod
    def _next_callback(self) -> Callable[[], None] | None:
        """Return a function of the application that can be called now, if there is one."""

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
                if (job := self._next_callback()) is not None:
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
        """Wake the thread that waits for a mailbox, if that thread sleeps."""
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
        """Let another thread read, since this thread stops waiting."""
        if not self._is_read:
            self._ring_some(1)

    def _ring_some(self, number: int) -> None:
        """Wake up to `number` sleeping threads, the longest sleepers first."""
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
        """Read the data that has arrived, without waiting, unless another thread reads anyway."""
        if not self._is_read and not self._is_released:
            self._read(-math.inf)
            self._pass_on()

    def _read(self, until: float) -> None:
        """Select once, and read and write on the descriptors that are ready."""
        if self.is_forked:
            raise ConnectionLost(FORKED)
        deadline = self.side.next_timeout()
        self._prepare_select()
        alarm = min(until, self._wire_deadline)
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
                seconds = _LATE_PAUSE_SECONDS  # the peer may go on, since its output is read again
            ready = self._without_lock(self._select, seconds)
        finally:
            self._is_read = False
        try:
            self._handle_ready(ready)
            now = time.monotonic()
            # If no thread read when the timeout came due, data that came meanwhile counts first.
            if not (is_late and ready and now < self._late_until):
                self._time_passes(now)
            self.turn()
        except BaseException:
            self._end_after_failure()
            raise

    def _time_passes(self, now: float) -> None:
        """Handle the deadlines that are due."""
        self.side.handle_timeout(now)

    # ---------------------------------------------------------------------------- ending

    def finish(self) -> None:
        """End the connection from this side. After that, no thread reads or writes.

        A second call does no harm, so an interrupted caller can call again.
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
            self._end_after_failure()
            raise

    def cancel_soon(self, handle: Any) -> None:
        """Cancel a listing or subscription that is closed, maybe by the garbage collector."""
        self._do_soon(self.side.cancel, handle)

    def leave_task_soon(self, call: OutgoingRequest) -> None:
        """Do not follow a task any more, whose handle was dropped."""
        self._do_soon(self.side.leave_task, call)

    def _do_soon(self, function: Callable[..., bool], handle: Any) -> None:
        self._late.append((function, handle))
        if not self._is_mine:
            with self:
                self.turn()

    def _end_after_failure(self) -> None:
        """End the connection, since a trace or a log handler of the application has failed.

        That failure may have lost an event, and a caller would wait for it forever.
        """
        self._stop_tracing()
        self.side.close(now=time.monotonic())
        self._dispatch()
        self.ring_all()

    def _turn(self) -> None:
        while self._late:
            function, handle = self._late.popleft()
            function(handle, now=time.monotonic())
        self._dispatch()
        if self._is_released:
            return
        self._write_output()
        if self._is_read:
            deadline = self.side.next_timeout()
            if self._needs_reader:
                self._wake_select()
            elif deadline is not None and deadline < self._alarm:
                self._alarm = deadline
                self._wake_select()
        if self.side.state is State.CLOSED:
            self.ring_all()
            self._wake_reader()

    def _wake_reader(self) -> None:
        """Wake the thread that selects, so that it tests its condition again."""
        if self._is_read:
            self._wake_select()

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
        """Wake threads that wait for room, after output was written."""
        if self._is_crowded and self.sending.has_room:
            self._is_crowded = False
            self.ring_all()
            self._wake_reader()
